/* SPDX-License-Identifier: Apache-2.0 */
#include "tf/cxx.h"

#include <dlfcn.h>

#include <functional>
#include <new>
#include <optional>
#include <string>

#ifndef __GLIBCXX__
#error "TensorFlow is built with libstdc++; build this file with it too"
#endif

struct ls_cxx_done {
    std::function<void()> function;
};

/* xla/service/custom_call_status_internal.h; the functions for it are not exported. */
struct XlaCustomCallStatus_ {
    std::optional<std::string> message;
};

ls_cxx_done_t *ls_cxx_done_take(TF_AsyncOpKernelDoneCallback *done)
{
    auto *taken = new (std::nothrow) ls_cxx_done;

    if (taken != nullptr) {
        taken->function = std::move(*reinterpret_cast<std::function<void()> *>(done));
    }
    return taken;
}

void ls_cxx_done_run(ls_cxx_done_t *done)
{
    done->function();
    delete done;
}

const char *ls_cxx_xla_register(const char *name, ls_cxx_xla_target_fn target)
{
    using global_fn   = void *(*)();
    using register_fn = void (*)(void *registry, const std::string &, void *, const std::string &);

    void *library = dlopen("libtensorflow_cc.so.2", RTLD_NOLOAD | RTLD_NOW);

    if (library == nullptr) {
        return "libtensorflow_cc.so.2 is not loaded";
    }
    auto get = reinterpret_cast<global_fn>(dlsym(library, "_ZN3xla24CustomCallTargetRegistry6GlobalEv"));
    auto add =
        reinterpret_cast<register_fn>(dlsym(library, "_ZN3xla24CustomCallTargetRegistry8RegisterERKNSt7__"
                                                     "cxx1112basic_stringIcSt11char_traitsIcESaIcEEEPvS8_"));
    if (get == nullptr || add == nullptr) {
        return "this TensorFlow does not export xla::CustomCallTargetRegistry";
    }
    add(get(), name, reinterpret_cast<void *>(target), "Host");
    return nullptr;
}

void ls_cxx_xla_fail(XlaCustomCallStatus *status, const char *message)
{
    status->message = message;
}

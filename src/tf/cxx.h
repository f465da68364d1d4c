/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The places where TensorFlow leaves no way but C++: objects of the standard library that cross the border.
 * Their layout is libstdc++'s, which TensorFlow's own binaries fix.
 */
#ifndef LS_TF_CXX_H
#define LS_TF_CXX_H

#include "tf/tf_api.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ls_cxx_done ls_cxx_done_t;

/*
 * `done` points to a std::function on the stack of the caller of compute; it is gone when compute returns.
 * This moves it to the heap.  NULL: no memory, and `done` is untouched.
 */
ls_cxx_done_t *ls_cxx_done_take(TF_AsyncOpKernelDoneCallback *done);
void           ls_cxx_done_run(ls_cxx_done_t *done); /* once; frees it */

/* What XLA gives a custom call to report a failure. */
typedef struct XlaCustomCallStatus_ XlaCustomCallStatus;

typedef void (*ls_cxx_xla_target_fn)(void *out, const void **in, const char *opaque, size_t opaque_length,
                                     XlaCustomCallStatus *status);

/* Make `target` known to XLA's CPU compiler.  NULL, or what is missing. */
const char *ls_cxx_xla_register(const char *name, ls_cxx_xla_target_fn target);
void        ls_cxx_xla_fail(XlaCustomCallStatus *status, const char *message);

#ifdef __cplusplus
}
#endif

#endif

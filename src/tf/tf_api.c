/* SPDX-License-Identifier: Apache-2.0 */
#include "tf/tf_api.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

ls_tf_api_t ls_tf;

typedef struct symbol {
    const char *name;
    size_t      offset; /* in ls_tf_api_t */
} symbol_t;

static const symbol_t symbols[] = {
#define SYMBOL(_result, _name, _args) {"TF_" #_name, offsetof(ls_tf_api_t, _name)},
    LS_TF_API_LIST(SYMBOL)
#undef SYMBOL
};

const char *ls_tf_api_load(void)
{
    static char problem[256];
    /* Only what is loaded already: another copy would have registries of its own. */
    void *library = dlopen("libtensorflow_framework.so.2", RTLD_NOLOAD | RTLD_NOW);

    if (library == NULL) {
        return "libtensorflow_framework.so.2 is not loaded: import tensorflow first";
    }
    for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
        void *address = dlsym(library, symbols[i].name);

        if (address == NULL) {
            snprintf(problem, sizeof(problem), "this TensorFlow has no %s; 2.16 to 2.21 have",
                     symbols[i].name);
            dlclose(library);
            return problem;
        }
        memcpy((char *)&ls_tf + symbols[i].offset, &address, sizeof(address));
    }
    return NULL; /* the handle is kept, and with it TensorFlow */
}

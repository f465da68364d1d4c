/* SPDX-License-Identifier: Apache-2.0 */
#include "data/hdf5_api.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"

_Static_assert(sizeof(long) == 8, "int64 is libhdf5's long");

#define REASONS 4

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static ls_hdf5_api_t   api;       /* lock: lock */
static bool            is_loaded; /* lock: lock */
static H5E_auto2_t     printer;   /* what libhdf5 did with errors before; lock: lock */
static void           *printer_data;

/* By its name where the system finds it, otherwise where it was when this was built. */
static void *open_library(void)
{
    void *library = dlopen(LOCKSTEP_HDF5_NAME, RTLD_NOW | RTLD_LOCAL);

    return library != NULL ? library : dlopen(LOCKSTEP_HDF5_PATH, RTLD_NOW | RTLD_LOCAL);
}

/* A function is copied as an object: ISO C has no cast from void * to it. */
static bool find(void *library, const char *name, void *pointer_p)
{
    void *symbol = dlsym(library, name);

    memcpy(pointer_p, &symbol, sizeof(symbol));
    return symbol != NULL;
}

/* IEEE half precision: sign 15, exponent 5 bits from 10, mantissa 10 bits from 0. */
static hid_t make_float16(void)
{
    const hid_t type = api.H5Tcopy(api.native_float32);

    if (type >= 0 && (api.H5Tset_fields(type, 15, 10, 5, 0, 10) < 0 || api.H5Tset_size(type, 2) < 0 ||
                      api.H5Tset_ebias(type, 15) < 0)) {
        api.H5Tclose(type);
        return -1;
    }
    return type;
}

static ls_status_t load(void)
{
    void  *library = open_library();
    bool   is_good = true;
    hid_t *id;

    if (library == NULL) {
        return ls_error_set(LS_ERR_UNSUPPORTED, "HDF5 cannot be read: %s; install libhdf5", dlerror());
    }
#define FIND(_name) is_good &= find(library, #_name, &api._name);
    LS_HDF5_FUNCTIONS(FIND)
#undef FIND
    is_good = is_good && api.H5open() >= 0;
#define FIND(_name, _symbol)                       \
    if (is_good && find(library, #_symbol, &id)) { \
        api._name = *id;                           \
    } else {                                       \
        is_good = false;                           \
    }
    LS_HDF5_IDS(FIND)
#undef FIND
    api.native_float16 = is_good ? make_float16() : -1;
    if (api.native_float16 < 0) {
        dlclose(library);
        return ls_error_set(LS_ERR_UNSUPPORTED,
                            "HDF5 cannot be read: %s is not the library that this was built for",
                            LOCKSTEP_HDF5_NAME);
    }
    is_loaded = true;
    return LS_OK;
}

ls_status_t ls_hdf5_api_begin(const ls_hdf5_api_t **api_p)
{
    ls_status_t status = LS_OK;

    pthread_mutex_lock(&lock);
    if (!is_loaded) {
        status = load();
    }
    if (status != LS_OK) {
        pthread_mutex_unlock(&lock);
        return status;
    }
    /* What goes wrong is in our messages; libhdf5 would print it as well. */
    api.H5Eget_auto2(H5E_DEFAULT, &printer, &printer_data);
    api.H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    *api_p = &api;
    return LS_OK;
}

void ls_hdf5_api_end(void)
{
    api.H5Eset_auto2(H5E_DEFAULT, printer, printer_data);
    pthread_mutex_unlock(&lock);
}

/* From the innermost error outwards; the first few say what it is about. */
static herr_t add_reason(unsigned n, const H5E_error2_t *error, void *reason)
{
    const size_t used = strlen(reason);

    if (n < REASONS && error->desc != NULL) {
        snprintf((char *)reason + used, LS_HDF5_REASON_ROOM - used, "%s%s", used > 0 ? "; " : "",
                 error->desc);
    }
    return 0;
}

void ls_hdf5_api_reason(char reason[LS_HDF5_REASON_ROOM])
{
    reason[0] = '\0';
    api.H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, add_reason, reason);
    api.H5Eclear2(H5E_DEFAULT);
    if (reason[0] == '\0') {
        snprintf(reason, LS_HDF5_REASON_ROOM, "libhdf5 gives no reason");
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Values that are NaN or infinite.  That there are any, the kernels find (kernel.h); here is which. */
#ifndef LS_DEVICE_FINITE_H
#define LS_DEVICE_FINITE_H

#include <stdbool.h>

#include "lockstep.h"

typedef struct ls_bad_value {
    bool     is_found; /* false: the rest is not set */
    bool     is_nan;   /* or infinite */
    uint64_t at;
} ls_bad_value_t;

/* The first of `count` values, the first of which is number `at`, to `bad`, unless there is one in it already. */
void ls_finite_note(ls_dtype_t dtype, const void *values, uint64_t count, uint64_t at, ls_bad_value_t *bad);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the element that is NaN or infinite, for a message; that there is one, ls_kernel_is_finite tells. */
#ifndef LS_DEVICE_FINITE_H
#define LS_DEVICE_FINITE_H

#include <stdbool.h>

#include "lockstep.h"

/* The first, and whether it is NaN; `count` when there is none. */
uint64_t ls_finite_first_bad(ls_dtype_t dtype, const void *data, uint64_t count, bool *is_nan_p);

#endif

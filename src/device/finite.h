/* SPDX-License-Identifier: Apache-2.0 */
/* Finds elements that are NaN or infinite; about as fast as memory can be read. */
#ifndef LS_DEVICE_FINITE_H
#define LS_DEVICE_FINITE_H

#include <stdbool.h>

#include "lockstep.h"

/* Are all elements finite?  Those of types that are not floats always are. */
bool ls_finite_all(ls_dtype_t dtype, const void *data, uint64_t count);

/* The first that is not, and whether it is NaN; `count` when there is none. */
uint64_t ls_finite_first_bad(ls_dtype_t dtype, const void *data, uint64_t count, bool *is_nan_p);

#endif

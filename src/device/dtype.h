/* SPDX-License-Identifier: Apache-2.0 */
/* What is known about an element type: size, name, whether it is a float. */
#ifndef LS_DEVICE_DTYPE_H
#define LS_DEVICE_DTYPE_H

#include <stdbool.h>

#include "lockstep.h"

size_t      ls_dtype_size(ls_dtype_t dtype);
const char *ls_dtype_name(ls_dtype_t dtype); /* "float32"; "?" for a value out of range */
bool        ls_dtype_is_float(ls_dtype_t dtype);

const char *ls_dtype_op_name(ls_op_t op); /* "sum"; "?" for a value out of range */

#endif

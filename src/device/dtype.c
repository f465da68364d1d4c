/* SPDX-License-Identifier: Apache-2.0 */
#include "device/dtype.h"

#include <stddef.h>

static const struct {
    const char *name;
    size_t      size;
    bool        is_float;
} dtypes[LS_DTYPE_COUNT] = {
    [LS_FLOAT16]  = {.name = "float16", .size = 2, .is_float = true},
    [LS_BFLOAT16] = {.name = "bfloat16", .size = 2, .is_float = true},
    [LS_FLOAT32]  = {.name = "float32", .size = 4, .is_float = true},
    [LS_FLOAT64]  = {.name = "float64", .size = 8, .is_float = true},
    [LS_INT8]     = {.name = "int8", .size = 1},
    [LS_UINT8]    = {.name = "uint8", .size = 1},
    [LS_INT32]    = {.name = "int32", .size = 4},
    [LS_INT64]    = {.name = "int64", .size = 8},
    [LS_BOOL]     = {.name = "bool", .size = 1},
};

static const char *const op_names[LS_OP_COUNT] = {
    [LS_SUM] = "sum", [LS_MEAN] = "mean", [LS_WEIGHTED_MEAN] = "weighted mean",
    [LS_MIN] = "min", [LS_MAX] = "max",   [LS_PRODUCT] = "product",
};

/* The values come from callers and other ranks: negative ones too are out of range. */
static bool is_dtype(ls_dtype_t dtype)
{
    return (unsigned)dtype < LS_DTYPE_COUNT;
}

size_t ls_dtype_size(ls_dtype_t dtype)
{
    return is_dtype(dtype) ? dtypes[dtype].size : 0;
}

const char *ls_dtype_name(ls_dtype_t dtype)
{
    return is_dtype(dtype) ? dtypes[dtype].name : "?";
}

bool ls_dtype_is_float(ls_dtype_t dtype)
{
    return is_dtype(dtype) && dtypes[dtype].is_float;
}

const char *ls_dtype_op_name(ls_op_t op)
{
    return ((unsigned)op < LS_OP_COUNT) ? op_names[op] : "?";
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What a path (c, avx2, avx512) offers to kernel.c. */
#ifndef LS_DEVICE_KERNEL_INT_H
#define LS_DEVICE_KERNEL_INT_H

#include "device/kernel.h"

/* The hash keeps 32 words; word i takes in every 32nd word of the data, from the i-th on. */
#define LS_KERNEL_HASH_WORDS  32
#define LS_KERNEL_HASH_BYTES  (LS_KERNEL_HASH_WORDS * sizeof(uint32_t))
#define LS_KERNEL_HASH_MUL_IN 0x85ebca77U
#define LS_KERNEL_HASH_MUL    0x9e3779b1U

typedef void (*ls_kernel_reduce_fn)(const ls_kernel_reduce_t *args);
typedef void (*ls_kernel_cast_fn)(const ls_kernel_cast_t *args);

typedef struct ls_kernel_ops {
    const char         *name;
    ls_kernel_reduce_fn reduce[LS_DTYPE_COUNT][LS_OP_COUNT]; /* NULL: means, they are sums */
    /* Between float32 and the other float types; any other pair takes two steps. */
    ls_kernel_cast_fn   from_float32[LS_DTYPE_COUNT];
    ls_kernel_cast_fn   to_float32[LS_DTYPE_COUNT];
    /* Take in `count` pieces of LS_KERNEL_HASH_BYTES. */
    void (*hash)(const uint8_t *data, size_t count, uint32_t words[LS_KERNEL_HASH_WORDS]);
    bool (*is_finite[LS_DTYPE_COUNT])(const void *data, size_t count); /* NULL: always */
} ls_kernel_ops_t;

/* NULL where the processor lacks the instructions. */
const ls_kernel_ops_t *ls_kernel_c_get(void);
const ls_kernel_ops_t *ls_kernel_avx2_get(void);
const ls_kernel_ops_t *ls_kernel_avx512_get(void);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Element kernels: the only code that touches every element of a tensor.
 *
 * Each kernel has a plain C path and, where the processor has them, AVX2 and AVX-512 paths, chosen
 * once at load (LOCKSTEP_SIMD can ask for less).  All paths give the same bits: no fused
 * multiply-add, sources combined strictly in the order given, float16/bfloat16 rounded to nearest
 * even, NaN stays NaN: what is reduced or rounded to 16 bits becomes the NaN with all bits set, and
 * a min or max with a NaN is NaN.
 */
#ifndef LS_DEVICE_KERNEL_H
#define LS_DEVICE_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "device/finite.h"
#include "lockstep.h"

#define LS_KERNEL_NO_OWN UINT32_MAX

/*
 * dst[i] = scale * (src[0][i] op src[1][i] op ... op src[num_src - 1][i])
 *
 * `op` is LS_SUM, LS_MIN, LS_MAX or LS_PRODUCT (means are sums with a scale).
 * float16/bfloat16: converted to float32, combined there, rounded once at the end.
 * src[own] is first multiplied by own_scale and rounded to the type (as a sender would have done);
 * own == LS_KERNEL_NO_OWN or own_scale == 1: no multiplication.
 * scale != 1 and own_scale != 1 need a float type; divide > 1 needs an integer type: the result is
 * divided by it, truncating toward zero (the integers' mean).
 * bad != NULL: the first value of src[own] that is not finite is noted there, on the way.
 * dst2 != NULL receives the same result: it saves a pass when the result is also to be sent.
 * dst and dst2 may equal any src; otherwise no overlap.  num_src >= 1; count may be 0; pointers need
 * no more alignment than the type's.
 */
typedef struct ls_kernel_reduce {
    ls_dtype_t         dtype;
    ls_op_t            op;
    uint32_t           num_src;
    uint32_t           own;
    const void *const *src;
    double             own_scale;
    double             scale;
    int64_t            divide; /* integers only; 0 or 1: none */
    void              *dst;
    void              *dst2;
    size_t             count;
    bool               stream;  /* write dst past the caches: nobody reads it soon */
    bool               stream2; /* the same for dst2: who reads it is far away */
    ls_bad_value_t    *bad;
} ls_kernel_reduce_t;

void ls_kernel_reduce(const ls_kernel_reduce_t *args);

/*
 * dst[i] = (dst_dtype)(scale * src[i]); the float types convert into each other, other types only
 * into themselves with scale 1.  Same type and scale 1 is a copy.  dst == src is allowed when the
 * types are equal.  The product is computed in float32 (float64 if either type is float64); between
 * float64 and the 16-bit types the value passes through float32.
 */
typedef struct ls_kernel_cast {
    ls_dtype_t  dst_dtype;
    ls_dtype_t  src_dtype;
    double      scale;
    const void *src;
    void       *dst;
    size_t      count;
    bool        stream; /* as above */
    ls_bad_value_t *bad; /* the same for src */
} ls_kernel_cast_t;

void ls_kernel_cast(const ls_kernel_cast_t *args);

/* The element that changes nothing: 0 for sum, 1 for product, the largest (inf) for min, the smallest
 * for max. */
void ls_kernel_fill_identity(ls_dtype_t dtype, ls_op_t op, void *dst, size_t count);

/* 64-bit hash of a byte range, the same on every machine and every path; for the audit. */
uint64_t ls_kernel_hash(const void *data, size_t bytes, uint64_t seed);

/* No element is NaN or infinite.  Those of types that are not floats never are. */
bool ls_kernel_is_finite(ls_dtype_t dtype, const void *data, size_t count);

/* Name of the path in use: "avx512", "avx2" or "c".  ls_kernel_select takes one of them or "auto"
 * and answers LS_ERR_CONFIG when it is unknown or the processor lacks it.  */
const char *ls_kernel_path(void);
ls_status_t ls_kernel_select(const char *path);

#endif

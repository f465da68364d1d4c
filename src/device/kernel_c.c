/* SPDX-License-Identifier: Apache-2.0 */
/* The path for every processor: vectors of 16 bytes, made of whatever the compiler has. */
#define VEC_BYTES 16
#include "device/kernel_vec.h"

VEC_INLINE vec_u32_t widen(vec_half_u16_t v)
{
    return __builtin_convertvector(v, vec_u32_t);
}

VEC_INLINE vec_half_u16_t narrow(vec_u32_t v)
{
    return __builtin_convertvector(v, vec_half_u16_t);
}

VEC_INLINE vec_u32_t choose(vec_i32_t mask, vec_u32_t yes, vec_u32_t no)
{
    return ((vec_u32_t)mask & yes) | (~(vec_u32_t)mask & no);
}

/* The exponent's bias is 15 there and 127 here; inf and NaN need the difference once more. */
VEC_INLINE acc_f16 unpack_f16(raw_f16 v)
{
    const vec_u32_t half     = widen(v);
    const vec_u32_t sign     = (half & 0x8000) << 16;
    const vec_u32_t body     = (half & 0x7fff) << 13;
    const vec_u32_t bias     = (vec_u32_t){0} + (112U << 23);
    const vec_i32_t is_small = (vec_i32_t)body < (1 << 23);
    const vec_i32_t is_inf   = (vec_i32_t)body >= (31 << 23);
    /* Without its leading one: put one there, and subtract it as a number. */
    const vec_f32_t small = (vec_f32_t)(body + bias + (1U << 23)) - 0x1p-14F;
    const vec_u32_t large = body + bias + ((vec_u32_t)is_inf & bias);

    return (acc_f16)(choose(is_small, (vec_u32_t)small, large) | sign);
}

VEC_INLINE raw_f16 pack_f16(acc_f16 v)
{
    const vec_u32_t bits     = (vec_u32_t)v;
    const vec_u32_t body     = bits & 0x7fffffff;
    const vec_i32_t is_small = (vec_i32_t)body < (113 << 23);
    const vec_i32_t is_large = (vec_i32_t)body >= (143 << 23);
    /* Below 2^-14 the last place is 2^-24, that of 0.5: let the addition round. */
    const vec_u32_t small  = (vec_u32_t)((vec_f32_t)body + 0.5F) - (126U << 23);
    const vec_u32_t normal = (body - (112U << 23) + 0xfff + ((body >> 13) & 1)) >> 13;
    const vec_u32_t inf    = (vec_u32_t){0} + 0x7c00;
    const vec_u32_t result = choose(is_large, inf, choose(is_small, small, normal));

    const vec_u32_t nan    = (vec_u32_t)is_nan_f16(v) & 0xffff;

    return narrow(((bits >> 16) & 0x8000) | result | nan);
}

VEC_INLINE bool any_bit(vec_u32_t v)
{
    const vec_u64_t words = (vec_u64_t)v;

    return (words[0] | words[1]) != 0;
}

/* Stores around the cache are not in the language: these go through it. */
VEC_INLINE void stream_vec(uint8_t *to, const void *from, size_t bytes)
{
    memcpy(to, from, bytes);
}

VEC_INLINE void stream_fence(void)
{
}

#define PATH_NAME "c"
#define PATH_OPS  c_ops
#include "device/kernel_body.inc"

const ls_kernel_ops_t *ls_kernel_c_get(void)
{
    return &c_ops;
}

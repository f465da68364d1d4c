/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Vectors of VEC_BYTES bytes, and what each element type does with them.  Included by each path,
 * which defines VEC_BYTES; the compiler's vector types make one text serve all widths.
 *
 * Words, for a type T: raw_T is a vector as it lies in memory, acc_T as it is computed with;
 * unpack_T and pack_T go from one to the other.  pack_T rounds, and makes every NaN the same one
 * (all bits set): which NaN an addition returns depends on the order in which the compiler puts
 * the operands, and all paths shall give the same bits.
 */
#ifndef LS_DEVICE_KERNEL_VEC_H
#define LS_DEVICE_KERNEL_VEC_H

#include <string.h>

#include "device/kernel_int.h"

/* Small functions, called with constants that decide their shape. */
#define VEC_INLINE static inline __attribute__((always_inline, unused))
#define VEC(_lane) __attribute__((vector_size(VEC_BYTES))) _lane
#define VEC_HALF(_lane) __attribute__((vector_size(VEC_BYTES / 2))) _lane

typedef VEC(float) vec_f32_t;
typedef VEC(double) vec_f64_t;
typedef VEC(int8_t) vec_i8_t;
typedef VEC(uint8_t) vec_u8_t;
typedef VEC(int32_t) vec_i32_t;
typedef VEC(uint32_t) vec_u32_t;
typedef VEC(int64_t) vec_i64_t;
typedef VEC(uint64_t) vec_u64_t;
typedef VEC_HALF(uint16_t) vec_half_u16_t;
typedef VEC_HALF(float) vec_half_f32_t;

/* acc_T; the result of comparing two; what sums and products are computed in; one lane. */
#define VEC_TYPES(_t, _raw, _acc, _mask, _wrap, _lane) \
    typedef _raw  raw_##_t;                            \
    typedef _acc  acc_##_t;                            \
    typedef _mask mask_##_t;                           \
    typedef _wrap wrap_##_t;                           \
    typedef _lane lane_##_t;

VEC_TYPES(f16, vec_half_u16_t, vec_f32_t, vec_i32_t, vec_f32_t, float)
VEC_TYPES(bf16, vec_half_u16_t, vec_f32_t, vec_i32_t, vec_f32_t, float)
VEC_TYPES(f32, vec_f32_t, vec_f32_t, vec_i32_t, vec_f32_t, float)
VEC_TYPES(f64, vec_f64_t, vec_f64_t, vec_i64_t, vec_f64_t, double)
VEC_TYPES(i8, vec_i8_t, vec_i8_t, vec_i8_t, vec_u8_t, int8_t)
VEC_TYPES(u8, vec_u8_t, vec_u8_t, vec_i8_t, vec_u8_t, uint8_t)
VEC_TYPES(i32, vec_i32_t, vec_i32_t, vec_i32_t, vec_u32_t, int32_t)
VEC_TYPES(i64, vec_i64_t, vec_i64_t, vec_i64_t, vec_u64_t, int64_t)
VEC_TYPES(b8, vec_u8_t, vec_u8_t, vec_i8_t, vec_u8_t, uint8_t)

/* The factor is first made a value of the lane's type. */
#define VEC_FLOAT(_t)                                                                  \
    VEC_INLINE mask_##_t is_nan_##_t(acc_##_t v) { return (mask_##_t)(v != v); }       \
    VEC_INLINE acc_##_t  one_nan_##_t(acc_##_t v)                                      \
    {                                                                                  \
        return (acc_##_t)((mask_##_t)v | is_nan_##_t(v));                              \
    }                                                                                  \
    VEC_INLINE acc_##_t times_##_t(acc_##_t v, double factor)                          \
    {                                                                                  \
        return v * (lane_##_t)factor;                                                  \
    }                                                                                  \
    VEC_INLINE acc_##_t divided_##_t(acc_##_t v, int64_t divisor)                      \
    {                                                                                  \
        (void)divisor;                                                                 \
        return v;                                                                      \
    }

#define VEC_INT(_t)                                                                    \
    VEC_INLINE mask_##_t is_nan_##_t(acc_##_t v) { return (mask_##_t)(v ^ v); }        \
    VEC_INLINE acc_##_t  times_##_t(acc_##_t v, double factor)                         \
    {                                                                                  \
        (void)factor;                                                                  \
        return v;                                                                      \
    }                                                                                  \
    VEC_INLINE acc_##_t divided_##_t(acc_##_t v, int64_t divisor)                      \
    {                                                                                  \
        for (size_t i = 0; i < sizeof(v) / sizeof(v[0]) && divisor > 1; i++) {         \
            v[i] = (lane_##_t)((int64_t)v[i] / divisor);                               \
        }                                                                              \
        return v;                                                                      \
    }

/* Types that are computed with as they lie in memory. */
#define VEC_SAME(_t, _pack)                                                            \
    VEC_INLINE acc_##_t unpack_##_t(raw_##_t v) { return v; }                          \
    VEC_INLINE raw_##_t pack_##_t(acc_##_t v) { return _pack(v); }

VEC_FLOAT(f16)
VEC_FLOAT(bf16)
VEC_FLOAT(f32)
VEC_FLOAT(f64)
VEC_INT(i8)
VEC_INT(u8)
VEC_INT(i32)
VEC_INT(i64)
VEC_INT(b8)
VEC_SAME(f32, one_nan_f32)
VEC_SAME(f64, one_nan_f64)
VEC_SAME(i8, )
VEC_SAME(u8, )
VEC_SAME(i32, )
VEC_SAME(i64, )

/* Any byte but 0 is true. */
VEC_INLINE acc_b8 unpack_b8(raw_b8 v)
{
    return (acc_b8)(v != 0) & 1;
}

VEC_INLINE raw_b8 pack_b8(acc_b8 v)
{
    return v;
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The path for x86 processors with AVX-512 as in Skylake servers and later.
 * Built with -mavx512f -mavx512bw -mavx512vl -mavx512dq -mf16c -mavx2. */
#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VL__) && defined(__AVX512DQ__)

#include <immintrin.h>

#define VEC_BYTES 64
#include "device/kernel_vec.h"

VEC_INLINE vec_u32_t widen(vec_half_u16_t v)
{
    return (vec_u32_t)_mm512_cvtepu16_epi32((__m256i)v);
}

VEC_INLINE vec_half_u16_t narrow(vec_u32_t v)
{
    return (vec_half_u16_t)_mm512_cvtepi32_epi16((__m512i)v);
}

VEC_INLINE acc_f16 unpack_f16(raw_f16 v)
{
    return (acc_f16)_mm512_cvtph_ps((__m256i)v);
}

/* With a mask of all lanes: the form without is, in gcc -O0, a macro that warns. */
VEC_INLINE raw_f16 pack_f16(acc_f16 v)
{
    return (raw_f16)_mm512_maskz_cvtps_ph((__mmask16)0xffff, (__m512)one_nan_f16(v),
                                          _MM_FROUND_TO_NEAREST_INT);
}

VEC_INLINE bool any_bit(vec_u32_t v)
{
    return _mm512_test_epi32_mask((__m512i)v, (__m512i)v) != 0;
}

/* A whole vector or, of the 16-bit types, a half; `to` is aligned to it. */
VEC_INLINE void stream_vec(uint8_t *to, const void *from, size_t bytes)
{
    if (bytes == sizeof(__m512i)) {
        _mm512_stream_si512((__m512i *)(void *)to, _mm512_loadu_si512(from));
    } else {
        _mm256_stream_si256((__m256i *)(void *)to, _mm256_loadu_si256(from));
    }
}

VEC_INLINE void stream_fence(void)
{
    _mm_sfence();
}

#define PATH_NAME "avx512"
#define PATH_OPS  avx512_ops
#include "device/kernel_body.inc"

const ls_kernel_ops_t *ls_kernel_avx512_get(void)
{
    __builtin_cpu_init();
    return (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
            __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq"))
               ? &avx512_ops
               : NULL;
}

#else

#include "device/kernel_int.h"

const ls_kernel_ops_t *ls_kernel_avx512_get(void)
{
    return NULL;
}

#endif

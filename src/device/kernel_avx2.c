/* SPDX-License-Identifier: Apache-2.0 */
/* The path for x86 processors with AVX2 and F16C.  Built with -mavx2 -mf16c. */
#if defined(__AVX2__) && defined(__F16C__)

#include <cpuid.h>
#include <immintrin.h>

#define VEC_BYTES 32
#include "device/kernel_vec.h"

VEC_INLINE vec_u32_t widen(vec_half_u16_t v)
{
    return (vec_u32_t)_mm256_cvtepu16_epi32((__m128i)v);
}

VEC_INLINE vec_half_u16_t narrow(vec_u32_t v)
{
    return (vec_half_u16_t)_mm_packus_epi32(_mm256_castsi256_si128((__m256i)v),
                                            _mm256_extracti128_si256((__m256i)v, 1));
}

VEC_INLINE acc_f16 unpack_f16(raw_f16 v)
{
    return (acc_f16)_mm256_cvtph_ps((__m128i)v);
}

VEC_INLINE raw_f16 pack_f16(acc_f16 v)
{
    return (raw_f16)_mm256_cvtps_ph((__m256)one_nan_f16(v), _MM_FROUND_TO_NEAREST_INT);
}

VEC_INLINE bool any_bit(vec_u32_t v)
{
    return _mm256_testz_si256((__m256i)v, (__m256i)v) == 0;
}

/* A whole vector or, of the 16-bit types, a half; `to` is aligned to it. */
VEC_INLINE void stream_vec(uint8_t *to, const void *from, size_t bytes)
{
    if (bytes == sizeof(__m256i)) {
        _mm256_stream_si256((__m256i *)(void *)to, _mm256_loadu_si256(from));
    } else {
        _mm_stream_si128((__m128i *)(void *)to, _mm_loadu_si128(from));
    }
}

VEC_INLINE void stream_fence(void)
{
    _mm_sfence();
}

#define PATH_NAME "avx2"
#define PATH_OPS  avx2_ops
#include "device/kernel_body.inc"

/* Not every compiler's __builtin_cpu_supports knows F16C. */
static bool has_f16c(void)
{
    unsigned eax, ebx, ecx, edx;

    return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
}

const ls_kernel_ops_t *ls_kernel_avx2_get(void)
{
    __builtin_cpu_init();
    return (__builtin_cpu_supports("avx2") && has_f16c()) ? &avx2_ops : NULL;
}

#else

#include "device/kernel_int.h"

const ls_kernel_ops_t *ls_kernel_avx2_get(void)
{
    return NULL;
}

#endif

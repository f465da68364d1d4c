/* SPDX-License-Identifier: Apache-2.0 */
/* The scanner for x86 processors with AVX-512BW and VBMI2.  Built with -mavx512f -mavx512bw -mavx512vbmi2
 * -mbmi -mpopcnt. */
#include "data/csv_scan_int.h"

#if defined(__AVX512BW__) && defined(__AVX512VBMI2__) && defined(__BMI__)

#include <immintrin.h>

typedef struct needles {
    __m512i delimiter, quote;
} needles_t;

static inline needles_t needles(const ls_csv_marks_t *marks)
{
    return (needles_t){_mm512_set1_epi8(marks->delimiter), _mm512_set1_epi8(marks->quote)};
}

static inline masks_t classify(const needles_t *need, const char *data, size_t length)
{
    const uint64_t valid = valid_bits(length);
    const __m512i  bytes = _mm512_loadu_si512((const void *)data);

    return (masks_t){
        .valid     = valid,
        .delimiter = _mm512_mask_cmpeq_epi8_mask(valid, bytes, need->delimiter),
        .line_feed = _mm512_mask_cmpeq_epi8_mask(valid, bytes, _mm512_set1_epi8('\n')),
        .cr        = _mm512_mask_cmpeq_epi8_mask(valid, bytes, _mm512_set1_epi8('\r')),
        .quote     = _mm512_mask_cmpeq_epi8_mask(valid, bytes, need->quote),
        .nul       = _mm512_mask_cmpeq_epi8_mask(valid, bytes, _mm512_setzero_si512()),
    };
}

/* The places of the bits as bytes side by side, then sixteen of them at a time. */
static inline uint32_t *put_positions(uint64_t mask, uint32_t base, uint32_t *to)
{
    static const uint8_t places[64] __attribute__((aligned(64))) = {
        0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
        22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43,
        44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63,
    };
    const int     num   = __builtin_popcountll(mask);
    const __m512i bases = _mm512_set1_epi32((int)base);
    __m512i       set   = _mm512_maskz_compress_epi8(mask, _mm512_load_si512(places));

    for (int done = 0; done < num; done += 16) {
        const __m512i some = _mm512_cvtepu8_epi32(_mm512_castsi512_si128(set));

        _mm512_storeu_si512(to + done, _mm512_add_epi32(some, bases));
        set = _mm512_alignr_epi64(set, set, 2);
    }
    return to + num;
}

#define PATH_NAME "avx512"
#define PATH_OPS  avx512_ops
#include "data/csv_scan_body.inc"

const ls_csv_scan_ops_t *ls_csv_scan_avx512_get(void)
{
    __builtin_cpu_init();
    return (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vbmi2") &&
            __builtin_cpu_supports("bmi"))
               ? &avx512_ops
               : NULL;
}

#else

const ls_csv_scan_ops_t *ls_csv_scan_avx512_get(void)
{
    return NULL;
}

#endif

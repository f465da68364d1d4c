/* SPDX-License-Identifier: Apache-2.0 */
/* The scanner for x86 processors with AVX-512BW.  Built with -mavx512f -mavx512bw -mbmi -mpopcnt. */
#include "data/csv_scan_int.h"

#if defined(__AVX512BW__) && defined(__BMI__)

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

#define PATH_NAME "avx512"
#define PATH_OPS  avx512_ops
#include "data/csv_scan_body.inc"

const ls_csv_scan_ops_t *ls_csv_scan_avx512_get(void)
{
    __builtin_cpu_init();
    return (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("bmi")) ? &avx512_ops : NULL;
}

#else

const ls_csv_scan_ops_t *ls_csv_scan_avx512_get(void)
{
    return NULL;
}

#endif

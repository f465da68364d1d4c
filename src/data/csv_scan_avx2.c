/* SPDX-License-Identifier: Apache-2.0 */
/* The scanner for x86 processors with AVX2.  Built with -mavx2 -mbmi -mpopcnt. */
#include "data/csv_scan_int.h"

#if defined(__AVX2__) && defined(__BMI__)

#include <immintrin.h>

typedef struct needles {
    __m256i delimiter, quote;
} needles_t;

static inline needles_t needles(const ls_csv_marks_t *marks)
{
    return (needles_t){_mm256_set1_epi8(marks->delimiter), _mm256_set1_epi8(marks->quote)};
}

static inline uint64_t equal_bits(__m256i low, __m256i high, __m256i needle)
{
    return (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(low, needle)) |
           (uint64_t)(uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(high, needle)) << 32;
}

static inline masks_t classify(const needles_t *need, const char *data, size_t length)
{
    const __m256i  low   = _mm256_loadu_si256((const void *)data);
    const __m256i  high  = _mm256_loadu_si256((const void *)(data + 32));
    const uint64_t valid = valid_bits(length);

    return (masks_t){
        .valid     = valid,
        .delimiter = equal_bits(low, high, need->delimiter) & valid,
        .line_feed = equal_bits(low, high, _mm256_set1_epi8('\n')) & valid,
        .cr        = equal_bits(low, high, _mm256_set1_epi8('\r')) & valid,
        .quote     = equal_bits(low, high, need->quote) & valid,
        .nul       = equal_bits(low, high, _mm256_setzero_si256()) & valid,
    };
}

#define put_positions ls_csv_scan_put
#define PATH_NAME     "avx2"
#define PATH_OPS      avx2_ops
#include "data/csv_scan_body.inc"

const ls_csv_scan_ops_t *ls_csv_scan_avx2_get(void)
{
    __builtin_cpu_init();
    return (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi")) ? &avx2_ops : NULL;
}

#else

const ls_csv_scan_ops_t *ls_csv_scan_avx2_get(void)
{
    return NULL;
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For x86 processors with AVX2; built with -mavx2 -mbmi -mbmi2.  No branch depends on the number of digits or
 * the place of the point, which differ from field to field and would be mispredicted:
 *
 *   32 bytes up to the end of the field     x x , - 1 2 . 3 4 5
 *   the same, one byte earlier              x x x , - 1 2 . 3 4
 *   the latter up to the point              x x x , - 1 2 3 4 5    the digits side by side, at the right edge
 *   without what is no digit                          1 2 3 4 5    and then pairs, fours and eights of them
 * are added up
 */
#include "data/csv_plain.h"

#if defined(__AVX2__) && defined(__BMI__)

#include <immintrin.h>
#include <stdbool.h>
#include <string.h>

#include "data/decimal_int.h"

#define WIDTH 32

/* From byte WIDTH - n on: the last n bytes of a vector. */
static const uint8_t last_bytes[2 * WIDTH] = {
    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,
    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,
    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
};

/* The value of up to 19 digits at the right edge, the rest 0. */
static inline uint64_t sum_digits(__m256i digits)
{
    const __m256i pairs  = _mm256_maddubs_epi16(digits, _mm256_set1_epi16(0x010a));
    const __m256i fours  = _mm256_madd_epi16(pairs, _mm256_set1_epi32(0x00010064));
    const __m256i packed = _mm256_packus_epi32(fours, fours);
    const __m256i eights = _mm256_madd_epi16(packed, _mm256_set1_epi32(0x00012710));

    const uint64_t low =
        (uint64_t)_mm256_extract_epi64(eights, 2); /* the last 16 digits: two numbers of eight */
    const uint64_t high = (uint32_t)_mm256_extract_epi32(eights, 1); /* the three before */

    return high * 10000000000000000 + (low & UINT32_MAX) * 100000000 + (low >> 32);
}

typedef struct plain {
    uint64_t digits;
    int      num_after; /* the point */
    bool     is_negative;
} plain_t;

/* False: not plain. */
static inline bool take(const char *begin, const char *end, plain_t *plain_p)
{
    const bool    is_negative = (*begin == '-');
    const long    length      = (end - begin) - is_negative;
    const __m256i bytes       = _mm256_loadu_si256((const void *)(end - WIDTH));
    const __m256i earlier     = _mm256_loadu_si256((const void *)(end - WIDTH - 1));

    if (length < 1 || length >= WIDTH) {
        return false;
    }
    const uint32_t points = (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(bytes, _mm256_set1_epi8('.'))) &
                            ~(UINT32_MAX >> length);
    const int has_point = (points != 0);
    const int num_after = has_point ? 31 - __builtin_ctz(points) : 0;
    const int num       = (int)length - has_point;
    /* has_point: all but the last num_after bytes come one byte later; otherwise none does. */
    const __m256i as_is  = _mm256_loadu_si256((const void *)(last_bytes + (has_point ? num_after : WIDTH)));
    const __m256i valid  = _mm256_loadu_si256((const void *)(last_bytes + num));
    const __m256i text   = _mm256_blendv_epi8(earlier, bytes, as_is);
    const __m256i digits = _mm256_and_si256(_mm256_sub_epi8(text, _mm256_set1_epi8('0')), valid);
    const __m256i wrong  = _mm256_subs_epu8(digits, _mm256_set1_epi8(9));

    if (num < 1 || num > LS_DECIMAL_MAX_DIGITS || !_mm256_testz_si256(wrong, wrong)) {
        return false;
    }
    *plain_p = (plain_t){sum_digits(digits), num_after, is_negative};
    return true;
}

/* e+dd or e-dd at the end is taken off. */
static inline int take_exponent(const char *begin, const char **end)
{
    const char *e = *end - 4;

    if (e <= begin || (*e | 0x20) != 'e') {
        return 0;
    }
    const unsigned tens = (unsigned)(unsigned char)e[2] - '0', ones = (unsigned)(unsigned char)e[3] - '0';

    if ((e[1] != '-' && e[1] != '+') || tens > 9 || ones > 9) {
        return 0;
    }
    *end = e;
    return e[1] == '-' ? -(int)(tens * 10 + ones) : (int)(tens * 10 + ones);
}

/* ---- fields of up to eight bytes, in a word ------------------------------------------------------- */

#define EACH(_byte) (0x0101010101010101 * (uint64_t)(_byte))

/* The bytes up to the end as digits, those before the field as 0; false where the field has another length.
 */
static inline bool load_short(const char *begin, const char *end, bool is_negative, uint64_t *word_p)
{
    const size_t length = (size_t)(end - begin) - is_negative;
    uint64_t     word;

    if (length - 1 >= sizeof(word)) {
        return false;
    }
    memcpy(&word, end - sizeof(word), sizeof(word));
    *word_p = (word ^ EACH('0')) & (UINT64_MAX << (64 - 8 * length));
    return true;
}

static inline bool is_all_digits(uint64_t word)
{
    return (((word + EACH(0x80 - 10)) | word) & EACH(0x80)) == 0;
}

/* The first digit is in the lowest byte. */
static inline uint32_t sum_short(uint64_t word)
{
    word = word * 10 + (word >> 8);
    return (uint32_t)(((word & 0x000000ff000000ff) * 0x000f424000000064 +
                       ((word >> 16) & 0x000000ff000000ff) * 0x0000271000000001) >>
                      32);
}

static inline bool take_short_double(const char *begin, const char *end, double *value_p)
{
    static const double powers[]    = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7};
    const bool          is_negative = (*begin == '-');
    uint64_t            word;
    unsigned            num_after = 0;

    if (!load_short(begin, end, is_negative, &word)) {
        return false;
    }
    const uint64_t others = word ^ EACH('.' ^ '0');
    const uint64_t points = (others - EACH(1)) & ~others & EACH(0x80);

    if (points != 0) { /* the digits before it move one byte on */
        const unsigned place = (unsigned)__builtin_ctzll(points) / 8;
        const uint64_t after = (UINT64_MAX << 8) << (8 * place);

        if (end - begin - is_negative == 1) {
            return false;
        }
        word      = (word & after) | ((word << 8) & ~after);
        num_after = 7 - place;
    }
    if (!is_all_digits(word)) {
        return false;
    }
    const double value =
        (double)sum_short(word) / powers[num_after]; /* both are exact, so this is the nearest */

    *value_p = is_negative ? -value : value;
    return true;
}

static inline bool take_short_integer(const char *begin, const char *end, int64_t *value_p)
{
    const bool is_negative = (*begin == '-');
    uint64_t   word;

    if (!load_short(begin, end, is_negative, &word) || !is_all_digits(word)) {
        return false;
    }
    *value_p = is_negative ? -(int64_t)sum_short(word) : (int64_t)sum_short(word);
    return true;
}

/* ---- four such fields at a time ------------------------------------------------------------------- */

#define LANES 4

/* In each lane: the bytes of a field up to its end as digits, those before as 0. */
typedef struct four {
    __m256i digits;
    __m256i length;      /* without the sign */
    __m256i is_negative; /* all ones or 0 */
} four_t;

static inline __m256i each_byte(int byte)
{
    return _mm256_set1_epi8((char)byte);
}

static inline long long load_word(const void *from)
{
    long long word;

    memcpy(&word, from, sizeof(word));
    return word;
}

/* Fields i to i + 3.  False: one of them is empty or longer than its lane. */
static inline bool load_four(const ls_csv_plain_t *fields, size_t i, four_t *four_p)
{
    const size_t    stride = fields->stride;
    const uint32_t *end0 = fields->ends + i * stride, *end1 = end0 + stride, *end2 = end1 + stride,
                   *end3   = end2 + stride;
    const char *const last = fields->data - 8;
    /* in each lane: where the field before ends, and this one; through memory it would take longer */
    const __m256i place =
        _mm256_set_epi64x(load_word(end3 - 1), load_word(end2 - 1), load_word(end1 - 1), load_word(end0 - 1));
    const __m256i word   = _mm256_set_epi64x(load_word(last + *end3), load_word(last + *end2),
                                             load_word(last + *end1), load_word(last + *end0));
    const __m256i one    = _mm256_set1_epi64x(1);
    const __m256i begin  = _mm256_and_si256(_mm256_add_epi32(place, one), _mm256_set1_epi64x(UINT32_MAX));
    const __m256i length = _mm256_sub_epi64(_mm256_srli_epi64(place, 32), begin);
    const __m256i before = _mm256_slli_epi64(_mm256_sub_epi64(_mm256_set1_epi64x(8), length), 3); /* bits */
    const __m256i first  = _mm256_and_si256(_mm256_srlv_epi64(word, before), _mm256_set1_epi64x(0xff));
    const __m256i is_negative = _mm256_cmpeq_epi64(first, _mm256_set1_epi64x('-'));
    const __m256i num         = _mm256_add_epi64(length, is_negative);
    const __m256i rest =
        _mm256_sllv_epi64(_mm256_set1_epi8(-1), _mm256_sub_epi64(before, _mm256_slli_epi64(is_negative, 3)));
    /* length is at most 8, num at least 1 */
    const __m256i wrong =
        _mm256_or_si256(_mm256_cmpgt_epi64(length, _mm256_set1_epi64x(8)), _mm256_cmpgt_epi64(one, num));

    if (!_mm256_testz_si256(wrong, wrong)) {
        return false;
    }
    *four_p = (four_t){_mm256_and_si256(_mm256_xor_si256(word, each_byte('0')), rest), num, is_negative};
    return true;
}

static inline bool is_four_digits(__m256i digits)
{
    const __m256i wrong = _mm256_subs_epu8(digits, each_byte(9));

    return _mm256_testz_si256(wrong, wrong);
}

/* The first digit is in the lowest byte of a lane. */
static inline __m256i sum_four(__m256i digits)
{
    const __m256i pairs = _mm256_maddubs_epi16(digits, _mm256_set1_epi16(0x010a));
    const __m256i fours = _mm256_madd_epi16(pairs, _mm256_set1_epi32(0x00010064));

    return _mm256_add_epi64(_mm256_mul_epu32(fours, _mm256_set1_epi64x(10000)), _mm256_srli_epi64(fours, 32));
}

static inline bool take_four_integers(const ls_csv_plain_t *fields, size_t i, int64_t *to)
{
    four_t four;

    if (!load_four(fields, i, &four) || !is_four_digits(four.digits)) {
        return false;
    }
    const __m256i value = _mm256_xor_si256(sum_four(four.digits), four.is_negative);

    _mm256_storeu_si256((void *)(to + i), _mm256_sub_epi64(value, four.is_negative));
    return true;
}

/* The low halves of the lanes, side by side. */
static inline __m128i low_halves(__m256i lanes)
{
    return _mm256_castsi256_si128(
        _mm256_permutevar8x32_epi32(lanes, _mm256_setr_epi32(0, 2, 4, 6, 0, 2, 4, 6)));
}

static inline bool take_four_doubles(const ls_csv_plain_t *fields, size_t i, double *to)
{
    const __m256 powers = _mm256_setr_ps(1e0f, 1e1f, 1e2f, 1e3f, 1e4f, 1e5f, 1e6f, 1e7f); /* all exact */
    four_t       four;

    if (!load_four(fields, i, &four)) {
        return false;
    }
    const __m256i zero      = _mm256_setzero_si256();
    const __m256i points    = _mm256_cmpeq_epi8(four.digits, each_byte('.' ^ '0'));
    const __m256i has_none  = _mm256_cmpeq_epi64(points, zero);
    const __m256i lowest    = _mm256_and_si256(points, _mm256_sub_epi64(zero, points)); /* bit of the first */
    const __m256i up_to     = _mm256_sub_epi64(_mm256_slli_epi64(lowest, 8), _mm256_set1_epi64x(1));
    const __m256i after     = _mm256_andnot_si256(up_to, _mm256_set1_epi8(-1)); /* no point: nothing */
    const __m256i moved     = _mm256_andnot_si256(after, _mm256_slli_epi64(four.digits, 8));
    const __m256i joined    = _mm256_or_si256(moved, _mm256_and_si256(after, four.digits));
    const __m256i digits    = _mm256_blendv_epi8(joined, four.digits, has_none);
    const __m256i num_after = _mm256_sad_epu8(_mm256_and_si256(after, each_byte(1)), zero);
    /* more than a point alone */
    const __m256i alone =
        _mm256_andnot_si256(has_none, _mm256_cmpeq_epi64(four.length, _mm256_set1_epi64x(1)));

    if (!_mm256_testz_si256(alone, alone) || !is_four_digits(digits)) {
        return false;
    }
    const __m256i power = _mm256_castps_si256(_mm256_permutevar8x32_ps(powers, num_after));
    const __m256d value = _mm256_div_pd(_mm256_cvtepi32_pd(low_halves(sum_four(digits))),
                                        _mm256_cvtps_pd(_mm_castsi128_ps(low_halves(power))));
    const __m256i sign  = _mm256_slli_epi64(four.is_negative, 63);

    _mm256_storeu_pd(to + i, _mm256_xor_pd(value, _mm256_castsi256_pd(sign)));
    return true;
}

/* ---- columns -------------------------------------------------------------------------------------- */

static inline void span(const ls_csv_plain_t *fields, size_t i, const char **begin_p, const char **end_p)
{
    const uint32_t *end = fields->ends + i * fields->stride;

    *begin_p = fields->data + (uint32_t)(end[-1] + 1);
    *end_p   = fields->data + *end;
    if (fields->has_cr) {
        *end_p -= (*end_p > *begin_p && (*end_p)[-1] == '\r');
    }
}

/* Loops of their own for short and for long fields: together they need more registers than there are. */
static __attribute__((noinline)) size_t take_short_doubles(const ls_csv_plain_t *fields, size_t i, double *to)
{
    while (i < fields->count) {
        const char *begin, *end;

        if (!fields->has_cr && i + LANES <= fields->count && take_four_doubles(fields, i, to)) {
            i += LANES;
            continue;
        }
        span(fields, i, &begin, &end);
        if (!take_short_double(begin, end, &to[i])) {
            break;
        }
        i++;
    }
    return i;
}

#define BLOCK 32

/* The digits of up to BLOCK long fields from i on; returns how many are plain. */
static __attribute__((noinline)) size_t find_digits(const ls_csv_plain_t *fields, size_t i, plain_t *found)
{
    const size_t num = fields->count - i < BLOCK ? fields->count - i : BLOCK;

    for (size_t k = 0; k < num; k++) {
        const char *begin, *end;

        span(fields, i + k, &begin, &end);
        if (end - begin <= (ptrdiff_t)sizeof(uint64_t)) {
            return k;
        }
        const int exponent = take_exponent(begin, &end);

        if (!take(begin, end, &found[k])) {
            return k;
        }
        found[k].num_after -= exponent;
    }
    return num;
}

/* First the digits of some fields, then their products: each of the two is a long chain of instructions, and
 * the processor has more of them under way at a time when they are not one behind the other. */
static __attribute__((noinline)) size_t take_long_doubles(const ls_csv_plain_t *fields, size_t i, double *to)
{
    plain_t found[BLOCK];
    size_t  num = BLOCK;

    while (num == BLOCK) {
        num = find_digits(fields, i, found);
        for (size_t k = 0; k < num; k++, i++) {
            uint64_t bits = 0;

            if (found[k].digits != 0 && !ls_decimal_product(found[k].digits, -found[k].num_after, &bits)) {
                return i;
            }
            bits |= (uint64_t)found[k].is_negative << 63;
            memcpy(&to[i], &bits, sizeof(bits));
        }
    }
    return i;
}

static size_t take_doubles(const ls_csv_plain_t *fields, double *to)
{
    size_t done = 0, before;

    do {
        before = done;
        done   = take_short_doubles(fields, done, to);
        done   = take_long_doubles(fields, done, to);
    } while (done != before);
    return done;
}

static size_t take_integers(const ls_csv_plain_t *fields, int64_t *to)
{
    size_t i = 0;

    for (;; i++) {
        const char *begin, *end;
        plain_t     plain;

        while (!fields->has_cr && i + LANES <= fields->count && take_four_integers(fields, i, to)) {
            i += LANES;
        }
        if (i >= fields->count) {
            return fields->count;
        }
        span(fields, i, &begin, &end);
        if (take_short_integer(begin, end, &to[i])) {
            continue;
        }
        if (!take(begin, end, &plain) || plain.num_after > 0 || plain.digits > INT64_MAX ||
            *(end - 1) == '.') {
            return i;
        }
        to[i] = plain.is_negative ? -(int64_t)plain.digits : (int64_t)plain.digits;
    }
}

static const ls_csv_plain_ops_t avx2_ops = {.doubles = take_doubles, .integers = take_integers};

const ls_csv_plain_ops_t *ls_csv_plain_get(void)
{
    __builtin_cpu_init();
    return (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2"))
               ? &avx2_ops
               : NULL;
}

#else

const ls_csv_plain_ops_t *ls_csv_plain_get(void)
{
    return NULL;
}

#endif

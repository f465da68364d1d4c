/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Three ways from decimal digits w and exponent q to the nearest double of w * 10^q:
 *   exact    w and 10^|q| are doubles without rounding: one multiplication or division (Clinger)
 *   product  w times the upper 128 bits of 5^q decides the rounding nearly always (Eisel and Lemire)
 *   strtod   the rest: near ties, subnormals, overflow, more than 19 digits that matter
 * "product" needs a table of powers of five, which is computed once, when the library is loaded.
 */
#include "data/decimal.h"

#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "data/decimal_int.h"

#define MAX_EXACT_POWER 22
#define MAX_EXPONENT    100000 /* more is infinite or zero for any number of digits that fits in memory */

ls_decimal_power_t ls_decimal_powers[LS_DECIMAL_NUM_POWERS]; /* written at load only */
static locale_t    c_locale;

static const double exact_powers[MAX_EXACT_POWER + 1] = {
    1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
    1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
};

/* ---- the table of powers ------------------------------------------------------------------------ */

#define WORDS 32 /* 2^2047 / 5^342 still has more than 128 bits; 5^308 has 716 */

/* The first 128 bits of a long number, least word first. */
static ls_decimal_power_t leading_bits(const uint64_t *words)
{
    int top = WORDS - 1;

    while (words[top] == 0) {
        top--;
    }
    const int          shift = __builtin_clzll(words[top]);
    const uint64_t     next  = (top >= 1) ? words[top - 1] : 0;
    const uint64_t     third = (top >= 2) ? words[top - 2] : 0;
    ls_decimal_power_t power = {words[top], next};

    if (shift > 0) {
        power.high = (words[top] << shift) | (next >> (64 - shift));
        power.low  = (next << shift) | (third >> (64 - shift));
    }
    return power;
}

static void multiply_by_five(uint64_t *words)
{
    uint64_t carry = 0;

    for (int i = 0; i < WORDS; i++) {
        const ls_uint128_t product = (ls_uint128_t)words[i] * 5 + carry;

        words[i] = (uint64_t)product;
        carry    = (uint64_t)(product >> 64);
    }
}

static void divide_by_five(uint64_t *words)
{
    uint64_t rest = 0;

    for (int i = WORDS - 1; i >= 0; i--) {
        const ls_uint128_t dividend = ((ls_uint128_t)rest << 64) | words[i];

        words[i] = (uint64_t)(dividend / 5);
        rest     = (uint64_t)(dividend % 5);
    }
}

__attribute__((constructor)) static void compute_powers(void)
{
    uint64_t words[WORDS] = {1};

    for (int q = 0; q <= LS_DECIMAL_MAX_POWER; q++) {
        ls_decimal_powers[q - LS_DECIMAL_MIN_POWER] = leading_bits(words);
        multiply_by_five(words);
    }
    memset(words, 0, sizeof(words));
    words[WORDS - 1] = 1ULL << 63;
    for (int q = -1; q >= LS_DECIMAL_MIN_POWER; q--) {
        divide_by_five(words); /* no power of two is a multiple of five: the quotient is never exact */
        ls_decimal_power_t power = leading_bits(words);

        power.low++;
        power.high += (power.low == 0);
        ls_decimal_powers[q - LS_DECIMAL_MIN_POWER] = power;
    }
    c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

/* ---- from digits to a double -------------------------------------------------------------------- */

static bool by_strtod(const char *text, const char *end, double *value_p)
{
    char         near[128];
    const size_t length = (size_t)(end - text);
    void        *copy   = near;

    if (length >= sizeof(near) && ls_mem_alloc(length + 1, "long number", &copy) != LS_OK) {
        return false;
    }
    memcpy(copy, text, length);
    ((char *)copy)[length] = '\0';
    *value_p               = strtod_l(copy, NULL, c_locale);
    if (copy != near) {
        ls_mem_free(copy);
    }
    return true;
}

/* ---- from text to digits ------------------------------------------------------------------------ */

typedef struct parsed {
    uint64_t digits;   /* the value of the first LS_DECIMAL_MAX_DIGITS digits that matter */
    int      exponent; /* of ten */
    bool     is_negative;
    bool     is_truncated; /* there were more digits */
} parsed_t;

static inline bool is_digit(char c)
{
    return (unsigned char)(c - '0') < 10;
}

static inline uint64_t load_eight(const char *text)
{
    uint64_t word;

    memcpy(&word, text, sizeof(word));
    return word;
}

static inline bool is_eight_digits(uint64_t word)
{
    return (((word + 0x4646464646464646) | (word - 0x3030303030303030)) & 0x8080808080808080) == 0;
}

static inline uint32_t value_of_eight(uint64_t word)
{
    word -= 0x3030303030303030;
    word = word * 10 + (word >> 8);
    word = ((word & 0x000000ff000000ff) * 0x000f424000000064 +
            ((word >> 16) & 0x000000ff000000ff) * 0x0000271000000001) >>
           32;
    return (uint32_t)word;
}

/* Digits from `text` on are added to *value_p, which may wrap; returns the first that is none. */
static inline const char *take_digits(const char *text, const char *end, uint64_t *value_p)
{
    uint64_t value = *value_p;

    while (end - text >= 8 && is_eight_digits(load_eight(text))) {
        value = value * 100000000 + value_of_eight(load_eight(text));
        text += 8;
    }
    while (text < end && is_digit(*text)) {
        value = value * 10 + (uint64_t)(*text - '0');
        text++;
    }
    *value_p = value;
    return text;
}

/* After the 'e'; false if no digit follows. */
static bool take_exponent(const char *text, const char *end, int *exponent_p)
{
    const bool is_negative = (text < end && *text == '-');
    int        exponent    = 0;

    text += (text < end && (*text == '-' || *text == '+'));
    if (text == end) {
        return false;
    }
    for (; text < end; text++) {
        if (!is_digit(*text)) {
            return false;
        }
        if (exponent < MAX_EXPONENT) {
            exponent = exponent * 10 + (*text - '0');
        }
    }
    *exponent_p += is_negative ? -exponent : exponent;
    return true;
}

/* More than LS_DECIMAL_MAX_DIGITS digits: those from the first that is not 0 count.  [text, end) is digits
 * and one point at most. */
static void take_first_digits(const char *text, const char *end, parsed_t *parsed)
{
    int  num_digits = 0;
    bool is_after   = false;

    parsed->digits = 0;
    for (; text < end; text++) {
        if (*text == '.') {
            is_after = true;
            continue;
        }
        if (num_digits > 0 || *text != '0') {
            if (num_digits == LS_DECIMAL_MAX_DIGITS) {
                parsed->is_truncated = true;
                parsed->exponent += !is_after;
                continue;
            }
            parsed->digits = parsed->digits * 10 + (uint64_t)(*text - '0');
            num_digits++;
        }
        parsed->exponent -= is_after;
    }
}

static inline bool parse(const char *text, const char *end, parsed_t *parsed)
{
    parsed->is_negative  = (text < end && *text == '-');
    parsed->is_truncated = false;
    parsed->digits       = 0;
    parsed->exponent     = 0;
    text += (text < end && (*text == '-' || *text == '+'));

    const char *first      = text;
    const char *after      = take_digits(text, end, &parsed->digits);
    ptrdiff_t   num_digits = after - first;
    int         written    = 0;

    if (after < end && *after == '.') {
        const char *fraction = after + 1;

        after            = take_digits(fraction, end, &parsed->digits);
        parsed->exponent = (int)(fraction - after);
        num_digits += after - fraction;
    }
    if (num_digits == 0) {
        return false;
    }
    if (num_digits > LS_DECIMAL_MAX_DIGITS) {
        parsed->exponent = 0;
        take_first_digits(first, after, parsed);
    }
    if (after == end) {
        return true;
    }
    if ((*after | 0x20) != 'e' || !take_exponent(after + 1, end, &written)) {
        return false;
    }
    parsed->exponent += written;
    return true;
}

static bool parse_word(const char *text, const char *end, double *value_p)
{
    static const struct {
        const char *word;
        size_t      length;
    } words[]            = {{"nan", 3}, {"inf", 3}, {"infinity", 8}};
    const bool  has_sign = (text < end && (*text == '-' || *text == '+'));
    const char *first    = text + has_sign;

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if ((size_t)(end - first) == words[i].length &&
            strncasecmp(first, words[i].word, words[i].length) == 0) {
            return by_strtod(text, end, value_p);
        }
    }
    return false;
}

bool ls_decimal_double(const char *text, const char *end, double *value_p)
{
    parsed_t parsed;
    uint64_t bits;

    if (!parse(text, end, &parsed)) {
        return parse_word(text, end, value_p);
    }
    if (!parsed.is_truncated && parsed.digits >> (LS_DECIMAL_MANTISSA_BITS + 1) == 0 &&
        parsed.exponent >= -MAX_EXACT_POWER && parsed.exponent <= MAX_EXACT_POWER) {
        const double digits = (double)parsed.digits;
        const double value  = (parsed.exponent < 0) ? digits / exact_powers[-parsed.exponent]
                                                    : digits * exact_powers[parsed.exponent];

        *value_p = parsed.is_negative ? -value : value;
        return true;
    }
    /* With digits left out, the value lies between w and w + 1: both must round to the same double. */
    uint64_t above = 0;

    if (parsed.digits == 0 || parsed.exponent < LS_DECIMAL_MIN_POWER ||
        parsed.exponent > LS_DECIMAL_MAX_POWER ||
        !ls_decimal_product(parsed.digits, parsed.exponent, &bits) ||
        (parsed.is_truncated &&
         !(ls_decimal_product(parsed.digits + 1, parsed.exponent, &above) && above == bits))) {
        return by_strtod(text, end, value_p);
    }
    bits |= (uint64_t)parsed.is_negative << 63;
    memcpy(value_p, &bits, sizeof(bits));
    return true;
}

/* Whole numbers up to 20 digits, without zeros in front, if they fit. */
static bool take_whole(const char *first, const char *end, uint64_t *value_p)
{
    const char *after;

    *value_p = 0;
    after    = take_digits(first, end, value_p);
    if (after != end || after == first) {
        return false;
    }
    while (end - first > 1 && *first == '0') {
        first++;
    }
    /* with 20 digits a value that did not fit has wrapped: the first digit is 1 and the value has 20 digits
     */
    return end - first <= LS_DECIMAL_MAX_DIGITS ||
           (end - first == LS_DECIMAL_MAX_DIGITS + 1 && *first == '1' && *value_p >= 10000000000000000000U);
}

bool ls_decimal_uint64(const char *text, const char *end, uint64_t *value_p)
{
    return take_whole(text + (text < end && *text == '+'), end, value_p);
}

bool ls_decimal_int64(const char *text, const char *end, int64_t *value_p)
{
    const bool is_negative = (text < end && *text == '-');
    uint64_t   value;

    if (!take_whole(text + (text < end && (*text == '-' || *text == '+')), end, &value) ||
        value > (uint64_t)INT64_MAX + is_negative) {
        return false;
    }
    *value_p = (int64_t)(is_negative ? 0 - value : value);
    return true;
}

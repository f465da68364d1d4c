/* SPDX-License-Identifier: Apache-2.0 */
#include "data/decimal.h"

#include <inttypes.h>
#include <stdlib.h>

#include "check.h"

#define ROOM 1024

static uint64_t state = 88172645463325252U;

static uint64_t random_bits(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static int random_below(int limit)
{
    return (int)(random_bits() % (uint64_t)limit);
}

/* In a buffer with the bytes after it that the parser may look at. */
static bool parse(const char *text, double *value_p)
{
    char padded[ROOM + LS_DECIMAL_SLACK] = "";

    memcpy(padded, text, strlen(text));
    return ls_decimal_double(padded, padded + strlen(text), value_p);
}

static void check_same(const char *text)
{
    const double expected = strtod(text, NULL);
    double       got      = 0.5;

    if (!parse(text, &got) || memcmp(&got, &expected, sizeof(got)) != 0) {
        fprintf(stderr, "'%s' is %.17g, not %.17g\n", text, got, expected);
        CHECK(0);
    }
}

static void test_random_doubles_are_those_of_strtod(void)
{
    char text[ROOM];

    for (int i = 0; i < 200000; i++) {
        const uint64_t bits = random_bits();
        double         value;

        memcpy(&value, &bits, sizeof(value));
        if (value - value == 0) {
            snprintf(text, sizeof(text), "%.*g", 1 + random_below(24), value);
            check_same(text);
        }
        snprintf(text, sizeof(text), "%" PRIu64 ".%" PRIu64 "e%d", random_bits() >> random_below(64),
                 random_bits() >> random_below(64), random_below(700) - 350);
        check_same(text);
        snprintf(text, sizeof(text), "%" PRIu64 "e%d", random_bits() >> random_below(64),
                 random_below(60) - 30);
        check_same(text);
    }
}

/* Half way between two doubles, and a little off. */
static void test_ties_are_rounded_as_strtod_does(void)
{
    char text[ROOM];

    for (int i = 0; i < 50000; i++) {
        const uint64_t whole = (1ULL << 52) + (random_bits() >> 12);

        snprintf(text, sizeof(text), "%" PRIu64 ".5", whole);
        check_same(text);
        snprintf(text, sizeof(text), "%" PRIu64 ".5000000000000000000000000000000000000001", whole);
        check_same(text);
        snprintf(text, sizeof(text), "%" PRIu64 "e%d", whole * 2 + 1, random_below(8));
        check_same(text);
    }
}

static void test_edges(void)
{
    static const char *const texts[] = {
        "0",
        "-0",
        "0.0e999",
        "1e-400",
        "-1e400",
        "4.9406564584124654e-324",
        "2.4703282292062327e-324",
        "2.2250738585072014e-308",
        "2.2250738585072011e-308",
        "1.7976931348623157e308",
        "1.7976931348623159e308",
        "9007199254740993",
        "18446744073709551615",
        "18446744073709551616",
        "99999999999999999999999999",
        ".5",
        "5.",
        "+1.5",
        "-1.5e+3",
        "1E5",
        "inf",
        "-INF",
        "Infinity",
        "00000000000000000000000000000000001.5",
        "1e00000000000005",
        "1e99999999999999999999",
        "1e-99999999999999999999",
    };

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        check_same(texts[i]);
    }
}

static void test_what_is_no_number_is_refused(void)
{
    static const char *const texts[] = {"",      ".",    "-",   "+",       "e5",  "1e",        "1e+",
                                        "1.2.3", "0x10", "1 ",  " 1",      "1a",  "--1",       "1e5.",
                                        "in",    "nano", "1,5", "infinit", "1-2", "12345678a", "\xff"};
    double                   value   = 7;

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        CHECK(!parse(texts[i], &value));
    }
    CHECK(value == 7);
    CHECK(parse("NaN", &value) && value != value);
}

static void check_whole(const char *text, bool fits, int64_t expected, bool fits_unsigned,
                        uint64_t expected_unsigned)
{
    char     padded[64] = "";
    int64_t  value      = 5;
    uint64_t natural    = 5;

    memcpy(padded, text, strlen(text));
    CHECK(ls_decimal_int64(padded, padded + strlen(text), &value) == fits);
    CHECK(!fits || value == expected);
    CHECK(ls_decimal_uint64(padded, padded + strlen(text), &natural) == fits_unsigned);
    CHECK(!fits_unsigned || natural == expected_unsigned);
}

static void test_whole_numbers(void)
{
    check_whole("0", true, 0, true, 0);
    check_whole("-0", true, 0, false, 0);
    check_whole("+12", true, 12, true, 12);
    check_whole("0000000000000000000000012", true, 12, true, 12);
    check_whole("9223372036854775807", true, INT64_MAX, true, INT64_MAX);
    check_whole("9223372036854775808", false, 0, true, 1ULL << 63);
    check_whole("-9223372036854775808", true, INT64_MIN, false, 0);
    check_whole("-9223372036854775809", false, 0, false, 0);
    check_whole("18446744073709551615", false, 0, true, UINT64_MAX);
    check_whole("18446744073709551616", false, 0, false, 0);
    check_whole("28446744073709551616", false, 0, false, 0);
    check_whole("100000000000000000000", false, 0, false, 0);
    check_whole("1.0", false, 0, false, 0);
    check_whole("", false, 0, false, 0);
    check_whole("-", false, 0, false, 0);
    check_whole("1 ", false, 0, false, 0);
}

int main(void)
{
    RUN(test_random_doubles_are_those_of_strtod);
    RUN(test_ties_are_rounded_as_strtod_does);
    RUN(test_edges);
    RUN(test_what_is_no_number_is_refused);
    RUN(test_whole_numbers);
    return check_report();
}

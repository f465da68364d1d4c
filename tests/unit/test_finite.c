/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "check.h"
#include "device/finite.h"
#include "device/kernel.h"

#define COUNT 10001

static void test_one_bad_element_is_found_wherever_it_is(void)
{
    static float  values[COUNT];
    static double doubles[COUNT];
    bool          is_nan;

    for (unsigned i = 0; i < COUNT; i++) {
        values[i]  = i % 2 == 0 ? 3.4e38f : -1e-45f;
        doubles[i] = i % 2 == 0 ? -1.7e308 : 0.0;
    }
    CHECK(ls_kernel_is_finite(LS_FLOAT32, values, COUNT) && ls_kernel_is_finite(LS_FLOAT64, doubles, COUNT));
    CHECK_EQ_INT(ls_finite_first_bad(LS_FLOAT32, values, COUNT, &is_nan), COUNT);
    for (unsigned i = 0; i < COUNT; i += 7) {
        const float  value  = values[i];
        const double number = doubles[i];

        values[i]  = i % 2 == 0 ? NAN : -INFINITY;
        doubles[i] = i % 2 == 0 ? INFINITY : -NAN;
        CHECK(!ls_kernel_is_finite(LS_FLOAT32, values, COUNT) && !ls_kernel_is_finite(LS_FLOAT64, doubles, COUNT));
        CHECK_EQ_INT(ls_finite_first_bad(LS_FLOAT32, values, COUNT, &is_nan), i);
        CHECK(is_nan == (i % 2 == 0));
        CHECK_EQ_INT(ls_finite_first_bad(LS_FLOAT64, doubles, COUNT, &is_nan), i);
        CHECK(is_nan == (i % 2 != 0));
        CHECK(ls_kernel_is_finite(LS_FLOAT32, values, i)); /* what comes before is good */
        values[i]  = value;
        doubles[i] = number;
    }
}

static void test_halves_are_looked_at_by_their_own_exponents(void)
{
    const uint16_t largest16 = 0x7bff, infinite16 = 0xfc00, nan16 = 0x7e01;
    const uint16_t largestb = 0x7f7f, infiniteb = 0x7f80, nanb = 0xffc0;
    bool           is_nan;

    CHECK(ls_kernel_is_finite(LS_FLOAT16, &largest16, 1) && ls_kernel_is_finite(LS_BFLOAT16, &largestb, 1));
    CHECK(!ls_kernel_is_finite(LS_FLOAT16, &infinite16, 1) && !ls_kernel_is_finite(LS_BFLOAT16, &infiniteb, 1));
    CHECK(ls_kernel_is_finite(LS_BFLOAT16, &nan16, 1)); /* an ordinary number there */
    CHECK(ls_finite_first_bad(LS_FLOAT16, &infinite16, 1, &is_nan) == 0 && !is_nan);
    CHECK(ls_finite_first_bad(LS_FLOAT16, &nan16, 1, &is_nan) == 0 && is_nan);
    CHECK(ls_finite_first_bad(LS_BFLOAT16, &nanb, 1, &is_nan) == 0 && is_nan);
}

static void test_one_bad_half_is_found_wherever_it_is(void)
{
    uint16_t halves[301], brains[301];

    for (unsigned i = 0; i < 301; i++) {
        halves[i] = i % 2 == 0 ? 0x7bff : 0x8001;
        brains[i] = i % 2 == 0 ? 0x7f7f : 0xff7f;
    }
    CHECK(ls_kernel_is_finite(LS_FLOAT16, halves, 301) && ls_kernel_is_finite(LS_BFLOAT16, brains, 301));
    for (unsigned i = 0; i < 301; i++) {
        const uint16_t half = halves[i], brain = brains[i];

        halves[i] = i % 2 == 0 ? 0x7fff : 0xfc00;
        brains[i] = i % 2 == 0 ? 0xffff : 0x7f80;
        CHECK(!ls_kernel_is_finite(LS_FLOAT16, halves, 301) && !ls_kernel_is_finite(LS_BFLOAT16, brains, 301));
        halves[i] = half;
        brains[i] = brain;
    }
}

static void test_integers_are_finite(void)
{
    const int32_t number = 0x7fc00000; /* NaN, were it a float */

    CHECK(ls_kernel_is_finite(LS_INT32, &number, 1));
}

int main(void)
{
    static const char *const paths[] = {"c", "avx2", "avx512"};

    for (unsigned p = 0; p < sizeof(paths) / sizeof(paths[0]); p++) {
        if (ls_kernel_select(paths[p]) == LS_OK) { /* not all processors have all of them */
            RUN(test_one_bad_element_is_found_wherever_it_is);
            RUN(test_halves_are_looked_at_by_their_own_exponents);
            RUN(test_one_bad_half_is_found_wherever_it_is);
            RUN(test_integers_are_finite);
        }
    }
    return check_report();
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "check.h"
#include "device/finite.h"
#include "device/kernel.h"

#define COUNT 10001

static ls_bad_value_t note(ls_dtype_t dtype, const void *values, uint64_t count)
{
    ls_bad_value_t bad = {0};

    ls_finite_note(dtype, values, count, 0, &bad);
    return bad;
}

static bool is_at(const ls_bad_value_t *bad, uint64_t at, bool is_nan)
{
    return bad->is_found && bad->at == at && bad->is_nan == is_nan;
}

/* What a copy, and a sum of which `values` is the second source, notice on the way. */
static void check_kernels_note(ls_dtype_t dtype, const void *values, uint64_t count, const ls_bad_value_t *expected)
{
    static uint8_t zeros[COUNT * 8], result[COUNT * 8];
    const void    *sources[2] = {zeros, values};
    ls_bad_value_t copied = {0}, summed = {0}, of_other = {0};

    ls_kernel_cast(&(ls_kernel_cast_t){.dst_dtype = dtype, .src_dtype = dtype, .scale = 1.0, .src = values, .dst = result,
                                       .count = count, .bad = &copied});
    CHECK(copied.is_found == expected->is_found && (!copied.is_found || is_at(&copied, expected->at, expected->is_nan)));
    for (uint32_t own = 0; own < 2; own++) {
        ls_kernel_reduce(&(ls_kernel_reduce_t){.dtype = dtype, .op = LS_SUM, .num_src = 2, .own = own, .src = sources,
                                               .own_scale = 1.0, .scale = 1.0, .dst = result, .count = count,
                                               .bad = (own == 1) ? &summed : &of_other});
    }
    CHECK(summed.is_found == expected->is_found && (!summed.is_found || is_at(&summed, expected->at, expected->is_nan)));
    CHECK(!of_other.is_found);
}

static void test_one_bad_element_is_found_wherever_it_is(void)
{
    static float  values[COUNT];
    static double doubles[COUNT];
    ls_bad_value_t bad;

    for (unsigned i = 0; i < COUNT; i++) {
        values[i]  = i % 2 == 0 ? 3.4e38f : -1e-45f;
        doubles[i] = i % 2 == 0 ? -1.7e308 : 0.0;
    }
    CHECK(ls_kernel_is_finite(LS_FLOAT32, values, COUNT) && ls_kernel_is_finite(LS_FLOAT64, doubles, COUNT));
    bad = note(LS_FLOAT32, values, COUNT);
    CHECK(!bad.is_found);
    check_kernels_note(LS_FLOAT32, values, COUNT, &bad);
    check_kernels_note(LS_FLOAT64, doubles, COUNT, &bad);
    for (unsigned i = 0; i < COUNT; i += (i < 300) ? 1 : 7) {
        const float  value  = values[i];
        const double number = doubles[i];

        values[i]  = i % 2 == 0 ? NAN : -INFINITY;
        doubles[i] = i % 2 == 0 ? INFINITY : -NAN;
        CHECK(!ls_kernel_is_finite(LS_FLOAT32, values, COUNT) && !ls_kernel_is_finite(LS_FLOAT64, doubles, COUNT));
        bad = note(LS_FLOAT32, values, COUNT);
        CHECK(is_at(&bad, i, i % 2 == 0));
        check_kernels_note(LS_FLOAT32, values, COUNT, &bad);
        bad = note(LS_FLOAT64, doubles, COUNT);
        CHECK(is_at(&bad, i, i % 2 != 0));
        check_kernels_note(LS_FLOAT64, doubles, COUNT, &bad);
        CHECK(ls_kernel_is_finite(LS_FLOAT32, values, i)); /* what comes before is good */
        values[i]  = value;
        doubles[i] = number;
    }
}

static void test_halves_are_looked_at_by_their_own_exponents(void)
{
    const uint16_t largest16 = 0x7bff, infinite16 = 0xfc00, nan16 = 0x7e01;
    const uint16_t largestb = 0x7f7f, infiniteb = 0x7f80, nanb = 0xffc0;
    ls_bad_value_t bad;

    CHECK(ls_kernel_is_finite(LS_FLOAT16, &largest16, 1) && ls_kernel_is_finite(LS_BFLOAT16, &largestb, 1));
    CHECK(!ls_kernel_is_finite(LS_FLOAT16, &infinite16, 1) && !ls_kernel_is_finite(LS_BFLOAT16, &infiniteb, 1));
    CHECK(ls_kernel_is_finite(LS_BFLOAT16, &nan16, 1)); /* an ordinary number there */
    bad = note(LS_FLOAT16, &infinite16, 1);
    CHECK(is_at(&bad, 0, false));
    bad = note(LS_FLOAT16, &nan16, 1);
    CHECK(is_at(&bad, 0, true));
    bad = note(LS_BFLOAT16, &nanb, 1);
    CHECK(is_at(&bad, 0, true));
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
        check_kernels_note(LS_FLOAT16, halves, 301, &(ls_bad_value_t){true, i % 2 == 0, i});
        check_kernels_note(LS_BFLOAT16, brains, 301, &(ls_bad_value_t){true, i % 2 == 0, i});
        halves[i] = half;
        brains[i] = brain;
    }
}

static void test_the_first_of_several_is_noted_also_where_types_change(void)
{
    static float    values[COUNT];
    static uint16_t result[COUNT];
    ls_bad_value_t  bad = {0};

    values[4001] = -INFINITY;
    values[4002] = NAN;
    check_kernels_note(LS_FLOAT32, values, COUNT, &(ls_bad_value_t){true, false, 4001});
    ls_kernel_cast(&(ls_kernel_cast_t){.dst_dtype = LS_BFLOAT16, .src_dtype = LS_FLOAT32, .scale = 1.0, .src = values,
                                       .dst = result, .count = COUNT, .bad = &bad});
    CHECK(is_at(&bad, 4001, false));
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
            RUN(test_the_first_of_several_is_noted_also_where_types_change);
            RUN(test_integers_are_finite);
        }
    }
    return check_report();
}

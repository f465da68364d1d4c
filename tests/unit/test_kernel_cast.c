/* SPDX-License-Identifier: Apache-2.0 */
/* Conversions (all 65,536 values of the 16-bit types, and the ties between them), and the hash. */
#include "device/kernel.h"

#include "check.h"
#include "kernel_oracle.h"

#define NUM_16     65536
#define NUM_TIES   (3 * NUM_16)
#define MAX_COUNT  4099
#define HASH_BYTES 600

static const size_t counts[] = {0, 1, 7, 8, 15, 16, 17, 63, 64, 65, 1000, MAX_COUNT};

static uint16_t all_16[NUM_16], narrowed[NUM_TIES], expected_16[NUM_TIES];
static float    widened[NUM_16], widened_c[NUM_16], ties[NUM_TIES];

static void cast(ls_dtype_t to, ls_dtype_t from, double scale, const void *src, void *dst, size_t count)
{
    const ls_kernel_cast_t args = {.dst_dtype = to, .src_dtype = from, .scale = scale,
                                   .src = src, .dst = dst, .count = count};

    ls_kernel_cast(&args);
}

static void check_widen(ls_dtype_t dtype)
{
    size_t wrong = 0;

    for (size_t i = 0; i < NUM_16; i++) {
        all_16[i] = (uint16_t)i;
    }
    CHECK_EQ_INT(ls_kernel_select("c"), LS_OK);
    cast(LS_FLOAT32, dtype, 1.0, all_16, widened_c, NUM_16);
    for (size_t i = 0; i < NUM_16; i++) {
        const double value = oracle_get(dtype, &all_16[i]), got = (double)widened_c[i];

        if (__builtin_isnan(value) || __builtin_isnan(got)) {
            wrong += (__builtin_isnan(value) == __builtin_isnan(got)) ? 0 : 1;
        } else if (got != value || __builtin_signbit(got) != __builtin_signbit(value)) {
            wrong++;
        }
    }
    CHECK_EQ_INT(wrong, 0);
    for (size_t p = 0; p < ORACLE_NUM_PATHS; p++) {
        if (ls_kernel_select(oracle_paths[p]) == LS_OK) {
            cast(LS_FLOAT32, dtype, 1.0, all_16, widened, NUM_16);
            CHECK(memcmp(widened, widened_c, sizeof(widened)) == 0);
        }
    }
}

/* Each value, the middle between it and the next, and the float32 beside that middle. */
static void check_narrow(ls_dtype_t dtype)
{
    for (uint32_t i = 0; i < NUM_16; i++) {
        const uint16_t next   = (uint16_t)(i + 1);
        const double   value  = oracle_get(dtype, &all_16[i]);
        const float    middle = (float)((value + oracle_get(dtype, &next)) / 2.0);
        uint32_t       bits;

        memcpy(&bits, &middle, sizeof(bits));
        bits += (i % 2 == 0) ? 1 : (uint32_t)-1;
        ties[3 * i]     = (float)value;
        ties[3 * i + 1] = middle;
        memcpy(&ties[3 * i + 2], &bits, sizeof(bits));
    }
    for (size_t i = 0; i < NUM_TIES; i++) {
        oracle_put(dtype, (double)ties[i], &expected_16[i]);
    }
    for (size_t p = 0; p < ORACLE_NUM_PATHS; p++) {
        if (ls_kernel_select(oracle_paths[p]) == LS_OK) {
            cast(dtype, LS_FLOAT32, 1.0, ties, narrowed, NUM_TIES);
            CHECK(memcmp(narrowed, expected_16, sizeof(narrowed)) == 0);
        }
    }
}

static void test_all_float16_values_convert_both_ways(void)
{
    check_widen(LS_FLOAT16);
    check_narrow(LS_FLOAT16);
}

static void test_all_bfloat16_values_convert_both_ways(void)
{
    check_widen(LS_BFLOAT16);
    check_narrow(LS_BFLOAT16);
}

static double cast_one(ls_dtype_t to, ls_dtype_t from, double scale, double value)
{
    const bool   is_wide = (to == LS_FLOAT64 || from == LS_FLOAT64);
    const double product = oracle_times(is_wide ? LS_FLOAT64 : LS_FLOAT32, value, scale);

    return (to == LS_FLOAT64) ? product : (double)(float)product;
}

/* NaN only has to stay one here: widening keeps its bits, narrowing does not. */
static bool is_same(ls_dtype_t dtype, const uint8_t *got, const uint8_t *expected)
{
    return memcmp(got, expected, ls_dtype_size(dtype)) == 0 ||
           (__builtin_isnan(oracle_get(dtype, got)) && __builtin_isnan(oracle_get(dtype, expected)));
}

static void check_pair(ls_dtype_t to, ls_dtype_t from, double scale, size_t count)
{
    const size_t in_size = ls_dtype_size(from), out_size = ls_dtype_size(to);
    uint8_t     *in  = malloc(in_size * (count + 1)), *out = malloc(out_size * (count + 1));
    uint8_t     *out_c = malloc(out_size * count + 1), expected[8];
    size_t       wrong = 0;

    oracle_fill(from, in + in_size, count);
    CHECK_EQ_INT(ls_kernel_select("c"), LS_OK);
    cast(to, from, scale, in + in_size, out_c, count);
    for (size_t i = 0; i < count; i++) {
        const double value = oracle_get(from, in + (i + 1) * in_size);

        oracle_put(to, cast_one(to, from, scale, value), expected);
        wrong += !is_same(to, out_c + i * out_size, expected);
    }
    CHECK_EQ_INT(wrong, 0);
    for (size_t p = 0; p < ORACLE_NUM_PATHS; p++) {
        if (ls_kernel_select(oracle_paths[p]) == LS_OK) {
            cast(to, from, scale, in + in_size, out + out_size, count);
            CHECK(memcmp(out + out_size, out_c, count * out_size) == 0);
        }
    }
    free(in);
    free(out);
    free(out_c);
}

static void test_float_types_cast_into_each_other_with_a_scale(void)
{
    for (ls_dtype_t to = LS_FLOAT16; to <= LS_FLOAT64; to++) {
        for (ls_dtype_t from = LS_FLOAT16; from <= LS_FLOAT64; from++) {
            for (size_t k = 0; k < sizeof(counts) / sizeof(counts[0]); k++) {
                check_pair(to, from, 1.0, counts[k]);
                check_pair(to, from, -0.7, counts[k]);
            }
        }
    }
}

static void test_cast_to_the_same_type_keeps_every_bit(void)
{
    uint8_t in[MAX_COUNT + 64], out[MAX_COUNT + 64];

    for (size_t k = 0; k < sizeof(counts) / sizeof(counts[0]); k++) {
        for (unsigned i = 0; i < 2 * ORACLE_NUM_PATHS; i++) {
            ls_kernel_cast_t args = {.dst_dtype = LS_INT8, .src_dtype = LS_INT8, .scale = 1.0,
                                     .src = in + k, .dst = out + 2 * k, .count = counts[k],
                                     .stream = (i % 2 == 1)};

            if (ls_kernel_select(oracle_paths[i / 2]) == LS_OK) {
                oracle_fill(LS_INT8, in, sizeof(in));
                memset(out, 0xa5, sizeof(out));
                ls_kernel_cast(&args);
                CHECK(memcmp(out + 2 * k, in + k, counts[k]) == 0);
                CHECK_EQ_INT(out[2 * k + counts[k]], 0xa5);
            }
        }
    }
}

static void test_cast_in_place_scales(void)
{
    float data[100];

    for (int i = 0; i < 100; i++) {
        data[i] = (float)i;
    }
    cast(LS_FLOAT32, LS_FLOAT32, 0.5, data, data, 100);
    cast(LS_FLOAT32, LS_FLOAT32, 1.0, data, data, 100);
    for (int i = 0; i < 100; i++) {
        CHECK(data[i] == (float)i / 2.0F);
    }
}

static void fill_bytes(uint8_t *data, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        data[i] = (uint8_t)(i * 7 + 3);
    }
}

static void test_hash_is_the_same_on_every_path_and_as_ever(void)
{
    uint8_t data[HASH_BYTES + 1];

    fill_bytes(data, sizeof(data));
    for (size_t p = 0; p < ORACLE_NUM_PATHS; p++) {
        if (ls_kernel_select(oracle_paths[p]) == LS_OK) {
            CHECK(ls_kernel_hash(NULL, 0, 0) == 0x9ba2360c24a8cdfeULL);
            CHECK(ls_kernel_hash(data, 127, 1) == 0x77003eff2b5a9a8dULL);
            CHECK(ls_kernel_hash(data + 1, HASH_BYTES, 42) == 0x6b4e926c4c6b5645ULL);
        }
    }
    for (size_t bytes = 0; bytes < HASH_BYTES; bytes++) {
        uint64_t first;

        CHECK_EQ_INT(ls_kernel_select("c"), LS_OK);
        first = ls_kernel_hash(data, bytes, bytes);
        CHECK_EQ_INT(ls_kernel_select("auto"), LS_OK);
        CHECK(ls_kernel_hash(data, bytes, bytes) == first);
    }
}

static int compare_u64(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* One bit changed anywhere, zeros appended, other seeds: no two hashes are equal. */
static void test_hash_sees_each_bit_the_length_and_the_seed(void)
{
    enum { NUM = 8 * HASH_BYTES + HASH_BYTES + 64 };
    static uint64_t hashes[NUM];
    uint8_t         data[HASH_BYTES] = {0};
    size_t          n                = 0;

    for (size_t bit = 0; bit < 8 * HASH_BYTES; bit++) {
        data[bit / 8] ^= (uint8_t)(1U << bit % 8);
        hashes[n++] = ls_kernel_hash(data, HASH_BYTES, 0);
        data[bit / 8] = 0;
    }
    for (size_t bytes = 0; bytes < HASH_BYTES; bytes++) {
        hashes[n++] = ls_kernel_hash(data, bytes, 0);
    }
    for (uint64_t seed = 0; seed < 64; seed++) {
        hashes[n++] = ls_kernel_hash(data, HASH_BYTES, seed);
    }
    CHECK_EQ_INT(n, NUM);
    qsort(hashes, NUM, sizeof(hashes[0]), compare_u64);
    for (size_t i = 1; i < NUM; i++) {
        CHECK(hashes[i - 1] != hashes[i]);
    }
}

int main(void)
{
    RUN(test_all_float16_values_convert_both_ways);
    RUN(test_all_bfloat16_values_convert_both_ways);
    RUN(test_float_types_cast_into_each_other_with_a_scale);
    RUN(test_cast_to_the_same_type_keeps_every_bit);
    RUN(test_cast_in_place_scales);
    RUN(test_hash_is_the_same_on_every_path_and_as_ever);
    RUN(test_hash_sees_each_bit_the_length_and_the_seed);
    return check_report();
}

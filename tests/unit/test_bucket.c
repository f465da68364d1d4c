/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>

#include "check.h"
#include "fuse/bucket.h"

#define MAX_PARTS 5
#define MAX_COUNT 200000

static float    inputs[MAX_PARTS][MAX_COUNT], outputs[MAX_PARTS][MAX_COUNT];
static float    peer_a[MAX_COUNT], peer_b[MAX_COUNT], packed[MAX_COUNT];
static char     scratch[LS_BUCKET_SCRATCH];
static ls_part_t parts[MAX_PARTS];

/* Parts of these lengths (zeros included), filled with small numbers. */
static ls_bucket_t make_bucket(const uint64_t *counts, uint32_t num_parts)
{
    ls_bucket_t bucket = {.dtype = LS_FLOAT32, .wire = LS_FLOAT32, .op = LS_SUM, .postscale = 1.0,
                          .num_parts = num_parts, .parts = parts, .scratch = scratch};

    for (uint32_t p = 0; p < num_parts; p++) {
        parts[p] = (ls_part_t){.input = inputs[p], .output = outputs[p], .start = bucket.count,
                               .count = counts[p], .prescale = 1.0, .gives = true};
        for (uint64_t i = 0; i < counts[p]; i++) {
            inputs[p][i]  = (float)((bucket.count + i) % 251);
            outputs[p][i] = -1;
        }
        bucket.count += counts[p];
    }
    for (uint64_t i = 0; i < bucket.count; i++) {
        peer_a[i] = (float)(i % 7);
        peer_b[i] = (float)(i % 13) / 4;
    }
    return bucket;
}

static float own_value(uint64_t at)
{
    return (float)(at % 251);
}

static float output_value(const ls_bucket_t *bucket, uint64_t at)
{
    for (uint32_t p = 0; p < bucket->num_parts; p++) {
        if (at - parts[p].start < parts[p].count) {
            return ((const float *)parts[p].output)[at - parts[p].start];
        }
    }
    return NAN;
}

static const uint64_t several[MAX_PARTS] = {5, 0, 70000, 3, 1};

static void test_pack_crosses_part_boundaries(void)
{
    const ls_bucket_t bucket = make_bucket(several, MAX_PARTS);

    for (uint64_t begin = 0; begin < bucket.count; begin += 9973) {
        const uint64_t count = bucket.count - begin;

        ls_bucket_pack(&bucket, true, begin, count, false, packed);
        for (uint64_t i = 0; i < count; i++) {
            CHECK(packed[i] == own_value(begin + i));
        }
    }
}

static void test_store_crosses_part_boundaries(void)
{
    const ls_bucket_t bucket = make_bucket(several, MAX_PARTS);

    ls_bucket_store(&bucket, 2, bucket.count - 2, peer_a);
    CHECK(output_value(&bucket, 1) == -1);
    for (uint64_t i = 2; i < bucket.count; i++) {
        CHECK(output_value(&bucket, i) == peer_a[i - 2]);
    }
}

/* own between two peers, or first, or last; with and without a packed copy. */
static void check_reduce(ls_bucket_t *bucket, uint32_t own_index, bool want_packed, float own_factor, float factor)
{
    const void        *received[3] = {peer_a, peer_b, NULL};
    ls_bucket_reduce_t args        = {
               .from_input = true, .is_final = true, .count = bucket->count, .own_index = own_index,
               .num_received = 2, .received = received, .contributors = 3, .packed = want_packed ? packed : NULL,
    };

    memset(packed, 0, sizeof(packed));
    ls_bucket_reduce(bucket, &args);
    for (uint64_t i = 0; i < bucket->count; i++) {
        const float own      = own_value(i) * own_factor;
        const float sum      = (own_index == 0)   ? (own + peer_a[i]) + peer_b[i]
                               : (own_index == 1) ? (peer_a[i] + own) + peer_b[i]
                                                  : (peer_a[i] + peer_b[i]) + own;
        const float expected = sum * factor;

        CHECK(output_value(bucket, i) == expected);
        CHECK(!want_packed || packed[i] == expected);
    }
}

static void test_reduce_combines_in_rank_order_and_scales(void)
{
    for (uint32_t own_index = 0; own_index < 3; own_index++) {
        for (int want_packed = 0; want_packed < 2; want_packed++) {
            ls_bucket_t bucket = make_bucket(several, MAX_PARTS);

            check_reduce(&bucket, own_index, want_packed != 0, 1, 1);
            bucket.is_large = true;
            check_reduce(&bucket, own_index, want_packed != 0, 1, 1);
            bucket.is_mean   = true;
            bucket.postscale = 6;
            check_reduce(&bucket, own_index, want_packed != 0, 1, 2);
        }
    }
}

static void test_reduce_scales_the_own_input(void)
{
    ls_bucket_t bucket = make_bucket(several, MAX_PARTS);

    for (uint32_t p = 0; p < MAX_PARTS; p++) {
        parts[p].prescale = 0.5;
    }
    check_reduce(&bucket, 1, true, 0.5F, 1);
}

static void test_a_part_that_gives_nothing_is_not_read(void)
{
    ls_bucket_t bucket = make_bucket(several, MAX_PARTS);

    inputs[2][17] = NAN;
    for (uint32_t p = 0; p < MAX_PARTS; p++) {
        parts[p].gives = false;
    }
    ls_bucket_pack(&bucket, true, 0, bucket.count, false, packed);
    for (uint64_t i = 0; i < bucket.count; i++) {
        CHECK(packed[i] == 0);
    }
    check_reduce(&bucket, 1, false, 0, 1);
}

static void test_in_place_reduce(void)
{
    ls_bucket_t bucket = make_bucket(several, MAX_PARTS);

    for (uint32_t p = 0; p < MAX_PARTS; p++) {
        parts[p].output = inputs[p];
    }
    bucket.is_large = true;
    check_reduce(&bucket, 2, true, 1, 1);
}

static void test_wire_type_rounds_own_value_and_result_alike(void)
{
    ls_bucket_t    bucket = make_bucket(several, MAX_PARTS);
    const uint64_t count  = bucket.count;
    uint16_t      *wire_a = malloc(count * 2), *wire_own = malloc(count * 2), *wire_result = malloc(count * 2);
    const void    *here[2] = {wire_a}, *there[2] = {wire_own};
    float         *first = malloc(count * sizeof(float));
    ls_bucket_reduce_t args = {.from_input = true, .is_final = true, .count = count, .own_index = 0,
                               .num_received = 1, .received = here, .contributors = 2, .packed = wire_result};

    bucket.wire = LS_BFLOAT16;
    for (uint64_t i = 0; i < 70000; i++) {
        inputs[2][i] = 1.0F + (float)i / 7.0F;
    }
    for (uint64_t i = 0; i < count; i++) {
        wire_a[i] = (uint16_t)(0x3F80 + i % 64);
    }
    ls_bucket_pack(&bucket, true, 0, count, false, wire_own);
    ls_bucket_reduce(&bucket, &args);
    for (uint64_t i = 0; i < count; i++) {
        first[i] = output_value(&bucket, i);
    }
    /* The peer: its own value is what we received, and it receives what we packed. */
    ls_bucket_store(&bucket, 0, count, wire_result);
    for (uint64_t i = 0; i < count; i++) {
        CHECK(output_value(&bucket, i) == first[i]);
    }
    for (uint32_t p = 0; p < MAX_PARTS; p++) {
        uint64_t done = 0;
        for (uint64_t i = 0; i < parts[p].count; i++, done++) {
            const uint32_t bits = (uint32_t)wire_a[parts[p].start + i] << 16;
            memcpy(&inputs[p][i], &bits, sizeof(bits));
        }
    }
    args.received  = there;
    args.own_index = 1;
    ls_bucket_reduce(&bucket, &args);
    for (uint64_t i = 0; i < count; i++) {
        CHECK(output_value(&bucket, i) == first[i]);
    }
    free(wire_a);
    free(wire_own);
    free(wire_result);
    free(first);
}

typedef struct found {
    unsigned num;
    uint32_t part;
    uint64_t at;
    bool     is_nan;
} found_t;

static void note_found(void *arg, uint32_t part, uint64_t at, bool is_nan)
{
    found_t *found = arg;

    *found = (found_t){.num = found->num + 1, .part = part, .at = at, .is_nan = is_nan};
}

static ls_bucket_t make_watched_bucket(found_t *found)
{
    ls_bucket_t bucket = make_bucket(several, MAX_PARTS);

    *found           = (found_t){0};
    bucket.found     = note_found;
    bucket.found_arg = found;
    for (uint32_t p = 0; p < MAX_PARTS; p++) {
        parts[p].is_watched = true;
    }
    return bucket;
}

static void test_packing_tells_what_is_not_finite(void)
{
    found_t     found;
    ls_bucket_t bucket = make_watched_bucket(&found);

    ls_bucket_pack(&bucket, true, 0, bucket.count, false, packed);
    CHECK(found.num == 0);
    inputs[2][40000] = NAN;
    inputs[2][60000] = -INFINITY;
    inputs[3][1]     = INFINITY;
    ls_bucket_pack(&bucket, false, 0, bucket.count, false, packed);        /* outputs: not what was handed in */
    ls_bucket_pack(&bucket, true, 5 + 40001, 10000, false, packed);         /* between the two */
    CHECK(found.num == 0);
    ls_bucket_pack(&bucket, true, 5 + 123, 69000, false, packed);
    CHECK(found.num == 1 && found.part == 2 && found.at == 40000 && found.is_nan);
    for (uint64_t i = 0; i < 69000; i++) {
        CHECK(i + 123 == 40000 ? isnan(packed[i]) : packed[i] == inputs[2][i + 123]);
    }
    ls_bucket_pack(&bucket, true, 0, bucket.count, false, packed);
    CHECK(found.num == 2 && found.part == 3 && found.at == 1 && !found.is_nan); /* a part is told once */
}

static void test_reducing_tells_what_is_not_finite(void)
{
    for (int is_cast = 0; is_cast < 2; is_cast++) {
        const void *received[2] = {peer_a};
        found_t     found;
        ls_bucket_t bucket = make_watched_bucket(&found);

        bucket.wire      = is_cast ? LS_BFLOAT16 : LS_FLOAT32;
        inputs[2][66666] = INFINITY;
        parts[3].gives   = false; /* is not read */
        inputs[3][0]     = NAN;
        ls_bucket_reduce(&bucket, &(ls_bucket_reduce_t){.from_input = true, .is_final = true, .count = bucket.count,
                                                        .own_index = 1, .num_received = 1, .received = received,
                                                        .contributors = 2});
        CHECK(found.num == 1 && found.part == 2 && found.at == 66666 && !found.is_nan);
        CHECK(isinf(outputs[2][66666]) && !isinf(outputs[2][66665]) && !isinf(outputs[2][66667]));
    }
}

static void test_a_watched_bucket_has_the_same_result(void)
{
    found_t     found;
    ls_bucket_t bucket = make_watched_bucket(&found);

    check_reduce(&bucket, 1, true, 1, 1);
    CHECK(found.num == 0);
}

static void test_copy_applies_all_scales(void)
{
    ls_bucket_t bucket = make_bucket(several, MAX_PARTS);

    ls_bucket_copy(&bucket, 0, 0, bucket.count, 1);
    for (uint64_t i = 0; i < bucket.count; i++) {
        CHECK(output_value(&bucket, i) == own_value(i));
    }
    for (uint32_t p = 0; p < MAX_PARTS; p++) {
        parts[p].prescale = 2;
    }
    bucket.postscale = 0.25;
    bucket.is_mean   = true;
    ls_bucket_copy(&bucket, 0, 0, bucket.count, 1);
    for (uint64_t i = 0; i < bucket.count; i++) {
        CHECK(output_value(&bucket, i) == own_value(i) / 2);
    }
}

int main(void)
{
    RUN(test_pack_crosses_part_boundaries);
    RUN(test_store_crosses_part_boundaries);
    RUN(test_reduce_combines_in_rank_order_and_scales);
    RUN(test_reduce_scales_the_own_input);
    RUN(test_a_part_that_gives_nothing_is_not_read);
    RUN(test_in_place_reduce);
    RUN(test_wire_type_rounds_own_value_and_result_alike);
    RUN(test_packing_tells_what_is_not_finite);
    RUN(test_reducing_tells_what_is_not_finite);
    RUN(test_a_watched_bucket_has_the_same_result);
    RUN(test_copy_applies_all_scales);
    return check_report();
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "check.h"
#include "engine/geometry.h"

/* Every element of every block belongs to exactly one chunk, in order. */
static void check_cover(const ls_geometry_t *geometry)
{
    for (uint32_t block = 0; block < geometry->num_blocks; block++) {
        uint64_t at = geometry->input_at[block];

        for (uint32_t chunk = 0; chunk < geometry->num_chunks; chunk++) {
            const ls_range_t range = ls_geometry_range(geometry, chunk, block);

            if (range.count > 0) {
                CHECK_EQ_INT(range.input_at, at);
            }
            at += range.count;
        }
        CHECK_EQ_INT(at, geometry->input_at[block] + geometry->counts[block]);
    }
}

static void test_even_blocks_cover_all_elements_once(void)
{
    static const uint64_t counts[] = {0, 1, 2, 15, 16, 17, 1000, 100003};

    for (uint32_t blocks = 1; blocks <= 9; blocks++) {
        for (unsigned i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
            for (uint64_t step = 1; step < 5000; step = step * 7 + 3) {
                ls_geometry_t geometry;
                uint64_t      sum = 0;

                CHECK_EQ_INT(ls_geometry_init(&geometry, blocks), LS_OK);
                ls_geometry_set_even(&geometry, counts[i]);
                ls_geometry_set_chunks(&geometry, step, true);
                for (uint32_t block = 0; block < blocks; block++) {
                    CHECK_EQ_INT(geometry.input_at[block], sum);
                    sum += geometry.counts[block];
                }
                CHECK_EQ_INT(sum, counts[i]);
                CHECK(geometry.num_chunks >= 1);
                check_cover(&geometry);
                ls_geometry_clear(&geometry);
            }
        }
    }
}

static void test_step_does_not_depend_on_own_counts_unless_shared(void)
{
    ls_geometry_t few, many;

    CHECK_EQ_INT(ls_geometry_init(&few, 2), LS_OK);
    CHECK_EQ_INT(ls_geometry_init(&many, 2), LS_OK);
    few.counts[0]  = 10;
    many.counts[1] = 10000;
    ls_geometry_set_chunks(&few, 64, false);
    ls_geometry_set_chunks(&many, 64, false);
    CHECK_EQ_INT(few.step, 64);
    CHECK_EQ_INT(many.step, few.step);
    check_cover(&few);
    check_cover(&many);
    ls_geometry_clear(&few);
    ls_geometry_clear(&many);
}

static void test_count_adds_up_a_range_of_blocks(void)
{
    ls_geometry_t geometry;

    CHECK_EQ_INT(ls_geometry_init(&geometry, 3), LS_OK);
    ls_geometry_set_even(&geometry, 100);
    ls_geometry_set_chunks(&geometry, 1000, true);
    CHECK_EQ_INT(ls_geometry_count(&geometry, 0, 0, 3), 100);
    CHECK_EQ_INT(ls_geometry_count(&geometry, 0, 1, 2), 100 - geometry.counts[0]);
    CHECK_EQ_INT(ls_geometry_count(&geometry, 0, 1, 0), 0);
    ls_geometry_clear(&geometry);
}

static void test_no_blocks_is_one_empty_chunk(void)
{
    ls_geometry_t geometry;

    CHECK_EQ_INT(ls_geometry_init(&geometry, 0), LS_OK);
    ls_geometry_set_chunks(&geometry, 16, true);
    CHECK_EQ_INT(geometry.num_chunks, 1);
    ls_geometry_clear(&geometry);
    CHECK_EQ_INT(ls_mem_live(), 0);
}

int main(void)
{
    RUN(test_even_blocks_cover_all_elements_once);
    RUN(test_step_does_not_depend_on_own_counts_unless_shared);
    RUN(test_count_adds_up_a_range_of_blocks);
    RUN(test_no_blocks_is_one_empty_chunk);
    return check_report();
}

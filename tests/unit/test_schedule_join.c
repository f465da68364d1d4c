/* SPDX-License-Identifier: Apache-2.0 */
/* The schedule when ranks run out of data at different times. */
#include "schedule_steps.h"

static void test_ranks_may_join_after_different_numbers_of_steps(void)
{
    for (uint32_t num_ranks = 2; num_ranks <= 5; num_ranks++) {
        const ls_signature_t signature = world_vector(10);
        world_t              world;

        world_open(&world, num_ranks, num_ranks);
        for (long epoch = 0; epoch < 3; epoch++) {
            for (long tag = 0; tag < 12; tag++) {
                for (uint32_t r = 0; r < num_ranks; r++) {
                    const long last = 3 + 2 * (long)((r + (uint32_t)epoch) % num_ranks);

                    for (uint32_t i = 0; i < 4 && tag < last; i++) {
                        world_submit(&world, r, abcd[i], &signature, 100 * epoch + tag);
                    }
                    if (tag == last) {
                        world_join(&world, r);
                    }
                }
                world_finish(&world);
            }
            for (uint32_t r = 0; r < num_ranks; r++) {
                CHECK_EQ_INT(world.ranks[r].num_joined, epoch + 1);
            }
        }
        CHECK(world.num_null_items > 0);
        world_close(&world);
    }
}

static void test_what_is_given_after_the_join_waits_for_all_to_join(void)
{
    world_t              world;
    const ls_signature_t signature = world_vector(10);
    size_t               early;

    world_open(&world, 2, 1);
    world_join(&world, 0);
    early = world_submit(&world, 0, "w", &signature, 2);
    world_submit(&world, 1, "w", &signature, 1);
    world_settle(&world);
    CHECK_EQ_INT(world.results[early].num_ends, 0);
    CHECK_EQ_INT(world.results[early + 1].num_ends, 1);
    world_join(&world, 1);
    world_settle(&world);
    world_submit(&world, 1, "w", &signature, 2);
    world_finish(&world);
    CHECK_EQ_INT(world.results[early].status, LS_OK);
    world_close(&world);
}

static void join_all_but(world_t *world, uint32_t rank)
{
    for (uint32_t r = 0; r < world->num_ranks; r++) {
        if (r != rank) {
            world_join(world, r);
        }
    }
    world_finish(world);
}

static void test_a_broadcast_given_before_the_root_joined_runs(void)
{
    ls_signature_t signature = world_vector(10);
    world_t        world;

    signature.coll = LS_COLL_BROADCAST;
    signature.root = 1;
    world_open(&world, 3, 1);
    world_submit(&world, 0, "w", &signature, 1);
    world_submit(&world, 2, "w", &signature, 1);
    world_settle(&world);
    world_submit(&world, 1, "w", &signature, 1);
    world_join(&world, 1);
    while (world.num_in_flight > 0) {
        world_deliver(&world);
        world_tick(&world, 0);
    }
    world_finish(&world);
    for (size_t i = 0; i < 3; i++) {
        CHECK_EQ_INT(world.results[i].status, LS_OK);
    }
    join_all_but(&world, 1);
    world_close(&world);
}

static void test_an_error_does_not_outlive_the_join(void)
{
    const ls_signature_t good = world_vector(10), bad = world_vector(11);
    world_t              world;

    world_open(&world, 3, 1);
    world_submit(&world, 0, "w", &good, 1);
    world_submit(&world, 1, "w", &bad, 1);
    world_settle(&world);
    world_join(&world, 2); /* it never gives the one that failed */
    join_all_but(&world, 2);
    step(&world, (const char *const[]){"w"}, 1, 10, 2);
    world_close(&world);
}

static void test_a_broadcast_from_a_rank_that_has_joined_fails(void)
{
    ls_signature_t signature = world_vector(10);
    world_t        world;

    signature.coll = LS_COLL_BROADCAST;
    signature.root = 1;
    world_open(&world, 3, 1);
    world_join(&world, 1);
    world_submit(&world, 0, "w", &signature, 1);
    world_submit(&world, 2, "w", &signature, 1);
    world_finish(&world);
    for (size_t i = 0; i < 2; i++) {
        CHECK_EQ_INT(world.results[i].status, LS_ERR_INVALID);
        CHECK_STR(world.results[i].text, "rank 1, the root of this broadcast, has joined");
    }
    join_all_but(&world, 1);
    CHECK_EQ_INT(world.ranks[1].num_joined, 1);
    world_close(&world);
}

int main(void)
{
    RUN(test_ranks_may_join_after_different_numbers_of_steps);
    RUN(test_what_is_given_after_the_join_waits_for_all_to_join);
    RUN(test_a_broadcast_given_before_the_root_joined_runs);
    RUN(test_an_error_does_not_outlive_the_join);
    RUN(test_a_broadcast_from_a_rank_that_has_joined_fails);
    return check_report();
}

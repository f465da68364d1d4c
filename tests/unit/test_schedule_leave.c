/* SPDX-License-Identifier: Apache-2.0 */
/* The schedule when a rank stops while others still work. */
#include "schedule_steps.h"

#define STALL_NS (7200 * LS_NS_PER_S) /* of world_open(): nothing here may take that long */

static void leave(world_t *world, uint32_t rank)
{
    ls_schedule_leave(world->ranks[rank].schedule, world->now);
}

static void check_told(const world_result_t *result, const char *who)
{
    CHECK_EQ_INT(result->status, LS_ERR_RANK_LOST);
    CHECK_STR(result->text, who);
    CHECK_STR(result->text, "has stopped and gives no more tensors");
}

static void test_a_name_that_needs_a_rank_that_stops_fails_at_once(void)
{
    for (int is_early = 0; is_early < 2; is_early++) {
        const ls_signature_t signature = world_vector(10);
        world_t              world;

        world_open(&world, 3, 1);
        if (is_early) {
            leave(&world, 1);
            world_settle(&world);
        }
        world_submit(&world, 0, "w", &signature, 1);
        world_submit(&world, 2, "w", &signature, 1);
        if (!is_early) {
            world_settle(&world);
            leave(&world, 1);
        }
        world_finish(&world);
        CHECK(world.now < 2 * LS_NS_PER_S);
        for (size_t i = 0; i < 2; i++) {
            check_told(&world.results[i], "tensor 'w': ");
            check_told(&world.results[i], "rank 1");
        }
        world_finish(&world);
        world_close(&world);
    }
}

static void test_a_bucket_others_have_begun_breaks_the_job_at_once(void)
{
    const ls_signature_t signature = world_vector(10);
    world_t              world;
    uint64_t             begin;
    size_t               late;

    world_open(&world, 3, 1);
    steps_until_silent(&world, abcd, 2, 10, 1);
    for (uint32_t r = 0; r < 3; r += 2) {
        world_submit(&world, r, "a", &signature, 100);
        world_submit(&world, r, "b", &signature, 100);
    }
    world_settle(&world);
    begin = world.now;
    leave(&world, 1);
    world_settle(&world);
    while (world.ranks[0].num_broken == 0 && world_advance(&world)) {
        world_settle(&world);
    }
    CHECK(world.now - begin < LS_NS_PER_S);
    for (uint32_t r = 0; r < 3; r++) {
        CHECK_EQ_INT(world.ranks[r].num_broken, 1);
    }
    late = world_submit(&world, 2, "c", &signature, 101);
    check_told(&world.results[late], "tensor 'a' and its bucket: other ranks have begun to reduce it, but rank 1");
    world_forgive_runs(&world);
    world_close(&world);
}

/* One rank is ahead, and stops: the others catch up, and end well. */
static void test_a_rank_that_is_done_first_harms_nobody(void)
{
    for (uint32_t first = 0; first < 3; first++) {
        const ls_signature_t signature = world_vector(10);
        world_t              world;

        world_open(&world, 3, 1 + first);
        steps_until_silent(&world, abcd, 4, 10, 1);
        for (uint32_t i = 0; i < 4; i++) {
            world_submit(&world, first, abcd[i], &signature, 100);
        }
        leave(&world, first);
        world_settle(&world);
        for (int i = 0; i < 5; i++) {
            world.now += LS_NS_PER_S;
            world_settle(&world);
        }
        for (uint32_t r = 0; r < 3; r++) {
            for (uint32_t i = 0; r != first && i < 4; i++) {
                world_submit(&world, r, abcd[i], &signature, 100);
            }
        }
        world_finish(&world);
        for (size_t i = 0; i < world.num_results; i++) {
            CHECK_EQ_INT(world.results[i].status, LS_OK);
        }
        for (uint32_t r = 0; r < 3; r++) {
            CHECK_EQ_INT(world.ranks[r].num_broken, 0);
        }
        world_close(&world);
    }
}

static void test_when_all_stop_nothing_but_that_is_said(void)
{
    world_t world;
    size_t  sent;

    world_open(&world, 4, 1);
    steps_until_silent(&world, abcd, 4, 10, 1);
    sent = world.num_sent;
    for (uint32_t r = 0; r < 4; r++) {
        leave(&world, r);
    }
    world_finish(&world);
    CHECK_EQ_INT(world.num_sent, sent + 4);
    while (world_advance(&world)) {
        world_settle(&world);
    }
    CHECK_EQ_INT(world.num_sent, sent + 4);
    world_close(&world);
}

/* The second item of a name is not reported before the first has run: the rank tells that it holds it. */
static void test_what_a_rank_still_holds_is_not_missed(void)
{
    const ls_signature_t signature = world_vector(10);
    world_t              world;
    size_t               first;

    world_open(&world, 2, 1);
    world_submit(&world, 1, "w", &signature, 1);
    world_submit(&world, 1, "w", &signature, 2);
    leave(&world, 1);
    world_settle(&world);
    first = world_submit(&world, 0, "w", &signature, 1);
    world_submit(&world, 0, "w", &signature, 2);
    world_submit(&world, 0, "w", &signature, 3);
    world_finish(&world);
    CHECK(world.now < 2 * LS_NS_PER_S);
    CHECK_EQ_INT(world.results[first].status, LS_OK);
    CHECK_EQ_INT(world.results[first + 1].status, LS_OK);
    check_told(&world.results[first + 2], "tensor 'w': rank 0 gave it, but rank 1");
    world_finish(&world);
    world_close(&world);
}

/* It holds one tensor of a bucket and will never give the other. */
static void test_a_bucket_half_filled_by_a_rank_that_stops(void)
{
    const ls_signature_t signature = world_vector(10);
    world_t              world;
    uint64_t             begin;

    world_open(&world, 2, 1);
    steps_until_silent(&world, abcd, 2, 10, 1);
    begin = world.now;
    world_submit(&world, 1, "a", &signature, 100);
    leave(&world, 1);
    for (uint32_t i = 0; i < 2; i++) {
        world_submit(&world, 0, abcd[i], &signature, 100);
    }
    world_settle(&world);
    while (world.ranks[0].num_broken == 0 && world_advance(&world)) {
        world_settle(&world);
    }
    CHECK_EQ_INT(world.ranks[1].num_broken, 1);
    CHECK(world.now - begin < LS_NS_PER_S);
    world_forgive_runs(&world);
    world_close(&world);
}

/* Ranks take random numbers of steps and stop, but the last one waits.  Every item ends, long before the stall time. */
static void test_random_ends(void)
{
    for (uint64_t seed = 1; seed <= 200 && atomic_load(&check_failures) == 0; seed++) {
        const ls_signature_t signature = world_vector(10);
        const uint32_t       num_ranks = 2 + (uint32_t)(seed % 4);
        uint32_t             num_steps[WORLD_MAX_RANKS];
        world_t              world;

        world_open(&world, num_ranks, seed);
        for (uint32_t r = 0; r < num_ranks; r++) {
            num_steps[r] = (r == (uint32_t)seed % num_ranks) ? 8 : 3 + world_random(&world, 5);
        }
        for (uint32_t tag = 0; tag < 8; tag++) {
            for (uint32_t r = 0; r < num_ranks; r++) {
                for (uint32_t i = 0; i < 4 && tag < num_steps[r]; i++) {
                    world_submit(&world, r, abcd[i], &signature, (long)tag);
                }
                if (tag == num_steps[r]) {
                    leave(&world, r);
                }
            }
            if (world_random(&world, 2) == 0) {
                world_settle(&world);
                world.now += world_random(&world, 2) * LS_NS_PER_S;
            }
        }
        world_finish(&world);
        CHECK(world.now < STALL_NS / 2);
        world_forgive_runs(&world);
        world_close(&world);
    }
}

int main(void)
{
    RUN(test_a_name_that_needs_a_rank_that_stops_fails_at_once);
    RUN(test_a_bucket_others_have_begun_breaks_the_job_at_once);
    RUN(test_a_rank_that_is_done_first_harms_nobody);
    RUN(test_when_all_stop_nothing_but_that_is_said);
    RUN(test_what_a_rank_still_holds_is_not_missed);
    RUN(test_a_bucket_half_filled_by_a_rank_that_stops);
    RUN(test_random_ends);
    return check_report();
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The schedule while ranks agree: what is repeated without a word, and what changes it. */
#include "schedule_steps.h"

/* ---- steady state -------------------------------------------------------------------------------- */

static void test_no_message_is_sent_after_the_second_step(void)
{
    for (uint32_t num_ranks = 1; num_ranks <= 5; num_ranks++) {
        world_t world;
        size_t  sent, first;

        world_open(&world, num_ranks, num_ranks);
        step(&world, abcd, 4, 10, 1);
        step(&world, abcd, 4, 10, 2);
        sent  = world.num_sent;
        first = world.num_results;
        for (long i = 3; i < 50; i++) {
            step(&world, abcd, 4, 10, i);
        }
        CHECK_EQ_INT(world.num_sent, sent);
        CHECK(all_replayed(&world, first));
        CHECK_EQ_INT(ls_schedule_changes(world.ranks[0].schedule), 1);
        world_close(&world);
    }
}

static void test_one_name_in_flight_many_times_keeps_its_order(void)
{
    const ls_signature_t signature = world_vector(3);
    world_t              world;

    world_open(&world, 3, 1);
    for (uint32_t r = 0; r < 3; r++) {
        for (long tag = 0; tag < 20; tag++) {
            world_submit(&world, r, "w", &signature, tag);
        }
    }
    world_finish(&world);
    world_close(&world);
}

/* Each waits for the one before: together in a bucket they would wait for each other. */
static void test_tensors_given_one_after_another_do_not_share_a_bucket(void)
{
    world_t world;
    size_t  sent = 0, first = 0;

    world_open(&world, 3, 1);
    for (long i = 0; i < 6; i++) {
        if (i == 3) {
            sent  = world.num_sent;
            first = world.num_results;
        }
        for (uint32_t name = 0; name < 4; name++) {
            step(&world, &abcd[name], 1, 10, i);
        }
    }
    CHECK_EQ_INT(world.num_sent, sent);
    CHECK(all_replayed(&world, first));
    CHECK_EQ_INT(world.results[first].num_slots, 1);
    world_close(&world);
}

static void test_small_tensors_are_fused_up_to_the_limit(void)
{
    const ls_schedule_params_t params = {.fusion_bytes = 100, .patience_ns = LS_NS_PER_S};
    world_t                    world;
    size_t                     first;

    world_open_with(&world, 2, 1, params);
    give_all(&world, abcd, 4, 10, 1); /* 40 bytes each: two in a bucket */
    world_finish(&world);
    first = give_all(&world, abcd, 4, 10, 2);
    world_finish(&world);
    for (size_t i = first; i < world.num_results; i++) {
        CHECK_EQ_INT(world.results[i].num_slots, 2);
    }
    first = give_all(&world, (const char *const[]){"large"}, 1, 1000, 3);
    world_finish(&world);
    CHECK_EQ_INT(world.results[first].num_slots, 1);
    world_close(&world);
}

static void test_only_allreduces_of_one_kind_are_fused(void)
{
    ls_signature_t kinds[5];
    world_t        world;

    for (int i = 0; i < 5; i++) {
        kinds[i] = world_vector(4);
    }
    kinds[1].dtype     = LS_FLOAT64;
    kinds[2].op        = LS_MAX;
    kinds[3].postscale = 0.5;
    kinds[4].coll      = LS_COLL_REDUCE_SCATTER;
    world_open(&world, 2, 1);
    for (long tag = 0; tag < 3; tag++) {
        for (uint32_t r = 0; r < 2; r++) {
            for (uint32_t i = 0; i < 5; i++) {
                world_submit(&world, r, (const char *const[]){"0", "1", "2", "3", "4"}[i], &kinds[i], tag);
            }
        }
        world_finish(&world);
    }
    for (size_t i = 0; i < world.num_results; i++) {
        CHECK_EQ_INT(world.results[i].num_slots, 1);
    }
    world_close(&world);
}

static void test_gathered_counts_may_differ_and_are_replayed(void)
{
    world_t world;
    size_t  sent = 0;

    world_open(&world, 3, 1);
    for (long tag = 0; tag < 6; tag++) {
        sent = (tag == 2) ? world.num_sent : sent;
        for (uint32_t r = 0; r < 3; r++) {
            ls_signature_t signature = world_vector(r + 7 * (uint64_t)tag);

            signature.coll = LS_COLL_ALLGATHER;
            world_submit(&world, r, "rows", &signature, tag);
        }
        world_finish(&world);
    }
    CHECK_EQ_INT(world.num_sent, sent);
    world_close(&world);
}

/* ---- change -------------------------------------------------------------------------------------- */

static void test_a_tensor_that_comes_in_mid_training_is_adopted_too(void)
{
    world_t world;

    world_open(&world, 4, 1);
    CHECK(steps_until_silent(&world, abcd, 3, 10, 1) <= 2);
    CHECK(steps_until_silent(&world, abcd, 4, 10, 100) <= 2);
    world_close(&world);
}

static void test_a_changed_shape_is_agreed_anew(void)
{
    world_t world;

    world_open(&world, 4, 1);
    steps_until_silent(&world, abcd, 4, 10, 1);
    CHECK(steps_until_silent(&world, abcd, 4, 11, 100) <= 3);
    CHECK(steps_until_silent(&world, abcd, 4, 10, 200) <= 5);
    world_close(&world);
}

/* Twice this shape, twice that one: it looks steady each second time. */
static void test_a_tensor_that_keeps_changing_is_adopted_ever_less(void)
{
    world_t  world;
    uint64_t changes;

    world_open(&world, 2, 1);
    for (long tag = 0; tag < 40; tag++) {
        step(&world, (const char *const[]){"changing"}, 1, 10 + (uint64_t)(tag / 2 % 2), tag);
    }
    changes = ls_schedule_changes(world.ranks[1].schedule);
    CHECK(changes <= 6);
    CHECK(steps_until_silent(&world, (const char *const[]){"changing"}, 1, 10, 100) <= 8);
    world_close(&world);
}

static void test_a_dropped_tensor_costs_patience_once(void)
{
    world_t  world;
    uint64_t begin;

    world_open(&world, 3, 1);
    steps_until_silent(&world, abcd, 4, 10, 1);
    begin = world.now;
    step(&world, abcd, 3, 10, 100);
    CHECK(world.now - begin >= 200 * LS_NS_PER_MS);
    begin = world.now;
    CHECK(steps_until_silent(&world, abcd, 3, 10, 101) <= 2);
    CHECK_EQ_INT(world.now, begin);
    world_close(&world);
}

/* "loss" is given when "a" to "d" have come back: in one bucket they would wait for each other. */
static void test_a_tensor_that_needs_the_others_is_parted_from_them(void)
{
    const char *const loss = "loss";
    world_t           world;
    uint64_t          begin = 0;
    size_t            sent  = 0;

    world_open(&world, 3, 1);
    for (long tag = 0; tag < 10; tag++) {
        if (tag == 4) {
            begin = world.now;
            sent  = world.num_sent;
        }
        step(&world, abcd, 4, 10, tag);
        step(&world, &loss, 1, 10, tag);
    }
    CHECK_EQ_INT(world.now, begin);
    CHECK_EQ_INT(world.num_sent, sent);
    world_close(&world);
}

/* Tensors of which each is given when the one before it has come back. */
static void test_tensors_given_one_after_the_other_cost_patience_twice(void)
{
    static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"};
    const uint64_t           patience = 200 * LS_NS_PER_MS;
    world_t                  world;
    uint64_t                 begin;

    world_open(&world, 2, 1);
    begin = world.now;
    for (long tag = 0; tag < 40; tag++) {
        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
            step(&world, &names[i], 1, 10, tag);
        }
    }
    CHECK(world.now - begin < 6 * patience);
    world_close(&world);
}

static void test_alternating_sets_are_both_replayed(void)
{
    static const char *const generator[] = {"g1", "g2", "g3"};
    world_t                  world;
    size_t                   sent = 0;

    world_open(&world, 3, 1);
    for (long round = 0; round < 6; round++) {
        sent = (round == 3) ? world.num_sent : sent;
        for (long i = 0; i < 5; i++) {
            step(&world, abcd, 4, 10, 10 * round + i);
        }
        step(&world, generator, 3, 10, 10 * round + 5);
    }
    CHECK_EQ_INT(world.num_sent, sent);
    world_close(&world);
}

/* As many broadcasts as there are ids, then the gradients: the broadcasts must make room. */
static void test_buckets_no_longer_used_make_room_for_others(void)
{
    const uint32_t num_names = LS_SCHEDULE_NUM_IDS - LS_SCHEDULE_FIRST_ADOPTED;
    world_t        world;

    world_open(&world, 2, 1);
    for (long tag = 0; tag < 2; tag++) {
        for (uint32_t i = 0; i < num_names * 2; i++) {
            ls_signature_t signature = world_vector(1);
            char           name[32];

            signature.coll = LS_COLL_BROADCAST;
            snprintf(name, sizeof(name), "v%u", i / 2);
            world_submit(&world, i % 2, name, &signature, tag);
        }
        world_finish(&world);
    }
    CHECK_EQ_INT(ls_schedule_changes(world.ranks[1].schedule), num_names);
    CHECK(steps_until_silent(&world, abcd, 4, 10, 100) <= 6);
    world_close(&world);
}

int main(void)
{
    RUN(test_no_message_is_sent_after_the_second_step);
    RUN(test_one_name_in_flight_many_times_keeps_its_order);
    RUN(test_tensors_given_one_after_another_do_not_share_a_bucket);
    RUN(test_small_tensors_are_fused_up_to_the_limit);
    RUN(test_only_allreduces_of_one_kind_are_fused);
    RUN(test_gathered_counts_may_differ_and_are_replayed);
    RUN(test_a_tensor_that_comes_in_mid_training_is_adopted_too);
    RUN(test_a_changed_shape_is_agreed_anew);
    RUN(test_a_tensor_that_keeps_changing_is_adopted_ever_less);
    RUN(test_a_dropped_tensor_costs_patience_once);
    RUN(test_a_tensor_that_needs_the_others_is_parted_from_them);
    RUN(test_tensors_given_one_after_the_other_cost_patience_twice);
    RUN(test_alternating_sets_are_both_replayed);
    RUN(test_buckets_no_longer_used_make_room_for_others);
    return check_report();
}

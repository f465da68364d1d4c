/* SPDX-License-Identifier: Apache-2.0 */
/* The schedule, one behaviour at a time. */
#include "base/log.h"
#include "schedule_world.h"

static const char *const abcd[] = {"a", "b", "c", "d"};

/* Every rank gives all names, each rank in an order of its own; returns the result of the first item. */
static size_t give_all(world_t *world, const char *const *names, uint32_t num_names, uint64_t count, long tag)
{
    const size_t         first     = world->num_results;
    const ls_signature_t signature = world_vector(count);

    for (uint32_t r = 0; r < world->num_ranks; r++) {
        const uint32_t shift = world_random(world, num_names);

        for (uint32_t i = 0; i < num_names; i++) {
            world_submit(world, r, names[(i + shift) % num_names], &signature, tag);
        }
    }
    return first;
}

static void step(world_t *world, const char *const *names, uint32_t num_names, uint64_t count, long tag)
{
    const size_t first = give_all(world, names, num_names, count, tag);

    world_finish(world);
    for (size_t i = first; i < world->num_results; i++) {
        CHECK_EQ_INT(world->results[i].status, LS_OK);
    }
}

static bool all_replayed(const world_t *world, size_t first)
{
    for (size_t i = first; i < world->num_results; i++) {
        if (!world->results[i].is_replay) {
            return false;
        }
    }
    return true;
}

/* Steps until nothing is said any more; returns how many it took. */
static long steps_until_silent(world_t *world, const char *const *names, uint32_t num_names, uint64_t count, long tag)
{
    long   steps = 0;
    size_t sent;

    do {
        sent = world->num_sent;
        step(world, names, num_names, count, tag + steps);
    } while (world->num_sent != sent && ++steps < 20);
    return steps;
}

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

static void test_a_tensor_that_always_changes_is_left_out(void)
{
    world_t world;

    world_open(&world, 2, 1);
    for (long tag = 0; tag < 30; tag++) {
        const ls_signature_t changing = world_vector(10 + (uint64_t)tag);

        give_all(&world, abcd, 3, 10, tag);
        for (uint32_t r = 0; r < 2; r++) {
            world_submit(&world, r, "changing", &changing, tag);
        }
        world_finish(&world);
    }
    CHECK(ls_schedule_changes(world.ranks[1].schedule) <= 4);
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

/* ---- disagreement -------------------------------------------------------------------------------- */

static void expect_mismatch(ls_signature_t differing, const char *text)
{
    const ls_signature_t signature = world_vector(12);
    world_t              world;

    world_open(&world, 3, 1);
    for (uint32_t r = 0; r < 3; r++) {
        world_submit(&world, r, "w", (r == 1) ? &differing : &signature, 1);
        if (r == 1) {
            world_settle(&world); /* the error comes before rank 2 has given it */
        }
    }
    world_finish(&world);
    for (size_t i = 0; i < 3; i++) {
        CHECK_EQ_INT(world.results[i].status, LS_ERR_MISMATCH);
        CHECK_STR(world.results[i].text, "tensor 'w': ranks disagree: ");
        CHECK_STR(world.results[i].text, "rank 0 has allreduce sum float32 [12]");
        CHECK_STR(world.results[i].text, text);
    }
    step(&world, (const char *const[]){"w"}, 1, 12, 2);
    CHECK(steps_until_silent(&world, (const char *const[]){"w"}, 1, 12, 3) <= 2);
    world_close(&world);
}

static void test_a_mismatch_shows_both_sides_and_the_name_works_afterwards(void)
{
    ls_signature_t differing = world_vector(12);

    differing.num_dims = 2;
    differing.shape[0] = 4;
    differing.shape[1] = 3;
    expect_mismatch(differing, "rank 1 has allreduce sum float32 [4, 3]");
    expect_mismatch(world_vector(13), "rank 1 has allreduce sum float32 [13]");
    differing       = world_vector(12);
    differing.dtype = LS_INT64;
    expect_mismatch(differing, "rank 1 has allreduce sum int64 [12]");
    differing    = world_vector(12);
    differing.op = LS_MEAN;
    expect_mismatch(differing, "rank 1 has allreduce mean float32 [12]");
    differing          = world_vector(12);
    differing.prescale = 0.5;
    expect_mismatch(differing, "prescale 0.5");
    differing      = world_vector(12);
    differing.coll = LS_COLL_BROADCAST;
    differing.root = 2;
    expect_mismatch(differing, "rank 1 has broadcast float32 [12] from rank 2");
}

static void test_different_roots_are_a_mismatch(void)
{
    ls_signature_t signature = world_vector(5);
    world_t        world;

    signature.coll = LS_COLL_BROADCAST;
    world_open(&world, 2, 1);
    for (uint32_t r = 0; r < 2; r++) {
        signature.root = r;
        world_submit(&world, r, "w", &signature, 1);
    }
    world_finish(&world);
    CHECK_STR(world.results[0].text, "from rank 0");
    CHECK_STR(world.results[0].text, "from rank 1");
    CHECK_STR(world.results[1].text, world.results[0].text);
    world_close(&world);
}

static void test_two_errors_in_a_row_reach_a_late_rank_twice(void)
{
    world_t        world;
    ls_signature_t good = world_vector(5), bad = world_vector(6);

    world_open(&world, 3, 1);
    for (long tag = 0; tag < 2; tag++) {
        world_submit(&world, 0, "w", &good, tag);
        world_submit(&world, 1, "w", &bad, tag);
        world_settle(&world);
    }
    for (long tag = 0; tag < 2; tag++) {
        CHECK_EQ_INT(world.results[world_submit(&world, 2, "w", &good, tag)].status, LS_ERR_MISMATCH);
    }
    step(&world, (const char *const[]){"w"}, 1, 5, 2);
    world_close(&world);
}

/* Rank 0 has begun the bucket, rank 1 comes with another shape: nothing but the end helps rank 0. */
static void test_a_change_on_one_rank_alone_breaks_the_job_with_a_message(void)
{
    const ls_signature_t signature = world_vector(10), differing = world_vector(11);
    world_t              world;
    size_t               odd;

    world_open(&world, 2, 1);
    steps_until_silent(&world, abcd, 1, 10, 1);
    world_submit(&world, 0, "a", &signature, 100);
    odd = world_submit(&world, 1, "a", &differing, 100);
    world_settle(&world);
    CHECK_EQ_INT(world.results[odd].status, LS_ERR_MISMATCH);
    CHECK_STR(world.results[odd].text, "tensor 'a': ranks disagree: rank 1 has allreduce sum float32 [11]");
    CHECK_STR(world.results[odd].text, "allreduce sum float32 [10]");
    CHECK_EQ_INT(world.ranks[0].num_broken, 1);
    CHECK_EQ_INT(world.ranks[1].num_broken, 1);
    odd = world_submit(&world, 0, "b", &signature, 101);
    CHECK_EQ_INT(world.results[odd].status, LS_ERR_MISMATCH);
    world_forgive_runs(&world);
    world_close(&world);
}

/* ---- stalls -------------------------------------------------------------------------------------- */

static const ls_schedule_params_t stall_params = {.fusion_bytes   = 1024,
                                                  .patience_ns    = 100 * LS_NS_PER_MS,
                                                  .stall_warn_ns  = 10 * LS_NS_PER_S,
                                                  .stall_abort_ns = 60 * LS_NS_PER_S};

static void test_a_name_some_ranks_do_not_give_stalls(void)
{
    const ls_signature_t signature = world_vector(10);
    world_t              world;

    ls_log_set_level(LS_LOG_ERROR); /* the warnings are expected */
    world_open_with(&world, 5, 1, stall_params);
    world_submit(&world, 0, "w", &signature, 1);
    world_submit(&world, 2, "w", &signature, 1);
    world_finish(&world);
    for (size_t i = 0; i < 2; i++) {
        CHECK_EQ_INT(world.results[i].status, LS_ERR_STALL);
        CHECK_STR(world.results[i].text, "tensor 'w': ranks 0, 2 gave it, ranks 1, 3, 4 did not within 60.0 s");
    }
    ls_log_set_level(LS_LOG_WARN);
    world_close(&world);
}

static void test_a_tensor_missing_from_a_bucket_on_one_rank_stalls(void)
{
    const ls_signature_t signature = world_vector(10);
    world_t              world;
    size_t               first;

    ls_log_set_level(LS_LOG_ERROR);
    world_open_with(&world, 3, 1, stall_params);
    steps_until_silent(&world, abcd, 3, 10, 1);
    first = world.num_results;
    for (uint32_t r = 0; r < 3; r++) {
        world_submit(&world, r, "a", &signature, 100);
        if (r > 0) {
            world_submit(&world, r, "b", &signature, 100);
        }
    }
    world_finish(&world);
    for (size_t i = first; i < world.num_results; i++) {
        if (world.results[i].status != LS_OK) {
            CHECK_STR(world.results[i].text, "tensor 'b': ranks 1, 2 gave it, rank 0 did not");
        }
    }
    CHECK_EQ_INT(world.results[first + 2].status, LS_ERR_STALL);
    CHECK_EQ_INT(world.results[first + 4].status, LS_ERR_STALL);
    ls_log_set_level(LS_LOG_WARN);
    world_close(&world);
}

static void test_a_bucket_begun_elsewhere_and_never_filled_breaks_the_job(void)
{
    const ls_signature_t signature = world_vector(10);
    world_t              world;
    size_t               first;

    ls_log_set_level(LS_LOG_ERROR);
    world_open_with(&world, 2, 1, stall_params);
    steps_until_silent(&world, abcd, 2, 10, 1);
    first = world.num_results;
    world_submit(&world, 0, "a", &signature, 100);
    world_submit(&world, 0, "b", &signature, 100);
    world_submit(&world, 1, "a", &signature, 100);
    world_finish(&world);
    CHECK_EQ_INT(world.results[first + 2].status, LS_ERR_STALL);
    CHECK_STR(world.results[first + 2].text, "tensor 'b' and its bucket");
    CHECK_STR(world.results[first + 2].text, "rank 1 did not give it");
    CHECK_EQ_INT(world.ranks[0].num_broken, 1);
    world_forgive_runs(&world);
    ls_log_set_level(LS_LOG_WARN);
    world_close(&world);
}

/* Rank 1 gives nothing of the bucket, so nothing waits there: the engine of rank 0 must ask. */
static void test_doubt_finds_the_rank_that_has_not_begun(void)
{
    const ls_signature_t signature = world_vector(10);
    world_t              world;
    size_t               late;

    ls_log_set_level(LS_LOG_ERROR);
    world_open_with(&world, 3, 1, stall_params);
    steps_until_silent(&world, abcd, 2, 10, 1);
    ls_schedule_doubt(world.ranks[0].schedule, 2048, world.now);
    world_settle(&world);
    CHECK_EQ_INT(steps_until_silent(&world, abcd, 2, 10, 50), 0); /* all had begun: nothing happens */
    for (uint32_t r = 0; r < 3; r += 2) {
        world_submit(&world, r, "a", &signature, 100);
        world_submit(&world, r, "b", &signature, 100);
    }
    world_settle(&world);
    CHECK_EQ_INT(world.ranks[0].next_tick, UINT64_MAX);
    ls_schedule_doubt(world.ranks[2].schedule, 2048, world.now);
    world_settle(&world);
    while (world.ranks[0].num_broken == 0 && world_advance(&world)) {
        world_settle(&world);
    }
    CHECK_EQ_INT(world.ranks[1].num_broken, 1);
    late = world_submit(&world, 1, "a", &signature, 100);
    CHECK_EQ_INT(world.results[late].status, LS_ERR_STALL);
    CHECK_STR(world.results[late].text, "tensor 'a' and its bucket");
    CHECK_STR(world.results[late].text, "rank 1 did not give it");
    ls_log_set_level(LS_LOG_WARN);
    world_forgive_runs(&world);
    world_close(&world);
}

/* A rank that is slow, but not absent, costs nothing but time. */
static void test_a_bucket_that_fills_slowly_on_one_rank_is_kept(void)
{
    const ls_signature_t signature = world_vector(10);
    world_t              world;
    uint64_t             changes;

    world_open(&world, 2, 1);
    steps_until_silent(&world, abcd, 2, 10, 1);
    changes = ls_schedule_changes(world.ranks[0].schedule);
    for (uint32_t r = 0; r < 2; r++) {
        world_submit(&world, r, "a", &signature, 100);
    }
    world_submit(&world, 0, "b", &signature, 100);
    world_settle(&world);
    for (int i = 0; i < 5; i++) {
        world.now += LS_NS_PER_S;
        world_settle(&world);
    }
    world_submit(&world, 1, "b", &signature, 100);
    world_finish(&world);
    CHECK_EQ_INT(ls_schedule_changes(world.ranks[0].schedule), changes);
    CHECK_EQ_INT(steps_until_silent(&world, abcd, 2, 10, 101), 0);
    world_close(&world);
}

/* ---- join ---------------------------------------------------------------------------------------- */

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
    world_join(&world, 0);
    world_join(&world, 2);
    world_finish(&world);
    CHECK_EQ_INT(world.ranks[1].num_joined, 1);
    world_close(&world);
}

/* ---- ends, odd input ----------------------------------------------------------------------------- */

static void test_abort_fails_what_is_held_and_what_comes(void)
{
    const ls_signature_t signature = world_vector(10);
    world_t              world;
    size_t               held, later;

    world_open(&world, 2, 1);
    steps_until_silent(&world, abcd, 2, 10, 1);
    held = world_submit(&world, 0, "a", &signature, 100);
    world_submit(&world, 0, "new", &signature, 100);
    world_settle(&world);
    CHECK(!ls_schedule_is_idle(world.ranks[0].schedule));
    ls_schedule_abort(world.ranks[0].schedule, LS_ERR_RANK_LOST, "rank 1 is gone");
    CHECK(ls_schedule_is_idle(world.ranks[0].schedule));
    later = world_submit(&world, 0, "c", &signature, 101);
    CHECK_EQ_INT(world.results[held].status, LS_ERR_RANK_LOST);
    CHECK_EQ_INT(world.results[held + 1].status, LS_ERR_RANK_LOST);
    CHECK_EQ_INT(world.results[later].status, LS_ERR_RANK_LOST);
    CHECK_STR(world.results[later].text, "rank 1 is gone");
    world_close(&world);
}

static void test_many_names_used_once_leave_nothing_behind(void)
{
    world_t world;
    size_t  live = 0;

    world_open(&world, 2, 1);
    for (long tag = 0; tag < 3000; tag++) {
        char              name[32];
        const char *const names[] = {name};

        snprintf(name, sizeof(name), "barrier.%ld", tag);
        step(&world, names, 1, 1, tag);
        live = (tag == 2) ? ls_mem_live() : live;
    }
    /* The coordinator's history, the test's own notes (one name each), and nothing on the ranks. */
    CHECK(ls_mem_live() - live <= 3000 * 3);
    CHECK(ls_schedule_is_idle(world.ranks[1].schedule));
    world_close(&world);
}

/* Every message of a lively world, cut short at every byte and with bytes changed, to every rank. */
static void feed_broken(world_t *world, const world_packet_t *packet, uint32_t from, uint32_t to)
{
    unsigned char *bytes = malloc(packet->size + 1);

    for (size_t size = 0; size < packet->size; size++) {
        memcpy(bytes, packet->data, size);
        CHECK_EQ_INT(ls_schedule_receive(world->ranks[to].schedule, from, bytes, size, world->now), LS_ERR_INTERNAL);
    }
    memcpy(bytes, packet->data, packet->size);
    bytes[packet->size] = 0;
    CHECK_EQ_INT(ls_schedule_receive(world->ranks[to].schedule, from, bytes, packet->size + 1, world->now),
                 LS_ERR_INTERNAL);
    free(bytes);
}

static void test_truncated_messages_change_nothing(void)
{
    world_t world;

    world_open(&world, 3, 1);
    for (long tag = 0; tag < 8; tag++) {
        give_all(&world, abcd, 4, (tag < 5) ? 10 : 11, tag);
        for (uint32_t r = 0; r < 3; r++) {
            world_tick(&world, r);
        }
        while (world.num_in_flight > 0) {
            for (uint32_t pair = 0; pair < 9; pair++) {
                if (world.ranks[pair / 3].first[pair % 3] != NULL) {
                    feed_broken(&world, world.ranks[pair / 3].first[pair % 3], pair / 3, pair % 3);
                }
            }
            world_deliver(&world);
            world_tick(&world, world_random(&world, 3));
        }
        world_finish(&world);
    }
    for (size_t i = 0; i < world.num_results; i++) {
        CHECK_EQ_INT(world.results[i].status, LS_OK);
    }
    world_close(&world);
}

/* Random bytes, and real messages with bytes changed: anything may be the answer, but no crash. */
static void test_garbage_never_crashes(void)
{
    for (uint64_t seed = 1; seed <= 150; seed++) {
        world_t  world;
        uint32_t to, from;

        ls_log_set_level(LS_LOG_ERROR);
        world_open(&world, 2, seed);
        world_submit(&world, 0, "a", &(ls_signature_t){.count = 1}, 0);
        for (int turn = 0; turn < 150; turn++) {
            unsigned char bytes[128];
            size_t        size = world_random(&world, sizeof(bytes));

            for (size_t i = 0; i < size; i++) {
                bytes[i] = (unsigned char)(world_random(&world, 3) == 0 ? world_random(&world, 256) : 0);
            }
            from = world_random(&world, 3);
            to   = world_random(&world, 2);
            bytes[0] = (unsigned char)(size > 0 ? world_random(&world, 14) : 0);
            if (world.ranks[0].first[to] != NULL && world_random(&world, 2) == 0) {
                const world_packet_t *packet = world.ranks[0].first[to];

                size = packet->size < sizeof(bytes) ? packet->size : sizeof(bytes);
                memcpy(bytes, packet->data, size);
                bytes[world_random(&world, (uint32_t)size)] ^= (unsigned char)(1U << world_random(&world, 8));
                from = 0;
            }
            ls_schedule_receive(world.ranks[to].schedule, from, bytes, size, world.now);
            ls_schedule_tick(world.ranks[to].schedule, world.now);
        }
        for (uint32_t r = 0; r < 2; r++) {
            ls_schedule_abort(world.ranks[r].schedule, LS_ERR_INTERNAL, "over");
            CHECK_EQ_INT(world.ranks[r].num_open, 0);
        }
        while (world.num_in_flight > 0) {
            world_deliver(&world);
        }
        ls_log_set_level(LS_LOG_WARN);
        world_forgive_runs(&world);
        world_close(&world);
    }
}

/* The n-th allocation fails: items end once, nothing leaks. */
static void test_running_out_of_memory_ends_everything_once(void)
{
    for (size_t n = 1; n < 400; n++) {
        world_t world;

        world_open(&world, 2, 1);
        ls_mem_fail_at(n);
        for (long tag = 0; tag < 4; tag++) {
            give_all(&world, abcd, 4, (tag < 3) ? 10 : 11, tag);
            for (uint32_t r = 0; r < 2; r++) {
                world_tick(&world, r);
            }
            while (world.num_in_flight > 0) {
                world_deliver_any(&world); /* may well answer that there is no memory */
                world_tick(&world, world_random(&world, 2));
            }
        }
        ls_mem_fail_at(0);
        for (uint32_t r = 0; r < 2; r++) {
            ls_schedule_abort(world.ranks[r].schedule, LS_ERR_RANK_LOST, "over");
            CHECK_EQ_INT(world.ranks[r].num_open, 0);
        }
        world_forgive_runs(&world);
        world_close(&world);
    }
}

static void test_dump_names_what_waits(void)
{
    const ls_signature_t signature = world_vector(10);
    char                 text[4096] = {0};
    FILE                *file       = tmpfile();
    world_t              world;

    world_open(&world, 2, 1);
    steps_until_silent(&world, abcd, 2, 10, 1);
    world_submit(&world, 0, "a", &signature, 100);
    world_submit(&world, 0, "new", &signature, 100);
    world_settle(&world);
    ls_schedule_dump(world.ranks[0].schedule, world.now, fileno(file));
    rewind(file);
    CHECK(fread(text, 1, sizeof(text) - 1, file) > 0);
    fclose(file);
    CHECK_STR(text, "bucket 2048 iteration 2: 1 of 2 filled");
    CHECK_STR(text, "lacks b");
    CHECK_STR(text, "'new' waits 0.000 s for rank 1");
    for (uint32_t r = 0; r < 2; r++) {
        ls_schedule_abort(world.ranks[r].schedule, LS_ERR_STOPPED, "over");
    }
    world_close(&world);
}

static void test_signatures_print_as_a_person_would_write_them(void)
{
    ls_signature_t signature = {.coll = LS_COLL_ALLREDUCE, .dtype = LS_FLOAT32, .op = LS_MEAN, .prescale = 1.0,
                                .postscale = 1.0, .count = 12, .num_dims = 2, .shape = {3, 4}};
    char           text[128], little[8];

    ls_signature_print(&signature, text, sizeof(text));
    CHECK(strcmp(text, "allreduce mean float32 [3, 4]") == 0);
    ls_signature_print(&signature, little, sizeof(little));
    CHECK(strcmp(little, "allredu") == 0);
    signature.coll = LS_COLL_BARRIER;
    ls_signature_print(&signature, text, sizeof(text));
    CHECK(strcmp(text, "barrier") == 0);
}

int main(void)
{
    RUN(test_no_message_is_sent_after_the_second_step);
    RUN(test_one_name_in_flight_many_times_keeps_its_order);
    RUN(test_small_tensors_are_fused_up_to_the_limit);
    RUN(test_only_allreduces_of_one_kind_are_fused);
    RUN(test_gathered_counts_may_differ_and_are_replayed);
    RUN(test_a_tensor_that_comes_in_mid_training_is_adopted_too);
    RUN(test_a_changed_shape_is_agreed_anew);
    RUN(test_a_tensor_that_always_changes_is_left_out);
    RUN(test_a_dropped_tensor_costs_patience_once);
    RUN(test_a_tensor_that_needs_the_others_is_parted_from_them);
    RUN(test_alternating_sets_are_both_replayed);
    RUN(test_buckets_no_longer_used_make_room_for_others);
    RUN(test_a_mismatch_shows_both_sides_and_the_name_works_afterwards);
    RUN(test_different_roots_are_a_mismatch);
    RUN(test_two_errors_in_a_row_reach_a_late_rank_twice);
    RUN(test_a_change_on_one_rank_alone_breaks_the_job_with_a_message);
    RUN(test_a_name_some_ranks_do_not_give_stalls);
    RUN(test_a_tensor_missing_from_a_bucket_on_one_rank_stalls);
    RUN(test_a_bucket_begun_elsewhere_and_never_filled_breaks_the_job);
    RUN(test_doubt_finds_the_rank_that_has_not_begun);
    RUN(test_a_bucket_that_fills_slowly_on_one_rank_is_kept);
    RUN(test_ranks_may_join_after_different_numbers_of_steps);
    RUN(test_what_is_given_after_the_join_waits_for_all_to_join);
    RUN(test_a_broadcast_from_a_rank_that_has_joined_fails);
    RUN(test_abort_fails_what_is_held_and_what_comes);
    RUN(test_many_names_used_once_leave_nothing_behind);
    RUN(test_truncated_messages_change_nothing);
    RUN(test_garbage_never_crashes);
    RUN(test_running_out_of_memory_ends_everything_once);
    RUN(test_dump_names_what_waits);
    RUN(test_signatures_print_as_a_person_would_write_them);
    return check_report();
}

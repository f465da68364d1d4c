/* SPDX-License-Identifier: Apache-2.0 */
/* The schedule when ranks disagree, or one does not give what the others gave. */
#include "schedule_steps.h"

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

/* Rank 0 is one round ahead and lacks "b" for the next; rank 1 is behind.  When it has caught up, rank 0 must
 * not have been forgotten. */
static void test_impatience_while_another_rank_is_behind_is_remembered(void)
{
    const ls_signature_t signature = world_vector(10);
    world_t              world;

    world_open(&world, 2, 1);
    steps_until_silent(&world, abcd, 2, 10, 1);
    world_submit(&world, 0, "a", &signature, 100);
    world_submit(&world, 0, "b", &signature, 100);
    world_submit(&world, 0, "a", &signature, 101);
    world_submit(&world, 1, "a", &signature, 100);
    for (int i = 0; i < 5; i++) {
        world.now += LS_NS_PER_S;
        world_settle(&world);
    }
    world_submit(&world, 1, "b", &signature, 100);
    world_submit(&world, 1, "a", &signature, 101);
    world_settle(&world);
    CHECK(world_is_idle(&world));
    world_close(&world);
}

int main(void)
{
    RUN(test_a_mismatch_shows_both_sides_and_the_name_works_afterwards);
    RUN(test_different_roots_are_a_mismatch);
    RUN(test_two_errors_in_a_row_reach_a_late_rank_twice);
    RUN(test_a_change_on_one_rank_alone_breaks_the_job_with_a_message);
    RUN(test_a_name_some_ranks_do_not_give_stalls);
    RUN(test_a_tensor_missing_from_a_bucket_on_one_rank_stalls);
    RUN(test_a_bucket_begun_elsewhere_and_never_filled_breaks_the_job);
    RUN(test_doubt_finds_the_rank_that_has_not_begun);
    RUN(test_a_bucket_that_fills_slowly_on_one_rank_is_kept);
    RUN(test_impatience_while_another_rank_is_behind_is_remembered);
    return check_report();
}

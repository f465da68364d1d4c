/* SPDX-License-Identifier: Apache-2.0 */
/* The engine where it ends, is asked from its own thread, or finds ranks that differ.  Ranks are threads. */
#include "engine_ranks.h"

/* ---- stop ----------------------------------------------------------------------------------- */

static void leave_a_reduction_open(rank_t *rank)
{
    const ls_tensor_t tensor = vector("x", LS_FLOAT32, large[rank->index], LARGE);

    for (int i = 0; i < 2; i++) {
        CHECK_EQ_INT(ls_allreduce(rank->ctx, &tensor, NULL), LS_OK);
    }
    CHECK_EQ_INT(ls_allreduce_async(rank->ctx, &tensor, NULL, on_done, rank), LS_OK);
}

static void test_stop_ends_reductions_under_way(void)
{
    const size_t live = ls_mem_live();
    rank_t       ranks[MAX_RANKS];

    for (int i = 0; i < 10; i++) {
        run_ranks(2, leave_a_reduction_open, ranks);
        for (unsigned r = 0; r < 2; r++) {
            CHECK_EQ_INT(ranks[r].num_done, 1);
            CHECK(ranks[r].status == LS_OK || ranks[r].status == LS_ERR_STOPPED);
        }
    }
    CHECK_EQ_INT(ls_mem_live(), live);
}

static void leave_a_join_open(rank_t *rank)
{
    if (rank->index == 0) {
        CHECK_EQ_INT(ls_join_async(rank->ctx, on_done, rank), LS_OK);
    }
}

static void test_stop_ends_a_join(void)
{
    const size_t live = ls_mem_live();
    rank_t       ranks[MAX_RANKS];

    run_ranks(2, leave_a_join_open, ranks);
    CHECK_EQ_INT(ranks[0].num_done, 1);
    CHECK_EQ_INT(ranks[0].status, LS_ERR_STOPPED);
    CHECK_EQ_INT(ls_mem_live(), live);
}

static void try_again(void *arg, ls_status_t status, const char *message)
{
    rank_t           *rank  = arg;
    float             value = 0;
    const ls_tensor_t tensor = vector("y", LS_FLOAT32, &value, 1);

    on_done(arg, status, message);
    rank->status = ls_allreduce_async(rank->ctx, &tensor, NULL, try_again, rank);
}

static void leave_one_open_that_tries_again(rank_t *rank)
{
    static float      value;
    const ls_tensor_t tensor = vector("x", LS_FLOAT32, &value, 1);

    if (rank->index == 0) {
        CHECK_EQ_INT(ls_allreduce_async(rank->ctx, &tensor, NULL, try_again, rank), LS_OK);
    }
}

static void test_stop_refuses_what_its_callbacks_hand_in(void)
{
    const size_t live = ls_mem_live();
    rank_t       ranks[MAX_RANKS];

    run_ranks(2, leave_one_open_that_tries_again, ranks);
    CHECK_EQ_INT(ranks[0].num_done, 1);
    CHECK_EQ_INT(ranks[0].status, LS_ERR_STOPPED);
    CHECK_EQ_INT(ls_mem_live(), live);
}

static float small[MAX_RANKS][1000];

/* Agreed and replayed; then rank 0 begins it once more, and nobody else. */
static void begin_alone(rank_t *rank)
{
    const ls_tensor_t tensor = vector("begun", LS_FLOAT32, small[rank->index], 1000);

    for (int i = 0; i < 5; i++) {
        CHECK_EQ_INT(ls_allreduce(rank->ctx, &tensor, NULL), LS_OK);
    }
    if (rank->index == 0) {
        CHECK_EQ_INT(ls_allreduce_async(rank->ctx, &tensor, NULL, on_done, rank), LS_OK);
    }
}

static void test_stop_ends_a_bucket_that_one_rank_alone_has_begun(void)
{
    const size_t live = ls_mem_live();
    rank_t       ranks[MAX_RANKS];

    run_ranks(3, begin_alone, ranks);
    CHECK_EQ_INT(ranks[0].num_done, 1);
    CHECK_EQ_INT(ranks[0].status, LS_ERR_STOPPED);
    CHECK_EQ_INT(ls_mem_live(), live);
}

static void stop_early_but_rank_1(rank_t *rank)
{
    const ls_tensor_t tensor = vector("late", LS_FLOAT32, small[rank->index], 1000);

    CHECK_EQ_INT(ls_allreduce_async(rank->ctx, &tensor, NULL, on_done, rank), LS_OK);
    if (rank->index == 1) {
        usleep(100000);
        while (atomic_load(&rank->num_done) == 0) {
            usleep(1000);
        }
    }
}

static void test_ranks_that_stop_still_serve_the_others(void)
{
    rank_t ranks[MAX_RANKS];

    run_ranks(3, stop_early_but_rank_1, ranks);
    for (unsigned r = 0; r < 3; r++) {
        CHECK_EQ_INT(ranks[r].num_done, 1);
        CHECK_EQ_INT(ranks[r].status, LS_OK);
    }
}

/* ---- callbacks ------------------------------------------------------------------------------ */

static void ask_too_much(void *arg, ls_status_t status, const char *message)
{
    rank_t *rank = arg;

    (void)status;
    (void)message;
    ls_dump(rank->ctx, rank->fd);
    ls_stop(rank->ctx);
    on_done(arg, ls_barrier(rank->ctx, "inner"), ls_last_error());
}

static void hand_in_a_group(rank_t *rank)
{
    float             a = 1, b = 2;
    const ls_tensor_t tensors[] = {vector("a", LS_FLOAT32, &a, 1), vector("b", LS_FLOAT32, &b, 1)};

    rank->fd = fileno(tmpfile());
    CHECK_EQ_INT(ls_allreduce_async(rank->ctx, &tensors[0], NULL, ask_too_much, rank), LS_OK);
    CHECK_EQ_INT(ls_allreduce_async(rank->ctx, &tensors[1], NULL, ask_too_much, rank), LS_OK);
    while (atomic_load(&rank->num_done) < 2) {
        usleep(100);
    }
}

static void test_a_callback_may_dump_and_is_refused_what_would_block(void)
{
    rank_t ranks[MAX_RANKS];
    char   text[16] = "";

    run_ranks(2, hand_in_a_group, ranks);
    for (unsigned r = 0; r < 2; r++) {
        CHECK_EQ_INT(ranks[r].status, LS_ERR_INVALID);
        CHECK(strstr(ranks[r].message, "callback") != NULL);
        CHECK(pread(ranks[r].fd, text, 8, 0) == 8);
        CHECK_STR(text, "lockstep");
    }
}

/* ---- ranks that differ ---------------------------------------------------------------------- */

static void give_other_bytes(rank_t *rank)
{
    static const ls_dtype_t dtypes[] = {LS_INT8, LS_UINT8, LS_INT32};
    const ls_reduce_t       mean     = {.op = LS_MEAN};
    int32_t                 values[4] = {0};
    const ls_tensor_t       tensor   = vector("t", dtypes[rank->index], values, 4);

    rank->status = ls_allreduce(rank->ctx, &tensor, &mean);
    snprintf(rank->message, sizeof(rank->message), "%s", ls_last_error());
}

static void test_means_of_different_integers_are_a_mismatch(void)
{
    rank_t ranks[MAX_RANKS];

    run_ranks(3, give_other_bytes, ranks);
    for (unsigned r = 0; r < 3; r++) {
        CHECK_EQ_INT(ranks[r].status, LS_ERR_MISMATCH);
        CHECK(strstr(ranks[r].message, "int8") != NULL && strstr(ranks[r].message, "mean") != NULL);
    }
}

/* All give a and b for a while; then the last rank gives a and joins, when the others have begun both. */
static void join_in_the_middle(rank_t *rank)
{
    const ls_reduce_t mean = {.op = LS_MEAN};
    const bool        is_last = rank->index + 1 == rank->num_ranks;
    float             a, b;
    const ls_tensor_t tensors[] = {vector("a", LS_FLOAT32, &a, 1), vector("b", LS_FLOAT32, &b, 1)};

    for (int i = 0; i < 5; i++) {
        a = b = (float)rank->index;
        CHECK_EQ_INT(ls_allreduce_group(rank->ctx, tensors, 2, &mean), LS_OK);
    }
    a = b = (float)rank->index;
    if (is_last) {
        usleep(50000);
    }
    rank->status = LS_OK;
    CHECK_EQ_INT(ls_allreduce_async(rank->ctx, &tensors[0], &mean, on_done, rank), LS_OK);
    if (!is_last) {
        CHECK_EQ_INT(ls_allreduce_async(rank->ctx, &tensors[1], &mean, on_done, rank), LS_OK);
    }
    (void)ls_join(rank->ctx);
    while (atomic_load(&rank->num_done) < (is_last ? 1U : 2U)) {
        usleep(100);
    }
    rank->value = a;
}

static void test_a_mean_is_never_wrong_when_a_rank_joins_in_the_middle(void)
{
    rank_t ranks[MAX_RANKS];

    setenv("LOCKSTEP_PATIENCE_MS", "20000", 1);
    run_ranks(3, join_in_the_middle, ranks);
    unsetenv("LOCKSTEP_PATIENCE_MS");
    for (unsigned r = 0; r < 3; r++) {
        CHECK(ranks[r].value == 1 || ranks[r].status == LS_ERR_UNSUPPORTED);
    }
}

int main(void)
{
    RUN(test_stop_ends_reductions_under_way);
    RUN(test_stop_ends_a_join);
    RUN(test_stop_refuses_what_its_callbacks_hand_in);
    RUN(test_stop_ends_a_bucket_that_one_rank_alone_has_begun);
    RUN(test_ranks_that_stop_still_serve_the_others);
    RUN(test_a_callback_may_dump_and_is_refused_what_would_block);
    RUN(test_means_of_different_integers_are_a_mismatch);
    RUN(test_a_mean_is_never_wrong_when_a_rank_joins_in_the_middle);
    return check_report();
}

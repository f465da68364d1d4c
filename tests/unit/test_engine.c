/* SPDX-License-Identifier: Apache-2.0 */
/* The engine where it ends, is asked from its own thread, or finds ranks in odd states.  Ranks are threads. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "check.h"
#include "lockstep.h"

#define MAX_RANKS 4
#define LARGE     ((uint64_t)4 << 20) /* elements: more than is reduced at once */

typedef struct rank {
    pthread_t        thread;
    ls_local_job_h   job;
    unsigned         index, num_ranks;
    ls_context_h     ctx;
    ls_status_t      started;
    void           (*body)(struct rank *rank);
    _Atomic unsigned num_done; /* of any request */
    ls_status_t      status;   /* of the last one */
    char             message[1024];
} rank_t;

static void *run_rank(void *arg)
{
    rank_t                 *rank   = arg;
    const ls_start_params_t params = {.local_job = rank->job, .local_rank = rank->index};

    rank->started = ls_start(&params, &rank->ctx);
    if (rank->started != LS_OK) {
        snprintf(rank->message, sizeof(rank->message), "%s", ls_last_error());
        return NULL;
    }
    rank->body(rank);
    ls_stop(rank->ctx);
    return NULL;
}

/* Every rank runs `body`, then stops. */
static void run_ranks(unsigned num_ranks, void (*body)(rank_t *rank), rank_t ranks[MAX_RANKS])
{
    ls_local_job_h job;

    CHECK_EQ_INT(ls_local_job_create(num_ranks, &job), LS_OK);
    for (unsigned i = 0; i < num_ranks; i++) {
        ranks[i] = (rank_t){.job = job, .index = i, .num_ranks = num_ranks, .body = body};
    }
    for (unsigned i = 0; i < num_ranks; i++) {
        CHECK_EQ_INT(pthread_create(&ranks[i].thread, NULL, run_rank, &ranks[i]), 0);
    }
    for (unsigned i = 0; i < num_ranks; i++) {
        pthread_join(ranks[i].thread, NULL);
    }
    ls_local_job_destroy(job);
}

static void on_done(void *arg, ls_status_t status, const char *message)
{
    rank_t *rank = arg;

    rank->status = status;
    snprintf(rank->message, sizeof(rank->message), "%s", message);
    atomic_fetch_add(&rank->num_done, 1);
}

static ls_tensor_t vector(const char *name, ls_dtype_t dtype, void *data, uint64_t count)
{
    return (ls_tensor_t){.name = name, .dtype = dtype, .input = data, .output = data, .count = count};
}

/* ---- stop ----------------------------------------------------------------------------------- */

static float large[MAX_RANKS][LARGE];

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

/* Agreed and replayed; then rank 0 begins it once more, and nobody else. */
static void begin_alone(rank_t *rank)
{
    const ls_tensor_t tensor = vector("begun", LS_FLOAT32, large[rank->index], 1000);

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
    const ls_tensor_t tensor = vector("late", LS_FLOAT32, large[rank->index], 1000);

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

int main(void)
{
    RUN(test_stop_ends_a_bucket_that_one_rank_alone_has_begun);
    RUN(test_ranks_that_stop_still_serve_the_others);
    RUN(test_stop_ends_reductions_under_way);
    RUN(test_stop_ends_a_join);
    RUN(test_stop_refuses_what_its_callbacks_hand_in);
    return check_report();
}

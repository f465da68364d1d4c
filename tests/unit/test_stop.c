/* SPDX-License-Identifier: Apache-2.0 */
/* What happens to requests that are open when all ranks stop. */
#include <lockstep.h>
#include <pthread.h>

#include "base/mem.h"
#include "check.h"

#define NUM_RANKS 3

typedef struct rank {
    ls_local_job_h job;
    unsigned       number;
    void (*body)(ls_context_h ctx, struct rank *rank);
    _Atomic int num_done;
    ls_status_t last_status;
} rank_t;

static void on_done(void *arg, ls_status_t status, const char *message)
{
    rank_t *rank = arg;

    CHECK(status == LS_OK || message[0] != '\0');
    rank->last_status = status;
    atomic_fetch_add(&rank->num_done, 1);
}

static void *rank_main(void *arg)
{
    rank_t      *rank = arg;
    ls_context_h ctx  = NULL;

    CHECK_EQ_INT(ls_start(&(ls_start_params_t){.local_job = rank->job, .local_rank = rank->number}, &ctx), LS_OK);
    rank->body(ctx, rank);
    ls_stop(ctx);
    return NULL;
}

static void run_job(void (*body)(ls_context_h ctx, rank_t *rank), rank_t ranks[NUM_RANKS])
{
    const size_t   live = ls_mem_live();
    pthread_t      threads[NUM_RANKS];
    ls_local_job_h job;

    CHECK_EQ_INT(ls_local_job_create(NUM_RANKS, &job), LS_OK);
    for (unsigned i = 0; i < NUM_RANKS; i++) {
        ranks[i] = (rank_t){.job = job, .number = i, .body = body};
        pthread_create(&threads[i], NULL, rank_main, &ranks[i]);
    }
    for (unsigned i = 0; i < NUM_RANKS; i++) {
        pthread_join(threads[i], NULL);
    }
    ls_local_job_destroy(job);
    CHECK_EQ_INT(ls_mem_live(), live);
}

static float buffers[NUM_RANKS][1000];

static ls_tensor_t tensor_of(const rank_t *rank, const char *name)
{
    return (ls_tensor_t){.name = name, .dtype = LS_FLOAT32, .input = buffers[rank->number],
                         .output = buffers[rank->number], .count = 1000};
}

/* Rank 0 alone hands in a name that was never agreed on. */
static void body_unagreed(ls_context_h ctx, rank_t *rank)
{
    const ls_tensor_t tensor = tensor_of(rank, "alone");

    if (rank->number == 0) {
        CHECK_EQ_INT(ls_allreduce_async(ctx, &tensor, NULL, on_done, rank), LS_OK);
    }
}

static void test_request_nobody_else_gave_fails_when_all_stop(void)
{
    rank_t ranks[NUM_RANKS];

    run_job(body_unagreed, ranks);
    CHECK_EQ_INT(ranks[0].num_done, 1);
    CHECK_EQ_INT(ranks[0].last_status, LS_ERR_STOPPED);
}

/* The same in the steady state: the bucket is agreed, begins on rank 0 and never elsewhere. */
static void body_begun(ls_context_h ctx, rank_t *rank)
{
    const ls_tensor_t tensor = tensor_of(rank, "begun");

    for (int step = 0; step < 5; step++) {
        CHECK_EQ_INT(ls_allreduce(ctx, &tensor, NULL), LS_OK);
    }
    if (rank->number == 0) {
        CHECK_EQ_INT(ls_allreduce_async(ctx, &tensor, NULL, on_done, rank), LS_OK);
    }
}

static void test_bucket_begun_on_one_rank_only_fails_when_all_stop(void)
{
    rank_t ranks[NUM_RANKS];

    run_job(body_begun, ranks);
    CHECK_EQ_INT(ranks[0].num_done, 1);
    CHECK_EQ_INT(ranks[0].last_status, LS_ERR_STOPPED);
}

/* A rank that stops waits for those that still work. */
static void body_late(ls_context_h ctx, rank_t *rank)
{
    const ls_tensor_t tensor = tensor_of(rank, "late");

    CHECK_EQ_INT(ls_allreduce_async(ctx, &tensor, NULL, on_done, rank), LS_OK);
    if (rank->number == 1) {
        usleep(200000);
        while (atomic_load(&rank->num_done) == 0) {
            usleep(1000);
        }
    }
}

static void test_stopping_ranks_still_serve_the_others(void)
{
    rank_t ranks[NUM_RANKS];

    run_job(body_late, ranks);
    for (unsigned i = 0; i < NUM_RANKS; i++) {
        CHECK_EQ_INT(ranks[i].num_done, 1);
        CHECK_EQ_INT(ranks[i].last_status, LS_OK);
    }
}

int main(void)
{
    RUN(test_request_nobody_else_gave_fails_when_all_stop);
    RUN(test_bucket_begun_on_one_rank_only_fails_when_all_stop);
    RUN(test_stopping_ranks_still_serve_the_others);
    return check_report();
}

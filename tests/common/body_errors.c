/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranks that disagree, or do not come: every rank gets an error that names the tensor and what each side
 * had, and the engine goes on.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bodies.h"
#include "trial.h"

#define ROOM          64
#define ABORT_SECONDS 2
#define LIMIT_SECONDS 10

typedef ls_status_t (*hand_in_fn)(job_t *job, ls_tensor_t *tensor, bool is_odd, job_request_t *request);

/* One way to disagree: rank 0 is the odd one. */
typedef struct quarrel {
    const char *name;
    hand_in_fn  hand_in;
    const char *parts[2]; /* what the message must say of either side */
} quarrel_t;

/* ---- the quarrels --------------------------------------------------------------------------- */

static ls_status_t allreduce_as(job_t *job, const ls_tensor_t *tensor, ls_reduce_t reduce,
                                job_request_t *request)
{
    return ls_allreduce_async(job->ctx, tensor, &reduce, job_request_done, request);
}

static ls_status_t other_shape(job_t *job, ls_tensor_t *tensor, bool is_odd, job_request_t *request)
{
    static const int64_t shapes[2][2] = {{3, 4}, {4, 3}};

    tensor->num_dims = 2;
    tensor->shape = shapes[is_odd];
    tensor->count = 12;
    return allreduce_as(job, tensor, (ls_reduce_t){.op = LS_SUM}, request);
}

static ls_status_t other_count(job_t *job, ls_tensor_t *tensor, bool is_odd, job_request_t *request)
{
    tensor->count = is_odd ? 17 : 23;
    return allreduce_as(job, tensor, (ls_reduce_t){.op = LS_SUM}, request);
}

static ls_status_t other_dtype(job_t *job, ls_tensor_t *tensor, bool is_odd, job_request_t *request)
{
    tensor->dtype = is_odd ? LS_INT32 : LS_FLOAT32;
    return allreduce_as(job, tensor, (ls_reduce_t){.op = LS_SUM}, request);
}

static ls_status_t other_op(job_t *job, ls_tensor_t *tensor, bool is_odd, job_request_t *request)
{
    return allreduce_as(job, tensor, (ls_reduce_t){.op = is_odd ? LS_MAX : LS_MEAN}, request);
}

static ls_status_t other_scale(job_t *job, ls_tensor_t *tensor, bool is_odd, job_request_t *request)
{
    return allreduce_as(job, tensor, (ls_reduce_t){.op = LS_SUM, .prescale = is_odd ? 0.25 : 0.75}, request);
}

static ls_status_t other_root(job_t *job, ls_tensor_t *tensor, bool is_odd, job_request_t *request)
{
    return ls_broadcast_async(job->ctx, tensor, is_odd ? 0 : 1, job_request_done, request);
}

static ls_status_t other_collective(job_t *job, ls_tensor_t *tensor, bool is_odd, job_request_t *request)
{
    return is_odd ? ls_broadcast_async(job->ctx, tensor, 0, job_request_done, request)
                  : allreduce_as(job, tensor, (ls_reduce_t){.op = LS_SUM}, request);
}

static void *no_room(void *arg, const uint64_t *counts, unsigned num_ranks)
{
    (void)arg, (void)counts, (void)num_ranks;
    return NULL;
}

/* The first dimension of a gather is free, the others are not. */
static ls_status_t other_row(job_t *job, ls_tensor_t *tensor, bool is_odd, job_request_t *request)
{
    static const int64_t shapes[2][2] = {{2, 5}, {2, 7}};

    tensor->num_dims = 2;
    tensor->shape = shapes[is_odd];
    tensor->count = is_odd ? 14 : 10;
    return ls_allgather_async(job->ctx, tensor, no_room, job_request_done, request);
}

static const quarrel_t quarrels[] = {
    {.name = "quarrel/shape", .hand_in = other_shape, .parts = {"[3, 4]", "[4, 3]"}},
    {.name = "quarrel/count", .hand_in = other_count, .parts = {"17", "23"}},
    {.name = "quarrel/dtype", .hand_in = other_dtype, .parts = {"int32", "float32"}},
    {.name = "quarrel/op", .hand_in = other_op, .parts = {"max", "mean"}},
    {.name = "quarrel/scale", .hand_in = other_scale, .parts = {"0.25", "0.75"}},
    {.name = "quarrel/root", .hand_in = other_root, .parts = {"rank 0", "rank 1"}},
    {.name = "quarrel/collective", .hand_in = other_collective, .parts = {"broadcast", "allreduce"}},
    {.name = "quarrel/row", .hand_in = other_row, .parts = {"5]", "7]"}},
};

static void submit_quarrel(job_t *job, const quarrel_t *quarrel, bool is_odd, job_request_t *request,
                           job_batch_t *batch, uint64_t data[ROOM])
{
    ls_tensor_t tensor = {.name = quarrel->name, .dtype = LS_FLOAT32, .input = data, .output = data,
                          .count = 8};
    ls_status_t status;

    memset(data, 0, ROOM * sizeof(*data));
    job_request_open(request, batch);
    status = quarrel->hand_in(job, &tensor, is_odd, request);
    if (status != LS_OK) {
        job_request_refused(request, status);
    }
}

static void check_quarrel(job_t *job, const quarrel_t *quarrel)
{
    uint64_t      data[ROOM];
    job_request_t request;
    job_batch_t   batch;

    job_batch_init(&batch);
    submit_quarrel(job, quarrel, job->rank == 0, &request, &batch, data);
    job_batch_wait(&batch);
    job_batch_destroy(&batch);
    JOB_CHECK(job, request.status == LS_ERR_MISMATCH && request.num_done == 1, "%s: %s: %s", quarrel->name,
              ls_status_str(request.status), request.message);
    JOB_CHECK(job, strstr(request.message, quarrel->name) != NULL, "'%s' lacks '%s'", request.message,
              quarrel->name);
    for (unsigned i = 0; i < 2; i++) {
        JOB_CHECK(job, strstr(request.message, quarrel->parts[i]) != NULL, "'%s' lacks '%s'", request.message,
                  quarrel->parts[i]);
    }
}

/* Something else works beside the failure and after it. */
static void check_alive(job_t *job, const char *name)
{
    trial_plan_t plan = {.kind = TRIAL_ALLREDUCE,
                         .what = {.dtype = LS_FLOAT32, .op = LS_MEAN, .count = 33, .seed = 5}};

    snprintf(plan.name, sizeof(plan.name), "%s", name);
    trial_run(job, &plan);
}

void body_errors(job_t *job, void *arg)
{
    const unsigned num_quarrels = sizeof(quarrels) / sizeof(quarrels[0]);

    (void)arg;
    for (unsigned repeat = 0; repeat < 2 && job->size > 1; repeat++) {
        for (unsigned i = 0; i < num_quarrels; i++) {
            check_quarrel(job, &quarrels[i]);
            check_alive(job, "after a quarrel");
        }
    }
    /* The name itself is not spoilt. */
    check_alive(job, "quarrel/count");
    job_check_same(job, "after the quarrels");
}

/* ---- who does not come ---------------------------------------------------------------------- */

static bool names_rank(const char *message, unsigned rank)
{
    char part[32];

    snprintf(part, sizeof(part), "rank %u", rank);
    return strstr(message, part) != NULL;
}

/* Hand in `count` floats and say how it ended and after how long. */
static double wait_for_end(job_t *job, const char *name, uint64_t count, job_request_t *request)
{
    float             data[ROOM] = {0};
    const ls_tensor_t tensor = {.name = name, .dtype = LS_FLOAT32, .input = data, .output = data,
                                .count = count};
    const uint64_t    begin = job_now_ns();
    job_batch_t       batch;
    ls_status_t       status;

    job_batch_init(&batch);
    job_request_open(request, &batch);
    status = ls_allreduce_async(job->ctx, &tensor, NULL, job_request_done, request);
    if (status != LS_OK) {
        job_request_refused(request, status);
    }
    job_batch_wait(&batch);
    job_batch_destroy(&batch);
    return (double)(job_now_ns() - begin) * 1e-9;
}

void body_stall(job_t *job, void *arg)
{
    const unsigned missing = job->size - 1;
    job_request_t  request;
    double         seconds;

    (void)arg;
    if (job->size == 1) {
        return;
    }
    check_alive(job, "before the stall");
    if (job->rank != missing) {
        seconds = wait_for_end(job, "stall/never", 8, &request);
        JOB_CHECK(job, request.status == LS_ERR_STALL, "%s: %s", ls_status_str(request.status),
                  request.message);
        JOB_CHECK(job, strstr(request.message, "stall/never") != NULL && names_rank(request.message, missing),
                  "'%s' lacks the tensor or rank %u", request.message, missing);
        JOB_CHECK(job, seconds > 0.9 * ABORT_SECONDS && seconds < LIMIT_SECONDS, "told after %.1f s", seconds);
    }
    /* The one that stayed away must not be early for what follows: that would stall too. */
    usleep(job->rank == missing ? (ABORT_SECONDS + 1) * 1000000 : 0);
    check_alive(job, "after the stall");
    job_check_same(job, "stall");
}

/* After the others have begun a bucket from the agreed schedule nothing can be taken back: the error may
 * end the job, but it must come, soon and with the name, on every rank. */
void body_late(job_t *job, void *arg)
{
    static const char name[] = "late/tensor";
    job_request_t     request;
    double            seconds;

    (void)arg;
    if (job->size == 1) {
        return;
    }
    for (unsigned step = 0; step < 5; step++) {
        wait_for_end(job, name, 8, &request);
        JOB_CHECK(job, request.status == LS_OK, "%s: %s", ls_status_str(request.status), request.message);
    }
    seconds = wait_for_end(job, name, job->rank == 0 ? 9 : 8, &request);
    JOB_CHECK(job, request.status == LS_ERR_MISMATCH || request.status == LS_ERR_STALL, "%s: %s",
              ls_status_str(request.status), request.message);
    JOB_CHECK(job, strstr(request.message, name) != NULL, "'%s' lacks the tensor", request.message);
    JOB_CHECK(job, seconds < LIMIT_SECONDS, "told after %.1f s", seconds);
    job->is_lost = true;
}

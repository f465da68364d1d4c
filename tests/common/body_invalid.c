/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments that are refused at the door: LS_ERR_INVALID with a message, and `done` never runs. */
#include <stdio.h>
#include <string.h>

#include "bodies.h"
#include "trial.h"

#define COUNT 8

static void must_not_run(void *arg, ls_status_t status, const char *message)
{
    job_fail(arg, __FILE__, __LINE__, "done ran for a refused request: %s: %s", ls_status_str(status), message);
}

static void *must_not_ask(void *arg, const uint64_t *counts, unsigned num_ranks)
{
    (void)counts, (void)num_ranks;
    job_fail(arg, __FILE__, __LINE__, "a refused request asked for room");
    return NULL;
}

/* The message is read before anything else is called. */
static void check_invalid(job_t *job, const char *what, ls_status_t status)
{
    JOB_CHECK(job, status == LS_ERR_INVALID, "%s: %s, not refused", what, ls_status_str(status));
    JOB_CHECK(job, ls_last_error()[0] != '\0', "%s: refused without a message", what);
}

static void check_tensors(job_t *job)
{
    float             data[3 * COUNT] = {0};
    const ls_tensor_t good = {.name = "invalid", .dtype = LS_FLOAT32, .input = data, .output = data,
                              .count = COUNT};
    const struct {
        const char *what;
        ls_tensor_t tensor;
    } bad[] = {
        {"no name", {.name = NULL, .dtype = LS_FLOAT32, .input = data, .output = data, .count = COUNT}},
        {"empty name", {.name = "", .dtype = LS_FLOAT32, .input = data, .output = data, .count = COUNT}},
        {"no input", {.name = "x", .dtype = LS_FLOAT32, .output = data, .count = COUNT}},
        {"no output", {.name = "x", .dtype = LS_FLOAT32, .input = data, .count = COUNT}},
        {"unknown type", {.name = "x", .dtype = LS_DTYPE_COUNT, .input = data, .output = data, .count = COUNT}},
        {"negative type", {.name = "x", .dtype = (ls_dtype_t)-1, .input = data, .output = data, .count = COUNT}},
        {"output inside input", {.name = "x", .dtype = LS_FLOAT32, .input = data, .output = data + 1,
                                 .count = COUNT}},
        {"input inside output", {.name = "x", .dtype = LS_FLOAT32, .input = data + COUNT - 1, .output = data,
                                 .count = COUNT}},
    };

    for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        check_invalid(job, bad[i].what, ls_allreduce_async(job->ctx, &bad[i].tensor, NULL, must_not_run, job));
        check_invalid(job, bad[i].what, ls_broadcast_async(job->ctx, &bad[i].tensor, 0, must_not_run, job));
        check_invalid(job, bad[i].what, ls_allreduce(job->ctx, &bad[i].tensor, NULL));
        /* One bad tensor spoils its group. */
        check_invalid(job, bad[i].what,
                      ls_allreduce_group_async(job->ctx, (ls_tensor_t[]){good, bad[i].tensor}, 2, NULL,
                                               must_not_run, job));
    }
    check_invalid(job, "no tensor", ls_allreduce_async(job->ctx, NULL, NULL, must_not_run, job));
}

static void check_others(job_t *job)
{
    float             data[2 * COUNT] = {0};
    const uint64_t    send_counts[JOB_MAX_RANKS] = {COUNT + 1};
    const ls_tensor_t tensor = {.name = "invalid", .dtype = LS_FLOAT32, .input = data, .output = data,
                                .count = COUNT};

    check_invalid(job, "unknown operation",
                  ls_allreduce_async(job->ctx, &tensor, &(ls_reduce_t){.op = LS_OP_COUNT}, must_not_run, job));
    check_invalid(job, "negative operation",
                  ls_reduce_scatter_async(job->ctx, &tensor, &(ls_reduce_t){.op = (ls_op_t)-1}, must_not_run,
                                          job));
    check_invalid(job, "root that is no rank",
                  ls_broadcast_async(job->ctx, &tensor, job->size, must_not_run, job));
    check_invalid(job, "gather without room",
                  ls_allgather_async(job->ctx, &tensor, NULL, must_not_run, job));
    check_invalid(job, "exchange without counts",
                  ls_alltoall_async(job->ctx, &tensor, NULL, must_not_ask, must_not_run, job));
    check_invalid(job, "exchange of more than there is",
                  ls_alltoall_async(job->ctx, &tensor, send_counts, must_not_ask, must_not_run, job));
    check_invalid(job, "barrier without a name", ls_barrier_async(job->ctx, NULL, must_not_run, job));
}

void body_invalid(job_t *job, void *arg)
{
    (void)arg;
    check_tensors(job);
    check_others(job);
    trial_run(job, &(trial_plan_t){.kind = TRIAL_ALLREDUCE, .name = "after the refusals",
                                   .what = {.dtype = LS_FLOAT32, .op = LS_SUM, .count = 33, .seed = 5}});
    job_check_same(job, "after the refusals");
}

/* SPDX-License-Identifier: Apache-2.0 */
/* All-reduce: every type, operation and awkward count, against the oracle. */
#include <math.h>
#include <stdio.h>

#include "bodies.h"
#include "trial.h"

#define NUM_REPEATS  3 /* negotiated, adopted, replayed */
#define PRIME        1009
#define LARGE_PRIME  100003
#define QUICK_PRIME  20011
#define HUGE_PRIME   (JOB_IS_SANITIZED ? 300007 : 5000011)
#define MAX_COUNTS   8

static bool is_in_quick_set(ls_dtype_t dtype)
{
    return dtype == LS_BFLOAT16 || dtype == LS_FLOAT32 || dtype == LS_INT32;
}

/* Some ranks weigh nothing in the second round, all of them in the third. */
static void set_weights(oracle_case_t *what, unsigned num_ranks, unsigned repeat)
{
    for (unsigned rank = 0; rank < num_ranks; rank++) {
        what->weights[rank] = repeat == 0 ? 0.5 * (rank + 1) : repeat == 1 ? (rank % 2) * 3.0 : 0.0;
    }
}

static unsigned list_counts(const job_t *job, bool is_quick, ls_dtype_t dtype, ls_op_t op,
                            uint64_t counts[MAX_COUNTS])
{
    const uint64_t n = job->size;
    const uint64_t all[] = {0, 1, n - 1, n, n + 1, PRIME};
    unsigned       num_counts = 0;

    for (; num_counts < sizeof(all) / sizeof(all[0]); num_counts++) {
        counts[num_counts] = all[num_counts];
    }
    if ((dtype == LS_FLOAT32 || dtype == LS_BFLOAT16) && op == LS_SUM) {
        counts[num_counts++] = is_quick ? QUICK_PRIME : LARGE_PRIME;
    }
    return num_counts;
}

/* All counts are handed in together: they are fused, and cut in awkward places. */
static void try_counts(job_t *job, const body_params_t *params, ls_dtype_t dtype, ls_op_t op, bool in_place,
                       unsigned repeat)
{
    uint64_t       counts[MAX_COUNTS];
    const unsigned num_counts = list_counts(job, params->is_quick, dtype, op, counts);
    const uint64_t seed = oracle_mix(params->seed, (uint64_t)op * LS_DTYPE_COUNT + dtype);
    trial_plan_t   plans[MAX_COUNTS];

    for (unsigned i = 0; i < num_counts; i++) {
        plans[i] = (trial_plan_t){
            .kind = TRIAL_ALLREDUCE, .in_place = in_place,
            .what = {.dtype = dtype, .op = op, .count = counts[i], .seed = seed + repeat * MAX_COUNTS + i}};
        set_weights(&plans[i].what, job->size, repeat);
        snprintf(plans[i].name, sizeof(plans[i].name), "allreduce/%s/%s/%s/%u", oracle_dtype_name(dtype),
                 oracle_op_name(op), in_place ? "in place" : "apart", i);
    }
    trial_run_all(job, plans, num_counts);
}

static void try_type(job_t *job, const body_params_t *params, ls_dtype_t dtype)
{
    for (ls_op_t op = LS_SUM; op < LS_OP_COUNT; op++) {
        if (!oracle_is_allowed(dtype, op)) {
            continue;
        }
        for (unsigned in_place = 0; in_place < 2; in_place++) {
            for (unsigned repeat = 0; repeat < NUM_REPEATS; repeat++) {
                try_counts(job, params, dtype, op, in_place != 0, repeat);
            }
        }
        job_check_same(job, oracle_op_name(op));
    }
}

static void try_scales(job_t *job, uint64_t seed, ls_dtype_t dtype)
{
    static const double scales[][2] = {{0.3, 0}, {0, 1.7}, {0.3, 1.7}, {1, 1}};
    const unsigned      num_scales = sizeof(scales) / sizeof(scales[0]);
    trial_plan_t        plans[LS_OP_COUNT * sizeof(scales) / sizeof(scales[0])];
    unsigned            num_plans = 0;

    for (ls_op_t op = LS_SUM; op < LS_OP_COUNT; op++) {
        for (unsigned i = 0; i < num_scales; i++, num_plans++) {
            plans[num_plans] = (trial_plan_t){
                .kind = TRIAL_ALLREDUCE, .in_place = i % 2 != 0,
                .what = {.dtype = dtype, .op = op, .count = PRIME, .seed = seed + num_plans,
                         .prescale = scales[i][0], .postscale = scales[i][1]}};
            set_weights(&plans[num_plans].what, job->size, 0);
            snprintf(plans[num_plans].name, TRIAL_NAME_ROOM, "scaled/%s/%s/%u", oracle_dtype_name(dtype),
                     oracle_op_name(op), i);
        }
    }
    for (unsigned repeat = 0; repeat < NUM_REPEATS; repeat++) {
        trial_run_all(job, plans, num_plans);
    }
    job_check_same(job, "scaled");
}

/* ---- what is refused ------------------------------------------------------------------------ */

static void check_refused(job_t *job, const char *what, ls_dtype_t dtype, const ls_reduce_t *reduce)
{
    uint64_t          data[4] = {0};
    const ls_tensor_t tensor = {.name = what, .dtype = dtype, .input = data, .output = data, .count = 4};
    job_request_t     request;
    job_batch_t       batch;
    ls_status_t       status;

    job_batch_init(&batch);
    job_request_open(&request, &batch);
    status = ls_allreduce_async(job->ctx, &tensor, reduce, job_request_done, &request);
    JOB_CHECK(job, status == LS_ERR_INVALID, "%s of %s: %s, not refused", what, oracle_dtype_name(dtype),
              ls_status_str(status));
    JOB_CHECK(job, ls_last_error()[0] != '\0', "%s of %s: refused without a message", what,
              oracle_dtype_name(dtype));
    if (status != LS_OK) {
        job_request_refused(&request, status);
    }
    job_batch_wait(&batch);
    job_batch_destroy(&batch);
}

static void check_refusals(job_t *job)
{
    check_refused(job, "mean", LS_BOOL, &(ls_reduce_t){.op = LS_MEAN});
    check_refused(job, "weighted mean", LS_BOOL, &(ls_reduce_t){.op = LS_WEIGHTED_MEAN, .weight = 1});
    for (ls_dtype_t dtype = LS_INT8; dtype < LS_DTYPE_COUNT; dtype++) {
        check_refused(job, "prescale", dtype, &(ls_reduce_t){.op = LS_SUM, .prescale = 0.5});
        check_refused(job, "postscale", dtype, &(ls_reduce_t){.op = LS_SUM, .postscale = 2});
        check_refused(job, "weighted mean", dtype, &(ls_reduce_t){.op = LS_WEIGHTED_MEAN, .weight = 1});
    }
    check_refused(job, "negative weight", LS_FLOAT32, &(ls_reduce_t){.op = LS_WEIGHTED_MEAN, .weight = -1});
    check_refused(job, "NaN weight", LS_FLOAT32,
                  &(ls_reduce_t){.op = LS_WEIGHTED_MEAN, .weight = (double)NAN});
}

/* A plain sum when `reduce` is NULL; no buffers needed for no elements; the blocking call. */
static void check_short_forms(job_t *job)
{
    float             one = 1, sum = 0;
    const ls_tensor_t tensor = {.name = "short/sum", .dtype = LS_FLOAT32, .input = &one, .output = &sum,
                                .count = 1};
    const ls_tensor_t nothing = {.name = "short/nothing", .dtype = LS_FLOAT32};
    ls_status_t       status;

    for (unsigned repeat = 0; repeat < NUM_REPEATS; repeat++) {
        sum = 0;
        status = ls_allreduce(job->ctx, &tensor, NULL);
        JOB_CHECK(job, status == LS_OK, "plain sum: %s: %s", ls_status_str(status), ls_last_error());
        JOB_CHECK(job, sum == (float)job->size, "plain sum of ones is %g", (double)sum);
        status = ls_allreduce(job->ctx, &nothing, NULL);
        JOB_CHECK(job, status == LS_OK, "sum of nothing: %s: %s", ls_status_str(status), ls_last_error());
    }
}

/* ---- bodies --------------------------------------------------------------------------------- */

void body_allreduce(job_t *job, void *arg)
{
    const body_params_t *params = arg;

    check_short_forms(job);
    check_refusals(job);
    for (ls_dtype_t dtype = LS_FLOAT16; dtype < LS_DTYPE_COUNT; dtype++) {
        if (!params->is_quick || is_in_quick_set(dtype)) {
            try_type(job, params, dtype);
        }
        if (oracle_is_float(dtype) && (!params->is_quick || is_in_quick_set(dtype))) {
            try_scales(job, oracle_mix(params->seed, dtype), dtype);
        }
    }
}

void body_large(job_t *job, void *arg)
{
    const body_params_t *params = arg;

    trial_run(job, &(trial_plan_t){.kind = TRIAL_ALLREDUCE, .name = "large", .in_place = true,
                                   .what = {.dtype = LS_FLOAT32, .op = LS_MEAN, .seed = params->seed,
                                            .count = HUGE_PRIME}});
    job_check_same(job, "large");
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The collectives besides all-reduce, against the oracle. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "bodies.h"
#include "trial.h"

#define NUM_REPEATS 3 /* negotiated, adopted, replayed */
#define PRIME       1009
#define LARGE_PRIME 100003

static bool is_tried(const body_params_t *params, ls_dtype_t dtype)
{
    return !params->is_quick || dtype == LS_BFLOAT16 || dtype == LS_FLOAT64 || dtype == LS_UINT8;
}

/* ---- group ---------------------------------------------------------------------------------- */

#define GROUP_SIZE 7

static void submit_group(job_t *job, trial_t *trials, job_batch_t *batch)
{
    const ls_reduce_t reduce = trial_reduce(&trials[0]);
    job_request_t    *request = &trials[0].request;
    ls_tensor_t       tensors[GROUP_SIZE];
    ls_status_t       status;

    for (unsigned i = 0; i < GROUP_SIZE; i++) {
        tensors[i] = trial_tensor(&trials[i]);
    }
    job_request_open(request, batch);
    status = ls_allreduce_group_async(job->ctx, tensors, GROUP_SIZE, &reduce, job_request_done, request);
    if (status != LS_OK) {
        job_request_refused(request, status);
    }
    job_batch_wait(batch);
    for (unsigned i = 1; i < GROUP_SIZE; i++) {
        trials[i].request = *request; /* they complete together */
    }
}

static void try_group(job_t *job, uint64_t seed, ls_op_t op, bool in_place)
{
    static const uint64_t   counts[GROUP_SIZE] = {0, 1, 3, 64, PRIME, 4099, 20011};
    static const ls_dtype_t dtypes[3] = {LS_FLOAT32, LS_FLOAT64, LS_BFLOAT16};
    trial_t                 trials[GROUP_SIZE];
    job_batch_t             batch;

    job_batch_init(&batch);
    for (unsigned i = 0; i < GROUP_SIZE; i++) {
        trial_plan_t plan = {.kind = TRIAL_ALLREDUCE, .in_place = in_place,
                             .what = {.dtype = dtypes[i % 3], .op = op, .count = counts[i], .seed = seed + i}};

        for (unsigned rank = 0; rank < job->size; rank++) {
            plan.what.weights[rank] = rank;
        }
        snprintf(plan.name, sizeof(plan.name), "group/%s/%s/%u", oracle_op_name(op),
                 in_place ? "in place" : "apart", i);
        trial_begin(&trials[i], job, &plan);
    }
    submit_group(job, trials, &batch);
    for (unsigned i = 0; i < GROUP_SIZE; i++) {
        trial_end(&trials[i]);
    }
    job_batch_destroy(&batch);
}

void body_group(job_t *job, void *arg)
{
    const body_params_t *params = arg;

    for (ls_op_t op = LS_SUM; op < LS_OP_COUNT; op++) {
        for (unsigned repeat = 0; repeat < NUM_REPEATS; repeat++) {
            const uint64_t seed = oracle_mix(params->seed, (uint64_t)op * NUM_REPEATS + repeat);

            try_group(job, seed, op, false);
            try_group(job, oracle_mix(seed, 1), op, true);
        }
        job_check_same(job, "group");
    }
}

/* ---- broadcast ------------------------------------------------------------------------------ */

static void try_broadcast(job_t *job, uint64_t seed, ls_dtype_t dtype, unsigned root, bool in_place)
{
    const uint64_t counts[] = {0, 1, job->size + 1, PRIME, dtype == LS_FLOAT64 && root == 0 ? LARGE_PRIME : 2};
    trial_plan_t   plans[sizeof(counts) / sizeof(counts[0])];

    for (unsigned i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        plans[i] = (trial_plan_t){.kind = TRIAL_BROADCAST, .in_place = in_place, .root = root,
                                  .what = {.dtype = dtype, .count = counts[i], .seed = seed + i}};
        snprintf(plans[i].name, sizeof(plans[i].name), "broadcast/%s/%u/%s/%u", oracle_dtype_name(dtype), root,
                 in_place ? "in place" : "apart", i);
    }
    trial_run_all(job, plans, sizeof(counts) / sizeof(counts[0]));
}

void body_broadcast(job_t *job, void *arg)
{
    const body_params_t *params = arg;

    for (ls_dtype_t dtype = LS_FLOAT16; dtype < LS_DTYPE_COUNT; dtype++) {
        for (unsigned root = 0; root < job->size && is_tried(params, dtype); root++) {
            for (unsigned repeat = 0; repeat < NUM_REPEATS; repeat++) {
                const uint64_t seed = oracle_mix(params->seed + repeat, (uint64_t)dtype * JOB_MAX_RANKS + root);

                try_broadcast(job, seed, dtype, root, false);
                try_broadcast(job, oracle_mix(seed, 1), dtype, root, true);
            }
        }
        job_check_same(job, "broadcast");
    }
}

/* ---- allgather, reduce_scatter, alltoall ---------------------------------------------------- */

/* Lengths follow from the seed: they change from call to call under the same name. */
static void try_gather(job_t *job, trial_kind_t kind, uint64_t seed, ls_dtype_t dtype, ls_op_t op)
{
    const uint64_t counts[] = {0, 1, job->size - 1, job->size + 1, PRIME, dtype == LS_FLOAT64 ? 20011 : 3};
    trial_plan_t   plans[sizeof(counts) / sizeof(counts[0])];

    for (unsigned i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        plans[i] = (trial_plan_t){.kind = kind,
                                  .what = {.dtype = dtype, .op = op, .count = counts[i], .seed = seed + i}};
        for (unsigned rank = 0; rank < job->size; rank++) {
            plans[i].what.weights[rank] = rank % 2;
        }
        snprintf(plans[i].name, sizeof(plans[i].name), "gather/%d/%s/%s/%u", (int)kind, oracle_dtype_name(dtype),
                 oracle_op_name(op), i);
    }
    trial_run_all(job, plans, sizeof(counts) / sizeof(counts[0]));
}

static void try_gather_ops(job_t *job, const body_params_t *params, trial_kind_t kind, ls_dtype_t dtype)
{
    const ls_op_t num_ops = kind == TRIAL_REDUCE_SCATTER ? LS_OP_COUNT : LS_SUM + 1;

    for (ls_op_t op = LS_SUM; op < num_ops; op++) {
        for (unsigned repeat = 0; repeat < NUM_REPEATS && oracle_is_allowed(dtype, op); repeat++) {
            const uint64_t which = ((uint64_t)kind * LS_DTYPE_COUNT + dtype) * LS_OP_COUNT + op;

            try_gather(job, kind, oracle_mix(params->seed + repeat, which), dtype, op);
        }
    }
}

void body_gather(job_t *job, void *arg)
{
    static const trial_kind_t kinds[] = {TRIAL_ALLGATHER, TRIAL_REDUCE_SCATTER, TRIAL_ALLTOALL};
    const body_params_t      *params = arg;

    for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        for (ls_dtype_t dtype = LS_FLOAT16; dtype < LS_DTYPE_COUNT; dtype++) {
            if (is_tried(params, dtype)) {
                try_gather_ops(job, params, kinds[i], dtype);
            }
        }
        job_check_same(job, "allgather");
    }
}

/* ---- barrier -------------------------------------------------------------------------------- */

static void check_place(job_t *job)
{
    JOB_CHECK(job, job->rank < job->size, "rank %u of %u", job->rank, job->size);
    JOB_CHECK(job, ls_local_rank(job->ctx) < ls_local_size(job->ctx), "local rank %u of %u",
              ls_local_rank(job->ctx), ls_local_size(job->ctx));
    JOB_CHECK(job, ls_local_size(job->ctx) * ls_num_nodes(job->ctx) >= job->size || ls_num_nodes(job->ctx) > 1,
              "%u nodes, %u ranks on this one, %u in all", ls_num_nodes(job->ctx), ls_local_size(job->ctx),
              job->size);
    JOB_CHECK(job, ls_host(job->ctx)[0] != '\0', "the host has no name");
    JOB_CHECK(job, ls_version()[0] != '\0', "the library has no version");
}

/* The clock is the machine's, so times of ranks on one machine can be compared. */
static void try_barrier(job_t *job, unsigned round, uint64_t chance)
{
    uint64_t    entered, left, others[JOB_MAX_RANKS];
    ls_status_t status;

    usleep((useconds_t)(oracle_mix(chance, job->rank) % 3000));
    if (job->shared != NULL) {
        atomic_fetch_add(&job->shared->num_entered, 1);
    }
    entered = job_now_ns();
    status = ls_barrier(job->ctx, "barrier");
    left = job_now_ns();
    JOB_CHECK(job, status == LS_OK, "barrier: %s: %s", ls_status_str(status), ls_last_error());
    if (job->shared != NULL) {
        const unsigned num_entered = atomic_load(&job->shared->num_entered);

        JOB_CHECK(job, num_entered >= (round + 1) * job->size, "left barrier %u when %u of %u had entered",
                  round, num_entered - round * job->size, job->size);
    }
    job_gather_words(job, "barrier/times", entered, others);
    for (unsigned rank = 0; rank < job->size; rank++) {
        JOB_CHECK(job, others[rank] <= left, "left barrier %u before rank %u entered", round, rank);
    }
}

void body_barrier(job_t *job, void *arg)
{
    const body_params_t *params = arg;

    check_place(job);
    for (unsigned round = 0; round < (params->is_quick ? 10 : 50); round++) {
        try_barrier(job, round, oracle_mix(params->seed, round));
    }
}

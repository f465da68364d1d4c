/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks with different numbers of steps: who has joined gives nothing, and everybody ends. */
#include <stdio.h>

#include "bodies.h"
#include "trial.h"

#define NUM_COUNTS 3

/* Ranks end in no special order, and the last one not always last; some have no step at all. */
static unsigned num_steps_of(uint64_t seed, unsigned rank)
{
    return (unsigned)(oracle_mix(seed, rank) % 9);
}

static uint64_t absent_in(uint64_t seed, unsigned num_ranks, unsigned step)
{
    uint64_t absent = 0;

    for (unsigned rank = 0; rank < num_ranks; rank++) {
        absent |= step >= num_steps_of(seed, rank) ? 1ULL << rank : 0;
    }
    return absent;
}

/* Hashes cannot be compared while some have joined: each rank looks at the whole of each result. */
static void run_step(job_t *job, uint64_t seed, unsigned step)
{
    static const uint64_t   counts[NUM_COUNTS] = {1, 77, 5003};
    static const ls_dtype_t dtypes[NUM_COUNTS] = {LS_FLOAT64, LS_FLOAT32, LS_INT32};
    trial_plan_t            plans[NUM_COUNTS * LS_OP_COUNT + 1];
    unsigned                num_plans = 0;

    for (unsigned i = 0; i < NUM_COUNTS; i++) {
        for (ls_op_t op = LS_SUM; op < LS_OP_COUNT; op++) {
            trial_plan_t *plan = &plans[num_plans];

            if (oracle_is_allowed(dtypes[i], op)) {
                *plan = (trial_plan_t){.kind = TRIAL_ALLREDUCE, .in_place = i % 2 == 0, .is_whole = true,
                                       .what = {.dtype = dtypes[i], .op = op, .count = counts[i]}};
                snprintf(plan->name, sizeof(plan->name), "join/%s/%u", oracle_op_name(op), i);
                num_plans++;
            }
        }
    }
    plans[num_plans] = (trial_plan_t){.kind = TRIAL_ALLGATHER, .name = "join/gather",
                                      .what = {.dtype = LS_UINT8, .count = 100}};
    num_plans++;
    for (unsigned i = 0; i < num_plans; i++) {
        plans[i].what.seed = oracle_mix(seed + step, i);
        plans[i].what.absent = absent_in(seed, job->size, step);
        for (unsigned rank = 0; rank < job->size; rank++) {
            plans[i].what.weights[rank] = rank + 1;
        }
    }
    trial_run_all(job, plans, num_plans);
}

static void run_epoch(job_t *job, uint64_t seed)
{
    uint64_t    joined, others[JOB_MAX_RANKS];
    ls_status_t status;

    for (unsigned step = 0; step < num_steps_of(seed, job->rank); step++) {
        run_step(job, seed, step);
    }
    joined = job_now_ns();
    status = ls_join(job->ctx);
    JOB_CHECK(job, status == LS_OK, "join: %s: %s", ls_status_str(status), ls_last_error());
    /* Nobody was let go before the last one joined, and all are back. */
    const uint64_t left = job_now_ns();

    job_gather_words(job, "join/times", joined, others);
    for (unsigned rank = 0; rank < job->size; rank++) {
        JOB_CHECK(job, others[rank] <= left, "left the join before rank %u joined", rank);
    }
    trial_run(job, &(trial_plan_t){.kind = TRIAL_ALLREDUCE, .name = "join/sum after",
                                   .what = {.dtype = LS_FLOAT32, .op = LS_MEAN, .count = 11, .seed = seed}});
}

void body_join(job_t *job, void *arg)
{
    const body_params_t *params = arg;

    for (unsigned epoch = 0; epoch < 4; epoch++) {
        run_epoch(job, oracle_mix(params->seed, epoch));
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Property test: whatever sets of tensors the ranks hand in, from whichever threads and in whichever
 * order, every result is right and the same on all ranks.
 *
 * A step is a set of names, the same on all ranks; each rank shuffles it in its own way and deals it
 * out to its threads.  Collective, type, operation and root belong to the name; the set changes every
 * few steps, so names come and go, and so do lengths, so agreed buckets must be given up.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "bodies.h"
#include "trial.h"

#define NUM_NAMES    40
#define NUM_THREADS  3
#define SET_PERIOD   4 /* steps with the same set */
#define SHAPE_PERIOD 6 /* steps with the same lengths */
#define MAX_COUNT    200000

typedef struct submitter {
    pthread_t     thread;
    uint64_t      chance;
    job_batch_t  *batch;
    unsigned      num_trials;
    trial_t      *trials[NUM_NAMES];
} submitter_t;

/* Most tensors are small, some large: every power of two is as likely as the next. */
static uint64_t random_count(uint64_t chance, uint64_t most)
{
    const uint64_t limit = 1ULL << (chance % 19);
    const uint64_t count = (chance >> 8) % limit;

    return count > most ? most : count;
}

static trial_kind_t random_kind(uint64_t chance)
{
    static const trial_kind_t kinds[] = {TRIAL_BROADCAST, TRIAL_ALLGATHER, TRIAL_REDUCE_SCATTER,
                                         TRIAL_ALLTOALL};

    return chance % 8 < 4 ? kinds[chance % 4] : TRIAL_ALLREDUCE;
}

static void plan_tensor(const job_t *job, const body_params_t *params, unsigned step, unsigned name,
                        trial_plan_t *plan)
{
    const uint64_t traits = oracle_mix(params->seed, name + 1);
    const uint64_t shape = oracle_mix(traits, name % 3 == 0 ? step / SHAPE_PERIOD : 0);
    const bool     is_many_parts = random_kind(traits) == TRIAL_ALLTOALL || random_kind(traits) == TRIAL_ALLGATHER;
    const uint64_t most = (params->is_quick ? 5000U : MAX_COUNT) / (is_many_parts ? 16 : 1);

    *plan = (trial_plan_t){.kind = random_kind(traits), .root = (unsigned)(traits >> 16) % job->size,
                           .in_place = (traits >> 24) % 2 != 0 && random_kind(traits) <= TRIAL_BROADCAST};
    plan->what.dtype = (ls_dtype_t)((traits >> 32) % LS_DTYPE_COUNT);
    plan->what.op = (ls_op_t)((traits >> 40) % LS_OP_COUNT);
    if (!oracle_is_allowed(plan->what.dtype, plan->what.op)) {
        plan->what.op = LS_MAX;
    }
    if (oracle_is_float(plan->what.dtype) && (traits >> 48) % 2 == 0) {
        plan->what.prescale = 0.5;
        plan->what.postscale = 1.5;
    }
    plan->what.count = random_count(shape, most);
    plan->what.seed = oracle_mix(traits, step);
    for (unsigned rank = 0; rank < job->size; rank++) {
        plan->what.weights[rank] = (double)(oracle_mix(plan->what.seed, rank) % 4);
    }
    snprintf(plan->name, sizeof(plan->name), "random/%u", name);
}

static bool is_in_step(const body_params_t *params, unsigned step, unsigned name)
{
    return oracle_mix(oracle_mix(params->seed, step / SET_PERIOD), name) % 5 < 2;
}

static void *submitter_main(void *arg)
{
    submitter_t *self = arg;

    for (unsigned i = 0; i < self->num_trials; i++) {
        const uint64_t chance = oracle_mix(self->chance, i);

        if (chance % 8 == 0) {
            usleep((useconds_t)((chance >> 8) % 300));
        }
        trial_submit(self->trials[i], self->batch);
    }
    return NULL;
}

static void shuffle(trial_t **trials, unsigned num_trials, uint64_t chance)
{
    for (unsigned i = num_trials; i > 1; i--) {
        const unsigned j = (unsigned)(oracle_mix(chance, i) % i);
        trial_t       *trial = trials[i - 1];

        trials[i - 1] = trials[j];
        trials[j] = trial;
    }
}

/* Each rank its own order, its own hands. */
static void submit_shuffled(trial_t *trials, unsigned num_trials, uint64_t chance, job_batch_t *batch)
{
    submitter_t submitters[NUM_THREADS];
    trial_t    *order[NUM_NAMES];

    for (unsigned i = 0; i < num_trials; i++) {
        order[i] = &trials[i];
    }
    shuffle(order, num_trials, chance);
    for (unsigned i = 0; i < NUM_THREADS; i++) {
        submitters[i] = (submitter_t){.chance = oracle_mix(chance, i), .batch = batch};
    }
    for (unsigned i = 0; i < num_trials; i++) {
        submitter_t *submitter = &submitters[oracle_mix(chance, 1000 + i) % NUM_THREADS];

        submitter->trials[submitter->num_trials++] = order[i];
    }
    for (unsigned i = 0; i < NUM_THREADS; i++) {
        if (pthread_create(&submitters[i].thread, NULL, submitter_main, &submitters[i]) != 0) {
            perror("pthread_create");
            abort();
        }
    }
    for (unsigned i = 0; i < NUM_THREADS; i++) {
        pthread_join(submitters[i].thread, NULL);
    }
}

static void run_step(job_t *job, const body_params_t *params, unsigned step)
{
    trial_t    *trials = job_alloc(NUM_NAMES * sizeof(*trials));
    unsigned    num_trials = 0;
    job_batch_t batch;
    char        text[64];

    for (unsigned name = 0; name < NUM_NAMES; name++) {
        if (is_in_step(params, step, name)) {
            trial_plan_t plan;

            plan_tensor(job, params, step, name, &plan);
            trial_begin(&trials[num_trials++], job, &plan);
        }
    }
    job_batch_init(&batch);
    submit_shuffled(trials, num_trials, oracle_mix(params->seed + step, 100 + job->rank), &batch);
    job_batch_wait(&batch);
    for (unsigned i = 0; i < num_trials; i++) {
        trial_end(&trials[i]);
    }
    job_batch_destroy(&batch);
    free(trials);
    snprintf(text, sizeof(text), "step %u of seed %llu", step, (unsigned long long)params->seed);
    job_check_same(job, text);
}

void body_random(job_t *job, void *arg)
{
    const body_params_t *params = arg;
    const unsigned       num_steps = params->num_steps != 0 ? params->num_steps : 60;

    if (job->rank == 0) {
        printf("random seed %llu\n", (unsigned long long)params->seed);
        fflush(stdout);
    }
    for (unsigned step = 0; step < num_steps && atomic_load(&job->failures) == 0; step++) {
        run_step(job, params, step);
    }
}

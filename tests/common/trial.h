/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A trial: one tensor handed to one collective, with its buffers and what must come out of it.
 *
 *     trial_t trial;
 *     trial_begin(&trial, job, &(trial_plan_t){ ... });
 *     trial_submit(&trial, &batch);
 *     job_batch_wait(&batch);
 *     trial_end(&trial);      checks everything, frees everything
 *
 * Besides the values it checks that an input was left alone, that nothing was written past the end of an
 * output and that `done` ran exactly once.  Buffers begin at any element of a cache line.
 * A large result that all ranks have alike is looked at in turns: rank r checks the elements r, r+n, ...,
 * and the hashes of whole results are compared by job_check_same(), which the body must call.
 */
#ifndef LS_TESTS_TRIAL_H
#define LS_TESTS_TRIAL_H

#include "job.h"

#define TRIAL_NAME_ROOM 128

typedef enum trial_kind {
    TRIAL_ALLREDUCE,
    TRIAL_BROADCAST,
    TRIAL_ALLGATHER,
    TRIAL_REDUCE_SCATTER,
    TRIAL_ALLTOALL,
    TRIAL_KIND_COUNT
} trial_kind_t;

typedef struct trial_plan {
    trial_kind_t  kind;
    char          name[TRIAL_NAME_ROOM];
    oracle_case_t what;       /* num_ranks and wire are filled by trial_begin; count is the largest part
                               * of a rank where ranks give different lengths */
    bool          in_place;   /* allreduce, broadcast */
    unsigned      root;       /* broadcast */
    bool          is_whole;   /* this rank checks every element, however many */
} trial_plan_t;

typedef struct trial {
    job_t        *job;
    trial_plan_t  plan;
    uint64_t      input_count, output_count; /* elements; output_count of a gather is known late */
    uint64_t      input_hash;
    unsigned char *input_room, *output_room; /* as allocated */
    void          *input, *output;
    uint64_t      *send_counts;              /* alltoall */
    job_request_t  request;
} trial_t;

void trial_begin(trial_t *trial, job_t *job, const trial_plan_t *plan);
void trial_submit(trial_t *trial, job_batch_t *batch);
void trial_end(trial_t *trial);

/* The tensor and the reduction as they are handed in, for calls that trial_submit does not make. */
ls_tensor_t trial_tensor(const trial_t *trial);
ls_reduce_t trial_reduce(const trial_t *trial);

/* Begin, submit, wait, end. */
void trial_run(job_t *job, const trial_plan_t *plan);

/* Begin all, submit all, wait, end all. */
void trial_run_all(job_t *job, const trial_plan_t *plans, unsigned num_plans);

/* How much rank `from` gives (to rank `to`, in an alltoall): 0 .. what->count, by chance, 0 often. */
uint64_t trial_part(const oracle_case_t *what, unsigned from, unsigned to);

#endif

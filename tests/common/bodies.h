/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the ranks do in a test: bodies for job_run_threads() and job_run_mpi().
 * All of them use only the public API, and run with any number of ranks and any setting.
 */
#ifndef LS_TESTS_BODIES_H
#define LS_TESTS_BODIES_H

#include "job.h"

typedef struct body_params {
    uint64_t seed;
    unsigned num_steps; /* 0: the body's own number */
    bool     is_quick;  /* fewer types and counts: for sanitizers */
} body_params_t;

typedef struct body {
    const char *name;
    job_body_fn run;  /* arg: const body_params_t * */
    const char *help;
} body_t;

/* Every body, ended by a NULL name. */
extern const body_t body_list[];
const body_t       *body_find(const char *name); /* NULL: unknown */

void body_allreduce(job_t *job, void *arg); /* types x operations x counts x in place, scales, weights */
void body_large(job_t *job, void *arg);     /* 5,000,011 floats */
void body_group(job_t *job, void *arg);
void body_broadcast(job_t *job, void *arg);
void body_gather(job_t *job, void *arg); /* allgather, reduce_scatter, alltoall */
void body_barrier(job_t *job, void *arg);
void body_others(job_t *job, void *arg); /* the four above */
void body_random(job_t *job, void *arg);
void body_steps(job_t *job, void *arg);
void body_many(job_t *job, void *arg); /* more names than adopted buckets have ids */
void body_join(job_t *job, void *arg);
void body_errors(job_t *job, void *arg);
void body_invalid(job_t *job, void *arg);
void body_stall(job_t *job, void *arg); /* needs LOCKSTEP_STALL_ABORT_S=2 */
void body_late(job_t *job, void *arg);  /* likewise */

#endif

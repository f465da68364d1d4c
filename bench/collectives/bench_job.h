/* SPDX-License-Identifier: Apache-2.0 */
/* One run of the program, as seen by its cases. */
#ifndef LS_BENCH_JOB_H
#define LS_BENCH_JOB_H

#include <stdint.h>
#include <sys/types.h>

#include "bench_options.h"
#include "bench_table.h"
#include "lockstep.h"

typedef struct bench_job {
    const bench_options_t *options;
    ls_context_h           ctx;
    unsigned               rank, num_ranks;
    bench_table_t          report;
    uint64_t               num_wrong; /* of all ranks */
} bench_job_t;

/* Each case prints one table and adds to num_wrong.  Collective. */
void bench_sweep_run(bench_job_t *job);
void bench_resnet50_run(bench_job_t *job);
void bench_late_run(bench_job_t *job);
void bench_busy_run(bench_job_t *job);

/*
 * The busy loop is made before MPI starts, so that it shares nothing with it, and stands still
 * until its case runs.  It is killed at exit, and by the kernel when this process dies.
 */
void bench_busy_prepare(void);

/* Cache-line aligned, written once; ends the program when out of memory. */
void *bench_job_alloc(size_t bytes);

/* The sum over ranks of a count that each rank has. */
uint64_t bench_job_total(uint64_t mine);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fair timing of several ways to do the same: each in turn for a short block, round after round,
 * so that a machine that becomes slower is slower for all of them.
 *
 *   round 1: ours ours ours | MPI MPI MPI | memcpy memcpy memcpy    round 2: ours ...
 *
 * Ranks start each block together, and its first iteration, which finds the caches full of the
 * block before, is not counted.
 */
#ifndef LS_BENCH_MEASURE_H
#define LS_BENCH_MEASURE_H

#include "bench_stats.h"

typedef struct bench_runner {
    double (*once)(void *arg); /* does it once; the time it took, in microseconds */
    void         *arg;
    bench_stats_t stats; /* microseconds; of each figure the largest of all ranks */
} bench_runner_t;

/* Each runner for itself goes on until one of these is reached. */
typedef struct bench_limits {
    unsigned iterations; /* 0: as many as fit into the time; otherwise just so many */
    unsigned min_iterations, max_iterations;
    double   budget_us;
    unsigned warmup; /* iterations before */
} bench_limits_t;

/* Collective.  Runners without `once` are left out and get NAN. */
void bench_measure(const bench_limits_t *limits, bench_runner_t *runners, unsigned num_runners);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* What is said about many samples of one time. */
#ifndef LS_BENCH_STATS_H
#define LS_BENCH_STATS_H

#include <stddef.h>

typedef struct bench_stats {
    double median, min, p99, mean;
} bench_stats_t;

/* Sorts the samples.  All NAN when there are none. */
bench_stats_t bench_stats_of(double *samples, size_t num_samples);

#endif

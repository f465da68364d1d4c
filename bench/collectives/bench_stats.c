/* SPDX-License-Identifier: Apache-2.0 */
#include "bench_stats.h"

#include <math.h>
#include <stdlib.h>

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

bench_stats_t bench_stats_of(double *samples, size_t num_samples)
{
    double sum = 0.0;

    if (num_samples == 0) {
        return (bench_stats_t){.median = NAN, .min = NAN, .p99 = NAN, .mean = NAN};
    }
    qsort(samples, num_samples, sizeof(*samples), compare);
    for (size_t i = 0; i < num_samples; i++) {
        sum += samples[i];
    }
    return (bench_stats_t){
        .median = (samples[(num_samples - 1) / 2] + samples[num_samples / 2]) / 2.0,
        .min    = samples[0],
        .p99    = samples[(num_samples * 99 + 99) / 100 - 1], /* 99 % are not above it */
        .mean   = sum / (double)num_samples,
    };
}

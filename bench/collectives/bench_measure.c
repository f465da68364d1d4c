/* SPDX-License-Identifier: Apache-2.0 */
#include "bench_measure.h"

#include <math.h>
#include <mpi.h>
#include <stdlib.h>

#include "bench_latch.h"

#define ROUNDS 5

static double *samples_alloc(size_t num_samples)
{
    double *samples = calloc(num_samples, sizeof(*samples));

    if (samples == NULL) {
        bench_latch_die("out of memory for %zu samples", num_samples);
    }
    return samples;
}

/* Time of the slowest runner on the slowest rank, from warm-up runs that all ranks do. */
static double warm_up(unsigned warmup, const bench_runner_t *runners, unsigned num_runners)
{
    double *samples = samples_alloc(warmup + 1U);
    double  slowest = 0.0;

    for (unsigned i = 0; i < num_runners; i++) {
        if (runners[i].once == NULL) {
            continue;
        }
        for (unsigned j = 0; j <= warmup; j++) {
            samples[j] = runners[i].once(runners[i].arg);
        }
        slowest = fmax(slowest, bench_stats_of(samples, warmup + 1U).median);
    }
    free(samples);
    MPI_Allreduce(MPI_IN_PLACE, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return slowest;
}

static unsigned choose_iterations(const bench_limits_t *limits, double slowest_us)
{
    const double fitting = limits->budget_us / fmax(slowest_us, 0.1);

    if (limits->iterations > 0) {
        return limits->iterations;
    }
    return (unsigned)fmin(fmax(fitting, limits->min_iterations), limits->max_iterations);
}

static void run_block(const bench_runner_t *runner, double *samples, unsigned num_samples)
{
    MPI_Barrier(MPI_COMM_WORLD);
    runner->once(runner->arg);
    for (unsigned i = 0; i < num_samples; i++) {
        samples[i] = runner->once(runner->arg);
    }
}

static bench_stats_t slowest_rank(bench_stats_t mine)
{
    double figures[4] = {mine.median, mine.min, mine.p99, mine.mean};

    MPI_Allreduce(MPI_IN_PLACE, figures, 4, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return (bench_stats_t){
        .median = figures[0], .min = figures[1], .p99 = figures[2], .mean = figures[3]};
}

void bench_measure(const bench_limits_t *limits, bench_runner_t *runners, unsigned num_runners)
{
    const double   slowest_us = warm_up(limits->warmup, runners, num_runners);
    const unsigned iterations = choose_iterations(limits, slowest_us);
    const unsigned rounds     = (iterations < ROUNDS) ? iterations : ROUNDS;
    double        *samples    = samples_alloc((size_t)iterations * num_runners);
    unsigned       done       = 0;

    for (unsigned round = 1; round <= rounds; round++) {
        const unsigned end = (unsigned)((unsigned long long)iterations * round / rounds);

        for (unsigned i = 0; i < num_runners; i++) {
            if (runners[i].once != NULL) {
                run_block(&runners[i], samples + (size_t)i * iterations + done, end - done);
            }
        }
        done = end;
    }
    for (unsigned i = 0; i < num_runners; i++) {
        const size_t num_samples = (runners[i].once != NULL) ? iterations : 0;

        runners[i].stats = slowest_rank(bench_stats_of(samples + (size_t)i * iterations, num_samples));
    }
    free(samples);
}

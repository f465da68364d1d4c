/* SPDX-License-Identifier: Apache-2.0 */
#include "bench_measure.h"

#include <math.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdlib.h>

#include "bench_latch.h"

#define ROUNDS 5

typedef struct samples {
    double  *us;
    unsigned count;
} samples_t;

static double slowest_of(double mine)
{
    double slowest = mine;

    MPI_Allreduce(MPI_IN_PLACE, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return slowest;
}

/*
 * Up to `max` iterations, and not many more than fit into the time.  How many is agreed by the
 * ranks after ever larger chunks: a time measured once would mislead, where a busy core stops a
 * rank for many milliseconds now and then.
 */
static void run_block(const bench_runner_t *runner, unsigned min, unsigned max, double budget_us,
                      samples_t *samples)
{
    unsigned done = 0, chunk = min;
    double   elapsed_us = 0.0;

    MPI_Barrier(MPI_COMM_WORLD);
    runner->once(runner->arg);
    while (done < max && (done < min || elapsed_us < budget_us)) {
        double chunk_us = 0.0;

        for (unsigned i = 0; i < chunk; i++) {
            const double us = runner->once(runner->arg);

            samples->us[samples->count++] = us;
            chunk_us += us;
        }
        done += chunk;
        elapsed_us += slowest_of(chunk_us);

        const double fitting = (budget_us - elapsed_us) * done / fmax(elapsed_us, 0.001);

        chunk = (unsigned)fmax(1.0, fmin(fitting, fmin(done, max - done)));
    }
}

static samples_t *samples_alloc(unsigned num_runners, unsigned room)
{
    samples_t *samples = calloc(num_runners, sizeof(*samples));

    for (unsigned i = 0; samples != NULL && i < num_runners; i++) {
        samples[i].us = calloc(room, sizeof(*samples[i].us));
        if (samples[i].us == NULL) {
            bench_latch_die("out of memory for %u samples", room);
        }
    }
    if (samples == NULL) {
        bench_latch_die("out of memory for %u runners", num_runners);
    }
    return samples;
}

/* The part of `whole` that falls to one round; the parts sum up to it. */
static unsigned share(unsigned whole, unsigned round, unsigned rounds)
{
    const unsigned long long wide = whole;

    return (unsigned)(wide * (round + 1ULL) / rounds - wide * round / rounds);
}

static bench_stats_t slowest_rank(bench_stats_t mine)
{
    double figures[4] = {mine.median, mine.min, mine.p99, mine.mean};

    MPI_Allreduce(MPI_IN_PLACE, figures, 4, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return (bench_stats_t){.median = figures[0], .min = figures[1], .p99 = figures[2], .mean = figures[3]};
}

void bench_measure(const bench_limits_t *limits, bench_runner_t *runners, unsigned num_runners)
{
    const bool     is_fixed  = (limits->iterations > 0);
    const unsigned max       = is_fixed ? limits->iterations : limits->max_iterations;
    const unsigned min       = is_fixed ? limits->iterations : limits->min_iterations;
    const unsigned rounds    = (min < ROUNDS) ? min : ROUNDS;
    const double   budget_us = limits->budget_us / rounds;
    samples_t     *samples   = samples_alloc(num_runners, max);

    for (unsigned i = 0; i < num_runners; i++) {
        for (unsigned j = 0; j < limits->warmup && runners[i].once != NULL; j++) {
            runners[i].once(runners[i].arg);
        }
    }
    for (unsigned round = 0; round < rounds; round++) {
        for (unsigned i = 0; i < num_runners; i++) {
            if (runners[i].once != NULL) {
                run_block(&runners[i], share(min, round, rounds), share(max, round, rounds), budget_us,
                          &samples[i]);
            }
        }
    }
    for (unsigned i = 0; i < num_runners; i++) {
        runners[i].stats = slowest_rank(bench_stats_of(samples[i].us, samples[i].count));
        free(samples[i].us);
    }
    free(samples);
}

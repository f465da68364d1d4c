/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What waiting costs: rank 0 hands over LATE_MS after the others, whose own threads sleep.  All
 * the CPU time their processes use until the result is there, the engine's and the reduction
 * itself, counts.  Beside it the same wait inside MPI_Allreduce.
 */
#include <mpi.h>
#include <time.h>

#include "bench_data.h"
#include "bench_job.h"
#include "bench_trio.h"

#define LATE_MS 100
#define REPEATS 10
#define SEED    7U

static const bench_column_t columns[] = {
    {.title = "size", .key = "size_bytes", .width = 11},
    {.title = "what", .width = 14},
    {.title = "wait_ms", .width = 9, .digits = 2, .has_bar = true},
    {.title = "cpu_ms", .width = 9, .digits = 3},
    {.title = "cpu_%", .key = "cpu_percent", .width = 8, .digits = 2},
    {.title = "max_%", .key = "cpu_percent_max", .width = 8, .digits = 2},
};

typedef struct wait_cost {
    double wait_ms[REPEATS], cpu_ms[REPEATS], percent[REPEATS];
} wait_cost_t;

static double process_cpu_ms(void)
{
    struct timespec used;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (double)used.tv_sec * 1e3 + (double)used.tv_nsec / 1e6;
}

static void wait_costs(const bench_job_t *job, const bench_runner_t *runner, wait_cost_t *cost_p)
{
    const struct timespec late = {.tv_nsec = LATE_MS * 1000000L};

    for (unsigned i = 0; i < REPEATS; i++) {
        MPI_Barrier(MPI_COMM_WORLD);
        if (job->rank == 0) {
            nanosleep(&late, NULL);
        }

        const double cpu_ms = process_cpu_ms();

        cost_p->wait_ms[i] = runner->once(runner->arg) / 1e3;
        cost_p->cpu_ms[i]  = process_cpu_ms() - cpu_ms;
        cost_p->percent[i] = 100.0 * cost_p->cpu_ms[i] / cost_p->wait_ms[i];
        if (job->rank == 0) { /* not a waiting rank: must not be the worst of them */
            cost_p->wait_ms[i] = cost_p->cpu_ms[i] = cost_p->percent[i] = 0.0;
        }
    }
}

static void print_costs(bench_job_t *job, size_t bytes, const char *what, const bench_runner_t *runner)
{
    wait_cost_t cost;

    wait_costs(job, runner, &cost);

    double figures[] = {
        bench_stats_of(cost.wait_ms, REPEATS).median,
        bench_stats_of(cost.cpu_ms, REPEATS).median,
        bench_stats_of(cost.percent, REPEATS).median,
        0.0,
    };

    figures[3] = cost.percent[REPEATS - 1]; /* sorted by now */
    MPI_Allreduce(MPI_IN_PLACE, figures, 4, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);

    const bench_cell_t cells[] = {
        {.number = (double)bytes}, {.text = what},         {.number = figures[0]},
        {.number = figures[1]},    {.number = figures[2]}, {.number = figures[3]},
    };

    bench_table_row(&job->report, cells);
}

void bench_late_run(bench_job_t *job)
{
    static const size_t  sizes[] = {4U << 10, 1U << 20};
    const bench_limits_t limits  = {.iterations = 1, .warmup = 5};
    bench_buffers_t      buffers;

    bench_trio_alloc(job, sizes[1], 1, &buffers);
    bench_table_begin(&job->report, "late: rank 0 hands over 100 ms after the others",
                      "per waiting rank: medians, and max_% over ranks and repeats; % of one core", columns,
                      sizeof(columns) / sizeof(columns[0]));
    for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        const uint64_t count = sizes[i] / bench_data_type_size(job->options->dtype);
        bench_runner_t runners[BENCH_WAYS];
        bench_trio_t   trio;

        bench_trio_create(job, &buffers, "allreduce", count, &trio);
        job->num_wrong += bench_trio_check(&trio, SEED);
        bench_trio_measure(&trio, &limits, job->options->with_mpi, runners); /* warm-up */
        print_costs(job, sizes[i], "lockstep", &runners[BENCH_OURS]);
        if (runners[BENCH_MPI].once != NULL) {
            print_costs(job, sizes[i], "MPI_Allreduce", &runners[BENCH_MPI]);
        }
        bench_trio_destroy(&trio);
    }
    bench_table_end(&job->report);
    bench_trio_free(&buffers);
}

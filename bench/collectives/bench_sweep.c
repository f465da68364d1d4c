/* SPDX-License-Identifier: Apache-2.0 */
/* The main table: one row per size. */
#include <math.h>

#include "bench_data.h"
#include "bench_job.h"
#include "bench_trio.h"

#define BUDGET_US      0.3e6
#define MIN_ITERATIONS 5
#define MAX_ITERATIONS 2000
#define FIRST_SEED     1U
#define LAST_SEED      2U

static const bench_column_t columns[] = {
    {.title = "size", .key = "size_bytes", .width = 11},
    {.title = "count", .width = 10},
    {.title = "type", .width = 8},
    {.title = "op", .width = 7},
    {.title = "time_us", .width = 10, .digits = 2, .has_bar = true},
    {.title = "min", .key = "min_us", .width = 10, .digits = 2},
    {.title = "p99", .key = "p99_us", .width = 10, .digits = 2},
    {.title = "algbw", .key = "algbw_gb_s", .width = 7, .digits = 2},
    {.title = "busbw", .key = "busbw_gb_s", .width = 7, .digits = 2},
    {.title = "wrong", .width = 6},
    {.title = "mpi_us", .width = 10, .digits = 2, .has_bar = true},
    {.title = "ratio", .key = "mpi_ratio", .width = 6, .digits = 2},
    {.title = "memcpy_us", .width = 10, .digits = 2, .has_bar = true},
    {.title = "ratio", .key = "memcpy_ratio", .width = 6, .digits = 2},
};

static void print_row(bench_job_t *job, const bench_trio_t *trio, const bench_runner_t *runners,
                      uint64_t wrong)
{
    const bench_options_t    *options    = job->options;
    const bench_collective_t *collective = trio->requests[0].collective;
    const bench_stats_t      *ours       = &runners[BENCH_OURS].stats;
    const double              mpi_us     = runners[BENCH_MPI].stats.median;
    const double              memcpy_us  = runners[BENCH_MEMCPY].stats.median;
    const double              algbw      = (double)trio->bytes / ours->median / 1e3;
    const bench_cell_t        cells[]    = {
                  {.number = (double)trio->bytes},
                  {.number = (double)trio->requests[0].total},
                  {.text = bench_data_type_name(options->dtype)},
                  {.text = collective->is_reducing ? bench_data_op_name(options->op) : "-"},
                  {.number = ours->median},
                  {.number = ours->min},
                  {.number = ours->p99},
                  {.number = algbw},
                  {.number = algbw * collective->bus_factor((double)job->num_ranks)},
                  {.number = (double)wrong},
                  {.number = mpi_us},
                  {.number = mpi_us / ours->median},
                  {.number = memcpy_us},
                  {.number = (memcpy_us > 0.0) ? ours->median / memcpy_us : (double)NAN},
    };

    bench_table_row(&job->report, cells);
}

static void run_size(bench_job_t *job, const bench_buffers_t *buffers, uint64_t count)
{
    const bench_limits_t limits = {
        .iterations     = job->options->iterations,
        .warmup         = job->options->warmup,
        .min_iterations = MIN_ITERATIONS,
        .max_iterations = MAX_ITERATIONS,
        .budget_us      = BUDGET_US,
    };
    bench_runner_t runners[BENCH_WAYS];
    bench_trio_t   trio;

    bench_trio_create(job, buffers, job->options->collective, count, &trio);

    uint64_t wrong = bench_trio_check(&trio, FIRST_SEED);

    bench_trio_measure(&trio, &limits, job->options->with_mpi, runners);
    wrong += bench_trio_check(&trio, LAST_SEED);
    print_row(job, &trio, runners, wrong);
    job->num_wrong += wrong;
    bench_trio_destroy(&trio);
}

void bench_sweep_run(bench_job_t *job)
{
    const bench_options_t *options = job->options;
    const size_t           element = bench_data_type_size(options->dtype);
    bench_buffers_t        buffers;

    bench_trio_alloc(job, options->max_bytes, options->inflight, &buffers);
    bench_table_begin(&job->report, options->collective,
                      "ratio: mpi_us / time_us (above 1: faster than MPI), time_us / memcpy_us "
                      "(how many memcpy times); GB/s",
                      columns, sizeof(columns) / sizeof(columns[0]));
    for (uint64_t bytes = options->min_bytes; bytes <= options->max_bytes; bytes *= options->factor) {
        if (bytes >= element) { /* smaller ones would be rows of nothing */
            run_size(job, &buffers, bytes / element);
        }
    }
    bench_table_end(&job->report);
    bench_trio_free(&buffers);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A training step's worth of gradients: the 161 of ResNet-50, handed over one by one, the last
 * layer first, as fast as possible.  The time ends when the last of them is back.
 *
 * Each tensor lies by itself, as a framework's allocator would put it: cache-line aligned, with a
 * gap, so that nobody profits from neighbours that happen to touch.
 */
#include "bench_resnet50.h"

#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "bench_data.h"
#include "bench_job.h"
#include "bench_latch.h"
#include "bench_measure.h"

#define DTYPE      LS_FLOAT32
#define PIECE      (256 * 1024 / (int)sizeof(float))
#define GAP        64U
#define BYTES      ((size_t)BENCH_RESNET50_ELEMENTS * sizeof(float))
#define ARENA      (BYTES + BENCH_RESNET50_TENSORS * (GAP + 64U))
#define FIRST_SEED 3U
#define LAST_SEED  4U
#define TITLE      "resnet50: one step, 161 gradients, 25557032 float32, 102.2 MB"

enum { OURS, OURS_IN_PLACE, MPI_TENSORS, MPI_TENSORS_IN_PLACE, MPI_PIECES, MEMCPY, WAYS };

typedef struct step {
    const bench_job_t *job;
    bench_parameter_t  parameters[BENCH_RESNET50_TENSORS];
    size_t             offsets[BENCH_RESNET50_TENSORS];
    char              *input, *output;
    bench_latch_t      latch;
} step_t;

static const bench_column_t columns[] = {
    {.title = "what", .width = 44},
    {.title = "ms", .width = 9, .digits = 2, .has_bar = true},
    {.title = "min", .key = "min_ms", .width = 9, .digits = 2},
    {.title = "p99", .key = "p99_ms", .width = 9, .digits = 2},
    {.title = "/ours", .key = "over_ours", .width = 7, .digits = 2, .has_bar = true},
    {.title = "/in-place", .key = "over_ours_in_place", .width = 9, .digits = 2},
};

/* ---- the ways ---------------------------------------------------------------------------------- */

static double run_ours_to(step_t *step, char *output)
{
    bench_latch_reset(&step->latch, BENCH_RESNET50_TENSORS);

    const uint64_t start_ns = bench_latch_now_ns();

    for (unsigned i = BENCH_RESNET50_TENSORS; i-- > 0;) {
        const bench_parameter_t *parameter = &step->parameters[i];
        const ls_tensor_t        tensor    = {
                      .name     = parameter->name,
                      .dtype    = DTYPE,
                      .num_dims = parameter->num_dims,
                      .shape    = parameter->shape,
                      .input    = step->input + step->offsets[i],
                      .output   = output + step->offsets[i],
                      .count    = parameter->count,
        };

        bench_latch_must(ls_allreduce_async(step->job->ctx, &tensor, NULL, bench_latch_done, &step->latch),
                         parameter->name);
    }
    bench_latch_wait(&step->latch);
    return (double)(step->latch.done_ns - start_ns) / 1e3;
}

static double run_ours(void *arg)
{
    return run_ours_to(arg, ((step_t *)arg)->output);
}

static double run_ours_in_place(void *arg)
{
    return run_ours_to(arg, ((step_t *)arg)->input);
}

static double run_mpi_tensors(void *arg)
{
    step_t        *step     = arg;
    const uint64_t start_ns = bench_latch_now_ns();

    for (unsigned i = BENCH_RESNET50_TENSORS; i-- > 0;) {
        MPI_Allreduce(step->input + step->offsets[i], step->output + step->offsets[i],
                      (int)step->parameters[i].count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    }
    return (double)(bench_latch_now_ns() - start_ns) / 1e3;
}

static double run_mpi_tensors_in_place(void *arg)
{
    step_t        *step     = arg;
    const uint64_t start_ns = bench_latch_now_ns();

    for (unsigned i = BENCH_RESNET50_TENSORS; i-- > 0;) {
        MPI_Allreduce(MPI_IN_PLACE, step->input + step->offsets[i], (int)step->parameters[i].count, MPI_FLOAT,
                      MPI_SUM, MPI_COMM_WORLD);
    }
    return (double)(bench_latch_now_ns() - start_ns) / 1e3;
}

/* The best that was found for MPI: one buffer, cut into pieces that stay in the cache. */
static double run_mpi_pieces(void *arg)
{
    float         *numbers  = (float *)(void *)((step_t *)arg)->input;
    const uint64_t start_ns = bench_latch_now_ns();

    for (int done = 0; done < BENCH_RESNET50_ELEMENTS; done += PIECE) {
        const int left = BENCH_RESNET50_ELEMENTS - done;

        MPI_Allreduce(MPI_IN_PLACE, numbers + done, (left < PIECE) ? left : PIECE, MPI_FLOAT, MPI_SUM,
                      MPI_COMM_WORLD);
    }
    return (double)(bench_latch_now_ns() - start_ns) / 1e3;
}

static double run_memcpy(void *arg)
{
    step_t        *step     = arg;
    const uint64_t start_ns = bench_latch_now_ns();

    memcpy(step->output, step->input, BYTES);
    __asm__ volatile("" : : "r"(step->output) : "memory");
    return (double)(bench_latch_now_ns() - start_ns) / 1e3;
}

/* ---- check ------------------------------------------------------------------------------------- */

static uint64_t check(step_t *step, char *output, unsigned seed)
{
    uint64_t         wrong = 0;
    bench_expected_t expected;

    memset(step->output, 0x5A, ARENA);
    for (unsigned i = 0; i < BENCH_RESNET50_TENSORS; i++) {
        bench_data_fill(step->input + step->offsets[i], step->parameters[i].count, DTYPE, LS_SUM,
                        step->job->rank, seed + i);
    }
    run_ours_to(step, output);
    for (unsigned i = 0; i < BENCH_RESNET50_TENSORS; i++) {
        bench_data_expect_reduced(DTYPE, LS_SUM, step->job->num_ranks, seed + i, &expected);
        wrong += bench_data_wrong(output + step->offsets[i], step->parameters[i].count, 0, &expected);
    }
    return bench_job_total(wrong);
}

/* ---- the case ---------------------------------------------------------------------------------- */

static step_t *create(const bench_job_t *job)
{
    step_t *step   = bench_job_alloc(sizeof(*step));
    size_t  offset = 0;

    *step = (step_t){.job = job, .input = bench_job_alloc(ARENA), .output = bench_job_alloc(ARENA)};
    bench_resnet50_list(step->parameters);
    for (unsigned i = 0; i < BENCH_RESNET50_TENSORS; i++) {
        step->offsets[i] = offset;
        offset += (step->parameters[i].count * sizeof(float) + GAP + 63) / 64 * 64;
    }
    return step;
}

static void destroy(step_t *step)
{
    free(step->input);
    free(step->output);
    free(step);
}

static void print_rows(bench_job_t *job, const bench_runner_t *runners)
{
    static const char *const names[WAYS] = {
        [OURS]                 = "lockstep",
        [OURS_IN_PLACE]        = "lockstep, in place",
        [MPI_TENSORS]          = "MPI_Allreduce, tensor by tensor",
        [MPI_TENSORS_IN_PLACE] = "MPI_Allreduce, tensor by tensor, in place",
        [MPI_PIECES]           = "MPI_Allreduce, pieces of 256 KiB, in place",
        [MEMCPY]               = "memcpy",
    };

    for (unsigned i = 0; i < WAYS; i++) {
        const bench_stats_t *stats   = &runners[i].stats;
        const bench_cell_t   cells[] = {
              {.text = names[i]},
              {.number = stats->median / 1e3},
              {.number = stats->min / 1e3},
              {.number = stats->p99 / 1e3},
              {.number = stats->median / runners[OURS].stats.median},
              {.number = stats->median / runners[OURS_IN_PLACE].stats.median},
        };

        if (runners[i].once != NULL) {
            bench_table_row(&job->report, cells);
        }
    }
}

void bench_resnet50_run(bench_job_t *job)
{
    const bool           with_mpi      = job->options->with_mpi;
    const bench_limits_t limits        = {.iterations     = job->options->iterations,
                                          .warmup         = job->options->warmup,
                                          .min_iterations = 10,
                                          .max_iterations = 100,
                                          .budget_us      = 1.5e6};
    step_t              *step          = create(job);
    bench_runner_t       runners[WAYS] = {
              [OURS]                 = {.once = run_ours, .arg = step},
              [OURS_IN_PLACE]        = {.once = run_ours_in_place, .arg = step},
              [MPI_TENSORS]          = {.once = with_mpi ? run_mpi_tensors : NULL, .arg = step},
              [MPI_TENSORS_IN_PLACE] = {.once = with_mpi ? run_mpi_tensors_in_place : NULL, .arg = step},
              [MPI_PIECES]           = {.once = with_mpi ? run_mpi_pieces : NULL, .arg = step},
              [MEMCPY]               = {.once = run_memcpy, .arg = step},
    };
    uint64_t wrong = check(step, step->output, FIRST_SEED) + check(step, step->input, FIRST_SEED);

    memset(step->input, 0, ARENA); /* so that in place the values do not grow */
    bench_measure(&limits, runners, WAYS);
    wrong += check(step, step->output, LAST_SEED) + check(step, step->input, LAST_SEED);
    bench_table_begin(&job->report, TITLE, "medians; the last columns: times as long as lockstep", columns,
                      sizeof(columns) / sizeof(columns[0]));
    print_rows(job, runners);
    bench_table_end(&job->report);
    job->num_wrong += wrong;
    destroy(step);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is lost when other processes want the same cores: one busy loop beside each rank, bound
 * like it.  A spin that waits for a rank whose core was taken away waits for a whole time slice;
 * such waits are few and long, so the mean tells and the median hides them: both are printed.
 */
#include <errno.h>
#include <mpi.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench_data.h"
#include "bench_job.h"
#include "bench_trio.h"

#define BUDGET_US      1e6
#define MIN_ITERATIONS 20
#define MAX_ITERATIONS 200000 /* the time is to decide: a round must see many time slices */
#define SEED           11U

static pid_t loop_pid; /* 0: none */

static const bench_column_t columns[] = {
    {.title = "size", .key = "size_bytes", .width = 11},
    {.title = "what", .width = 14},
    {.title = "idle_us", .width = 10, .digits = 2, .has_bar = true},
    {.title = "mean", .key = "idle_mean_us", .width = 10, .digits = 2},
    {.title = "busy_us", .width = 10, .digits = 2, .has_bar = true},
    {.title = "mean", .key = "busy_mean_us", .width = 10, .digits = 2},
    {.title = "p99", .key = "busy_p99_us", .width = 10, .digits = 2},
    {.title = "lost", .key = "factor_median", .width = 8, .digits = 2, .has_bar = true},
    {.title = "lost_mean", .key = "factor_mean", .width = 9, .digits = 2},
};

static void end_loop(void)
{
    if (loop_pid > 0) {
        kill(loop_pid, SIGKILL);
        waitpid(loop_pid, NULL, 0);
        loop_pid = 0;
    }
}

static _Noreturn void loop_for_ever(pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) { /* it died before the line above */
        _exit(1);
    }
    raise(SIGSTOP);
    for (;;) {
        __asm__ volatile("" : : : "memory");
    }
}

void bench_busy_prepare(void)
{
    const pid_t parent = getpid();

    loop_pid = fork();
    if (loop_pid == 0) {
        loop_for_ever(parent);
    }
    if (loop_pid < 0) {
        fprintf(stderr, "bench_collectives: cannot make a busy loop: %s\n", strerror(errno));
        exit(1);
    }
    atexit(end_loop);
}

static void set_load(bool is_on)
{
    kill(loop_pid, is_on ? SIGCONT : SIGSTOP);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void print_row(bench_job_t *job, size_t bytes, const char *what, const bench_stats_t *idle,
                      const bench_stats_t *busy)
{
    const bench_cell_t cells[] = {
        {.number = (double)bytes},
        {.text = what},
        {.number = idle->median},
        {.number = idle->mean},
        {.number = busy->median},
        {.number = busy->mean},
        {.number = busy->p99},
        {.number = busy->median / idle->median},
        {.number = busy->mean / idle->mean},
    };

    bench_table_row(&job->report, cells);
}

static void run_size(bench_job_t *job, const bench_buffers_t *buffers, size_t bytes)
{
    static const char *const names[BENCH_WAYS] = {
        [BENCH_OURS] = "lockstep", [BENCH_MPI] = "MPI_Allreduce", [BENCH_MEMCPY] = "memcpy"};
    const bench_limits_t limits = {
        .iterations     = job->options->iterations,
        .warmup         = job->options->warmup,
        .min_iterations = MIN_ITERATIONS,
        .max_iterations = MAX_ITERATIONS,
        .budget_us      = BUDGET_US,
    };
    const uint64_t count = bytes / bench_data_type_size(job->options->dtype);
    bench_runner_t idle[BENCH_WAYS], busy[BENCH_WAYS];
    bench_trio_t   trio;

    bench_trio_create(job, buffers, "allreduce", count, &trio);
    job->num_wrong += bench_trio_check(&trio, SEED);
    bench_trio_measure(&trio, &limits, job->options->with_mpi, idle);
    set_load(true);
    bench_trio_measure(&trio, &limits, job->options->with_mpi, busy);
    set_load(false);
    for (unsigned i = 0; i < BENCH_WAYS; i++) {
        if (idle[i].once != NULL) {
            print_row(job, bytes, names[i], &idle[i].stats, &busy[i].stats);
        }
    }
    bench_trio_destroy(&trio);
}

void bench_busy_run(bench_job_t *job)
{
    static const size_t sizes[] = {4U << 10, 1U << 20, 16U << 20};
    bench_buffers_t     buffers;

    bench_trio_alloc(job, sizes[2], 1, &buffers);
    bench_table_begin(&job->report, "busy: one busy loop beside each rank, on the same cores",
                      "medians, and means, in which few long stalls show; lost: busy / idle", columns,
                      sizeof(columns) / sizeof(columns[0]));
    for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        run_size(job, &buffers, sizes[i]);
    }
    bench_table_end(&job->report);
    bench_trio_free(&buffers);
    end_loop();
}

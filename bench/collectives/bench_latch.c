/* SPDX-License-Identifier: Apache-2.0 */
#include "bench_latch.h"

#include <linux/futex.h>
#include <mpi.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

uint64_t bench_latch_now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

void bench_latch_reset(bench_latch_t *latch, uint32_t requests)
{
    latch->status     = LS_OK;
    latch->message[0] = '\0';
    atomic_store_explicit(&latch->remaining, requests, memory_order_relaxed);
}

void bench_latch_done(void *arg, ls_status_t status, const char *message)
{
    bench_latch_t *latch = arg;

    latch->done_ns = bench_latch_now_ns();
    if (status != LS_OK && latch->status == LS_OK) {
        latch->status = status;
        snprintf(latch->message, sizeof(latch->message), "%s", message);
    }
    if (atomic_fetch_sub_explicit(&latch->remaining, 1, memory_order_acq_rel) == 1) {
        syscall(SYS_futex, &latch->remaining, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    }
}

void bench_latch_wait(bench_latch_t *latch)
{
    uint32_t remaining;

    /* Only the step to 0 wakes: a sleeper that saw 3 need not know of 2. */
    while ((remaining = atomic_load_explicit(&latch->remaining, memory_order_acquire)) != 0) {
        syscall(SYS_futex, &latch->remaining, FUTEX_WAIT_PRIVATE, remaining, NULL, NULL, 0);
    }
    if (latch->status != LS_OK) {
        bench_latch_die("a request failed: %s: %s", ls_status_str(latch->status), latch->message);
    }
}

void bench_latch_must(ls_status_t status, const char *what)
{
    if (status != LS_OK) {
        bench_latch_die("%s: %s: %s", what, ls_status_str(status), ls_last_error());
    }
}

_Noreturn void bench_latch_die(const char *format, ...)
{
    va_list args;

    fflush(stdout);
    fputs("bench_collectives: ", stderr);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    MPI_Abort(MPI_COMM_WORLD, 1);
    abort();
}

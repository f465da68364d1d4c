/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a thread that handed tensors over waits for them: asleep, as a training thread would be, so
 * that it takes nothing from the engine thread on the same core.  The clock is read in the
 * callback: waking the sleeper is not part of the time.
 */
#ifndef LS_BENCH_LATCH_H
#define LS_BENCH_LATCH_H

#include <stdatomic.h>
#include <stdint.h>

#include "lockstep.h"

#define BENCH_LATCH_MESSAGE_ROOM 512

typedef struct bench_latch {
    _Atomic uint32_t remaining;
    /* written by the engine thread before it lowers `remaining`, read when that is 0 */
    uint64_t    done_ns;
    ls_status_t status;
    char        message[BENCH_LATCH_MESSAGE_ROOM];
} bench_latch_t;

uint64_t bench_latch_now_ns(void);

void bench_latch_reset(bench_latch_t *latch, uint32_t requests);

/* The ls_done_fn; arg is the latch. */
void bench_latch_done(void *arg, ls_status_t status, const char *message);

/* Sleeps until all requests have ended; ends the program if one failed. */
void bench_latch_wait(bench_latch_t *latch);

/* Ends the program with ls_last_error() if a request was not taken. */
void bench_latch_must(ls_status_t status, const char *what);

/* Prints the message and ends the job on every rank. */
_Noreturn void bench_latch_die(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif

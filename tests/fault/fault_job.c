/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small training loop to which something happens.
 *
 *     mpirun -n 4 fault_job [MODE [RANK [SECONDS]]]
 *
 *   train          steps of a few tensors, for SECONDS; LOCKSTEP_FAULT does the rest
 *   compute        a few steps, then every rank computes alone for SECONDS: nobody is in a collective
 *   compute-kill, compute-freeze    the same; RANK kills or freezes itself meanwhile
 *   train-kill, train-freeze, train-segv, train-abort, train-exit, train-exit0, train-return
 *                  RANK does that in the middle; `return` leaves main in order (ls_stop)
 *   train-slow     RANK computes for SECONDS in the middle of the loop, then goes on: all end well
 *   missing        RANK leaves one tensor out for ever (and ends in order)
 *   shape          RANK has another shape from the start
 *   init-kill, init-freeze    RANK is killed or frozen before it starts MPI
 *   early-stop     RANK takes fewer steps than the others, and stops in order
 *   done-first     RANK takes its last step early and stops in order; the others compute and stop later
 *
 * Prints "fault at T" (of the monotonic clock) when the fault happens and "told at T: MESSAGE" when a rank gets an
 * error; then it ends with code 4.  "whole" means that all went well.
 */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lockstep.h"

#define NUM_TENSORS 6
#define COUNT       5003
#define FAULT_STEP  20
#define CODE_TOLD   4

static ls_context_h ctx;
static const char  *mode    = "train";
static unsigned     victim  = 1;
static double       seconds = 2;

static double now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void say_fault(void)
{
    printf("fault at %.3f\n", now_s());
    fflush(stdout);
}

/* A busy loop: the script computes. */
static void compute(double for_seconds)
{
    const double end = now_s() + for_seconds;

    while (now_s() < end) {
    }
}

static bool is_mode(const char *prefix)
{
    return strncmp(mode, prefix, strlen(prefix)) == 0;
}

/* "train-kill" -> does "kill" */
static void happen(void)
{
    const char *how = strchr(mode, '-');

    how = (how == NULL) ? "" : how + 1;
    if (how[0] == '\0') {
        return;
    }
    say_fault();
    if (strcmp(how, "kill") == 0) {
        raise(SIGKILL);
    } else if (strcmp(how, "freeze") == 0) {
        raise(SIGSTOP); /* this thread at once: sent to the process it may stop a moment later */
    } else if (strcmp(how, "segv") == 0) {
        raise(SIGSEGV);
    } else if (strcmp(how, "abort") == 0) {
        abort();
    } else if (strcmp(how, "exit") == 0) {
        exit(3);
    } else if (strcmp(how, "exit0") == 0) {
        exit(0);
    } else if (strcmp(how, "return") == 0) {
        exit(ls_stop(ctx) == LS_OK ? 0 : CODE_TOLD);
    } else if (strcmp(how, "slow") == 0) {
        compute(seconds);
    }
}

static ls_status_t one_step(void)
{
    static float data[NUM_TENSORS][COUNT];
    ls_tensor_t  tensors[NUM_TENSORS];
    char         names[NUM_TENSORS][32];
    unsigned     num = NUM_TENSORS;

    for (unsigned i = 0; i < NUM_TENSORS; i++) {
        snprintf(names[i], sizeof(names[i]), "layer_%u/kernel", i);
        for (unsigned k = 0; k < COUNT; k++) {
            data[i][k] = 1;
        }
        tensors[i] = (ls_tensor_t){.name = names[i], .dtype = LS_FLOAT32, .input = data[i], .output = data[i],
                                   .count = COUNT};
    }
    if (is_mode("shape") && ls_rank(ctx) == victim) {
        tensors[2].count = COUNT / 2;
    }
    if (is_mode("missing") && ls_rank(ctx) == victim) {
        num--;
    }
    for (unsigned i = 0; i < num; i++) {
        const ls_status_t status = ls_allreduce(ctx, &tensors[i], NULL);

        if (status != LS_OK) {
            return status;
        }
        if (data[i][COUNT / 3] != (float)ls_size(ctx)) {
            fprintf(stderr, "tensor %u holds %g\n", i, (double)data[i][COUNT / 3]);
            exit(9);
        }
    }
    return LS_OK;
}

static int told(ls_status_t status)
{
    printf("told at %.3f: %s: %s\n", now_s(), ls_status_str(status), ls_last_error());
    fflush(stdout);
    return CODE_TOLD;
}

static int train(void)
{
    const bool is_victim = ls_rank(ctx) == victim;
    long       num_steps = (long)(seconds * 20);

    if (is_mode("train-") || is_mode("compute")) {
        num_steps = 2 * FAULT_STEP;
    }
    if (is_victim && (is_mode("early-stop") || is_mode("done-first"))) {
        num_steps /= 2;
    }
    if (!is_victim && is_mode("done-first")) {
        num_steps /= 2;
    }
    for (long step = 1; step <= num_steps; step++) {
        ls_status_t status;

        if (is_mode("train-") && is_victim && step == FAULT_STEP) {
            happen();
        }
        if (is_mode("compute") && step == FAULT_STEP) {
            if (is_victim) {
                happen();
            }
            compute(seconds);
        }
        status = one_step();
        if (status != LS_OK) {
            return told(status);
        }
        usleep(20000);
    }
    if (!is_victim && is_mode("done-first")) {
        compute(seconds);
    }
    if (is_victim && is_mode("early-stop")) {
        say_fault();
    }
    return 0;
}

/* The launchers tell a process its rank before MPI does. */
static unsigned rank_before_start(void)
{
    const char *text = getenv("OMPI_COMM_WORLD_RANK");

    text = (text != NULL) ? text : getenv("PMI_RANK");
    return (text != NULL) ? (unsigned)strtoul(text, NULL, 10) : 0;
}

int main(int argc, char **argv)
{
    int code;

    mode    = argc > 1 ? argv[1] : mode;
    victim  = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : victim;
    seconds = argc > 3 ? strtod(argv[3], NULL) : seconds;
    if (is_mode("init-") && rank_before_start() == victim) {
        happen();
    }
    if (ls_start(NULL, &ctx) != LS_OK) {
        fprintf(stderr, "ls_start: %s\n", ls_last_error());
        return 2;
    }
    code = train();
    if (code == 0 && ls_rank(ctx) == 0) {
        printf("whole\n");
        fflush(stdout);
    }
    if (ls_stop(ctx) != LS_OK && code == 0) {
        code = CODE_TOLD;
    }
    return code;
}

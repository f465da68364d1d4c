/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One rank goes away while the others wait for it in an all-reduce.
 *
 *     mpirun -n 4 exit_rank exit|_exit|kill|none [RANK]
 *
 * The first rounds are whole, so the others wait in a bucket of the agreed schedule.  Each of them prints
 * "told after S s: <status>: <message>" and ends with code 4 (5 for another error, 6 for none at all).
 * With `none` nobody goes: all end with code 0 and print "whole".
 */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lockstep.h"

#define NUM_ROUNDS 5
#define COUNT      100003

typedef enum exit_code { CODE_TOLD = 4, CODE_OTHER_ERROR = 5, CODE_NO_ERROR = 6 } exit_code_t;

static double now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void leave(const char *how)
{
    if (strcmp(how, "exit") == 0) {
        exit(3);
    }
    if (strcmp(how, "_exit") == 0) {
        _exit(3);
    }
    raise(SIGKILL);
}

static ls_status_t allreduce_ones(ls_context_h ctx, float *values)
{
    const ls_tensor_t tensor = {.name = "fault/ones", .dtype = LS_FLOAT32, .input = values, .output = values,
                                .count = COUNT};

    for (unsigned i = 0; i < COUNT; i++) {
        values[i] = 1;
    }
    return ls_allreduce(ctx, &tensor, NULL);
}

/* All ranks take part; says whether the sums are right. */
static bool run_whole_rounds(ls_context_h ctx, float *values)
{
    for (unsigned round = 0; round < NUM_ROUNDS; round++) {
        const ls_status_t status = allreduce_ones(ctx, values);

        if (status != LS_OK) {
            fprintf(stderr, "round %u: %s: %s\n", round, ls_status_str(status), ls_last_error());
            return false;
        }
        for (unsigned i = 0; i < COUNT; i++) {
            if (values[i] != (float)ls_size(ctx)) {
                fprintf(stderr, "round %u: element %u is %g\n", round, i, (double)values[i]);
                return false;
            }
        }
    }
    return true;
}

static int wait_for_the_lost(ls_context_h ctx, float *values)
{
    const double      begin = now_s();
    const ls_status_t status = allreduce_ones(ctx, values);

    printf("told after %.1f s: %s: %s\n", now_s() - begin, ls_status_str(status), ls_last_error());
    fflush(stdout);
    return status == LS_ERR_RANK_LOST ? CODE_TOLD : status == LS_OK ? CODE_NO_ERROR : CODE_OTHER_ERROR;
}

int main(int argc, char **argv)
{
    const char    *how = argc > 1 ? argv[1] : "none";
    const unsigned who = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 1;
    static float   values[COUNT];
    ls_context_h   ctx;
    int            code = 0;

    if (ls_start(NULL, &ctx) != LS_OK) {
        fprintf(stderr, "ls_start: %s\n", ls_last_error());
        return 2;
    }
    if (!run_whole_rounds(ctx, values)) {
        return 1;
    }
    if (strcmp(how, "none") != 0) {
        if (ls_rank(ctx) == who) {
            usleep(300000); /* the others are waiting by now */
            leave(how);
        }
        code = wait_for_the_lost(ctx, values);
    } else if (ls_rank(ctx) == 0) {
        printf("whole\n");
    }
    ls_stop(ctx);
    return code;
}

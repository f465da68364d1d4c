/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Something to look at: `watch steps` runs a few equal steps (for the trace); `watch wait SECONDS` lets rank 0
 * hand over late, so that the others can be asked for their state and for the processor time they took.
 */
#include <lockstep.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "unit/check.h"

#define NUM_TENSORS 5
#define NUM_STEPS   4
#define COUNT       5000

static ls_context_h ctx;

static double seconds(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void one_step(void)
{
    static float data[NUM_TENSORS][COUNT];
    ls_tensor_t  tensors[NUM_TENSORS];
    char         names[NUM_TENSORS][32];

    for (int i = 0; i < NUM_TENSORS; i++) {
        snprintf(names[i], sizeof(names[i]), "watched \"%d\"", i);
        tensors[i] = (ls_tensor_t){.name = names[i], .dtype = LS_FLOAT32, .input = data[i], .output = data[i],
                                   .count = COUNT};
    }
    CHECK_EQ_INT(ls_allreduce_group(ctx, tensors, NUM_TENSORS, NULL), LS_OK);
}

static void test_steps(void)
{
    for (int step = 0; step < NUM_STEPS; step++) {
        one_step();
    }
}

static void test_wait(double wait_seconds)
{
    struct timespec left = {.tv_sec  = (time_t)wait_seconds,
                            .tv_nsec = (long)((wait_seconds - (double)(time_t)wait_seconds) * 1e9)};
    double          cpu, wall;

    test_steps();
    cpu  = seconds(CLOCK_PROCESS_CPUTIME_ID);
    wall = seconds(CLOCK_MONOTONIC);
    if (ls_rank(ctx) == 0) {
        while (nanosleep(&left, &left) != 0) { /* a signal came: sleep on */
        }
    }
    one_step();
    cpu  = seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    wall = seconds(CLOCK_MONOTONIC) - wall;
    printf("rank %u waited %.3f s and took %.2f %% of a core\n", ls_rank(ctx), wall, 100 * cpu / wall);
}

int main(int argc, char **argv)
{
    if (argc < 2 || ls_start(NULL, &ctx) != LS_OK) {
        fprintf(stderr, "%s\n", argc < 2 ? "usage: watch steps | wait SECONDS" : ls_last_error());
        return 2;
    }
    if (strcmp(argv[1], "wait") == 0 && argc == 3) {
        test_wait(strtod(argv[2], NULL));
    } else {
        test_steps();
    }
    ls_stop(ctx);
    check_passed = (atomic_load(&check_failures) == 0);
    check_failed = !check_passed;
    return check_report();
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One body of tests/common, with the processes of an MPI job as ranks.
 *
 *     mpirun -n 4 collectives allreduce
 *     mpirun -n 4 collectives random --seed 7 --steps 200
 *
 * Rank 0 prints "results <hash>", a hash of every result of every rank: two runs with the same ranks
 * must print the same.  The code is 0 when all checks held, 1 when one did not, 2 for a bad call.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../common/bodies.h"

#define DEFAULT_SEED 20240229

static int print_usage(const char *program)
{
    fprintf(stderr, "usage: %s BODY [--seed N] [--steps N] [--quick]\n", program);
    for (const body_t *body = body_list; body->name != NULL; body++) {
        fprintf(stderr, "  %-10s %s\n", body->name, body->help);
    }
    return 2;
}

static bool parse_options(int argc, char **argv, body_params_t *params_p)
{
    for (int i = 2; i < argc; i++) {
        const bool has_value = i + 1 < argc;

        if (strcmp(argv[i], "--quick") == 0) {
            params_p->is_quick = true;
        } else if (strcmp(argv[i], "--seed") == 0 && has_value) {
            params_p->seed = strtoull(argv[++i], NULL, 0);
        } else if (strcmp(argv[i], "--steps") == 0 && has_value) {
            params_p->num_steps = (unsigned)strtoul(argv[++i], NULL, 0);
        } else {
            return false;
        }
    }
    return true;
}

int main(int argc, char **argv)
{
    body_params_t params = {.seed = DEFAULT_SEED};
    const body_t *body = argc > 1 ? body_find(argv[1]) : NULL;
    int           num_failures;

    if (body == NULL || !parse_options(argc, argv, &params)) {
        return print_usage(argv[0]);
    }
    num_failures = job_run_mpi(body->run, &params);
    if (job_has_rank_0()) {
        printf("results %016llx\n", (unsigned long long)job_results());
    }
    if (job_has_rank_0() || num_failures > 0) {
        printf("%d passed, %d failed\n", num_failures == 0, num_failures > 0);
    }
    return num_failures == 0 ? 0 : 1;
}

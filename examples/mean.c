/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The mean of a vector over all ranks, and what one rank's weight does to it.
 *
 * Run:
 *     mpirun -n 2 build/openmpi/examples/mean
 *
 * Expected output:
 *     2 ranks
 *     mean          0.5 1.5 2.5 3.5
 *     weighted mean 0.75 1.75 2.75 3.75
 */
#include <lockstep.h>
#include <stdio.h>

#define COUNT 4

static void print(const char *what, const float *values)
{
    printf("%-13s", what);
    for (int i = 0; i < COUNT; i++) {
        printf(" %g", values[i]);
    }
    printf("\n");
}

int main(void)
{
    float        given[COUNT], mean[COUNT], weighted[COUNT];
    ls_tensor_t  tensor = {.name = "values", .dtype = LS_FLOAT32, .input = given, .output = mean, .count = COUNT};
    ls_context_h ctx;

    if (ls_start(NULL, &ctx) != LS_OK) {
        fprintf(stderr, "cannot start: %s\n", ls_last_error());
        return 1;
    }
    for (int i = 0; i < COUNT; i++) {
        given[i] = (float)(i + (int)ls_rank(ctx));
    }
    if (ls_allreduce(ctx, &tensor, &(ls_reduce_t){.op = LS_MEAN}) != LS_OK) {
        fprintf(stderr, "rank %u: %s\n", ls_rank(ctx), ls_last_error());
        return 1;
    }

    /* Rank 1 had three times as many samples as rank 0. */
    tensor.name   = "weighted values";
    tensor.output = weighted;
    if (ls_allreduce(ctx, &tensor,
                     &(ls_reduce_t){.op = LS_WEIGHTED_MEAN, .weight = (ls_rank(ctx) == 0) ? 32 : 96}) != LS_OK) {
        fprintf(stderr, "rank %u: %s\n", ls_rank(ctx), ls_last_error());
        return 1;
    }
    if (ls_rank(ctx) == 0) {
        printf("%u ranks\n", ls_size(ctx));
        print("mean", mean);
        print("weighted mean", weighted);
    }
    return ls_stop(ctx) == LS_OK ? 0 : 1;
}

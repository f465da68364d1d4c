/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A training step as a framework would write it: gradients are handed over one by one, the last layer's
 * first, while the rest is still being computed; the step waits once, at its end.  The first step is
 * negotiated, the second adopts the schedule, and from the third on no control message is sent.
 *
 * Run:
 *     mpirun -n 2 build/openmpi/examples/step
 *
 * Expected output:
 *     5 steps of 6 tensors on 2 ranks
 *     control messages after step 2: 0
 *     gradient 0 after the last step: 6
 */
#include <lockstep.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>

#define NUM_LAYERS 6
#define NUM_STEPS  5
#define COUNT      10000

static sem_t open_requests;

/* Runs on the engine thread. */
static void on_done(void *arg, ls_status_t status, const char *message)
{
    (void)arg;
    if (status != LS_OK) {
        fprintf(stderr, "%s: %s\n", ls_status_str(status), message);
        exit(1);
    }
    sem_post(&open_requests);
}

static void hand_over(ls_context_h ctx, int layer, float *gradient)
{
    char        name[32];
    ls_tensor_t tensor = {.name = name, .dtype = LS_FLOAT32, .input = gradient, .output = gradient, .count = COUNT};

    snprintf(name, sizeof(name), "layer %d", layer);
    if (ls_allreduce_async(ctx, &tensor, NULL, on_done, NULL) != LS_OK) {
        fprintf(stderr, "%s\n", ls_last_error());
        exit(1);
    }
}

static void step(ls_context_h ctx, int number, float gradients[NUM_LAYERS][COUNT])
{
    for (int layer = NUM_LAYERS - 1; layer >= 0; layer--) {
        for (int i = 0; i < COUNT; i++) {
            gradients[layer][i] = (float)(number - 1 - layer % 2);
        }
        hand_over(ctx, layer, gradients[layer]);
    }
    for (int layer = 0; layer < NUM_LAYERS; layer++) {
        sem_wait(&open_requests);
    }
}

int main(void)
{
    static float  gradients[NUM_LAYERS][COUNT];
    ls_counters_t early, late;
    ls_context_h  ctx;

    if (ls_start(NULL, &ctx) != LS_OK) {
        fprintf(stderr, "cannot start: %s\n", ls_last_error());
        return 1;
    }
    sem_init(&open_requests, 0, 0);
    for (int number = 0; number < NUM_STEPS; number++) {
        step(ctx, number, gradients);
        if (number == 1) {
            ls_counters(ctx, &early);
        }
    }
    ls_counters(ctx, &late);
    if (ls_rank(ctx) == 0) {
        printf("%d steps of %d tensors on %u ranks\n", NUM_STEPS, NUM_LAYERS, ls_size(ctx));
        printf("control messages after step 2: %llu\n",
               (unsigned long long)(late.control_messages - early.control_messages));
        printf("gradient 0 after the last step: %g\n", (double)gradients[0][0]);
    }
    return ls_stop(ctx) == LS_OK ? 0 : 1;
}

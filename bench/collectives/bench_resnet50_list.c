/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ResNet-50 v1 for ImageNet, made from its architecture:
 *   conv1 7x7x3x64, then four stages of 3, 4, 6 and 3 bottlenecks, then 2048x1000 and a bias.
 *   A bottleneck: 1x1 in->w, 3x3 w->w, 1x1 w->4w; the first of a stage also 1x1 in->4w.
 * Each convolution has a kernel without bias and a batch norm with gamma and beta.
 * 53 convolutions x 3 + 2 = 161 tensors, 25,557,032 numbers.
 */
#include "bench_resnet50.h"

#include <inttypes.h>
#include <stdio.h>

#include "bench_latch.h"

#define STAGES  4
#define CLASSES 1000
#define WIDER   4 /* output of a bottleneck over its width */

typedef struct list {
    bench_parameter_t *parameters;
    unsigned           num_tensors;
    uint64_t           num_elements;
} list_t;

static void add(list_t *list, const char *layer, const char *what, unsigned num_dims, const int64_t *shape)
{
    if (list->num_tensors == BENCH_RESNET50_TENSORS) {
        bench_latch_die("the list of ResNet-50 has more than %d tensors", BENCH_RESNET50_TENSORS);
    }

    bench_parameter_t *parameter = &list->parameters[list->num_tensors++];

    *parameter = (bench_parameter_t){.num_dims = num_dims, .count = 1};
    snprintf(parameter->name, sizeof(parameter->name), "gradient/resnet50/%s/%s", layer, what);
    for (unsigned i = 0; i < num_dims; i++) {
        parameter->shape[i] = shape[i];
        parameter->count *= (uint64_t)shape[i];
    }
    list->num_elements += parameter->count;
}

static void add_convolution(list_t *list, const char *layer, int64_t side, int64_t in, int64_t out)
{
    add(list, layer, "kernel", 4, (int64_t[]){side, side, in, out});
    add(list, layer, "gamma", 1, &out);
    add(list, layer, "beta", 1, &out);
}

static void add_bottleneck(list_t *list, unsigned stage, unsigned block, int64_t in, int64_t width)
{
    char layer[4][32];

    for (unsigned i = 0; i < 4; i++) {
        snprintf(layer[i], sizeof(layer[i]), "conv%u_block%u_%u", stage + 2, block + 1, i);
    }
    if (block == 0) {
        add_convolution(list, layer[0], 1, in, WIDER * width);
    }
    add_convolution(list, layer[1], 1, in, width);
    add_convolution(list, layer[2], 3, width, width);
    add_convolution(list, layer[3], 1, width, WIDER * width);
}

void bench_resnet50_list(bench_parameter_t parameters_p[BENCH_RESNET50_TENSORS])
{
    static const unsigned blocks[STAGES] = {3, 4, 6, 3};
    list_t                list           = {.parameters = parameters_p};
    int64_t               channels       = 64;

    add_convolution(&list, "conv1", 7, 3, channels);
    for (unsigned stage = 0; stage < STAGES; stage++) {
        const int64_t width = (int64_t)64 << stage;

        for (unsigned block = 0; block < blocks[stage]; block++) {
            add_bottleneck(&list, stage, block, channels, width);
            channels = WIDER * width;
        }
    }
    add(&list, "predictions", "kernel", 2, (int64_t[]){channels, CLASSES});
    add(&list, "predictions", "bias", 1, (int64_t[]){CLASSES});

    if (list.num_tensors != BENCH_RESNET50_TENSORS || list.num_elements != BENCH_RESNET50_ELEMENTS) {
        bench_latch_die("the list of ResNet-50 has %u tensors and %" PRIu64 " numbers", list.num_tensors,
                        list.num_elements);
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The trainable parameters of ResNet-50, as TensorFlow lays them out. */
#ifndef LS_BENCH_RESNET50_H
#define LS_BENCH_RESNET50_H

#include <stdint.h>

#define BENCH_RESNET50_TENSORS  161
#define BENCH_RESNET50_ELEMENTS 25557032
#define BENCH_RESNET50_DIMS     4

typedef struct bench_parameter {
    char     name[64];
    unsigned num_dims;
    int64_t  shape[BENCH_RESNET50_DIMS];
    uint64_t count;
} bench_parameter_t;

/* In forward order: the gradients are ready in the opposite one. */
void bench_resnet50_list(bench_parameter_t parameters_p[BENCH_RESNET50_TENSORS]);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of bench_collectives. */
#ifndef LS_BENCH_OPTIONS_H
#define LS_BENCH_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "lockstep.h"

#define BENCH_INFLIGHT_MAX 1024
#define BENCH_ERROR_ROOM   256

/* What is run, as bits. */
enum {
    BENCH_CASE_SWEEP    = 1 << 0, /* one row per size */
    BENCH_CASE_RESNET50 = 1 << 1,
    BENCH_CASE_LATE     = 1 << 2,
    BENCH_CASE_BUSY     = 1 << 3,
    BENCH_CASE_ALL      = BENCH_CASE_SWEEP | BENCH_CASE_RESNET50 | BENCH_CASE_LATE | BENCH_CASE_BUSY
};

typedef struct bench_options {
    uint64_t    min_bytes, max_bytes, factor;
    unsigned    iterations; /* 0: as many as fit into the time for one size */
    unsigned    warmup;
    unsigned    inflight;
    ls_op_t     op;
    ls_dtype_t  dtype;
    const char *collective;
    unsigned    cases;
    bool        in_place;
    bool        with_mpi;
    bool        multi_node;
    bool        help;
    const char *json_path; /* NULL: no twin */
} bench_options_t;

/* Prints nothing, so that n ranks do not complain n times: false, and why in `error`. */
bool bench_options_parse(int argc, char **argv, bench_options_t *options_p, char error[BENCH_ERROR_ROOM]);

void bench_options_usage(FILE *out);

#endif

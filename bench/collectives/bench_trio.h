/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The three ways that are compared for tensors of one size: Lockstep's collective, MPI's, and
 * memcpy of as many bytes in each rank at the same time.
 */
#ifndef LS_BENCH_TRIO_H
#define LS_BENCH_TRIO_H

#include "bench_collective.h"
#include "bench_job.h"
#include "bench_measure.h"

/* Buffers for the largest size of a table: made once and used for all its rows. */
typedef struct bench_buffers {
    unsigned num_tensors;
    size_t   stride; /* bytes from one tensor to the next */
    char    *input, *output;
    char    *copy_from, *copy_to;
} bench_buffers_t;

typedef struct bench_trio {
    bench_request_t *requests; /* num_tensors of them, handed over together */
    unsigned         num_tensors;
    bench_latch_t    latch;
    size_t           bytes; /* of one tensor's larger buffer */
    char            *copy_from, *copy_to;
    size_t           stride;
} bench_trio_t;

enum { BENCH_OURS, BENCH_MPI, BENCH_MEMCPY, BENCH_WAYS };

void bench_trio_alloc(const bench_job_t *job, size_t max_bytes, unsigned num_tensors,
                      bench_buffers_t *buffers_p);
void bench_trio_free(bench_buffers_t *buffers);

void bench_trio_create(const bench_job_t *job, const bench_buffers_t *buffers, const char *collective,
                       uint64_t count, bench_trio_t *trio);
void bench_trio_destroy(bench_trio_t *trio);

/* Run ours once on new data and count what is wrong, over all ranks. */
uint64_t bench_trio_check(bench_trio_t *trio, unsigned seed);

/* Time all three; out of the check's data.  In place the tensors are 0, so that they stay so. */
void bench_trio_measure(bench_trio_t *trio, const bench_limits_t *limits, bool with_mpi,
                        bench_runner_t runners[BENCH_WAYS]);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The collectives that are timed, one struct each.
 *
 * The size of a row is that of the larger buffer: `total` elements.  Where ranks own blocks, rank
 * r's block has ls_block_count(total, n, r) elements: all-gather joins the blocks to `total`,
 * reduce-scatter leaves each rank its block, all-to-all sends block r to rank r.
 */
#ifndef LS_BENCH_COLLECTIVE_H
#define LS_BENCH_COLLECTIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "bench_latch.h"
#include "lockstep.h"

#define BENCH_NAME_ROOM 64
#define BENCH_ROOT      0

typedef struct bench_collective bench_collective_t;

/* One tensor of one row, ready to be handed over again and again. */
typedef struct bench_request {
    const bench_collective_t *collective;
    ls_context_h              ctx;
    unsigned                  rank, num_ranks;
    ls_op_t                   op;
    ls_dtype_t                dtype;
    uint64_t                  total;
    void                     *input, *output; /* equal: in place */
    bench_latch_t            *latch;          /* lowered when a post has ended */
    char                      name[BENCH_NAME_ROOM];
    uint64_t                 *blocks;                      /* elements of each rank's block */
    int                      *mpi_blocks, *mpi_offsets;    /* the same for MPI */
    int                      *mpi_mine, *mpi_mine_offsets; /* my block, once per rank */
} bench_request_t;

struct bench_collective {
    const char *name;
    bool        has_in_place;
    bool        is_reducing;
    uint64_t (*input_count)(const bench_request_t *request);
    uint64_t (*output_count)(const bench_request_t *request);
    /* busbw = algbw * this: what the wire must carry at least, whatever the number of ranks. */
    double (*bus_factor)(double num_ranks);
    ls_status_t (*post)(bench_request_t *request);
    void (*mpi)(bench_request_t *request); /* the same call of MPI, blocking */
    uint64_t (*wrong)(const bench_request_t *request, unsigned seed);
};

/* NULL if there is none of that name. */
const bench_collective_t *bench_collective_find(const char *name);

/* Fills the block tables from the other fields; ends the program when out of memory. */
void bench_collective_prepare(bench_request_t *request);
void bench_collective_release(bench_request_t *request);

/* False where MPI lacks the type or its int cannot count that far. */
bool bench_collective_has_mpi(const bench_request_t *request);

/* New input, and rubbish in an output that is another buffer. */
void bench_collective_init(bench_request_t *request, unsigned seed);

#endif

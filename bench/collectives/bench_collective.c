/* SPDX-License-Identifier: Apache-2.0 */
#include "bench_collective.h"

#include <limits.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "bench_data.h"
#include "bench_latch.h"

static ls_tensor_t tensor_of(const bench_request_t *request)
{
    return (ls_tensor_t){
        .name   = request->name,
        .dtype  = request->dtype,
        .input  = request->input,
        .output = request->output,
        .count  = request->collective->input_count(request),
    };
}

static ls_reduce_t reduce_of(const bench_request_t *request)
{
    const bool is_weighted = (request->op == LS_WEIGHTED_MEAN);

    return (ls_reduce_t){.op = request->op, .weight = is_weighted ? bench_data_weight(request->rank) : 0.0};
}

static const void *mpi_input(const bench_request_t *request)
{
    return (request->input == request->output) ? MPI_IN_PLACE : request->input;
}

static void request_done(void *arg, ls_status_t status, const char *message)
{
    bench_latch_done(((bench_request_t *)arg)->latch, status, message);
}

/* The room is always there: all lengths were known before. */
static void *request_output(void *arg, const uint64_t *counts, unsigned num_ranks)
{
    (void)counts;
    (void)num_ranks;
    return ((bench_request_t *)arg)->output;
}

static uint64_t count_total(const bench_request_t *request)
{
    return request->total;
}

static uint64_t count_block(const bench_request_t *request)
{
    return request->blocks[request->rank];
}

static uint64_t count_my_block_from_all(const bench_request_t *request)
{
    return request->blocks[request->rank] * request->num_ranks;
}

static double factor_twice_others(double n)
{
    return 2.0 * (n - 1.0) / n;
}

static double factor_others(double n)
{
    return (n - 1.0) / n;
}

static double factor_one(double n)
{
    (void)n;
    return 1.0;
}

/* Where a rank's block begins in the whole. */
static uint64_t block_offset(const bench_request_t *request, unsigned rank)
{
    uint64_t offset = 0;

    for (unsigned i = 0; i < rank; i++) {
        offset += request->blocks[i];
    }
    return offset;
}

/* ---- all-reduce ------------------------------------------------------------------------------ */

static ls_status_t allreduce_post(bench_request_t *request)
{
    const ls_tensor_t tensor = tensor_of(request);
    const ls_reduce_t reduce = reduce_of(request);

    return ls_allreduce_async(request->ctx, &tensor, &reduce, request_done, request);
}

static void allreduce_mpi(bench_request_t *request)
{
    MPI_Allreduce(mpi_input(request), request->output, (int)request->total,
                  bench_data_mpi_type(request->dtype), bench_data_mpi_op(request->dtype, request->op),
                  MPI_COMM_WORLD);
}

static uint64_t allreduce_wrong(const bench_request_t *request, unsigned seed)
{
    bench_expected_t expected;

    bench_data_expect_reduced(request->dtype, request->op, request->num_ranks, seed, &expected);
    return bench_data_wrong(request->output, request->total, 0, &expected);
}

/* ---- broadcast ------------------------------------------------------------------------------- */

static ls_status_t broadcast_post(bench_request_t *request)
{
    const ls_tensor_t tensor = tensor_of(request);

    return ls_broadcast_async(request->ctx, &tensor, BENCH_ROOT, request_done, request);
}

/* MPI has only the in-place form. */
static void broadcast_mpi(bench_request_t *request)
{
    MPI_Bcast(request->output, (int)request->total, bench_data_mpi_type(request->dtype), BENCH_ROOT,
              MPI_COMM_WORLD);
}

static uint64_t broadcast_wrong(const bench_request_t *request, unsigned seed)
{
    bench_expected_t expected;

    bench_data_expect_rank(request->dtype, request->op, BENCH_ROOT, seed, &expected);
    return bench_data_wrong(request->output, request->total, 0, &expected);
}

/* ---- all-gather ------------------------------------------------------------------------------ */

static ls_status_t allgather_post(bench_request_t *request)
{
    const ls_tensor_t tensor = tensor_of(request);

    return ls_allgather_async(request->ctx, &tensor, request_output, request_done, request);
}

static void allgather_mpi(bench_request_t *request)
{
    const MPI_Datatype type = bench_data_mpi_type(request->dtype);

    MPI_Allgatherv(request->input, request->mpi_blocks[request->rank], type, request->output,
                   request->mpi_blocks, request->mpi_offsets, type, MPI_COMM_WORLD);
}

static uint64_t allgather_wrong(const bench_request_t *request, unsigned seed)
{
    const unsigned char *place = request->output;
    uint64_t             wrong = 0;
    bench_expected_t     expected;

    for (unsigned rank = 0; rank < request->num_ranks; rank++) {
        bench_data_expect_rank(request->dtype, request->op, rank, seed, &expected);
        wrong += bench_data_wrong(place, request->blocks[rank], 0, &expected);
        place += request->blocks[rank] * bench_data_type_size(request->dtype);
    }
    return wrong;
}

/* ---- reduce-scatter -------------------------------------------------------------------------- */

static ls_status_t reduce_scatter_post(bench_request_t *request)
{
    const ls_tensor_t tensor = tensor_of(request);
    const ls_reduce_t reduce = reduce_of(request);

    return ls_reduce_scatter_async(request->ctx, &tensor, &reduce, request_done, request);
}

static void reduce_scatter_mpi(bench_request_t *request)
{
    MPI_Reduce_scatter(mpi_input(request), request->output, request->mpi_blocks,
                       bench_data_mpi_type(request->dtype), bench_data_mpi_op(request->dtype, request->op),
                       MPI_COMM_WORLD);
}

static uint64_t reduce_scatter_wrong(const bench_request_t *request, unsigned seed)
{
    bench_expected_t expected;

    bench_data_expect_reduced(request->dtype, request->op, request->num_ranks, seed, &expected);
    return bench_data_wrong(request->output, request->blocks[request->rank],
                            block_offset(request, request->rank), &expected);
}

/* ---- all-to-all ------------------------------------------------------------------------------ */

static ls_status_t alltoall_post(bench_request_t *request)
{
    const ls_tensor_t tensor = tensor_of(request);

    return ls_alltoall_async(request->ctx, &tensor, request->blocks, request_output, request_done, request);
}

static void alltoall_mpi(bench_request_t *request)
{
    const MPI_Datatype type = bench_data_mpi_type(request->dtype);

    MPI_Alltoallv(request->input, request->mpi_blocks, request->mpi_offsets, type, request->output,
                  request->mpi_mine, request->mpi_mine_offsets, type, MPI_COMM_WORLD);
}

static uint64_t alltoall_wrong(const bench_request_t *request, unsigned seed)
{
    const uint64_t       block  = request->blocks[request->rank];
    const uint64_t       offset = block_offset(request, request->rank);
    const unsigned char *place  = request->output;
    uint64_t             wrong  = 0;
    bench_expected_t     expected;

    for (unsigned rank = 0; rank < request->num_ranks; rank++) {
        bench_data_expect_rank(request->dtype, request->op, rank, seed, &expected);
        wrong += bench_data_wrong(place, block, offset, &expected);
        place += block * bench_data_type_size(request->dtype);
    }
    return wrong;
}

/* ---- the table ------------------------------------------------------------------------------- */

static const bench_collective_t collectives[] = {
    {.name         = "allreduce",
     .has_in_place = true,
     .is_reducing  = true,
     .input_count  = count_total,
     .output_count = count_total,
     .bus_factor   = factor_twice_others,
     .post         = allreduce_post,
     .mpi          = allreduce_mpi,
     .wrong        = allreduce_wrong},
    {.name         = "broadcast",
     .has_in_place = true,
     .is_reducing  = false,
     .input_count  = count_total,
     .output_count = count_total,
     .bus_factor   = factor_one,
     .post         = broadcast_post,
     .mpi          = broadcast_mpi,
     .wrong        = broadcast_wrong},
    {.name         = "allgather",
     .has_in_place = false,
     .is_reducing  = false,
     .input_count  = count_block,
     .output_count = count_total,
     .bus_factor   = factor_others,
     .post         = allgather_post,
     .mpi          = allgather_mpi,
     .wrong        = allgather_wrong},
    {.name         = "reduce_scatter",
     .has_in_place = true,
     .is_reducing  = true,
     .input_count  = count_total,
     .output_count = count_block,
     .bus_factor   = factor_others,
     .post         = reduce_scatter_post,
     .mpi          = reduce_scatter_mpi,
     .wrong        = reduce_scatter_wrong},
    {.name         = "alltoall",
     .has_in_place = false,
     .is_reducing  = false,
     .input_count  = count_total,
     .output_count = count_my_block_from_all,
     .bus_factor   = factor_others,
     .post         = alltoall_post,
     .mpi          = alltoall_mpi,
     .wrong        = alltoall_wrong},
};

const bench_collective_t *bench_collective_find(const char *name)
{
    for (size_t i = 0; i < sizeof(collectives) / sizeof(collectives[0]); i++) {
        if (strcmp(name, collectives[i].name) == 0) {
            return &collectives[i];
        }
    }
    return NULL;
}

void bench_collective_prepare(bench_request_t *request)
{
    const unsigned n      = request->num_ranks;
    uint64_t       offset = 0;

    request->blocks     = calloc(n, sizeof(*request->blocks));
    request->mpi_blocks = calloc(4 * (size_t)n, sizeof(*request->mpi_blocks));
    if (request->blocks == NULL || request->mpi_blocks == NULL) {
        bench_latch_die("out of memory for %u ranks", n);
    }
    request->mpi_offsets      = request->mpi_blocks + n;
    request->mpi_mine         = request->mpi_blocks + 2 * (size_t)n;
    request->mpi_mine_offsets = request->mpi_blocks + 3 * (size_t)n;
    for (unsigned rank = 0; rank < n; rank++) {
        request->blocks[rank] = ls_block_count(request->total, n, rank);
    }
    if (request->total + n > INT_MAX) {
        return; /* bench_collective_has_mpi() says no */
    }
    for (unsigned rank = 0; rank < n; rank++) {
        request->mpi_blocks[rank]       = (int)request->blocks[rank];
        request->mpi_offsets[rank]      = (int)offset;
        request->mpi_mine[rank]         = (int)request->blocks[request->rank];
        request->mpi_mine_offsets[rank] = (int)(request->blocks[request->rank] * rank);
        offset += request->blocks[rank];
    }
}

void bench_collective_release(bench_request_t *request)
{
    free(request->blocks);
    free(request->mpi_blocks);
}

bool bench_collective_has_mpi(const bench_request_t *request)
{
    return request->total + request->num_ranks <= INT_MAX &&
           bench_data_mpi_type(request->dtype) != MPI_DATATYPE_NULL;
}

void bench_collective_init(bench_request_t *request, unsigned seed)
{
    if (request->output != request->input) {
        memset(request->output, 0x5A,
               request->collective->output_count(request) * bench_data_type_size(request->dtype));
    }
    bench_data_fill(request->input, request->collective->input_count(request), request->dtype, request->op,
                    request->rank, seed);
}

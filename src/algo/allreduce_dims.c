/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All-reduce along the dimensions of the job: first inside the innermost, where ranks are near each other.
 *
 * Words: dims {d0, d1, ...} says that rank = c0 + d0*(c1 + d1*(c2 + ...)); a group is the ranks that
 * differ only in one coordinate; the data is n = d0*d1*... blocks.  n = 4, dims 2x2, rank 1 (c0 1, c1 0):
 *
 *     dimension 0   send 0..1 to 0 | reduce 2..3 from 0             rank 0 keeps 0..1, rank 1 keeps 2..3
 *     dimension 1   send 3 to 3 | reduce 2 from 3 (final)           rank 1 keeps 2, rank 3 keeps 3
 *     dimension 1   send 2 to 3 | store 3 from 3
 *     dimension 0   send 2..3 to 0 | store 0..1 from 0
 *
 * Steps: 1. per dimension, innermost first: cut what is left into one part per member of the group, each
 * part to its member, reduce the own part; 2. backward: the own part to the group, store the others'.
 * Cost: a*2*(number of dims) + b*2S(n-1)/n + c*S(n-1)/n; of the bytes only 2S/d0 per rank leave
 * dimension 0, 2S/(d0*d1) dimension 1, and so on.
 * Chosen: between nodes, when all nodes have the same number of ranks or LOCKSTEP_TOPOLOGY gives the dims.
 * Same bits: each block is finished by one rank and then spread.
 * Limits: the product of the dims must be the number of ranks.
 */
#include "algo/algo_int.h"
#include "algo/pattern.h"

static bool dims_supports(const ls_algo_request_t *request)
{
    const ls_topology_t *topology = request->topology;
    uint64_t             product  = 1;

    for (uint32_t d = 0; d < topology->num_dims && product <= topology->num_ranks; d++) {
        product *= topology->dims[d];
    }
    return topology->num_dims > 0 && product == topology->num_ranks;
}

/* The ranks that differ from this one only in dimension `dim`, whose neighbours are `stride` apart. */
static ls_status_t create_dim_group(const ls_algo_request_t *request, uint32_t dim, uint32_t stride,
                                    ls_group_t *group_p)
{
    const uint32_t    size   = request->topology->dims[dim];
    const uint32_t    mine   = (request->rank / stride) % size;
    const ls_status_t status = ls_group_create(request->rank, size, group_p);

    for (uint32_t c = 0; c < size && status == LS_OK; c++) {
        ls_group_add(group_p, request->rank - mine * stride + c * stride);
    }
    return status;
}

/* From dimension `dim` outward and back; `num_left` blocks from `block` on are this rank's to work on. */
static ls_status_t add_dims(const ls_algo_request_t *request, uint32_t dim, uint32_t stride, uint32_t block,
                            uint32_t num_left, ls_plan_t *plan)
{
    ls_parts_t  parts;
    ls_group_t  group;
    ls_status_t status;

    if (dim == request->topology->num_dims) {
        return LS_OK;
    }
    status = create_dim_group(request, dim, stride, &group);
    if (status != LS_OK) {
        return status;
    }
    parts  = (ls_parts_t){.block = block, .width = num_left / group.size, .count = group.size};
    status = ls_pattern_scatter(plan, &group, &parts);
    if (status == LS_OK) {
        status = add_dims(request, dim + 1, stride * group.size, block + group.me * parts.width,
                          parts.width, plan);
    }
    if (status == LS_OK) {
        status = ls_pattern_gather(plan, &group, &parts);
    }
    ls_group_destroy(&group);
    return status;
}

static ls_status_t dims_plan(const ls_algo_request_t *request, ls_plan_t *plan)
{
    if (plan->num_ranks == 1) {
        return ls_plan_add_copy(plan, 0, 1);
    }
    return add_dims(request, 0, 1, 0, plan->num_blocks, plan);
}

const ls_algo_t ls_algo_allreduce_dims = {
    .coll       = LS_COLL_ALLREDUCE,
    .name       = "dims",
    .help       = "direct exchange along each dimension of the job in turn",
    .num_blocks = ls_algo_block_per_rank,
    .supports   = dims_supports,
    .plan       = dims_plan,
};

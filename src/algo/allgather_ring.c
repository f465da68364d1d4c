/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ring all-gather: each block goes once around.
 *
 * Words: block r is rank r's; in each of n-1 steps a rank sends one block to the next rank and receives
 * one from the rank before.  n = 4, rank 0:
 *
 *     copy 0
 *     send 0 to 1 | store 3 from 3
 *     send 3 to 1 | store 2 from 3
 *     send 2 to 1 | store 1 from 3
 *
 * Steps: 1. copy the own block to the output; 2. one pass of the ring, beginning with the own block.
 * Cost: a*(n-1) + b*S(n-1)/n, S being all blocks together.
 * Chosen: large data between nodes: each block crosses each link between nodes once.
 * Same bits: nothing is computed.
 * Limits: none; n-1 latencies one after another.
 */
#include "algo/algo_int.h"
#include "algo/pattern.h"

static ls_status_t ring_plan(const ls_algo_request_t *request, ls_plan_t *plan)
{
    ls_group_t  all;
    ls_status_t status = ls_group_create_all(request, &all);

    if (status != LS_OK) {
        return status;
    }
    status = ls_plan_add_copy(plan, request->rank, 1);
    if (status == LS_OK) {
        status = ls_pattern_ring(plan, &all, 0, request->rank, false);
    }
    ls_group_destroy(&all);
    return status;
}

const ls_algo_t ls_algo_allgather_ring = {
    .coll       = LS_COLL_ALLGATHER,
    .name       = "ring",
    .help       = "blocks go around once",
    .num_blocks = ls_algo_block_per_rank,
    .supports   = ls_algo_supports_all,
    .plan       = ring_plan,
};

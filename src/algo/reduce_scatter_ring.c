/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ring reduce-scatter: the sum of each block goes once around and ends at its owner.
 *
 * Words: block r is what rank r keeps; in each of n-1 steps a rank sends one block to the next rank and
 * receives one from the rank before.  n = 4, rank 0:
 *
 *     send 3 to 1 | reduce 2 from 3
 *     send 2 to 1 | reduce 1 from 3
 *     send 1 to 1 | reduce 0 from 3 (final)
 *
 * Steps: one pass of the ring, beginning with the block before the own one, so that the own one comes last.
 * Cost: a*(n-1) + b*S(n-1)/n + c*S(n-1)/n.
 * Chosen: large data between nodes: each sum crosses each link between nodes once.
 * Same bits: a block exists on one rank only.
 * Limits: none; n-1 latencies one after another; blocks of other ranks pass through this one.
 */
#include "algo/algo_int.h"
#include "algo/pattern.h"

static ls_status_t ring_plan(const ls_algo_request_t *request, ls_plan_t *plan)
{
    ls_group_t  all;
    ls_status_t status;

    ls_plan_set_result(plan, request->rank, 1);
    if (plan->num_ranks == 1) {
        return ls_plan_add_copy(plan, 0, 1);
    }
    status = ls_group_create_all(request, &all);
    if (status != LS_OK) {
        return status;
    }
    status = ls_pattern_ring(plan, &all, 0, request->rank + plan->num_ranks - 1, true);
    ls_group_destroy(&all);
    return status;
}

const ls_algo_t ls_algo_reduce_scatter_ring = {
    .coll       = LS_COLL_REDUCE_SCATTER,
    .name       = "ring",
    .help       = "sums go around once and end at their owner",
    .num_blocks = ls_algo_block_per_rank,
    .supports   = ls_algo_supports_all,
    .plan       = ring_plan,
};

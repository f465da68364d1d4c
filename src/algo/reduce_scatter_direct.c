/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Direct reduce-scatter: each rank reduces its own block.
 *
 * Words: block r is what rank r keeps.  n = 4, rank 1:
 *
 *     send 2 to 2 | send 3 to 3 | send 0 to 0 | reduce 1 from 0 2 3 (final)
 *
 * Steps: 1. each block to its owner, beginning with the next rank up; 2. reduce the own block.
 * Cost: a + b*S(n-1)/n + c*S(n-1)/n.
 * Chosen: inside a node; small data between nodes.
 * Same bits: a block exists on one rank only; it combines the values in rank order.
 * Limits: none.
 */
#include "algo/algo_int.h"
#include "algo/pattern.h"

static ls_status_t direct_plan(const ls_algo_request_t *request, ls_plan_t *plan)
{
    const ls_parts_t parts = {.width = 1, .count = plan->num_ranks};
    ls_group_t       all;
    ls_status_t      status;

    ls_plan_set_result(plan, request->rank, 1);
    if (plan->num_ranks == 1) {
        return ls_plan_add_copy(plan, 0, 1);
    }
    status = ls_group_create_all(request, &all);
    if (status != LS_OK) {
        return status;
    }
    status = ls_pattern_scatter(plan, &all, &parts);
    ls_group_destroy(&all);
    return status;
}

const ls_algo_t ls_algo_reduce_scatter_direct = {
    .coll       = LS_COLL_REDUCE_SCATTER,
    .name       = "direct",
    .help       = "each rank reduces its own block",
    .num_blocks = ls_algo_block_per_rank,
    .supports   = ls_algo_supports_all,
    .plan       = direct_plan,
};

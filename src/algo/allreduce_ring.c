/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ring all-reduce: one pass that reduces, one pass that spreads.
 *
 * Words: the data is n blocks; a pass is n-1 steps; in each a rank sends one block to the next rank
 * and receives one from the rank before.  n = 4, rank 0:
 *
 *     send 0 to 1 | reduce 3 from 3
 *     send 3 to 1 | reduce 2 from 3
 *     send 2 to 1 | reduce 1 from 3 (final)           block 1 is complete
 *     send 1 to 1 | store 0 from 3
 *     send 0 to 1 | store 3 from 3
 *     send 3 to 1 | store 2 from 3                    all are complete
 *
 * Steps: 1. reduce pass, beginning with the own block; 2. spread pass, beginning with the next.
 * Cost: a*2(n-1) + b*2S(n-1)/n + c*S(n-1)/n.
 * Chosen: not by default; the least load on a network where only neighbours are near each other.
 * Same bits: the sum of a block goes once around and is finished by one rank, then spread.
 * Limits: none; 2(n-1) latencies one after another, so poor for small S.
 */
#include "algo/algo_int.h"
#include "algo/pattern.h"

static ls_status_t ring_plan(const ls_algo_request_t *request, ls_plan_t *plan)
{
    ls_group_t  all;
    ls_status_t status;

    if (plan->num_ranks == 1) {
        return ls_plan_add_copy(plan, 0, 1);
    }
    status = ls_group_create_all(request, &all);
    if (status != LS_OK) {
        return status;
    }
    status = ls_pattern_ring(plan, &all, 0, request->rank, true);
    if (status == LS_OK) {
        status = ls_pattern_ring(plan, &all, 0, request->rank + 1, false);
    }
    ls_group_destroy(&all);
    return status;
}

const ls_algo_t ls_algo_allreduce_ring = {
    .coll       = LS_COLL_ALLREDUCE,
    .name       = "ring",
    .help       = "blocks go around twice: reduced, then spread",
    .num_blocks = ls_algo_block_per_rank,
    .supports   = ls_algo_supports_all,
    .plan       = ring_plan,
};

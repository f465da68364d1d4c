/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Direct all-reduce: each rank reduces one block for everybody.
 *
 * Words: the data is n blocks; block r is reduced by rank r, its owner.  n = 4, rank 1:
 *
 *     blocks   0    1    2    3
 *     to/from  0   own   2    3
 *
 *     send 2 to 2 | send 3 to 3 | send 0 to 0         each block to its owner
 *     reduce 1 from 0 2 3 (final)                     all four values of the own block at once
 *     send 1 to 0 2 3                                 staged once, read by all
 *     store 2 from 2 | store 3 from 3 | store 0 from 0
 *
 * Steps: 1. send n-1 blocks, beginning with the next rank up so that not all ranks knock at rank 0's
 * door; 2. reduce the own block; 3. send it to all; 4. store the others'.
 * Cost: a*2 + b*2S(n-1)/n + c*S(n-1)/n, in 2(n-1) messages that are under way together.
 * Chosen: inside a node, from middle sizes up; shared memory takes n messages at once gladly.
 * Same bits: each block is reduced by one rank and then spread.
 * Limits: none; between nodes the many messages cost more than a ring's.
 */
#include "algo/algo_int.h"
#include "algo/pattern.h"

static ls_status_t direct_plan(const ls_algo_request_t *request, ls_plan_t *plan)
{
    const ls_parts_t parts = {.width = 1, .count = plan->num_ranks};
    ls_group_t       all;
    ls_status_t      status;

    if (plan->num_ranks == 1) {
        return ls_plan_add_copy(plan, 0, 1);
    }
    status = ls_group_create_all(request, &all);
    if (status != LS_OK) {
        return status;
    }
    status = ls_pattern_scatter(plan, &all, &parts);
    if (status == LS_OK) {
        status = ls_pattern_gather(plan, &all, &parts);
    }
    ls_group_destroy(&all);
    return status;
}

const ls_algo_t ls_algo_allreduce_direct = {
    .coll       = LS_COLL_ALLREDUCE,
    .name       = "direct",
    .help       = "each rank reduces one block for everybody",
    .num_blocks = ls_algo_block_per_rank,
    .supports   = ls_algo_supports_all,
    .plan       = direct_plan,
};

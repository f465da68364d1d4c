/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Direct all-gather: everybody sends its block to all at once.
 *
 * Words: block r is rank r's.  n = 4, rank 1:
 *
 *     send 1 to 0 2 3 | copy 1 | store 2 from 2 | store 3 from 3 | store 0 from 0
 *
 * Steps: 1. the own block to all in one send; 2. copy it to the output; 3. store the others'.
 * Cost: a + b*S(n-1)/n, S being all blocks together; each block is staged once.
 * Chosen: inside a node; small data between nodes.
 * Same bits: nothing is computed.
 * Limits: none.
 */
#include "algo/algo_int.h"
#include "algo/pattern.h"

static ls_status_t direct_plan(const ls_algo_request_t *request, ls_plan_t *plan)
{
    const ls_parts_t parts = {.width = 1, .count = plan->num_ranks};
    ls_group_t       all;
    ls_status_t      status = ls_group_create_all(request, &all);

    if (status != LS_OK) {
        return status;
    }
    if (all.num_others > 0) {
        status = ls_plan_add_send(plan, request->rank, 1, all.others, all.num_others);
    }
    /* The copy is done while the others' blocks are on their way. */
    if (status == LS_OK) {
        status = ls_plan_add_copy(plan, request->rank, 1);
    }
    if (status == LS_OK) {
        status = ls_pattern_store_parts(plan, &all, &parts);
    }
    ls_group_destroy(&all);
    return status;
}

const ls_algo_t ls_algo_allgather_direct = {
    .coll       = LS_COLL_ALLGATHER,
    .name       = "direct",
    .help       = "everybody sends its block to all at once",
    .num_blocks = ls_algo_block_per_rank,
    .supports   = ls_algo_supports_all,
    .plan       = direct_plan,
};

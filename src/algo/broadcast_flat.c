/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Flat broadcast: the root sends to all at once.
 *
 * Words: the data is one block.  n = 4, root 1:
 *
 *     1 --> 0 2 3          rank 1: send 0 to 0 2 3 | copy 0
 *                          rank 2: store 0 from 1
 *
 * Steps: 1. the root sends to all others in one send, and copies its input to its output.
 * Cost: a + b*S(n-1) at the root; inside a node the data is staged once and read by all.
 * Chosen: inside a node.
 * Same bits: nothing is computed.
 * Limits: none.
 */
#include "algo/algo_int.h"
#include "algo/group.h"

/* The send first: the others wait for it, nobody waits for the copy. */
static ls_status_t root_plan(const ls_algo_request_t *request, ls_plan_t *plan)
{
    ls_group_t  all;
    ls_status_t status = ls_group_create_all(request, &all);

    if (status != LS_OK) {
        return status;
    }
    if (all.num_others > 0) {
        status = ls_plan_add_send(plan, 0, 1, all.others, all.num_others);
    }
    if (status == LS_OK) {
        status = ls_plan_add_copy(plan, 0, 1);
    }
    ls_group_destroy(&all);
    return status;
}

static ls_status_t flat_plan(const ls_algo_request_t *request, ls_plan_t *plan)
{
    return request->rank == request->root ? root_plan(request, plan)
                                          : ls_plan_add_store(plan, 0, 1, request->root);
}

const ls_algo_t ls_algo_broadcast_flat = {
    .coll       = LS_COLL_BROADCAST,
    .name       = "flat",
    .help       = "the root sends to all at once",
    .num_blocks = ls_algo_one_block,
    .supports   = ls_algo_supports_all,
    .plan       = flat_plan,
};

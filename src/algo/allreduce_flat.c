/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Flat all-reduce: everybody gives everything to everybody, and everybody reduces all of it.
 *
 * Words: the data is one block; v0 .. v3 are the ranks' values.  n = 4, rank 1:
 *
 *     0 --v0--> 1 2 3      send 0 to 0 2 3
 *     1 --v1--> 0 2 3      reduce 0 from 0 2 3 (final)
 *     2 --v2--> 0 1 3
 *     3 --v3--> 0 1 2      on each rank ((v0 + v1) + v2) + v3
 *
 * Steps: 1. the value to all others in one send; 2. reduce what the others sent.
 * Cost: a + b*S(n-1) + c*S(n-1): one latency, but each rank does the work of all.
 * Chosen: small data inside a node, where a send to all is staged once and read by all.
 * Same bits: every rank combines the same n values in rank order.
 * Limits: none; wasteful for large S or n.
 */
#include "algo/algo_int.h"
#include "algo/group.h"

static ls_status_t flat_plan(const ls_algo_request_t *request, ls_plan_t *plan)
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
    status = ls_plan_add_send(plan, 0, 1, all.others, all.num_others);
    if (status == LS_OK) {
        status = ls_plan_add_reduce(plan, 0, 1, all.others, all.num_others);
    }
    ls_group_destroy(&all);
    return status;
}

const ls_algo_t ls_algo_allreduce_flat = {
    .coll       = LS_COLL_ALLREDUCE,
    .name       = "flat",
    .help       = "everybody sends all to everybody and reduces all",
    .num_blocks = ls_algo_one_block,
    .supports   = ls_algo_supports_all,
    .plan       = flat_plan,
};

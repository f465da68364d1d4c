/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Binomial broadcast: with each round twice as many ranks have the data.
 *
 * Words: the data is one block; places are ranks counted from the root.  n = 4, root 0:
 *
 *     0 --> 1               rank 0: send 0 to 1 2 | copy 0
 *     0 --> 2 --> 3         rank 2: store 0 from 0 | send 0 to 3
 *                           rank 3: store 0 from 2
 *
 * Steps: 1. receive from the place without the lowest set bit of the own; 2. send to the own place plus
 * each power of two below that bit, in one send.
 * Cost: a*log2(n) + b*S*log2(n).
 * Chosen: many ranks in one node, where the root alone would serve too many.
 * Same bits: nothing is computed.
 * Limits: none.
 */
#include "algo/algo_int.h"
#include "algo/pattern.h"

static ls_status_t find_children(const ls_algo_request_t *request, ls_group_t *children_p)
{
    const uint32_t    n      = request->topology->num_ranks;
    const ls_status_t status = ls_group_create(request->rank, n, children_p);

    for (uint32_t rank = 0; rank < n && status == LS_OK; rank++) {
        uint32_t parent;

        if (ls_pattern_tree_parent(n, request->root, rank, &parent) && parent == request->rank) {
            ls_group_add(children_p, rank);
        }
    }
    return status;
}

static ls_status_t binomial_plan(const ls_algo_request_t *request, ls_plan_t *plan)
{
    uint32_t    parent;
    const bool  is_root = !ls_pattern_tree_parent(plan->num_ranks, request->root, request->rank, &parent);
    ls_group_t  children;
    ls_status_t status = find_children(request, &children);

    if (status != LS_OK) {
        return status;
    }
    status = ls_pattern_pass_on(plan, is_root ? NULL : &parent, &children);
    ls_group_destroy(&children);
    return status;
}

const ls_algo_t ls_algo_broadcast_binomial = {
    .coll       = LS_COLL_BROADCAST,
    .name       = "binomial",
    .help       = "a binomial tree from the root",
    .num_blocks = ls_algo_one_block,
    .supports   = ls_algo_supports_all,
    .plan       = binomial_plan,
};

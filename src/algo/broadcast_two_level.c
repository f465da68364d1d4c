/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two-level broadcast: a binomial tree over the nodes, then each node at once.
 *
 * Words: the data is one block; the leader of a node is its lowest rank, in the root's node the root.
 * n = 4, nodes {0 1} and {2 3}, root 1:
 *
 *     1 --> 2 --> 3         rank 1: send 0 to 0 2 | copy 0
 *     1 --> 0               rank 2: store 0 from 1 | send 0 to 3
 *                           rank 0: store 0 from 1
 *
 * Steps: 1. a leader receives from the leader above it in the tree, another rank from its leader; 2. a
 * leader sends to the leaders below it and to its node, in one send: staged once.
 * Cost: a*(log2(m) + 1) + b*S*log2(m) between m nodes + b*S inside the node.
 * Chosen: more than one node.
 * Same bits: nothing is computed.
 * Limits: none; any layout.
 */
#include "algo/algo_int.h"
#include "algo/pattern.h"

static uint32_t leader_of(const ls_algo_request_t *request, uint32_t node)
{
    return request->topology->node_of[request->root] == node
               ? request->root
               : ls_group_rank_on_node(request->topology, node, 0);
}

/* False for the root. */
static bool find_parent(const ls_algo_request_t *request, uint32_t rank, uint32_t *parent_p)
{
    const ls_topology_t *topology = request->topology;
    const uint32_t       node     = topology->node_of[rank];
    const uint32_t       leader   = leader_of(request, node);
    uint32_t             above;

    if (rank != leader) {
        *parent_p = leader;
        return true;
    }
    if (!ls_pattern_tree_parent(topology->num_nodes, topology->node_of[request->root], node, &above)) {
        return false;
    }
    *parent_p = leader_of(request, above);
    return true;
}

static ls_status_t find_children(const ls_algo_request_t *request, ls_group_t *children_p)
{
    const uint32_t    n      = request->topology->num_ranks;
    const ls_status_t status = ls_group_create(request->rank, n, children_p);

    for (uint32_t rank = 0; rank < n && status == LS_OK; rank++) {
        uint32_t parent;

        if (find_parent(request, rank, &parent) && parent == request->rank) {
            ls_group_add(children_p, rank);
        }
    }
    return status;
}

static ls_status_t two_level_plan(const ls_algo_request_t *request, ls_plan_t *plan)
{
    uint32_t    parent;
    const bool  is_root = !find_parent(request, request->rank, &parent);
    ls_group_t  children;
    ls_status_t status = find_children(request, &children);

    if (status != LS_OK) {
        return status;
    }
    status = ls_pattern_pass_on(plan, is_root ? NULL : &parent, &children);
    ls_group_destroy(&children);
    return status;
}

const ls_algo_t ls_algo_broadcast_two_level = {
    .coll       = LS_COLL_BROADCAST,
    .name       = "two_level",
    .help       = "a binomial tree over the nodes, then each node at once",
    .num_blocks = ls_algo_one_block,
    .supports   = ls_algo_supports_all,
    .plan       = two_level_plan,
};

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two-level all-reduce for any layout: direct exchange in the node, a ring between the nodes.
 *
 * Words: m nodes, the smallest has k ranks; the first k ranks of each node are owners.  The data is k
 * stripes of m blocks; stripe j belongs to the j-th rank of each node.  n = 4, nodes {0 1 2} and {3}: k = 1,
 * m = 2, one stripe of 2 blocks, owners 0 and 3.
 *
 *     node 0:  1, 2 --> 0             0 <--> 3 :node 1             0 --> 1, 2
 *
 *     rank 0: reduce 0..1 from 1 2 |
 *             send 0 to 3 | reduce 1 from 3 (final) | send 1 to 3 | store 0 from 3 |
 *             send 0..1 to 1 2
 *     rank 1: send 0..1 to 0 | store 0..1 from 0
 *
 * Steps: 1. each stripe to its owner in the node, who reduces the node's values at once; 2. the owners of
 * a stripe, one per node, ring all-reduce it; 3. each owner sends its stripe to its node in one send.
 * Cost: a*2m + b*2S(m-1)/(m*k) per owner between nodes + b*2S inside the node + c*S.
 * Chosen: large data on nodes of unequal size or ranks that are not numbered node by node.
 * Same bits: each block is finished by one owner and then spread.
 * Limits: none; with one rank per node it is the ring, with one node the direct exchange.
 */
#include "algo/algo_int.h"
#include "algo/pattern.h"

static uint32_t two_level_num_blocks(const ls_algo_request_t *request)
{
    return ls_group_min_node_size(request->topology) * request->topology->num_nodes;
}

/* The owners of one stripe, in the order of the nodes. */
static ls_status_t create_owners(const ls_algo_request_t *request, uint32_t stripe, ls_group_t *group_p)
{
    const ls_topology_t *topology = request->topology;
    const ls_status_t    status   = ls_group_create(request->rank, topology->num_nodes, group_p);

    for (uint32_t node = 0; node < topology->num_nodes && status == LS_OK; node++) {
        ls_group_add(group_p, ls_group_rank_on_node(topology, node, stripe));
    }
    return status;
}

static ls_status_t add_ring(const ls_algo_request_t *request, uint32_t stripe, ls_plan_t *plan)
{
    const uint32_t block = stripe * request->topology->num_nodes;
    ls_group_t     owners;
    ls_status_t    status = create_owners(request, stripe, &owners);

    if (status != LS_OK) {
        return status;
    }
    status = ls_pattern_ring(plan, &owners, block, owners.me, true);
    if (status == LS_OK) {
        status = ls_pattern_ring(plan, &owners, block, owners.me + 1, false);
    }
    ls_group_destroy(&owners);
    return status;
}

static ls_status_t two_level_plan(const ls_algo_request_t *request, ls_plan_t *plan)
{
    const uint32_t   num_nodes = request->topology->num_nodes;
    const ls_parts_t stripes   = {.width = num_nodes, .count = plan->num_blocks / num_nodes};
    ls_group_t       node;
    ls_status_t      status;

    if (plan->num_ranks == 1) {
        return ls_plan_add_copy(plan, 0, 1);
    }
    status = ls_group_create_node(request, &node);
    if (status != LS_OK) {
        return status;
    }
    status = ls_pattern_scatter(plan, &node, &stripes);
    if (status == LS_OK && node.me < stripes.count) {
        status = add_ring(request, node.me, plan);
    }
    if (status == LS_OK) {
        status = ls_pattern_gather(plan, &node, &stripes);
    }
    ls_group_destroy(&node);
    return status;
}

const ls_algo_t ls_algo_allreduce_two_level = {
    .coll       = LS_COLL_ALLREDUCE,
    .name       = "two_level",
    .help       = "reduced in each node, a ring between the nodes; any layout",
    .num_blocks = two_level_num_blocks,
    .supports   = ls_algo_supports_all,
    .plan       = two_level_plan,
};

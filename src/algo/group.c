/* SPDX-License-Identifier: Apache-2.0 */
#include "algo/group.h"

#include "base/mem.h"

ls_status_t ls_group_create(uint32_t rank, uint32_t room, ls_group_t *group_p)
{
    void             *mem;
    const ls_status_t status = ls_mem_alloc(2 * (size_t)room * sizeof(uint32_t), "group", &mem);

    if (status == LS_OK) {
        *group_p = (ls_group_t){.ranks = mem, .others = (uint32_t *)mem + room, .rank = rank};
    }
    return status;
}

void ls_group_add(ls_group_t *group, uint32_t rank)
{
    if (rank == group->rank) {
        group->me = group->size;
    } else {
        group->others[group->num_others++] = rank;
    }
    group->ranks[group->size++] = rank;
}

void ls_group_destroy(ls_group_t *group)
{
    ls_mem_free(group->ranks); /* `others` lies behind it */
    *group = (ls_group_t){0};
}

ls_status_t ls_group_create_all(const ls_algo_request_t *request, ls_group_t *group_p)
{
    const uint32_t    n      = request->topology->num_ranks;
    const ls_status_t status = ls_group_create(request->rank, n, group_p);

    for (uint32_t rank = 0; rank < n && status == LS_OK; rank++) {
        ls_group_add(group_p, rank);
    }
    return status;
}

ls_status_t ls_group_create_node(const ls_algo_request_t *request, ls_group_t *group_p)
{
    const ls_topology_t *topology = request->topology;
    const ls_status_t    status   = ls_group_create(request->rank, topology->num_ranks, group_p);

    for (uint32_t rank = 0; rank < topology->num_ranks && status == LS_OK; rank++) {
        if (topology->node_of[rank] == topology->node_of[request->rank]) {
            ls_group_add(group_p, rank);
        }
    }
    return status;
}

uint32_t ls_group_min_node_size(const ls_topology_t *topology)
{
    uint32_t smallest = topology->num_ranks;

    for (uint32_t node = 0; node < topology->num_nodes; node++) {
        uint32_t size = 0;

        for (uint32_t rank = 0; rank < topology->num_ranks; rank++) {
            size += (topology->node_of[rank] == node);
        }
        smallest = size < smallest ? size : smallest;
    }
    return smallest;
}

uint32_t ls_group_rank_on_node(const ls_topology_t *topology, uint32_t node, uint32_t place)
{
    for (uint32_t rank = 0; rank < topology->num_ranks; rank++) {
        if (topology->node_of[rank] == node && place-- == 0) {
            return rank;
        }
    }
    return topology->num_ranks;
}

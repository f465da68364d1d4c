/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks that work together: all of them, those of a node, those along one dimension. */
#ifndef LS_ALGO_GROUP_H
#define LS_ALGO_GROUP_H

#include "algo/algo.h"

typedef struct ls_group {
    uint32_t *ranks;  /* in the order in which they were added */
    uint32_t *others; /* the same without this rank: `size - 1` when it is a member */
    uint32_t  size;
    uint32_t  num_others;
    uint32_t  me;   /* place of this rank in `ranks`; meaningless when it is not a member */
    uint32_t  rank; /* this rank */
} ls_group_t;

/* An empty group with room for `room` ranks, seen from `rank`. */
ls_status_t ls_group_create(uint32_t rank, uint32_t room, ls_group_t *group_p);
void        ls_group_add(ls_group_t *group, uint32_t rank);
void        ls_group_destroy(ls_group_t *group);

/* All ranks; the ranks of the own node.  Both ascending. */
ls_status_t ls_group_create_all(const ls_algo_request_t *request, ls_group_t *group_p);
ls_status_t ls_group_create_node(const ls_algo_request_t *request, ls_group_t *group_p);

/* How many ranks the node with the fewest has. */
uint32_t ls_group_min_node_size(const ls_topology_t *topology);
/* The rank of `node` that has `place` ranks of the node below it; num_ranks if there is none. */
uint32_t ls_group_rank_on_node(const ls_topology_t *topology, uint32_t node, uint32_t place);

#endif

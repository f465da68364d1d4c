/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Steps that several algorithms are made of.
 *
 * Words.  The blocks from `block` on are cut into parts of `width` blocks; part i belongs to the member
 * in place i of a group.  There may be fewer parts than members: the last members then own nothing.
 */
#ifndef LS_ALGO_PATTERN_H
#define LS_ALGO_PATTERN_H

#include "algo/group.h"

typedef struct ls_parts {
    uint32_t block; /* first of part 0 */
    uint32_t width; /* blocks of a part */
    uint32_t count; /* parts, at most as many as members */
} ls_parts_t;

/* Take the parts of the others, beginning with the place after the own one. */
ls_status_t ls_pattern_store_parts(ls_plan_t *plan, const ls_group_t *group, const ls_parts_t *parts);

/* Reduce-scatter by direct exchange: each part to its owner, who reduces all members' at once. */
ls_status_t ls_pattern_scatter(ls_plan_t *plan, const ls_group_t *group, const ls_parts_t *parts);
/* All-gather by direct exchange: the own part to all in one send, everybody's part from them. */
ls_status_t ls_pattern_gather(ls_plan_t *plan, const ls_group_t *group, const ls_parts_t *parts);

/*
 * One pass of a ring over single blocks: size - 1 times, one block to the next member, one from the
 * member before.  `first` (counted from `block`, modulo size) is sent first; what arrives is reduced or
 * stored and sent next.  The last to arrive is first + 1.
 */
ls_status_t ls_pattern_ring(ls_plan_t *plan, const ls_group_t *group, uint32_t block, uint32_t first,
                            bool reduce);

/*
 * Binomial tree over places 0 .. size-1 with `top` as its root.  Counted from the top, place v receives
 * from v without its lowest set bit.  False for the top itself.
 */
bool ls_pattern_tree_parent(uint32_t size, uint32_t top, uint32_t place, uint32_t *parent_p);

/* A tree's step of broadcasting block 0: from the parent (NULL: this is the root) to all children. */
ls_status_t ls_pattern_pass_on(ls_plan_t *plan, const uint32_t *parent, const ls_group_t *children);

#endif

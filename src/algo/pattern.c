/* SPDX-License-Identifier: Apache-2.0 */
#include "algo/pattern.h"

/* Beginning with the next place, so that not all ranks knock at the same door. */
static ls_status_t send_parts(ls_plan_t *plan, const ls_group_t *group, const ls_parts_t *parts)
{
    ls_status_t status = LS_OK;

    for (uint32_t i = 1; i < group->size && status == LS_OK; i++) {
        const uint32_t place = (group->me + i) % group->size;

        if (place < parts->count) {
            status = ls_plan_add_send(plan, parts->block + place * parts->width, parts->width,
                                      &group->ranks[place], 1);
        }
    }
    return status;
}

ls_status_t ls_pattern_store_parts(ls_plan_t *plan, const ls_group_t *group, const ls_parts_t *parts)
{
    ls_status_t status = LS_OK;

    for (uint32_t i = 1; i < group->size && status == LS_OK; i++) {
        const uint32_t place = (group->me + i) % group->size;

        if (place < parts->count) {
            status = ls_plan_add_store(plan, parts->block + place * parts->width, parts->width,
                                       group->ranks[place]);
        }
    }
    return status;
}

static bool has_part_and_others(const ls_group_t *group, const ls_parts_t *parts)
{
    return group->me < parts->count && group->size > 1;
}

ls_status_t ls_pattern_scatter(ls_plan_t *plan, const ls_group_t *group, const ls_parts_t *parts)
{
    ls_status_t status = send_parts(plan, group, parts);

    if (status == LS_OK && has_part_and_others(group, parts)) {
        status = ls_plan_add_reduce(plan, parts->block + group->me * parts->width, parts->width,
                                    group->others, group->num_others);
    }
    return status;
}

ls_status_t ls_pattern_gather(ls_plan_t *plan, const ls_group_t *group, const ls_parts_t *parts)
{
    ls_status_t status = LS_OK;

    if (has_part_and_others(group, parts)) {
        status = ls_plan_add_send(plan, parts->block + group->me * parts->width, parts->width,
                                  group->others, group->num_others);
    }
    return status == LS_OK ? ls_pattern_store_parts(plan, group, parts) : status;
}

ls_status_t ls_pattern_ring(ls_plan_t *plan, const ls_group_t *group, uint32_t block, uint32_t first,
                            bool reduce)
{
    const uint32_t n      = group->size;
    ls_status_t    status = LS_OK;

    /* A block travels to the next member, so the block to send goes back by one at each step. */
    for (uint32_t step = 0; step + 1 < n && status == LS_OK; step++) {
        const ls_exchange_t exchange = {
            .send_to         = group->ranks[(group->me + 1) % n],
            .send_block      = block + (first + n - step) % n,
            .num_send_blocks = 1,
            .recv_from       = group->ranks[(group->me + n - 1) % n],
            .recv_block      = block + (first + n - step - 1) % n,
            .num_recv_blocks = 1,
            .reduce          = reduce,
        };

        status = ls_plan_add_exchange(plan, &exchange);
    }
    return status;
}

bool ls_pattern_tree_parent(uint32_t size, uint32_t top, uint32_t place, uint32_t *parent_p)
{
    const uint32_t v = (place + size - top) % size;

    if (v == 0) {
        return false;
    }
    *parent_p = ((v & (v - 1)) + top) % size;
    return true;
}

ls_status_t ls_pattern_pass_on(ls_plan_t *plan, const uint32_t *parent, const ls_group_t *children)
{
    ls_status_t status = LS_OK;

    if (parent != NULL) {
        status = ls_plan_add_store(plan, 0, 1, *parent);
    }
    if (status == LS_OK && children->size > 0) {
        status = ls_plan_add_send(plan, 0, 1, children->ranks, children->size);
    }
    /* The send first: the children wait for it, nobody waits for the copy. */
    if (status == LS_OK && parent == NULL) {
        status = ls_plan_add_copy(plan, 0, 1);
    }
    return status;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranks that stop while others still work.
 *
 * A rank that leaves has said all it had to say before (messages keep their order), and tells what it still
 * holds.  What it neither gave nor holds it will never give: names that need it fail.  Adopted buckets run without
 * a word, so they are given up, and what others have begun without it shows then.  Most often all ranks leave at
 * about the same time, so all that is done only a moment later.
 */
#include <stdio.h>

#include "base/clock.h"
#include "base/mem.h"
#include "schedule/coordinator_int.h"

#define MOMENT_NS (200 * LS_NS_PER_MS)

ls_status_t ls_leave_create(ls_coordinator_t *c)
{
    void       *left, *leftovers;
    ls_status_t status = ls_mem_alloc(c->params->num_ranks * sizeof(*c->left), "ranks that left", &left);

    if (status != LS_OK) {
        return status;
    }
    status = ls_mem_alloc(c->params->num_ranks * sizeof(*c->leftovers), "ranks that left", &leftovers);
    if (status != LS_OK) {
        ls_mem_free(left);
        return status;
    }
    c->left      = left;
    c->leftovers = leftovers;
    return LS_OK;
}

void ls_leave_destroy(ls_coordinator_t *c)
{
    for (uint32_t rank = 0; rank < c->params->num_ranks; rank++) {
        ls_table_destroy(&c->leftovers[rank]);
    }
    ls_mem_free(c->leftovers);
    ls_mem_free(c->left);
}

ls_status_t ls_leave_hear(ls_coordinator_t *c, uint32_t from, const ls_message_t *message)
{
    ls_status_t status = LS_OK;

    ls_table_destroy(&c->leftovers[from]);
    for (uint32_t i = 0; i < message->num_names && status == LS_OK; i++) {
        status = ls_table_put(&c->leftovers[from], message->names[i].name, c);
    }
    if (!c->left[from]) {
        c->left[from] = true;
        c->leave_ns   = (c->num_left++ == 0) ? c->now_ns : c->leave_ns;
    }
    return status;
}

bool ls_leave_lacks(const ls_coordinator_t *c, uint32_t rank, const char *name)
{
    return c->left[rank] && ls_table_get(&c->leftovers[rank], name) == NULL;
}

void ls_leave_print(const ls_coordinator_t *c, uint32_t rank, char *text, size_t room)
{
    char who[256];

    ls_coordinator_describe(c, rank, who, sizeof(who));
    snprintf(text, room, "%s has stopped and gives no more tensors", who);
}

ls_status_t ls_leave_tick(ls_coordinator_t *c, uint64_t *next_p)
{
    ls_status_t status = LS_OK;

    if (c->num_left == 0 || c->num_left == c->params->num_ranks) {
        return LS_OK;
    }
    if (c->now_ns < c->leave_ns + MOMENT_NS) {
        *next_p = (c->leave_ns + MOMENT_NS < *next_p) ? c->leave_ns + MOMENT_NS : *next_p;
        return LS_OK;
    }
    if (!c->has_retired_for_leave) {
        c->has_retired_for_leave = true;
        status                   = ls_retire_all(c);
    }
    return (status != LS_OK) ? status : ls_tally_fail_left(c);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* When to warn about what waits for other ranks, and when to end it.  A time of 0 means never. */
#include "schedule/coordinator_int.h"

static uint64_t later(uint64_t time_ns, uint64_t by_ns)
{
    return (by_ns == 0 || time_ns > UINT64_MAX - by_ns) ? UINT64_MAX : time_ns + by_ns;
}

void ls_stall_begin(const ls_coordinator_t *c, ls_stall_t *stall_p)
{
    stall_p->since_ns     = c->now_ns;
    stall_p->interval_ns  = c->params->stall_warn_ns;
    stall_p->next_warn_ns = later(c->now_ns, stall_p->interval_ns);
}

/* Each silence is twice as long as the one before. */
bool ls_stall_must_warn(const ls_coordinator_t *c, ls_stall_t *stall)
{
    if (c->now_ns < stall->next_warn_ns) {
        return false;
    }
    stall->interval_ns  = later(stall->interval_ns, stall->interval_ns);
    stall->next_warn_ns = later(c->now_ns, stall->interval_ns);
    return true;
}

bool ls_stall_is_over(const ls_coordinator_t *c, const ls_stall_t *stall)
{
    return c->now_ns >= later(stall->since_ns, c->params->stall_abort_ns);
}

uint64_t ls_stall_next(const ls_coordinator_t *c, const ls_stall_t *stall)
{
    const uint64_t end_ns = later(stall->since_ns, c->params->stall_abort_ns);

    return (end_ns < stall->next_warn_ns) ? end_ns : stall->next_warn_ns;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "schedule/ranks.h"

#include <stdio.h>

typedef struct ls_rank_set {
    const bool *in, *except;
    bool        wanted;
    uint32_t    num_ranks;
} ls_rank_set_t;

static bool has(const ls_rank_set_t *set, uint32_t rank)
{
    return rank < set->num_ranks && set->in[rank] == set->wanted && (set->except == NULL || !set->except[rank]);
}

/* One past the run of ranks that begins here; two neighbours are no run: they are listed one by one. */
static uint32_t run_end(const ls_rank_set_t *set, uint32_t rank)
{
    uint32_t end = rank + 1;

    while (has(set, end)) {
        end++;
    }
    return (end - rank > 2) ? end : rank + 1;
}

uint32_t ls_ranks_print(const bool *in, bool wanted, const bool *except, uint32_t num_ranks, char *text, size_t room)
{
    const ls_rank_set_t set   = {.in = in, .except = except, .wanted = wanted, .num_ranks = num_ranks};
    const char         *comma = "";
    uint32_t            found = 0;
    size_t              used;

    for (uint32_t rank = 0; rank < num_ranks; rank++) {
        found += has(&set, rank) ? 1 : 0;
    }
    used = (size_t)snprintf(text, room, "%s", found == 0 ? "no rank" : (found == 1 ? "rank " : "ranks "));
    for (uint32_t rank = 0; rank < num_ranks && used < room; rank++) {
        uint32_t end;

        if (!has(&set, rank)) {
            continue;
        }
        end = run_end(&set, rank);
        used += (size_t)snprintf(text + used, room - used, (end - rank > 1) ? "%s%u-%u" : "%s%u", comma, rank,
                                 end - 1);
        comma = ", ";
        rank  = end - 1;
    }
    return found;
}

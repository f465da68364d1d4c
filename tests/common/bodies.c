/* SPDX-License-Identifier: Apache-2.0 */
#include "bodies.h"

#include <string.h>

const body_t body_list[] = {
    {.name = "allreduce", .run = body_allreduce, .help = "types, operations, counts, scales, weights"},
    {.name = "large", .run = body_large, .help = "all-reduce of 5,000,011 floats"},
    {.name = "group", .run = body_group, .help = "sets that complete together"},
    {.name = "broadcast", .run = body_broadcast, .help = "from every root"},
    {.name = "gather", .run = body_gather, .help = "allgather, reduce_scatter, alltoall"},
    {.name = "barrier", .run = body_barrier, .help = "nobody leaves before all have entered"},
    {.name = "others", .run = body_others, .help = "group, broadcast, gather and barrier"},
    {.name = "random", .run = body_random, .help = "random sets in random order from several threads"},
    {.name = "steps", .run = body_steps, .help = "many equal steps; nothing may grow"},
    {.name = "many", .run = body_many, .help = "more names than there are ids"},
    {.name = "join", .run = body_join, .help = "ranks with different numbers of steps"},
    {.name = "errors", .run = body_errors, .help = "ranks that disagree"},
    {.name = "invalid", .run = body_invalid, .help = "arguments that are refused"},
    {.name = "stall", .run = body_stall, .help = "a tensor that one rank never gives"},
    {.name = "late", .run = body_late, .help = "a rank that disagrees after many equal steps"},
    {.name = NULL},
};

const body_t *body_find(const char *name)
{
    for (const body_t *body = body_list; body->name != NULL; body++) {
        if (strcmp(body->name, name) == 0) {
            return body;
        }
    }
    return NULL;
}

void body_others(job_t *job, void *arg)
{
    body_group(job, arg);
    body_broadcast(job, arg);
    body_gather(job, arg);
    body_barrier(job, arg);
}

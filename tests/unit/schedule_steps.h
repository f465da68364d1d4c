/* SPDX-License-Identifier: Apache-2.0 */
/* Training steps in a world: every rank gives the same names, each in an order of its own. */
#ifndef LS_TESTS_SCHEDULE_STEPS_H
#define LS_TESTS_SCHEDULE_STEPS_H

#include "base/log.h"
#include "schedule_world.h"

static const char *const abcd[] = {"a", "b", "c", "d"};

/* Returns the result of the first item. */
static inline size_t give_all(world_t *world, const char *const *names, uint32_t num_names, uint64_t count, long tag)
{
    const size_t         first     = world->num_results;
    const ls_signature_t signature = world_vector(count);

    for (uint32_t r = 0; r < world->num_ranks; r++) {
        const uint32_t shift = world_random(world, num_names);

        for (uint32_t i = 0; i < num_names; i++) {
            world_submit(world, r, names[(i + shift) % num_names], &signature, tag);
        }
    }
    return first;
}

static inline void step(world_t *world, const char *const *names, uint32_t num_names, uint64_t count, long tag)
{
    const size_t first = give_all(world, names, num_names, count, tag);

    world_finish(world);
    for (size_t i = first; i < world->num_results; i++) {
        CHECK_EQ_INT(world->results[i].status, LS_OK);
    }
}

static inline bool all_replayed(const world_t *world, size_t first)
{
    for (size_t i = first; i < world->num_results; i++) {
        if (!world->results[i].is_replay) {
            return false;
        }
    }
    return true;
}

/* Steps until nothing is said any more; returns how many it took. */
static inline long steps_until_silent(world_t *world, const char *const *names, uint32_t num_names, uint64_t count, long tag)
{
    long   steps = 0;
    size_t sent;

    do {
        sent = world->num_sent;
        step(world, names, num_names, count, tag + steps);
    } while (world->num_sent != sent && ++steps < 20);
    return steps;
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A world for tests of the schedule: n schedules in one process, a network that keeps the order between
 * two ranks and nothing else, a clock that the test moves.
 *
 * Always checked: a run has the same slots on every rank that runs it, each rank runs it once, and the items
 * in a slot carry the same tag; every item ends once.  Items are freed when they end, so that a
 * schedule that touches one later is found out by the address sanitizer.
 */
#ifndef LS_TESTS_SCHEDULE_WORLD_H
#define LS_TESTS_SCHEDULE_WORLD_H

#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/table.h"
#include "check.h"
#include "schedule/schedule.h"

#define WORLD_MAX_RANKS 8
#define WORLD_TEXT_ROOM 512

typedef struct world world_t;

typedef struct world_packet {
    struct world_packet *next;
    size_t               size;
    unsigned char        data[];
} world_packet_t;

typedef struct world_result {
    int         num_ends;
    ls_status_t status; /* LS_OK: it ran */
    uint32_t    id, iteration, num_slots;
    bool        is_replay;
    char        text[WORLD_TEXT_ROOM];
} world_result_t;

typedef struct world_item {
    ls_schedule_item_t item; /* first */
    size_t             result;
    long               tag;
    char               name[64];
} world_item_t;

/* One (id, iteration), as the first rank saw it. */
typedef struct world_run {
    uint32_t num_slots;
    unsigned num_ran;
    bool     ran[WORLD_MAX_RANKS];
    bool     is_replay;
    char   (*names)[64];
    long    *tags; /* -1: no rank has given an item yet */
} world_run_t;

typedef struct world_rank {
    world_t        *world;
    uint32_t        rank;
    ls_schedule_h   schedule;
    uint64_t        next_tick;
    bool            has_joined;
    unsigned        num_joined, num_broken;
    size_t          num_open; /* items not ended */
    world_packet_t *first[WORLD_MAX_RANKS], *last[WORLD_MAX_RANKS]; /* on the way to each rank */
} world_rank_t;

struct world {
    uint32_t        num_ranks;
    uint64_t        now;
    uint64_t        seed;
    world_rank_t    ranks[WORLD_MAX_RANKS];
    size_t          num_sent, num_in_flight, num_runs, num_null_items;
    ls_table_t      runs;
    world_result_t *results;
    size_t          num_results, results_room;
    size_t          mem_before;
};

static inline uint32_t world_random(world_t *world, uint32_t below)
{
    world->seed = world->seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return (uint32_t)((world->seed >> 33) % below);
}

static void world_send(void *arg, uint32_t to, const void *data, size_t size)
{
    world_rank_t   *from   = arg;
    world_packet_t *packet = malloc(sizeof(*packet) + size);

    packet->next = NULL;
    packet->size = size;
    memcpy(packet->data, data, size);
    *(from->first[to] == NULL ? &from->first[to] : &from->last[to]->next) = packet;
    from->last[to]                                                         = packet;
    from->world->num_sent++;
    from->world->num_in_flight++;
}

static void world_end(world_rank_t *rank, ls_schedule_item_t *item, world_result_t result)
{
    world_item_t   *own = (world_item_t *)item;
    world_result_t *to  = &rank->world->results[own->result];

    result.num_ends = to->num_ends + 1;
    *to             = result;
    CHECK_EQ_INT(to->num_ends, 1);
    rank->num_open--;
    free(own);
}

static world_run_t *world_first_run(const ls_schedule_run_t *run)
{
    world_run_t *seen = calloc(1, sizeof(*seen));

    seen->num_slots = run->num_slots;
    seen->is_replay = run->is_replay;
    seen->names     = calloc(run->num_slots, sizeof(*seen->names));
    seen->tags      = calloc(run->num_slots, sizeof(*seen->tags));
    for (uint32_t i = 0; i < run->num_slots; i++) {
        snprintf(seen->names[i], sizeof(seen->names[i]), "%s", run->slots[i].name);
        seen->tags[i] = -1;
    }
    return seen;
}

static void world_check_slot(world_rank_t *rank, world_run_t *seen, uint32_t slot, const ls_schedule_run_t *run)
{
    const ls_schedule_slot_t *own = &run->slots[slot];

    CHECK(strcmp(seen->names[slot], own->name) == 0);
    if (own->item == NULL) {
        CHECK(rank->has_joined);
        rank->world->num_null_items++;
        return;
    }
    CHECK(strcmp(own->item->name, own->name) == 0);
    CHECK(ls_signature_equal(&own->signature, &own->item->signature));
    CHECK(own->signature.count == own->item->signature.count);
    if (seen->tags[slot] < 0) {
        seen->tags[slot] = ((world_item_t *)own->item)->tag;
    }
    CHECK_EQ_INT(((world_item_t *)own->item)->tag, seen->tags[slot]);
}

static void world_do_run(void *arg, const ls_schedule_run_t *run)
{
    world_rank_t        *rank = arg;
    char                 key[32];
    world_run_t         *seen;
    const world_result_t result = {
        .id = run->id, .iteration = run->iteration, .is_replay = run->is_replay, .num_slots = run->num_slots};

    snprintf(key, sizeof(key), "%u.%u", run->id, run->iteration);
    seen = ls_table_get(&rank->world->runs, key);
    if (seen == NULL) {
        seen = world_first_run(run);
        while (ls_table_put(&rank->world->runs, key, seen) != LS_OK) {
            /* a test made this allocation fail, and the next will not */
        }
        rank->world->num_runs++;
    }
    CHECK_EQ_INT(run->num_slots, seen->num_slots);
    CHECK_EQ_INT(run->is_replay, seen->is_replay);
    CHECK(!seen->ran[rank->rank]);
    seen->ran[rank->rank] = true;
    seen->num_ran++;
    for (uint32_t i = 0; i < run->num_slots && run->num_slots == seen->num_slots; i++) {
        world_check_slot(rank, seen, i, run);
    }
    ls_schedule_finished(rank->schedule, run->epoch); /* at once */
    for (uint32_t i = 0; i < run->num_slots; i++) {
        if (run->slots[i].item != NULL) {
            world_end(rank, run->slots[i].item, result);
        }
    }
}

static void world_fail(void *arg, ls_schedule_item_t *item, ls_status_t status, const char *message)
{
    world_result_t result = {.status = status};

    CHECK(status != LS_OK);
    snprintf(result.text, sizeof(result.text), "%s", message);
    world_end(arg, item, result);
}

static void world_joined(void *arg)
{
    world_rank_t *rank = arg;

    CHECK(rank->has_joined);
    rank->has_joined = false;
    rank->num_joined++;
}

static void world_broken(void *arg, ls_status_t status, const char *message)
{
    world_rank_t *rank = arg;

    CHECK(status != LS_OK && message[0] != '\0');
    rank->num_broken++;
}

static const ls_schedule_ops_t world_ops = {
    .send = world_send, .run = world_do_run, .fail = world_fail, .joined = world_joined, .broken = world_broken};

static void world_open_with(world_t *world, uint32_t num_ranks, uint64_t seed, ls_schedule_params_t params)
{
    *world = (world_t){.num_ranks  = num_ranks,
                       .seed       = seed * 2654435761ULL + 1,
                       .now        = LS_NS_PER_S,
                       .mem_before = ls_mem_live()};
    for (uint32_t r = 0; r < num_ranks; r++) {
        world_rank_t *rank = &world->ranks[r];

        rank->world      = world;
        rank->rank       = r;
        rank->next_tick  = UINT64_MAX;
        params.rank      = r;
        params.num_ranks = num_ranks;
        params.ops       = &world_ops;
        params.arg       = rank;
        CHECK_EQ_INT(ls_schedule_create(&params, &rank->schedule), LS_OK);
    }
}

static inline void world_open(world_t *world, uint32_t num_ranks, uint64_t seed)
{
    world_open_with(world, num_ranks, seed,
                    (ls_schedule_params_t){.fusion_bytes   = 64 * LS_KIB,
                                           .patience_ns    = 200 * LS_NS_PER_MS,
                                           .stall_warn_ns  = 3600 * LS_NS_PER_S,
                                           .stall_abort_ns = 7200 * LS_NS_PER_S});
}

static inline size_t world_submit(world_t *world, uint32_t rank, const char *name, const ls_signature_t *signature, long tag)
{
    world_item_t *item = calloc(1, sizeof(*item));

    if (world->num_results == world->results_room) {
        world->results_room = 2 * world->results_room + 64;
        world->results      = realloc(world->results, world->results_room * sizeof(*world->results));
    }
    world->results[world->num_results] = (world_result_t){0};
    item->result                       = world->num_results++;
    item->tag                          = tag;
    snprintf(item->name, sizeof(item->name), "%s", name);
    item->item = (ls_schedule_item_t){.name = item->name, .signature = *signature, .submitted_ns = world->now};
    world->ranks[rank].num_open++;
    ls_schedule_submit(world->ranks[rank].schedule, &item->item, world->now);
    return world->num_results - 1;
}

static inline void world_join(world_t *world, uint32_t rank)
{
    world->ranks[rank].has_joined = true;
    ls_schedule_join(world->ranks[rank].schedule, world->now);
}

static void world_tick(world_t *world, uint32_t rank)
{
    world->ranks[rank].next_tick = ls_schedule_tick(world->ranks[rank].schedule, world->now);
}

/* Bring one message, from a random pair that has one, to its rank. */
static ls_status_t world_deliver_any(world_t *world)
{
    const uint32_t  n    = world->num_ranks;
    uint32_t        pair = world_random(world, n * n);
    world_rank_t   *from = NULL;
    uint32_t        to   = 0;
    world_packet_t *packet;
    ls_status_t     status;

    for (; from == NULL || from->first[to] == NULL; pair++) {
        from = &world->ranks[(pair % (n * n)) / n];
        to   = pair % n;
    }
    packet          = from->first[to];
    from->first[to] = packet->next;
    world->num_in_flight--;
    status = ls_schedule_receive(world->ranks[to].schedule, from->rank, packet->data, packet->size, world->now);
    free(packet);
    return status;
}

static void world_deliver(world_t *world)
{
    CHECK_EQ_INT(world_deliver_any(world), LS_OK);
}

/* Until no message is on the way and none comes up; the clock stands. */
static void world_settle(world_t *world)
{
    do {
        while (world->num_in_flight > 0) {
            world_deliver(world);
            if (world_random(world, 2) == 0) {
                world_tick(world, world_random(world, world->num_ranks));
            }
        }
        for (uint32_t r = 0; r < world->num_ranks; r++) {
            world_tick(world, r);
        }
    } while (world->num_in_flight > 0);
}

static bool world_is_idle(const world_t *world)
{
    bool is_idle = world->num_in_flight == 0;

    for (uint32_t r = 0; r < world->num_ranks; r++) {
        is_idle = is_idle && ls_schedule_is_idle(world->ranks[r].schedule);
    }
    return is_idle;
}

/* Move the clock to when the next rank wants it.  False: no rank wants it. */
static inline bool world_advance(world_t *world)
{
    uint64_t next = UINT64_MAX;

    for (uint32_t r = 0; r < world->num_ranks; r++) {
        next = (world->ranks[r].next_tick < next) ? world->ranks[r].next_tick : next;
    }
    if (next == UINT64_MAX) {
        return false;
    }
    world->now = (next > world->now) ? next : world->now + 1;
    return true;
}

/* Until every item has ended, moving the clock as far as it takes (but not for ever). */
static inline void world_finish(world_t *world)
{
    world_settle(world);
    for (int i = 0; i < 10000 && !world_is_idle(world) && world_advance(world); i++) {
        world_settle(world);
    }
    CHECK(world_is_idle(world));
    for (uint32_t r = 0; r < world->num_ranks; r++) {
        CHECK_EQ_INT(world->ranks[r].num_open, 0);
    }
}

static void world_free_runs(world_t *world)
{
    size_t            cursor = 0;
    ls_table_entry_t *entry;

    while ((entry = ls_table_next(&world->runs, &cursor)) != NULL) {
        world_run_t *run = entry->value;

        CHECK_EQ_INT(run->num_ran, world->num_ranks);
        free(run->names);
        free(run->tags);
        free(run);
    }
    ls_table_destroy(&world->runs);
}

/* For worlds that were broken on purpose: not every run was begun by all. */
static inline void world_forgive_runs(world_t *world)
{
    size_t            cursor = 0;
    ls_table_entry_t *entry;

    while ((entry = ls_table_next(&world->runs, &cursor)) != NULL) {
        ((world_run_t *)entry->value)->num_ran = world->num_ranks;
    }
}

/* Everything must have ended, on every rank, and all memory must be back. */
static void world_close(world_t *world)
{
    for (uint32_t r = 0; r < world->num_ranks; r++) {
        CHECK_EQ_INT(world->ranks[r].num_open, 0);
        ls_schedule_destroy(world->ranks[r].schedule);
    }
    CHECK_EQ_INT(world->num_in_flight, 0);
    world_free_runs(world);
    free(world->results);
    CHECK_EQ_INT(ls_mem_live(), world->mem_before);
}

static inline ls_signature_t world_vector(uint64_t count)
{
    return (ls_signature_t){.coll      = LS_COLL_ALLREDUCE,
                            .dtype     = LS_FLOAT32,
                            .op        = LS_SUM,
                            .prescale  = 1.0,
                            .postscale = 1.0,
                            .count     = count,
                            .num_dims  = 1,
                            .shape     = {(int64_t)count}};
}

#endif

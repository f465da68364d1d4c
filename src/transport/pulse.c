/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "transport/pulse_int.h"

#define NUM_REPEATS     3 /* times a verdict is sent: datagrams get lost */
#define LONGEST_BEAT_NS LS_NS_PER_S
#define LONGEST_TICK_NS (250 * LS_NS_PER_MS)

/* ---- create ----------------------------------------------------------------------------------- */

static uint64_t least(uint64_t a, uint64_t b)
{
    return (a < b) ? a : b;
}

static void find_leaders(ls_pulse_h pulse)
{
    for (uint32_t rank = 0; rank < pulse->num_ranks; rank++) {
        if (pulse->members[rank].leader == rank) {
            pulse->own_leader = (rank == pulse->members[pulse->rank].leader) ? pulse->num_leaders : pulse->own_leader;
            pulse->leaders[pulse->num_leaders++] = rank;
        }
        if (pulse->members[rank].leader == pulse->members[pulse->rank].leader) {
            pulse->neighbours[pulse->members[rank].slot].rank = rank;
        }
    }
    while (pulse->fd >= 0 && pulse->num_remotes < LS_PULSE_NUM_WATCHED && pulse->num_remotes + 1 < pulse->num_leaders) {
        const uint32_t before = pulse->num_remotes + 1;

        pulse->remotes[pulse->num_remotes++].rank =
            pulse->leaders[(pulse->own_leader + pulse->num_leaders - before) % pulse->num_leaders];
    }
}

static uint32_t count_slots(const ls_pulse_params_t *params)
{
    uint32_t num_slots = 0;

    for (uint32_t rank = 0; rank < params->num_ranks; rank++) {
        num_slots += (params->members[rank].leader == params->members[params->rank].leader) ? 1 : 0;
    }
    return num_slots;
}

ls_status_t ls_pulse_create(const ls_pulse_params_t *params, ls_pulse_h *pulse_p)
{
    const uint32_t num_slots = count_slots(params), n = params->num_ranks;
    const size_t   size = sizeof(struct ls_pulse) + n * (sizeof(ls_pulse_member_t) + sizeof(uint64_t)) +
                        num_slots * sizeof(ls_pulse_neighbour_t) + n * sizeof(uint32_t);
    void       *mem;
    ls_status_t status = ls_mem_alloc(size, "pulse", &mem);
    ls_pulse_h  pulse;

    if (status != LS_OK) {
        return status;
    }
    pulse             = mem;
    pulse->rank       = params->rank;
    pulse->num_ranks  = n;
    pulse->num_slots  = num_slots;
    pulse->slot       = params->members[params->rank].slot;
    /* The rest is for the news to travel.  Ranks of the node know more, so they come first. */
    pulse->limit_ns        = params->limit_ns / 10 * 8;
    pulse->remote_limit_ns = params->limit_ns / 100 * 95;
    pulse->beat_ns    = least(params->limit_ns / 5, LONGEST_BEAT_NS);
    pulse->tick_ns    = least(params->limit_ns / 10, LONGEST_TICK_NS);
    pulse->job        = params->job;
    pulse->segment    = params->segment;
    pulse->board      = params->segment.base;
    pulse->fd         = params->fd;
    pulse->members    = (ls_pulse_member_t *)(pulse + 1);
    pulse->numbers    = (uint64_t *)(pulse->members + n);
    pulse->neighbours = (ls_pulse_neighbour_t *)(pulse->numbers + n);
    pulse->leaders    = (uint32_t *)(pulse->neighbours + num_slots);
    memcpy(pulse->key, params->key, sizeof(pulse->key));
    memcpy(pulse->members, params->members, n * sizeof(*pulse->members));
    pthread_mutex_init(&pulse->lock, NULL);
    find_leaders(pulse);
    *pulse_p = pulse;
    return LS_OK;
}

void ls_pulse_destroy(ls_pulse_h pulse)
{
    if (pulse != NULL) {
        if (pulse->fd >= 0) {
            close(pulse->fd);
        }
        ls_segment_destroy(&pulse->segment);
        pthread_mutex_destroy(&pulse->lock);
        ls_mem_free(pulse);
    }
}

/* ---- what is known of a rank ------------------------------------------------------------------- */

uint64_t ls_pulse_job(ls_pulse_h pulse)
{
    return pulse->job;
}

void ls_pulse_describe(ls_pulse_h pulse, uint32_t rank, char *text, size_t room)
{
    const ls_pulse_member_t *member = &pulse->members[rank];

    snprintf(text, room, "rank %" PRIu32 " (process %" PRId64 " on %.*s)", rank, member->pid, LS_PULSE_HOST_ROOM - 1,
             member->host);
}

ls_flight_ring_t *ls_pulse_flight(ls_pulse_h pulse, uint32_t rank)
{
    const ls_pulse_member_t *member = &pulse->members[rank];

    return (member->leader == pulse->members[pulse->rank].leader) ? &pulse->board->slots[member->slot].flight : NULL;
}

uint32_t ls_pulse_leader(ls_pulse_h pulse)
{
    return pulse->members[pulse->rank].leader;
}

bool ls_pulse_claim_summary(ls_pulse_h pulse)
{
    return atomic_fetch_add(&pulse->board->num_summaries, 1) == 0;
}

bool ls_pulse_has_accused(ls_pulse_h pulse)
{
    return pulse->has_accused;
}

bool ls_pulse_is_first_survivor(ls_pulse_h pulse, uint32_t lost)
{
    for (uint32_t slot = 0; slot < pulse->slot; slot++) {
        if (pulse->neighbours[slot].rank != lost &&
            atomic_load_explicit(&pulse->board->slots[slot].state, memory_order_acquire) == LS_PULSE_RUNNING) {
            return false;
        }
    }
    return true;
}

void ls_pulse_print_last(uint64_t step, const char *tensor, double seconds, char *text, size_t room)
{
    if (tensor[0] == '\0') {
        snprintf(text, room, "what it did last is not known");
    } else {
        snprintf(text, room, "last step %" PRIu64 ", last tensor '%s' %.1f s ago", step, tensor, seconds);
    }
}

void ls_pulse_print_slot(ls_pulse_h pulse, uint32_t slot, uint64_t now_ns, char *text, size_t room)
{
    const ls_flight_ring_t *ring  = &pulse->board->slots[slot].flight;
    ls_flight_event_t       event = {.time_ns = now_ns};

    if (!ls_flight_last_tensor(ring, &event)) {
        event.name[0] = '\0';
    }
    ls_pulse_print_last(atomic_load_explicit(&ring->step, memory_order_relaxed), event.name,
               (double)(int64_t)(now_ns - event.time_ns) / 1e9, text, room);
}

/* ---- sending ------------------------------------------------------------------------------------ */

static size_t encode(ls_pulse_h pulse, ls_pulse_message_t *message, uint8_t data[LS_PULSE_MESSAGE_BYTES])
{
    message->from   = pulse->rank;
    message->number = atomic_fetch_add(&pulse->number, 1) + 1;
    return ls_pulse_message_encode(message, pulse->key, data);
}

void ls_pulse_send_beat(ls_pulse_h pulse, uint64_t now_ns, ls_pulse_kind_t kind)
{
    const ls_flight_ring_t *ring    = &pulse->board->slots[pulse->slot].flight;
    ls_pulse_message_t      message = {.kind = kind, .step = atomic_load(&ring->step)};
    ls_flight_event_t       event;
    uint8_t                 data[LS_PULSE_MESSAGE_BYTES];
    size_t                  size;

    if (ls_flight_last_tensor(ring, &event)) {
        message.age_ns = now_ns - event.time_ns;
        snprintf(message.text, sizeof(message.text), "%s", event.name);
    }
    size = encode(pulse, &message, data);
    for (uint32_t i = 1; i <= pulse->num_remotes; i++) {
        const uint32_t leader = pulse->leaders[(pulse->own_leader + i) % pulse->num_leaders];

        ls_pulse_link_send(pulse->fd, &pulse->members[leader].address, data, size);
    }
}

/* To all leaders but the own; a rank that leads nobody opens a socket for it. */
static void send_verdict(ls_pulse_h pulse, uint32_t rank, const char *text)
{
    const uint32_t     leader  = pulse->leaders[pulse->own_leader];
    ls_pulse_message_t message = {.kind = LS_PULSE_VERDICT, .rank = rank};
    uint8_t            data[LS_PULSE_MESSAGE_BYTES];
    size_t             size;
    int                fd = pulse->fd;

    if (pulse->num_leaders == 1 || pulse->members[leader].address.family == 0) {
        return;
    }
    if (fd < 0) {
        fd = ls_pulse_link_open_sender(&pulse->members[leader].address);
    }
    if (fd < 0) {
        return;
    }
    snprintf(message.text, sizeof(message.text), "%s", text);
    size = encode(pulse, &message, data);
    for (uint32_t i = 0; i < pulse->num_leaders; i++) {
        if (i != pulse->own_leader) {
            ls_pulse_link_send(fd, &pulse->members[pulse->leaders[i]].address, data, size);
        }
    }
    if (fd != pulse->fd) {
        close(fd);
    }
}

/* ---- verdicts ----------------------------------------------------------------------------------- */

void ls_pulse_adopt(ls_pulse_h pulse, uint32_t rank, const char *text, unsigned num_repeats)
{
    pthread_mutex_lock(&pulse->lock);
    if (!pulse->has_verdict) {
        pulse->has_verdict  = true;
        pulse->verdict_rank = rank;
        pulse->num_repeats  = num_repeats;
        pulse->has_accused  = num_repeats > 0;
        snprintf(pulse->verdict, sizeof(pulse->verdict), "%s", text);
    }
    pthread_mutex_unlock(&pulse->lock);
}

void ls_pulse_accuse(ls_pulse_h pulse, uint32_t rank, const char *text)
{
    char     before[LS_PULSE_TEXT_ROOM];
    uint32_t other;

    if (ls_pulse_board_accuse(pulse->board, rank, text) || !ls_pulse_board_verdict(pulse->board, &other, before)) {
        ls_pulse_adopt(pulse, rank, text, NUM_REPEATS);
    } else {
        ls_pulse_adopt(pulse, other, before, 0);
    }
}

bool ls_pulse_verdict(ls_pulse_h pulse, uint32_t *rank_p, char *text)
{
    bool has_verdict;

    pthread_mutex_lock(&pulse->lock);
    has_verdict = pulse->has_verdict;
    if (has_verdict) {
        *rank_p = pulse->verdict_rank;
        memcpy(text, pulse->verdict, LS_PULSE_TEXT_ROOM);
    }
    pthread_mutex_unlock(&pulse->lock);
    return has_verdict;
}

void ls_pulse_repeat_verdict(ls_pulse_h pulse)
{
    char     text[LS_PULSE_TEXT_ROOM];
    uint32_t rank = 0;
    bool     must_send;

    pthread_mutex_lock(&pulse->lock);
    must_send = pulse->num_repeats > 0;
    if (must_send) {
        pulse->num_repeats--;
        rank = pulse->verdict_rank;
        memcpy(text, pulse->verdict, sizeof(text));
    }
    pthread_mutex_unlock(&pulse->lock);
    if (must_send) {
        send_verdict(pulse, rank, text);
    }
}

void ls_pulse_mark_gone(ls_pulse_h pulse, const char *reason)
{
    char who[LS_PULSE_WHO_ROOM], last[LS_PULSE_LAST_ROOM], text[LS_PULSE_TEXT_ROOM];

    /* Ranks of the board see it; where there are none, the others must be told. */
    if (ls_pulse_board_mark_gone(&pulse->board->slots[pulse->slot], reason) && pulse->num_slots == 1) {
        ls_pulse_describe(pulse, pulse->rank, who, sizeof(who));
        ls_pulse_print_slot(pulse, pulse->slot, ls_clock_ns(), last, sizeof(last));
        snprintf(text, sizeof(text), "%s is gone: %s; %s", who, reason, last);
        send_verdict(pulse, pulse->rank, text);
    }
}

void ls_pulse_leave(ls_pulse_h pulse)
{
    uint32_t running = LS_PULSE_RUNNING;

    atomic_compare_exchange_strong(&pulse->board->slots[pulse->slot].state, &running, LS_PULSE_LEFT);
    if (pulse->fd >= 0) {
        ls_pulse_send_beat(pulse, ls_clock_ns(), LS_PULSE_BYE);
        ls_pulse_send_beat(pulse, ls_clock_ns(), LS_PULSE_BYE); /* one may get lost */
    }
}

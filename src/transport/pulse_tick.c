/* SPDX-License-Identifier: Apache-2.0 */
/* The pulse's regular work: beat, listen, look who is silent. */
#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/peer_process.h"
#include "transport/pulse_int.h"

#define NEVER_HEARD_NS (15 * LS_NS_PER_S)

/* ---- looking ------------------------------------------------------------------------------------ */

/* This process was away: it has not listened, so it cannot say who was silent. */
static void excuse_all(ls_pulse_h pulse, uint64_t now_ns)
{
    for (uint32_t slot = 0; slot < pulse->num_slots; slot++) {
        pulse->neighbours[slot].heard_ns = (pulse->neighbours[slot].heard_ns == 0) ? 0 : now_ns;
    }
    for (uint32_t i = 0; i < pulse->num_remotes; i++) {
        pulse->remotes[i].heard_ns = (pulse->remotes[i].heard_ns == 0) ? 0 : now_ns;
    }
}

static void accuse_slot(ls_pulse_h pulse, uint32_t slot, const char *what, uint64_t now_ns)
{
    const uint32_t rank = pulse->neighbours[slot].rank;
    char           who[LS_PULSE_WHO_ROOM], last[LS_PULSE_LAST_ROOM], text[LS_PULSE_TEXT_ROOM];

    ls_pulse_describe(pulse, rank, who, sizeof(who));
    ls_pulse_print_slot(pulse, slot, now_ns, last, sizeof(last));
    snprintf(text, sizeof(text), "%s %.*s; %s", who, LS_PULSE_REASON_ROOM + 32, what, last);
    ls_pulse_accuse(pulse, rank, text);
}

/* Only the two behind this one in the circle of the board: files of /proc cost time. */
static bool is_process_to_watch(ls_pulse_h pulse, uint32_t slot)
{
    return slot == (pulse->slot + 1) % pulse->num_slots || slot == (pulse->slot + 2) % pulse->num_slots;
}

static void look_at_slot(ls_pulse_h pulse, uint32_t slot, uint64_t now_ns)
{
    ls_pulse_neighbour_t           *neighbour = &pulse->neighbours[slot];
    const ls_pulse_slot_t *shared    = &pulse->board->slots[slot];
    const uint32_t         state     = atomic_load_explicit(&shared->state, memory_order_acquire);
    const uint64_t         beats     = atomic_load_explicit(&shared->beats, memory_order_relaxed);
    const ls_pulse_member_t *member  = &pulse->members[neighbour->rank];
    const ls_peer_process_t process  = {.pid = member->pid, .started = member->started};
    char                    what[LS_PULSE_REASON_ROOM + 32];

    if (state == LS_PULSE_LEFT) {
        return;
    }
    if (state == LS_PULSE_GONE) {
        snprintf(what, sizeof(what), "is gone: %.*s", LS_PULSE_REASON_ROOM - 1, shared->reason);
        accuse_slot(pulse, slot, what, now_ns);
        return;
    }
    if (is_process_to_watch(pulse, slot) && ls_peer_process_has_ended(&process)) {
        /* It may have left between the two looks; what else it said, the next look finds. */
        if (atomic_load_explicit(&shared->state, memory_order_acquire) == state) {
            accuse_slot(pulse, slot, "is gone: its process has ended", now_ns);
        }
        return;
    }
    if (beats != neighbour->beats) {
        neighbour->beats    = beats;
        neighbour->heard_ns = now_ns;
    } else if (neighbour->heard_ns != 0 && now_ns - neighbour->heard_ns > pulse->limit_ns) {
        snprintf(what, sizeof(what), "does not respond: no heartbeat for %.1f s (frozen, stopped or swapped out)",
                 (double)(now_ns - neighbour->heard_ns) / 1e9);
        accuse_slot(pulse, slot, what, now_ns);
    }
}

static uint32_t ranks_of(ls_pulse_h pulse, uint32_t leader)
{
    uint32_t num = 0;

    for (uint32_t rank = 0; rank < pulse->num_ranks; rank++) {
        num += (pulse->members[rank].leader == leader) ? 1 : 0;
    }
    return num;
}

static void accuse_remote(ls_pulse_h pulse, const ls_pulse_remote_t *remote, uint64_t now_ns)
{
    const uint32_t others = ranks_of(pulse, remote->rank) - 1;
    const double   silent = (double)(now_ns - remote->heard_ns) / 1e9;
    char           who[LS_PULSE_WHO_ROOM], last[LS_PULSE_LAST_ROOM], more[64] = "", text[LS_PULSE_TEXT_ROOM];

    ls_pulse_describe(pulse, remote->rank, who, sizeof(who));
    ls_pulse_print_last(remote->step, remote->tensor, (double)remote->age_ns / 1e9 + silent, last, sizeof(last));
    if (others > 0) {
        snprintf(more, sizeof(more), ", which speaks for %" PRIu32 " more of its node,", others);
    }
    snprintf(text, sizeof(text),
             "%s%s does not respond: no heartbeat for %.1f s (frozen, or its host or network is lost); %s", who, more,
             silent, last);
    ls_pulse_accuse(pulse, remote->rank, text);
}

static void look_at_remote(ls_pulse_h pulse, ls_pulse_remote_t *remote, uint64_t now_ns)
{
    char who[LS_PULSE_WHO_ROOM];

    if (remote->has_left) {
        return;
    }
    if (remote->heard_ns != 0) {
        if (now_ns - remote->heard_ns > pulse->remote_limit_ns) {
            accuse_remote(pulse, remote, now_ns);
        }
        return;
    }
    remote->since_ns = (remote->since_ns == 0) ? now_ns : remote->since_ns;
    if (!remote->has_warned && now_ns - remote->since_ns > NEVER_HEARD_NS) {
        remote->has_warned = true;
        ls_pulse_describe(pulse, remote->rank, who, sizeof(who));
        ls_warn("no heartbeat comes from %s: if it freezes, only LOCKSTEP_STALL_ABORT_S ends the job; see whether UDP "
                "can pass, and LOCKSTEP_INTERFACE", who);
    }
}

/* ---- listening ---------------------------------------------------------------------------------- */

static void hear_beat(ls_pulse_h pulse, const ls_pulse_message_t *message, uint64_t now_ns)
{
    for (uint32_t i = 0; i < pulse->num_remotes; i++) {
        ls_pulse_remote_t *remote = &pulse->remotes[i];

        if (remote->rank == message->from) {
            remote->heard_ns = now_ns;
            remote->has_left = message->kind == LS_PULSE_BYE;
            remote->step     = message->step;
            remote->age_ns   = message->age_ns;
            snprintf(remote->tensor, sizeof(remote->tensor), "%.*s", (int)sizeof(remote->tensor) - 1, message->text);
        }
    }
}

static void hear_all(ls_pulse_h pulse, uint64_t now_ns)
{
    uint8_t            data[LS_PULSE_MESSAGE_BYTES + 1]; /* what does not fit is not ours */
    ls_pulse_message_t message;
    int64_t            size;

    while (pulse->fd >= 0 && (size = ls_pulse_link_receive(pulse->fd, data, sizeof(data))) >= 0) {
        if (!ls_pulse_message_decode(data, (size_t)size, pulse->key, pulse->num_ranks, &message) ||
            message.number <= pulse->numbers[message.from]) {
            continue;
        }
        pulse->numbers[message.from] = message.number;
        if (message.kind == LS_PULSE_VERDICT) {
            (void)ls_pulse_board_accuse(pulse->board, message.rank, message.text);
            ls_pulse_adopt(pulse, message.rank, message.text, 0);
        } else {
            hear_beat(pulse, &message, now_ns);
        }
    }
}

static void read_board(ls_pulse_h pulse)
{
    char     text[LS_PULSE_TEXT_ROOM];
    uint32_t rank;

    if (ls_pulse_board_verdict(pulse->board, &rank, text) && rank < pulse->num_ranks) {
        ls_pulse_adopt(pulse, rank, text, 0);
    }
}

int ls_pulse_fd(ls_pulse_h pulse)
{
    return pulse->fd;
}

uint64_t ls_pulse_tick(ls_pulse_h pulse, uint64_t now_ns)
{
    if (pulse->ticked_ns != 0 && now_ns - pulse->ticked_ns > pulse->limit_ns / 2) {
        excuse_all(pulse, now_ns);
    }
    pulse->ticked_ns = now_ns;
    atomic_fetch_add_explicit(&pulse->board->slots[pulse->slot].beats, 1, memory_order_relaxed);
    read_board(pulse);
    hear_all(pulse, now_ns);
    if (!pulse->has_verdict) {
        for (uint32_t slot = 0; slot < pulse->num_slots; slot++) {
            if (slot != pulse->slot) {
                look_at_slot(pulse, slot, now_ns);
            }
        }
        for (uint32_t i = 0; i < pulse->num_remotes; i++) {
            look_at_remote(pulse, &pulse->remotes[i], now_ns);
        }
    }
    if (pulse->fd >= 0 && now_ns >= pulse->next_beat_ns) {
        pulse->next_beat_ns = now_ns + pulse->beat_ns;
        ls_pulse_send_beat(pulse, now_ns, LS_PULSE_BEAT);
    }
    ls_pulse_repeat_verdict(pulse);
    return pulse->tick_ns;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks of the node that are gone: those that say so themselves, and those whose process has ended. */
#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "transport/mailbox_int.h"

#define LOOK_EVERY (100 * LS_NS_PER_MS)

static bool is_lost(const ls_mailbox_peer_t *peer, bool look_at_process, const char **reason_p)
{
    const uint32_t state = atomic_load_explicit(&peer->head->state, memory_order_acquire);

    if (state == LS_MAILBOX_GONE) {
        *reason_p = peer->head->reason;
        return true;
    }
    if (state == LS_MAILBOX_STOPPED || !look_at_process || !ls_peer_process_has_ended(&peer->process)) {
        return false;
    }
    /* It may have said something between the two looks. */
    switch (atomic_load_explicit(&peer->head->state, memory_order_acquire)) {
    case LS_MAILBOX_STOPPED:
        return false;
    case LS_MAILBOX_GONE:
        *reason_p = peer->head->reason;
        return true;
    default:
        *reason_p = "its process has ended";
        return true;
    }
}

bool ls_mailbox_find_lost(ls_mailbox_h mailbox, uint32_t *rank_p, char *text, size_t room)
{
    const uint64_t now  = ls_clock_ns();
    const bool     look = !mailbox->is_local && now - mailbox->looked_ns >= LOOK_EVERY;
    const char    *reason;

    if (look) {
        mailbox->looked_ns = now;
    }
    for (uint32_t i = 0; i < mailbox->local_size; i++) {
        const ls_mailbox_peer_t *peer = &mailbox->peers[i];

        if (peer->head != NULL && is_lost(peer, look, &reason)) {
            *rank_p = peer->rank;
            snprintf(text, room, "rank %u (process %" PRId64 " on %s) is gone: %.*s", peer->rank,
                     peer->process.pid, mailbox->host, LS_MAILBOX_REASON_ROOM - 1, reason);
            return true;
        }
    }
    return false;
}

/* Only what a signal handler may call. */
void ls_mailbox_mark_gone(ls_mailbox_h mailbox, const char *reason)
{
    ls_mailbox_head_t *head    = mailbox->head;
    uint32_t           running = LS_MAILBOX_RUNNING;
    size_t             size    = 0;

    /* The first reason counts. */
    if (!atomic_compare_exchange_strong(&head->state, &running, LS_MAILBOX_LEAVING)) {
        return;
    }
    while (size < LS_MAILBOX_REASON_ROOM - 1 && reason[size] != '\0') {
        head->reason[size] = reason[size];
        size++;
    }
    head->reason[size] = '\0';
    atomic_store_explicit(&head->state, LS_MAILBOX_GONE, memory_order_release);
    for (uint32_t i = 0; i < mailbox->local_size; i++) {
        if (mailbox->peers[i].head != NULL) {
            ls_bell_ring(&mailbox->peers[i].head->bell);
        }
    }
}

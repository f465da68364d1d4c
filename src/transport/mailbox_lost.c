/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks of the node that say that they are gone; those that cannot say it are the pulse's to find (pulse.h). */
#include <inttypes.h>
#include <stdio.h>

#include "transport/mailbox_int.h"

bool ls_mailbox_find_lost(ls_mailbox_h mailbox, uint32_t *rank_p, char *text, size_t room)
{
    for (uint32_t i = 0; i < mailbox->local_size; i++) {
        const ls_mailbox_peer_t *peer = &mailbox->peers[i];

        if (peer->head != NULL && atomic_load_explicit(&peer->head->state, memory_order_acquire) == LS_MAILBOX_GONE) {
            *rank_p = peer->rank;
            snprintf(text, room, "rank %u (process %" PRId64 " on %s) is gone: %.*s", peer->rank, peer->pid,
                     mailbox->host, LS_MAILBOX_REASON_ROOM - 1, peer->head->reason);
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

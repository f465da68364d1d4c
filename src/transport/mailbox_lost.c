/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks of the node that are gone: those that say so themselves, and those whose process has ended. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "transport/mailbox_int.h"

#define PATH_ROOM  64
#define STAT_ROOM  1024
#define LOOK_EVERY (100 * LS_NS_PER_MS)

uint64_t ls_mailbox_process_start(int64_t pid)
{
    char        path[PATH_ROOM], text[STAT_ROOM];
    uint64_t    started;
    char        state;
    const char *fields;
    ssize_t     size;
    int         fd;

    snprintf(path, sizeof(path), "/proc/%" PRId64 "/stat", pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return errno == ENOENT ? LS_MAILBOX_PROCESS_ENDED : LS_MAILBOX_PROCESS_UNKNOWN;
    }
    size = read(fd, text, sizeof(text) - 1);
    close(fd);
    if (size <= 0) {
        return LS_MAILBOX_PROCESS_UNKNOWN;
    }
    text[size] = '\0';
    /* "pid (name) state ... start time": the name may hold anything, so begin behind its last bracket.
     * The start time is 19 fields behind the state. */
    fields = strrchr(text, ')');
    if (fields == NULL ||
        sscanf(fields + 1, " %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %" SCNu64,
               &state, &started) != 2) {
        return LS_MAILBOX_PROCESS_UNKNOWN;
    }
    return (state == 'Z' || state == 'X') ? LS_MAILBOX_PROCESS_ENDED : started;
}

static bool has_ended(const ls_mailbox_peer_t *peer)
{
    const uint64_t started = ls_mailbox_process_start(peer->pid);

    if (started == LS_MAILBOX_PROCESS_ENDED || started == LS_MAILBOX_PROCESS_UNKNOWN) {
        /* Where /proc is hidden or no file can be opened, the signal's answer has to do. */
        return started == LS_MAILBOX_PROCESS_ENDED || (kill((pid_t)peer->pid, 0) != 0 && errno == ESRCH);
    }
    return peer->started != LS_MAILBOX_PROCESS_UNKNOWN && started != peer->started;
}

static bool is_lost(const ls_mailbox_peer_t *peer, bool look_at_process, const char **reason_p)
{
    const uint32_t state = atomic_load_explicit(&peer->head->state, memory_order_acquire);

    if (state == LS_MAILBOX_GONE) {
        *reason_p = peer->head->reason;
        return true;
    }
    if (state == LS_MAILBOX_STOPPED || !look_at_process || !has_ended(peer)) {
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
                     peer->pid, mailbox->host, LS_MAILBOX_REASON_ROOM - 1, reason);
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

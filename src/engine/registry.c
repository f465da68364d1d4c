/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The live contexts of this process.  When the process exits without stopping them, the other ranks are
 * told at once, and the exit code is not 0; SIGUSR1 asks each engine for a dump.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "engine/engine_int.h"

static pthread_mutex_t registry_lock = PTHREAD_MUTEX_INITIALIZER;
static ls_context_h    live_contexts; /* lock: registry_lock */
static bool            is_hooked;     /* lock: registry_lock */
static pid_t           hooked_pid;    /* lock: registry_lock; children of a rank are not ranks */
static _Atomic bool    dump_wanted_by_signal;

static struct sigaction handler_before; /* lock: registry_lock, while it is set */

/* Takes no lock: a signal handler may interrupt its holder.  The engines look at the flag themselves.  MPICH has
 * a handler of its own for this signal, and the program may: they are called as before. */
static void on_signal(int signal_number, siginfo_t *info, void *context)
{
    atomic_store_explicit(&dump_wanted_by_signal, true, memory_order_relaxed);
    if ((handler_before.sa_flags & SA_SIGINFO) != 0) {
        handler_before.sa_sigaction(signal_number, info, context);
    } else if (handler_before.sa_handler != SIG_DFL && handler_before.sa_handler != SIG_IGN) {
        handler_before.sa_handler(signal_number);
    }
}

/* The other ranks end with an error now, unless the launcher ends them first.  MPICH's does, and then says what this rank
 * says: 0 would make a broken job a good one. */
static void end_with_failure(uint32_t rank)
{
    ls_warn("rank %u exits without having stopped, and leaves the others: the exit code is %d, not 0", rank, LS_WATCH_EXIT_CODE);
    (void)fflush(NULL);
    _exit(LS_WATCH_EXIT_CODE);
}

static void on_exit_of_process(int code, void *arg)
{
    ls_context_h left = NULL; /* a job of several ranks */

    (void)arg;
    if (getpid() != hooked_pid) {
        return;
    }
    pthread_mutex_lock(&registry_lock);
    for (ls_context_h ctx = live_contexts; ctx != NULL; ctx = ctx->next_live) {
        ls_net_mark_gone(ctx->net, "it exited without stopping");
        ls_watch_note_exit(ctx->watch, "it exited without stopping");
        left = (ctx->place.topology.num_ranks > 1) ? ctx : left;
    }
    pthread_mutex_unlock(&registry_lock);
    if (left != NULL && code == 0) {
        end_with_failure(left->place.rank);
    }
}

static void hook_signal(void)
{
    const struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_RESTART | SA_SIGINFO};
    struct sigaction       present;

    /* A program that ignores the signal wants to hear nothing of it. */
    if (sigaction(SIGUSR1, NULL, &present) == 0 && present.sa_sigaction != on_signal && present.sa_handler != SIG_IGN) {
        handler_before = present;
        sigaction(SIGUSR1, &action, NULL);
    }
}

void ls_registry_add(ls_context_h ctx)
{
    pthread_mutex_lock(&registry_lock);
    ctx->next_live = live_contexts;
    live_contexts  = ctx;
    if (ctx->config.dump_signal) {
        hook_signal();
    }
    if (!is_hooked) {
        is_hooked  = true;
        hooked_pid = getpid();
        on_exit(on_exit_of_process, NULL);
    }
    pthread_mutex_unlock(&registry_lock);
}

void ls_registry_remove(ls_context_h ctx)
{
    ls_context_h *link = &live_contexts;

    pthread_mutex_lock(&registry_lock);
    while (*link != NULL && *link != ctx) {
        link = &(*link)->next_live;
    }
    if (*link != NULL) {
        *link = ctx->next_live;
    }
    pthread_mutex_unlock(&registry_lock);
}

void ls_registry_spread_signal(void)
{
    if (atomic_exchange_explicit(&dump_wanted_by_signal, false, memory_order_relaxed)) {
        pthread_mutex_lock(&registry_lock);
        for (ls_context_h ctx = live_contexts; ctx != NULL; ctx = ctx->next_live) {
            atomic_store_explicit(&ctx->wants_dump, true, memory_order_relaxed);
        }
        pthread_mutex_unlock(&registry_lock);
    }
}

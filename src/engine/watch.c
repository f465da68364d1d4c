/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/watch.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/mem.h"
#include "engine/engine_int.h"

#define NOTICED_FACTOR 10 /* more time for a process that has got the error: it may have something to save */

struct ls_watch {
    /* constant */
    ls_context_h ctx;
    ls_pulse_h   pulse;
    pthread_t    thread;
    int          wake_fd;
    uint64_t     grace_ns;

    /* any thread */
    _Atomic bool must_stop;
    _Atomic bool is_exiting; /* the process is on its way out by itself */
    _Atomic bool is_told;    /* the error has been written */
    _Atomic bool is_noticed;
    _Atomic bool is_lost;

    /* owner: the thread */
    uint64_t lost_ns; /* 0: not lost */
};

/* ---- the thread ---------------------------------------------------------------------------------- */

static void end_process(ls_watch_h watch, const char *message)
{
    /* The engine may be stuck, in MPI or in a callback: then nothing has been said yet. */
    if (!atomic_exchange(&watch->is_told, true)) {
        ls_error("%s", message);
        ls_flight_file_write_rings(watch->ctx, message);
    }
    _exit(LS_WATCH_EXIT_CODE);
}

static void end_if_given_up(ls_watch_h watch, uint32_t lost, const char *verdict)
{
    if (lost == watch->ctx->place.rank && !atomic_load(&watch->is_exiting)) {
        if (!atomic_exchange(&watch->is_told, true)) {
            ls_error("the other ranks have given up this one, which ends now: %s", verdict);
            ls_flight_file_write_rings(watch->ctx, verdict);
        }
        _exit(LS_WATCH_EXIT_CODE);
    }
}

static void end_if_due(ls_watch_h watch, uint64_t now_ns, const char *verdict)
{
    const uint64_t grace_ns = watch->grace_ns * (atomic_load(&watch->is_noticed) ? NOTICED_FACTOR : 1);

    watch->lost_ns = (watch->lost_ns == 0) ? now_ns : watch->lost_ns;
    if (now_ns - watch->lost_ns > grace_ns && !atomic_load(&watch->is_exiting)) {
        end_process(watch, verdict);
    }
}

static void wait_for_next(ls_watch_h watch, uint64_t wait_ns)
{
    struct pollfd fds[2] = {{.fd = watch->wake_fd, .events = POLLIN}, {.fd = ls_pulse_fd(watch->pulse), .events = POLLIN}};

    (void)poll(fds, 2, (int)(wait_ns / LS_NS_PER_MS) + 1); /* an fd of -1 is left out */
}

static void *watch_main(void *arg)
{
    ls_watch_h watch = arg;

    ls_log_set_rank(watch->ctx->place.rank);
    while (!atomic_load(&watch->must_stop)) {
        const uint64_t now_ns                   = ls_clock_ns();
        const uint64_t wait_ns                  = ls_pulse_tick(watch->pulse, now_ns);
        char           text[LS_PULSE_TEXT_ROOM] = "the job is lost";
        uint32_t       lost;

        if (ls_pulse_verdict(watch->pulse, &lost, text)) {
            end_if_given_up(watch, lost, text);
            end_if_due(watch, now_ns, text);
        } else if (atomic_load(&watch->is_lost)) {
            end_if_due(watch, now_ns, text);
        }
        wait_for_next(watch, wait_ns);
    }
    return NULL;
}

/* ---- start and stop ------------------------------------------------------------------------------ */

/* All signals go to the program's own threads. */
static int create_thread(ls_watch_h watch)
{
    sigset_t all, before;
    int      code;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    code = pthread_create(&watch->thread, NULL, watch_main, watch);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (code == 0) {
        pthread_setname_np(watch->thread, "ls-watch");
    }
    return code;
}

ls_status_t ls_watch_start(ls_context_h ctx, ls_pulse_h pulse, ls_watch_h *watch_p)
{
    ls_watch_h  watch;
    void       *mem;
    int         code;
    ls_status_t status = ls_mem_alloc(sizeof(*watch), "watch", &mem);

    if (status != LS_OK) {
        goto err_destroy_pulse;
    }
    watch           = mem;
    watch->ctx      = ctx;
    watch->pulse    = pulse;
    watch->grace_ns = (uint64_t)(ctx->config.grace_s * 1e9);
    watch->wake_fd  = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (watch->wake_fd < 0) {
        status = ls_error_set_errno("cannot start the watch");
        goto err_free;
    }
    *watch_p = watch; /* the thread may need it before this function returns */
    code     = create_thread(watch);
    if (code != 0) {
        *watch_p = NULL;
        status = ls_error_set(LS_ERR_SYSTEM, "cannot start the watch's thread: %s", strerror(code));
        goto err_close;
    }
    return LS_OK;

err_close:
    close(watch->wake_fd);
err_free:
    ls_mem_free(mem);
err_destroy_pulse:
    ls_pulse_destroy(pulse);
    return status;
}

void ls_watch_stop(ls_watch_h watch, bool is_orderly)
{
    const uint64_t one = 1;
    char           reason[LS_PULSE_REASON_ROOM];

    if (watch == NULL) {
        return;
    }
    if (is_orderly) {
        ls_pulse_leave(watch->pulse);
    } else {
        snprintf(reason, sizeof(reason), "it left because the job had failed: %.200s", watch->ctx->lost_message);
        ls_pulse_mark_gone(watch->pulse, reason);
    }
    atomic_store(&watch->must_stop, true);
    (void)!write(watch->wake_fd, &one, sizeof(one)); /* at worst it looks at the next tick */
    pthread_join(watch->thread, NULL);
    close(watch->wake_fd);
    ls_pulse_destroy(watch->pulse);
    ls_mem_free(watch);
}

/* ---- for the engine ------------------------------------------------------------------------------ */

bool ls_watch_find_lost(ls_watch_h watch, uint32_t *rank_p, char *text)
{
    return watch != NULL && ls_pulse_verdict(watch->pulse, rank_p, text);
}

bool ls_watch_must_tell(ls_watch_h watch, uint32_t lost)
{
    return watch == NULL || ls_pulse_has_accused(watch->pulse) || ls_pulse_is_first_survivor(watch->pulse, lost);
}

bool ls_watch_note_lost(ls_watch_h watch)
{
    if (watch == NULL) {
        return true;
    }
    atomic_store(&watch->is_lost, true);
    return !atomic_exchange(&watch->is_told, true);
}

void ls_watch_note_noticed(ls_watch_h watch)
{
    if (watch != NULL) {
        atomic_store(&watch->is_noticed, true);
    }
}

void ls_watch_note_exit(ls_watch_h watch, const char *reason)
{
    if (watch != NULL) {
        atomic_store(&watch->is_exiting, true);
        ls_pulse_mark_gone(watch->pulse, reason);
    }
}

ls_pulse_h ls_watch_pulse(ls_watch_h watch)
{
    return watch->pulse;
}

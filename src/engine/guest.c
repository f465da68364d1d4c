/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Guests: a thread that hands in a tensor takes the engine's turn itself, where that is shorter than waking the engine.
 *
 *   giver    push | trylock | take, agree | pack, send | look ... reduce, store | done() | unlock
 *   engine   asleep ------------------------------------------------------------------------------
 *
 * Waking a thread and changing to it costs 2 us on one core, and the caches; a tensor of a few KiB is reduced in less.  So
 * whoever has the turn lock is the engine: its own thread, but while that sleeps or yields any giver may take it.  A guest
 *   - takes what is in the inbox.  Most tensors of a step do not complete a bucket: then that was all, and nobody is woken;
 *   - reduces what it has completed, if that is small (LOCKSTEP_GUEST_BYTES) and nothing else is under way, and waits for
 *     the other ranks a few microseconds at most;
 *   - leaves the rest to the engine, and rings for it: what the ranks have to agree on, longer work and waits, MPI, which
 *     only that thread may call, what went wrong, the end.
 * While a guest looks for messages, the other ranks need not wake the engine (ls_bell_hush); when it goes, it listens as
 * the engine had, and looks once more, so no message falls between the two.
 */
#include "base/clock.h"
#include "engine/engine_int.h"

#define PATIENCE_NS (5 * LS_NS_PER_US)

static _Thread_local ls_context_h visited;

bool ls_guest_is_here(ls_context_h ctx)
{
    return visited == ctx;
}

/* Weights and lengths are exchanged first, in rounds that may take long. */
static bool is_small(ls_context_h ctx)
{
    uint64_t bytes = 0;

    for (const ls_work_t *work = ctx->works.active; work != NULL; work = work->next) {
        if (work->is_in_meta || work->num_bytes > ctx->config.guest_bytes) {
            return false;
        }
        bytes += work->num_bytes;
    }
    return bytes <= ctx->config.guest_bytes;
}

static void look(ls_context_h ctx, bool *moved_p)
{
    ctx->now_ns = ls_clock_ns();
    ls_engine_take_requests(ctx, moved_p);
    ls_engine_take_messages(ctx, moved_p);
    if (is_small(ctx)) {
        ls_engine_progress(ctx, moved_p);
    }
}

static void reduce_here(ls_context_h ctx)
{
    const ls_bell_state_t before   = ls_bell_hush(ctx->bell);
    uint64_t              moved_ns = ctx->now_ns;
    bool                  moved    = false;

    ls_engine_progress(ctx, &moved);
    while (ctx->works.active != NULL && is_small(ctx) && ctx->now_ns - moved_ns < PATIENCE_NS) {
        moved = false;
        look(ctx, &moved);
        moved_ns = moved ? ctx->now_ns : moved_ns;
    }
    ctx->waiting.quiet_since_ns = 0; /* the engine's patience begins anew */
    if (before != LS_BELL_AWAKE) {
        (void)ls_bell_listen(ctx->bell, ls_waiting_state(ctx));
        look(ctx, &moved);
    }
}

static uint64_t num_begun(ls_context_h ctx)
{
    return atomic_load_explicit(&ctx->counters.buckets_replayed, memory_order_relaxed) +
           atomic_load_explicit(&ctx->counters.buckets_negotiated, memory_order_relaxed);
}

/* A bucket that stays incomplete is given up in time only if the engine wakes before. */
static bool wants_other_things(ls_context_h ctx)
{
    return ls_schedule_has_reports(ctx->schedule) || ls_net_has_control(ctx->net) || ls_net_needs_polling(ctx->net) ||
           ctx->waiting.wakes_ns > ctx->now_ns + ctx->config.patience_ms * LS_NS_PER_MS ||
           ctx->stop_request != NULL || ctx->abort_status != LS_OK;
}

/* Is there something to do that the engine, if it sleeps, does not know of? */
static bool visit(ls_context_h ctx)
{
    const bool     was_idle = (ctx->works.active == NULL);
    const uint64_t begun    = num_begun(ctx);
    bool           moved    = false;

    ctx->now_ns = ls_clock_ns();
    ls_engine_take_requests(ctx, &moved);
    if (was_idle && ctx->works.active != NULL && is_small(ctx)) {
        reduce_here(ctx);
    }
    ls_waiting_count_open(ctx);
    return (ctx->works.active != NULL && num_begun(ctx) != begun) || wants_other_things(ctx);
}

bool ls_guest_take_turn(ls_context_h ctx)
{
    const ls_context_h outer        = visited; /* a callback may hand in to another context */
    bool               needs_engine = true;

    if (ctx->config.guest_bytes == 0 || pthread_mutex_trylock(&ctx->turn_lock) != 0) {
        return false;
    }
    if (ctx->takes_guests) {
        visited      = ctx;
        needs_engine = visit(ctx);
        visited      = outer;
    }
    pthread_mutex_unlock(&ctx->turn_lock);
    return !needs_engine;
}

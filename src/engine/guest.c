/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Guests: a thread that hands in a tensor takes the engine's turn itself, where that is shorter than waking the engine.
 *
 *   giver    push | trylock | take | pack, send | look ... reduce, store | done() | unlock
 *   engine   asleep ------------------------------------------------------------------------
 *
 * Waking a thread and changing to it costs 2 us on one core, and the caches; a tensor of a few KiB is reduced in less.  So
 * whoever has the turn lock is the engine: its own thread, but while that sleeps or yields any giver may take it.  A guest
 *   - takes what is in the inbox.  Most tensors of a step do not complete a bucket: then that was all, and nobody is woken;
 *   - reduces what it has completed, if that is small (LOCKSTEP_GUEST_BYTES) and nothing else is under way, and waits for
 *     the other ranks a few microseconds at most;
 *   - leaves the rest to the engine, and rings for it: what the ranks have to agree on, longer work and waits, MPI, which
 *     only that thread may call, what went wrong, the end.
 * While a guest looks for messages, the other ranks need not wake the engine (ls_bell_hush); when it goes, it listens in
 * the engine's place and looks once more, so no message falls between the two.
 *
 * The price: a guest whose core is taken away keeps the turn meanwhile.
 */
#include "base/clock.h"
#include "base/floats.h"
#include "base/log.h"
#include "engine/engine_int.h"

#define PATIENCE_NS     (5 * LS_NS_PER_US)
#define LONGEST_STAY_NS (100 * LS_NS_PER_US) /* of a caller who only wanted to hand in something */

/* Where this thread is a guest, the innermost first: a callback may hand in to another context. */
typedef struct visit {
    ls_context_h        ctx;
    const struct visit *outer;
} visit_t;

static _Thread_local const visit_t *visits;

bool ls_guest_is_here(ls_context_h ctx)
{
    const visit_t *visit = visits;

    while (visit != NULL && visit->ctx != ctx) {
        visit = visit->outer;
    }
    return visit != NULL;
}

/* Weights and lengths are exchanged first, in rounds that may take long. */
static bool is_small(ls_context_h ctx)
{
    uint64_t bytes = 0;

    for (const ls_work_t *work = ctx->works.active; work != NULL; work = work->next) {
        if (work->is_in_meta) {
            return false;
        }
        bytes += work->num_bytes;
    }
    return bytes <= ctx->config.guest_bytes;
}

/* What only the engine does. */
static bool has_work_for_engine(ls_context_h ctx)
{
    return ls_schedule_has_reports(ctx->schedule) || ls_net_has_control(ctx->net) || ls_net_needs_polling(ctx->net) ||
           ctx->join_request != NULL || ctx->stop_request != NULL || ctx->abort_status != LS_OK;
}

/* A bucket that stays incomplete is given up in time only if the engine wakes before. */
static bool sleeps_too_long(ls_context_h ctx)
{
    return ctx->waiting.wakes_ns > ctx->now_ns + ctx->config.patience_ms * LS_NS_PER_MS &&
           !ls_schedule_is_idle(ctx->schedule);
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
    const uint64_t        came_ns  = ctx->now_ns;
    uint64_t              moved_ns = ctx->now_ns;
    bool                  moved    = false;

    ls_engine_progress(ctx, &moved);
    while (ctx->works.active != NULL && is_small(ctx) && !has_work_for_engine(ctx) &&
           ctx->now_ns - moved_ns < PATIENCE_NS && ctx->now_ns - came_ns < LONGEST_STAY_NS) {
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

/* Take what was handed in, reduce what that completes.  True: something is left that an engine asleep does not know of. */
static bool take_turn(ls_context_h ctx)
{
    const bool     was_idle  = (ctx->works.active == NULL);
    const uint64_t num_begun = ctx->works.num_begun;
    bool           moved     = false;

    ctx->now_ns = ls_clock_ns();
    ls_engine_take_requests(ctx, &moved);
    if (was_idle && ctx->works.active != NULL && is_small(ctx)) {
        reduce_here(ctx);
    }
    ls_waiting_count_open(ctx);
    return (ctx->works.active != NULL && ctx->works.num_begun != num_begun) || has_work_for_engine(ctx) ||
           sleeps_too_long(ctx);
}

bool ls_guest_take_turn(ls_context_h ctx)
{
    const visit_t visit        = {.ctx = ctx, .outer = visits};
    bool          needs_engine = true;

    if (ctx->config.guest_bytes == 0 || pthread_mutex_trylock(&ctx->turn_lock) != 0) {
        return false;
    }
    if (ctx->takes_guests) {
        const ls_floats_t floats = ls_floats_enter();

        ls_log_set_rank(ctx->place.rank);
        visits       = &visit;
        needs_engine = take_turn(ctx);
        visits       = visit.outer;
        ls_floats_leave(floats);
    }
    pthread_mutex_unlock(&ctx->turn_lock);
    return !needs_engine;
}

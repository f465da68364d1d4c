/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the engine thread waits without taking the core from those who compute.
 *
 *   something open      look, look, ...      look and yield ...     sleep until the bell
 *                       |--- a few us ---|------ spin_us ------|---------------------->
 *   nothing open        yield a few times, so that the caller that was just called back may run and
 *                       hand in the next request without a system call; then sleep
 *
 * Yielding is only good as long as nobody else wants the core.  Where somebody does, a yield takes until
 * the other's time is up (milliseconds), and the scheduler counts it against us, while a thread that sleeps
 * is preferred when it is woken.  So a yield that came back late means: sleep at once, for a while.
 *
 * Ranks of the node ring the bell.  Messages of MPI ring nothing: while one is awaited, sleep is cut into
 * pauses that grow from 20 us to 500 us, and in a long wait on to 2 ms: a look costs up to 25 us there.  When none is,
 * the engine of a job with several nodes looks every 2 ms for control messages.
 */
#include <sched.h>

#include "base/clock.h"
#include "engine/engine_int.h"

#define PURE_SPIN_NS  (10 * LS_NS_PER_US)
#define IDLE_SPIN_NS  (10 * LS_NS_PER_US)
#define LATE_YIELD_NS (50 * LS_NS_PER_US)
#define CROWDED_NS    (20 * LS_NS_PER_MS)
#define POLL_FIRST_NS (20 * LS_NS_PER_US)
#define POLL_LAST_NS  (500 * LS_NS_PER_US)
#define POLL_SHARE    16 /* of the time waited: what a longer pause may add to it */
#define REMOTE_NS     (2 * LS_NS_PER_MS)
#define GENEROUS_FIRST_NS (50 * LS_NS_PER_US)
#define GENEROUS_LAST_NS  (10 * LS_NS_PER_MS)
#define HEALTH_NS     (100 * LS_NS_PER_MS)

void ls_waiting_reset(ls_context_h ctx)
{
    ctx->waiting.generous_ns = GENEROUS_FIRST_NS;
}

static bool is_open(ls_context_h ctx)
{
    return ctx->works.active != NULL || !ls_schedule_is_idle(ctx->schedule);
}

void ls_waiting_note_given(ls_context_h ctx)
{
    ctx->waiting.given_ns = ctx->now_ns;
    if (ctx->waiting.open_since_ns == 0) {
        ctx->waiting.open_since_ns = ctx->now_ns;
    }
}

/*
 * Computing hides what is reduced while more of the step is to be handed in; what comes after its last is waited for.  A step
 * runs each agreed bucket once, so the next one begins where one runs again; buckets that are not agreed on are steps by
 * themselves.  Where a bucket runs twice in a step this is an estimate.
 */
void ls_waiting_note_run(ls_context_h ctx, ls_work_t *work)
{
    ls_waiting_t *waiting = &ctx->waiting;
    const bool    is_again = work->is_replay && work->cycle == waiting->cycle;

    if (is_again || !work->is_replay) {
        LS_COUNT(ctx, ns_exposed, waiting->unhidden_ns);
    }
    waiting->cycle += is_again;
    waiting->unhidden_ns = 0;
    work->cycle          = waiting->cycle;
}

void ls_waiting_count_open(ls_context_h ctx)
{
    ls_waiting_t *waiting = &ctx->waiting;

    if (waiting->open_since_ns != 0 && !is_open(ctx)) {
        const uint64_t now = ls_clock_ns();

        LS_COUNT(ctx, ns_open, now - waiting->open_since_ns);
        waiting->unhidden_ns   = now - waiting->given_ns;
        waiting->open_since_ns = 0;
    }
}

/* The pause after this one. */
static uint64_t next_poll_ns(const ls_context_h ctx)
{
    const uint64_t share  = (ctx->now_ns - ctx->waiting.quiet_since_ns) / POLL_SHARE;
    const uint64_t most   = (share < POLL_LAST_NS) ? POLL_LAST_NS : (share < REMOTE_NS) ? share : REMOTE_NS;
    const uint64_t longer = 2 * ctx->waiting.poll_ns;

    return (longer < most) ? longer : most;
}

static uint64_t sleep_limit(ls_context_h ctx)
{
    uint64_t limit = HEALTH_NS;

    if (ctx->next_tick_ns > ctx->now_ns && ctx->next_tick_ns - ctx->now_ns < limit) {
        limit = ctx->next_tick_ns - ctx->now_ns;
    }
    if (ctx->works.shared.budget.is_short && ctx->waiting.generous_ns < limit) {
        limit = ctx->waiting.generous_ns;
    }
    if (ls_net_needs_polling(ctx->net)) {
        limit                = (ctx->waiting.poll_ns < limit) ? ctx->waiting.poll_ns : limit;
        ctx->waiting.poll_ns = next_poll_ns(ctx);
    } else if (ls_net_has_remote(ctx->net) && limit > REMOTE_NS) {
        limit = REMOTE_NS;
    }
    return limit;
}

static void disarm(ls_context_h ctx)
{
    if (ctx->waiting.armed != LS_BELL_AWAKE) {
        (void)ls_bell_hush(ctx->bell);
        ctx->waiting.armed = LS_BELL_AWAKE;
    }
}

static void yield(ls_context_h ctx)
{
    const uint64_t begin = ls_clock_ns();
    uint64_t       end;

    pthread_mutex_unlock(&ctx->turn_lock);
    sched_yield();
    end = ls_clock_ns(); /* a guest that keeps us waiting is not somebody else */
    pthread_mutex_lock(&ctx->turn_lock);
    if (end - begin > LATE_YIELD_NS) {
        ctx->waiting.crowded_until_ns = end + CROWDED_NS;
    }
}

/* True if this turn's wait was only a look. */
static bool spin(ls_context_h ctx)
{
    const bool     open       = is_open(ctx);
    const bool     is_crowded = ctx->now_ns < ctx->waiting.crowded_until_ns;
    const uint64_t quiet      = ctx->now_ns - ctx->waiting.quiet_since_ns;
    const uint64_t limit      = open ? ctx->config.spin_us * LS_NS_PER_US : IDLE_SPIN_NS;

    if (open && quiet < limit && quiet < PURE_SPIN_NS) {
        ls_clock_relax();
        return true;
    }
    if (quiet >= limit || is_crowded) {
        return false;
    }
    yield(ctx);
    return true;
}

/* Nothing has moved for a while: perhaps the other ranks have begun other buckets.  Begin one more pass,
 * with growing patience, because most often the others are just late; with little when it was right to. */
static bool be_generous(ls_context_h ctx)
{
    ls_waiting_t *waiting = &ctx->waiting;

    if (ctx->works.shared.budget.was_right) {
        ctx->works.shared.budget.was_right = false;
        waiting->generous_ns               = GENEROUS_FIRST_NS;
    }
    if (!ctx->works.shared.budget.is_short || ctx->works.shared.budget.is_generous ||
        ctx->now_ns - waiting->quiet_since_ns < waiting->generous_ns) {
        return false;
    }
    waiting->generous_ns = (2 * waiting->generous_ns < GENEROUS_LAST_NS) ? 2 * waiting->generous_ns : GENEROUS_LAST_NS;
    ctx->works.shared.budget.is_generous = true;
    return true;
}

/* Once per wait: inside a bucket, for other ranks. */
static void record(ls_context_h ctx)
{
    const ls_work_t *work = ctx->works.active;

    if (work != NULL && ctx->waiting.flown_ns != ctx->waiting.quiet_since_ns) {
        ctx->waiting.flown_ns = ctx->waiting.quiet_since_ns;
        LS_FLY(ctx, LS_FLIGHT_WAIT, work->id, 0, (work->requests[0] == NULL) ? NULL : work->requests[0]->name);
    }
}

ls_bell_state_t ls_waiting_state(ls_context_h ctx)
{
    return (ctx->works.active == NULL) ? LS_BELL_IDLE : LS_BELL_WAITING;
}

static void sleep_until_rung(ls_context_h ctx)
{
    ls_waiting_t  *waiting = &ctx->waiting;
    const uint64_t begin = ctx->now_ns, limit = sleep_limit(ctx);
    const bool     was_open = is_open(ctx);

    waiting->armed    = LS_BELL_AWAKE;
    waiting->wakes_ns = begin + limit;
    record(ctx);
    LS_COUNT(ctx, sleeps, 1);
    pthread_mutex_unlock(&ctx->turn_lock);
    ls_bell_sleep(ctx->bell, waiting->bell_key, limit);
    pthread_mutex_lock(&ctx->turn_lock);
    (void)ls_bell_hush(ctx->bell); /* a guest may have listened in our place since */
    waiting->wakes_ns = 0;
    if (was_open) {
        LS_COUNT(ctx, ns_wait, ls_clock_ns() - begin);
    }
}

void ls_waiting_after_turn(ls_context_h ctx, bool moved)
{
    ls_waiting_t *waiting = &ctx->waiting;

    ls_waiting_count_open(ctx);
    if (moved) {
        disarm(ctx);
        waiting->quiet_since_ns = 0;
        waiting->poll_ns        = POLL_FIRST_NS;
        return;
    }
    if (waiting->quiet_since_ns == 0) {
        waiting->quiet_since_ns = ctx->now_ns;
    }
    if (be_generous(ctx)) {
        return;
    }
    if (waiting->armed == LS_BELL_AWAKE && spin(ctx)) {
        return;
    }
    if (waiting->armed != ls_waiting_state(ctx)) {
        /* One more turn after listening: what came before it must not be slept over. */
        waiting->armed    = ls_waiting_state(ctx);
        waiting->bell_key = ls_bell_listen(ctx->bell, waiting->armed);
        return;
    }
    sleep_until_rung(ctx);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Looked at ten times a second: is a rank gone, does a bucket wait too long? */
#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "engine/engine_int.h"

#define CHECK_EVERY_NS (100 * LS_NS_PER_MS)
#define RANKS_ROOM     256
#define TEXT_ROOM      512

typedef struct rank_list {
    char     text[RANKS_ROOM];
    size_t   used;
    uint32_t last;
} rank_list_t;

static void add_rank(void *arg, uint32_t rank)
{
    rank_list_t *list = arg;
    int          more;

    if (list->used > 0 && rank == list->last) {
        return; /* several chunks wait for the same rank */
    }
    more = snprintf(list->text + list->used, sizeof(list->text) - list->used, "%s%u", list->used == 0 ? "" : ", ",
                    rank);
    if (more > 0 && list->used + (size_t)more < sizeof(list->text)) {
        list->used += (size_t)more;
        list->last = rank;
    }
}

/* "tensor 'w' (and 3 more) waits 5.0 s for rank 1" */
static void describe_wait(const ls_context_h ctx, const ls_work_t *work, char *text, size_t room)
{
    const char *name  = (work->requests[0] != NULL) ? work->requests[0]->name : "(nothing given)";
    rank_list_t ranks = {0};
    char        more[32] = "";

    ls_run_visit_awaited(work->is_in_meta ? &work->meta : &work->run, add_rank, &ranks);
    if (work->num_slots > 1) {
        snprintf(more, sizeof(more), " (and %u more)", work->num_slots - 1);
    }
    snprintf(text, room, "tensor '%s'%s waits %.1f s for rank %s", name, more,
             (double)(ctx->now_ns - work->moved_ns) / 1e9, ranks.text);
}

static void check_lost(ls_context_h ctx)
{
    char     reason[LS_PULSE_TEXT_ROOM], wait[TEXT_ROOM] = "nothing was open";
    char     message[LS_PULSE_TEXT_ROOM + TEXT_ROOM + 32];
    uint32_t rank;

    if (ls_watch_find_lost(ctx->watch, &rank, reason)) {
        ctx->is_verdict = true; /* word by word, so that all ranks say the same */
        ctx->lost_rank  = rank;
        ls_engine_abort(ctx, LS_ERR_RANK_LOST, reason);
    } else if (ctx->watch == NULL && ls_net_find_lost(ctx->net, &rank, reason, sizeof(reason))) {
        if (ctx->works.active != NULL) {
            describe_wait(ctx, ctx->works.active, wait, sizeof(wait));
        }
        snprintf(message, sizeof(message), "%s; %s", reason, wait);
        ls_engine_abort(ctx, LS_ERR_RANK_LOST, message);
    }
}

/* The schedule can find out who has not begun an adopted bucket, and ends the job with a better message than
 * ours; it gets the time for that. */
static uint64_t abort_after_ns(ls_context_h ctx, const ls_work_t *work)
{
    const uint64_t abort_ns = (uint64_t)(ctx->config.stall_abort_s * 1e9);
    const uint64_t warn_ns  = (uint64_t)(ctx->config.stall_warn_s * 1e9);

    return (work->id < LS_SCHEDULE_FIRST_ADOPTED) ? abort_ns : abort_ns + warn_ns + LS_NS_PER_S;
}

static void report_wait(ls_context_h ctx, ls_work_t *work)
{
    char text[TEXT_ROOM];

    work->warned_ns = ctx->now_ns;
    if (work->id >= LS_SCHEDULE_FIRST_ADOPTED) {
        ctx->needs_tick = true;
        ls_schedule_doubt(ctx->schedule, work->id, ctx->now_ns);
    } else {
        describe_wait(ctx, work, text, sizeof(text));
        ls_warn("%s", text);
    }
}

static void check_stalls(ls_context_h ctx)
{
    const uint64_t warn_ns = (uint64_t)(ctx->config.stall_warn_s * 1e9);

    for (ls_work_t *work = ctx->works.active; work != NULL; work = work->next) {
        const uint64_t waited = ctx->now_ns - work->moved_ns;
        char           text[TEXT_ROOM];

        if (waited > abort_after_ns(ctx, work)) {
            describe_wait(ctx, work, text, sizeof(text));
            ls_engine_abort(ctx, LS_ERR_STALL, text);
            return;
        }
        if (waited > warn_ns && ctx->now_ns - work->warned_ns > warn_ns) {
            report_wait(ctx, work);
        }
    }
}

void ls_health_check(ls_context_h ctx)
{
    ctx->next_health_ns = ctx->now_ns + CHECK_EVERY_NS;
    if (!ctx->is_lost) {
        check_lost(ctx);
    }
    if (!ctx->is_lost) {
        check_stalls(ctx);
    }
    ls_registry_spread_signal();
    if (atomic_exchange_explicit(&ctx->wants_dump, false, memory_order_relaxed)) {
        ls_dump_write(ctx, 2);
        ls_flight_file_write(ctx, "asked for by SIGUSR1");
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Control messages of the engine: the schedule's, the news that the job is lost, and good-bye. */
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/blob.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "engine/engine_int.h"

#define WATCH_MOMENT (2 * LS_NS_PER_S)

static void send_blob(ls_context_h ctx, uint32_t to, ls_blob_t *blob)
{
    ls_status_t status = blob->status;

    if (status == LS_OK) {
        status = ls_net_send_control(ctx->net, to, blob->data, blob->size);
        LS_COUNT(ctx, control_messages, 1);
    }
    if (status != LS_OK && !ctx->is_lost) {
        ls_engine_abort(ctx, status, ls_last_error());
    }
}

void ls_control_send_schedule(ls_context_h ctx, uint32_t to, const void *data, size_t size)
{
    ls_blob_t blob = {0};

    ls_blob_put_u8(&blob, LS_CONTROL_SCHEDULE);
    ls_blob_put_bytes(&blob, data, size);
    send_blob(ctx, to, &blob);
    ls_blob_destroy(&blob);
}

static void send_to_all_others(ls_context_h ctx, ls_blob_t *blob)
{
    for (uint32_t rank = 0; rank < ctx->place.topology.num_ranks; rank++) {
        if (rank != ctx->place.rank) {
            send_blob(ctx, rank, blob);
        }
    }
}

static void tell_abort(ls_context_h ctx)
{
    ls_blob_t blob = {0};

    ls_blob_put_u8(&blob, LS_CONTROL_ABORT);
    ls_blob_put_u32(&blob, (uint32_t)ctx->lost_status);
    ls_blob_put_str(&blob, ctx->lost_message);
    send_to_all_others(ctx, &blob);
    ls_blob_destroy(&blob);
}

void ls_control_say_bye(ls_context_h ctx)
{
    ls_blob_t blob = {0};

    ls_blob_put_u8(&blob, LS_CONTROL_BYE);
    send_blob(ctx, 0, &blob);
    ls_blob_destroy(&blob);
}

static void fail_open_work(ls_context_h ctx)
{
    while (ctx->works.active != NULL) {
        ls_work_t *work = ctx->works.active;

        if (work->has_meta) {
            ls_run_abandon(&work->meta);
        }
        if (work->has_run) {
            ls_run_abandon(&work->run);
        }
        for (uint32_t slot = 0; slot < work->num_slots; slot++) {
            ls_request_t *request = work->requests[slot];

            if (request != NULL) {
                work->requests[slot] = NULL; /* its callback may ask for a dump */
                LS_COUNT(ctx, requests_failed, 1);
                ls_watch_note_noticed(ctx->watch);
                ls_request_finish(request, ctx->lost_status, ctx->lost_message);
            }
        }
        ls_work_end(&ctx->works, work);
    }
}

static void fail_special(ls_context_h ctx, ls_request_t **request)
{
    if (*request != NULL) {
        ls_request_t *failed = *request;

        *request = NULL;
        ls_request_finish(failed, ctx->lost_status, ctx->lost_message);
    }
}

static void note_lost(ls_context_h ctx, ls_status_t status, const char *message)
{
    ctx->is_lost     = true;
    ctx->lost_status = status;
    snprintf(ctx->lost_message, sizeof(ctx->lost_message), "%s", message);
}

static void fail_everything(ls_context_h ctx)
{
    ls_schedule_abort(ctx->schedule, ctx->lost_status, ctx->lost_message);
    fail_open_work(ctx);
    fail_special(ctx, &ctx->join_request);
}

void ls_control_fail_all(ls_context_h ctx, ls_status_t status, const char *message)
{
    note_lost(ctx, status, message);
    fail_everything(ctx);
}

static void become_lost(ls_context_h ctx, ls_status_t status, const char *message)
{
    if (status != LS_ERR_RANK_LOST || ls_watch_note_lost(ctx->watch)) {
        ls_error("%s", message);
    }
    LS_FLY(ctx, LS_FLIGHT_LOST, 0, status, NULL);
    note_lost(ctx, status, message);
    ls_flight_file_write(ctx, message); /* while what waits is still there */
    fail_everything(ctx);
    if (ctx->stop_request != NULL) {
        ctx->is_finished = true; /* nobody to wait for any more */
    }
}

void ls_engine_abort(ls_context_h ctx, ls_status_t status, const char *message)
{
    if (!ctx->is_lost && ctx->abort_status == LS_OK) {
        ctx->abort_status = status;
        snprintf(ctx->abort_message, sizeof(ctx->abort_message), "%s", message);
    }
}

/* MPI fails where the process at the other end is gone, often before the watch has seen it, and cannot say so.  The watch
 * has a thread of its own: it gets a moment to name the rank. */
static void ask_the_watch(ls_context_h ctx)
{
    const uint64_t        end   = ls_clock_ns() + WATCH_MOMENT;
    const struct timespec pause = {.tv_nsec = 10 * (long)LS_NS_PER_MS};
    char                  reason[LS_PULSE_TEXT_ROOM];
    uint32_t              rank;

    while (ctx->watch != NULL && ls_clock_ns() < end) {
        if (ls_watch_find_lost(ctx->watch, &rank, reason)) {
            ctx->is_verdict   = true;
            ctx->lost_rank    = rank;
            ctx->abort_status = LS_ERR_RANK_LOST;
            snprintf(ctx->abort_message, sizeof(ctx->abort_message), "%s", reason);
            return;
        }
        nanosleep(&pause, NULL);
    }
}

void ls_control_carry_out_abort(ls_context_h ctx)
{
    if (!ctx->is_lost && ctx->abort_status == LS_ERR_MPI) {
        ask_the_watch(ctx);
    }
    if (!ctx->is_lost && ctx->abort_status != LS_OK) {
        if (ctx->abort_status == LS_ERR_STALL) {
            ls_dump_write(ctx, STDERR_FILENO); /* while what waits is still there */
        }
        become_lost(ctx, ctx->abort_status, ctx->abort_message);
        if (!ctx->is_verdict || ls_watch_must_tell(ctx->watch, ctx->lost_rank)) {
            tell_abort(ctx);
        }
    }
}

static void receive_abort(ls_context_h ctx, uint32_t from, ls_blob_reader_t *reader)
{
    const ls_status_t status = (ls_status_t)(int32_t)ls_blob_get_u32(reader);
    char              text[LS_ENGINE_MESSAGE_ROOM / 2], message[LS_ENGINE_MESSAGE_ROOM];

    ls_blob_get_str(reader, text, sizeof(text));
    snprintf(message, sizeof(message), "%s (told by rank %u)", reader->is_bad ? "the job is lost" : text, from);
    if (!ctx->is_lost) {
        become_lost(ctx, status, message);
    }
}

static void receive_bye(ls_context_h ctx)
{
    ls_blob_t blob = {0};

    if (++ctx->num_byes < ctx->place.topology.num_ranks) {
        return;
    }
    ls_blob_put_u8(&blob, LS_CONTROL_BYE_ALL);
    send_to_all_others(ctx, &blob);
    ls_blob_destroy(&blob);
    ctx->has_told_all = true;
}


static void receive_one(ls_context_h ctx, const ls_message_t *message)
{
    ls_blob_reader_t        reader = ls_blob_reader(message->data, message->bytes);
    const ls_control_kind_t kind   = (ls_control_kind_t)ls_blob_get_u8(&reader);
    ls_status_t             status = LS_OK;

    LS_FLY(ctx, LS_FLIGHT_CONTROL, message->from, kind, NULL);
    if (reader.is_bad) {
        ls_engine_abort(ctx, LS_ERR_INTERNAL, "an empty control message came");
        return;
    }
    switch (kind) {
    case LS_CONTROL_SCHEDULE:
        ctx->needs_tick = true;
        status          = ls_schedule_receive(ctx->schedule, message->from, (const char *)message->data + 1,
                                              message->bytes - 1, ctx->now_ns);
        break;
    case LS_CONTROL_ABORT:
        receive_abort(ctx, message->from, &reader);
        break;
    case LS_CONTROL_BYE:
        receive_bye(ctx);
        break;
    case LS_CONTROL_BYE_ALL:
        ctx->is_finished = true;
        break;
    default:
        status = ls_error_set(LS_ERR_INTERNAL, "rank %u sent a control message of unknown kind %d", message->from,
                              (int)kind);
        break;
    }
    if (status != LS_OK) {
        ls_engine_abort(ctx, status, ls_last_error());
    }
}

void ls_control_receive_all(ls_context_h ctx, bool *moved_p)
{
    ls_message_t message;

    while (ls_net_poll_control(ctx->net, &message)) {
        *moved_p = true;
        receive_one(ctx, &message);
        ls_net_release(ctx->net, &message);
    }
    /* Who tells all goes when its word is out: it may have to wait for room. */
    if (ctx->has_told_all && !ls_net_has_unsent(ctx->net)) {
        ctx->is_finished = true;
    }
}

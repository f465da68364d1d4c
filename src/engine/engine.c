/* SPDX-License-Identifier: Apache-2.0 */
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/floats.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/thread.h"
#include "device/dtype.h"
#include "device/kernel.h"
#include "engine/engine_int.h"

/* ---- what the schedule tells us ---------------------------------------------------------------- */

static void on_send(void *arg, uint32_t to, const void *data, size_t size)
{
    ls_control_send_schedule(arg, to, data, size);
}

/* A bucket of the agreed schedule runs once per step, from the second step on; a script that tells us knows better. */
static void note_step(ls_context_h ctx, const ls_schedule_run_t *run)
{
    const uint64_t told   = atomic_load_explicit(&ctx->script_step, memory_order_relaxed);
    const uint64_t before = atomic_load_explicit(&ctx->flight->step, memory_order_relaxed);
    const uint64_t step   = (told != 0) ? told : run->is_replay ? run->iteration + 2ULL : 1;

    if (told != 0 ? step != before : step > before) {
        ctx->works.shared.fault.now = step;
        atomic_store_explicit(&ctx->flight->step, step, memory_order_relaxed);
        LS_FLY(ctx, LS_FLIGHT_STEP, 0, step, NULL);
    }
}

static void on_run(void *arg, const ls_schedule_run_t *run)
{
    ls_context_h ctx = arg;
    ls_work_t   *work;
    ls_status_t  status = ls_work_begin(&ctx->works, run, ctx->now_ns, &work);

    if (status != LS_OK) {
        /* The other ranks run this bucket: without this rank nobody can go on.  First the abort, which copies
         * the message: callbacks may change ls_last_error(). */
        ls_engine_abort(ctx, status, ls_last_error());
        for (uint32_t slot = 0; slot < run->num_slots; slot++) {
            if (run->slots[slot].item != NULL) {
                LS_COUNT(ctx, requests_failed, 1);
                ls_request_finish(ls_request_of_item(run->slots[slot].item), status, ctx->abort_message);
            }
        }
        return;
    }
    note_step(ctx, run);
    ls_waiting_note_run(ctx, work);
    LS_FLY(ctx, LS_FLIGHT_BEGIN, run->id, run->num_slots, run->slots[0].name);
    if (run->is_replay) {
        LS_COUNT(ctx, buckets_replayed, 1);
    } else {
        LS_COUNT(ctx, buckets_negotiated, 1);
    }
    ls_trace("bucket %u begins: '%s' and %u more, %llu bytes", run->id, run->slots[0].name, run->num_slots - 1,
             (unsigned long long)work->num_bytes);
}

static void on_fail(void *arg, ls_schedule_item_t *item, ls_status_t status, const char *message)
{
    ls_context_h ctx = arg;

    LS_COUNT(ctx, requests_failed, 1);
    LS_FLY(ctx, LS_FLIGHT_FAIL, 0, status, item->name);
    if (ctx->is_lost) {
        ls_watch_note_noticed(ctx->watch);
    }
    ls_request_finish(ls_request_of_item(item), status, message);
}

static void on_joined(void *arg)
{
    ls_context_h  ctx     = arg;
    ls_request_t *request = ctx->join_request;

    ctx->join_request = NULL;
    if (request != NULL) {
        ls_request_finish(request, LS_OK, "");
    }
}

static void on_retired(void *arg, uint32_t id)
{
    ls_context_h ctx = arg;

    ls_work_forget(&ctx->works, id);
}

static void on_describe(void *arg, uint32_t rank, char *text, size_t room)
{
    ls_context_h ctx = arg;

    if (ctx->watch != NULL) {
        ls_pulse_describe(ls_watch_pulse(ctx->watch), rank, text, room);
    }
}

static void on_broken(void *arg, ls_status_t status, const char *message)
{
    ls_engine_abort(arg, status, message);
}

static const ls_schedule_ops_t schedule_ops = {
    .send     = on_send,
    .run      = on_run,
    .fail     = on_fail,
    .joined   = on_joined,
    .broken   = on_broken,
    .retired  = on_retired,
    .describe = on_describe,
};

/* ---- what the callers tell us ------------------------------------------------------------------ */

bool ls_engine_is_here(ls_context_h ctx)
{
    return pthread_equal(pthread_self(), ctx->thread) != 0 || ls_guest_is_here(ctx);
}

void ls_engine_give(ls_context_h ctx, ls_queue_link_t *chain)
{
    const bool is_data = ((const ls_request_t *)chain)->kind == LS_REQUEST_COLLECTIVE;

    atomic_fetch_add_explicit(&ctx->num_giving, 1, memory_order_relaxed);
    while (chain != NULL) {
        ls_queue_link_t *next = chain->next;

        ls_queue_push(&ctx->inbox, chain);
        chain = next;
    }
    if (!is_data || !ls_guest_take_turn(ctx)) {
        ls_bell_ring(ctx->bell);
    }
    atomic_fetch_sub_explicit(&ctx->num_giving, 1, memory_order_release);
}

/* A request may have ended, and the last one been taken, before the thread that gave it has rung the bell. */
static void wait_for_givers(ls_context_h ctx)
{
    while (atomic_load_explicit(&ctx->num_giving, memory_order_acquire) != 0) {
        sched_yield();
    }
}

static void take_join(ls_context_h ctx, ls_request_t *request)
{
    if (ctx->is_lost) {
        ls_request_finish(request, ctx->lost_status, ctx->lost_message);
    } else if (ctx->join_request != NULL) {
        ls_request_finish(request, LS_ERR_INVALID, "this rank has joined already");
    } else {
        ctx->join_request = request;
        ctx->needs_tick   = true;
        ls_schedule_join(ctx->schedule, ctx->now_ns);
    }
}

static void take_stop(ls_context_h ctx, ls_request_t *request)
{
    ctx->stop_request = request;
    LS_FLY(ctx, LS_FLIGHT_STOP, 0, 0, NULL);
    if (ctx->is_lost) {
        ctx->is_finished = true;
    } else {
        ctx->needs_tick = true;
        ls_schedule_leave(ctx->schedule, ctx->now_ns);
        ls_control_say_bye(ctx);
    }
}

static void take_collective(ls_context_h ctx, ls_request_t *request)
{
    const ls_signature_t *signature = &request->item.signature;

    LS_COUNT(ctx, requests, 1);
    LS_COUNT(ctx, bytes_in, signature->count * ls_dtype_size(signature->dtype));
    ls_waiting_note_given(ctx);
    LS_FLY(ctx, LS_FLIGHT_REQUEST, 0, signature->count * ls_dtype_size(signature->dtype), request->name);
    (void)ls_fault_at(&ctx->works.shared.fault, LS_FAULT_REQUEST);
    request->item.submitted_ns = ctx->now_ns;
    ctx->needs_tick            = true;
    ls_schedule_submit(ctx->schedule, &request->item, ctx->now_ns);
}

static void take_request(ls_context_h ctx, ls_request_t *request)
{
    switch (request->kind) {
    case LS_REQUEST_COLLECTIVE:
        take_collective(ctx, request);
        break;
    case LS_REQUEST_NOTHING:
        ls_request_finish(request, LS_OK, "");
        break;
    case LS_REQUEST_JOIN:
        take_join(ctx, request);
        break;
    case LS_REQUEST_STOP:
        take_stop(ctx, request);
        break;
    case LS_REQUEST_DUMP:
        ls_dump_write(ctx, request->fd);
        ls_request_finish(request, LS_OK, "");
        break;
    }
}

void ls_engine_take_requests(ls_context_h ctx, bool *moved_p)
{
    ls_queue_link_t *link = ls_queue_take_all(&ctx->inbox);

    while (link != NULL) {
        ls_queue_link_t *next = link->next;

        *moved_p = true;
        take_request(ctx, (ls_request_t *)link);
        link = next;
    }
}

/* ---- work -------------------------------------------------------------------------------------- */

static void trace_work(ls_context_h ctx, const ls_work_t *work, uint64_t end_ns)
{
    const char *name = (work->requests[0] != NULL) ? work->requests[0]->name : "(nothing given)";
    char        detail[128];

    snprintf(detail, sizeof(detail), "%s %s, %u tensors, %s", ls_algo_coll_name(work->signature.coll),
             work->run.algo->name, work->num_slots, work->is_replay ? "replayed" : "negotiated");
    ls_trace_add(ctx->trace, &(ls_trace_span_t){.row = "bucket", .name = name, .begin_ns = work->begin_ns,
                                                .end_ns = end_ns, .bytes = work->num_bytes, .detail = detail});
    for (uint32_t slot = 0; slot < work->num_slots; slot++) {
        const ls_request_t *request = work->requests[slot];

        if (request != NULL) {
            ls_trace_add(ctx->trace,
                         &(ls_trace_span_t){.row      = "request",
                                            .name     = request->name,
                                            .begin_ns = request->item.submitted_ns,
                                            .end_ns   = end_ns,
                                            .bytes    = request->item.signature.count *
                                                     ls_dtype_size(request->item.signature.dtype)});
        }
    }
}

/* Counters that others keep. */
static void copy_counters(ls_context_h ctx)
{
    uint64_t node, net;

    ls_net_bytes_sent(ctx->net, &node, &net);
    atomic_store_explicit(&ctx->counters.bytes_sent_node, node, memory_order_relaxed);
    atomic_store_explicit(&ctx->counters.bytes_sent_net, net, memory_order_relaxed);
    atomic_store_explicit(&ctx->counters.schedule_changes, ls_schedule_changes(ctx->schedule), memory_order_relaxed);
}

static void finish_work(ls_context_h ctx, ls_work_t *work)
{
    if (ctx->trace != NULL) {
        trace_work(ctx, work, ls_clock_ns());
    }
    LS_COUNT(ctx, ns_copy, work->run.ns_copy);
    LS_COUNT(ctx, ns_reduce, work->run.ns_reduce);
    work->run.ns_copy = work->run.ns_reduce = 0;
    LS_FLY(ctx, LS_FLIGHT_DONE, work->id, work->num_bytes, (work->requests[0] == NULL) ? NULL : work->requests[0]->name);
    (void)ls_fault_at(&ctx->works.shared.fault, LS_FAULT_CALLBACK);
    ls_waiting_reset(ctx);
    ls_schedule_finished(ctx->schedule, work->epoch);
    copy_counters(ctx);
    for (uint32_t slot = 0; slot < work->num_slots; slot++) {
        ls_request_t *request = work->requests[slot];

        if (request != NULL) {
            work->requests[slot] = NULL; /* its callback may ask for a dump */
            LS_COUNT(ctx, requests_failed, work->status == LS_OK ? 0 : 1);
            ls_request_finish(request, work->status,
                              (work->status == LS_OK) ? "" : "the caller had no room for the output");
        }
    }
    ls_work_end(&ctx->works, work);
}

void ls_engine_progress(ls_context_h ctx, bool *moved_p)
{
    ctx->works.shared.budget.is_short = false;
    if (ctx->abort_status != LS_OK) {
        return; /* what has failed, perhaps in a guest's turn, must not go on: its messages are half taken */
    }
    for (ls_work_t *work = ctx->works.active, *next; work != NULL; work = next) {
        bool        moved = false;
        ls_status_t status;

        ctx->works.shared.budget.is_free = (work == ctx->works.active);
        status                    = ls_work_progress(&ctx->works, work, &moved);
        next                      = work->next;
        if (moved) {
            work->moved_ns = ctx->now_ns;
            *moved_p       = true;
        }
        if (status == LS_OK) {
            finish_work(ctx, work);
        } else if (status != LS_IN_PROGRESS) {
            ls_engine_abort(ctx, status, ls_last_error());
            return;
        }
    }
}

/* ---- the thread -------------------------------------------------------------------------------- */

void ls_engine_take_messages(ls_context_h ctx, bool *moved_p)
{
    const ls_status_t status = ls_net_progress(ctx->net, moved_p);

    if (status != LS_OK) {
        ls_engine_abort(ctx, status, ls_last_error());
    }
}

static void turn(ls_context_h ctx)
{
    bool moved = false;

    ctx->now_ns = ls_clock_ns();
    ls_engine_take_requests(ctx, &moved);
    ls_engine_take_messages(ctx, &moved);
    ls_control_receive_all(ctx, &moved);
    if (ctx->needs_tick || ctx->now_ns >= ctx->next_tick_ns) {
        ctx->needs_tick   = false;
        ctx->next_tick_ns = ls_schedule_tick(ctx->schedule, ctx->now_ns);
    }
    ls_engine_progress(ctx, &moved);
    if (ctx->now_ns >= ctx->next_health_ns) {
        ls_health_check(ctx);
    }
    ls_control_carry_out_abort(ctx);
    ls_waiting_after_turn(ctx, moved);
}

/* The recorder is on the board that the node's ranks share; without one it is ours alone. */
static ls_status_t open_watch(ls_context_h ctx)
{
    ls_pulse_h  pulse = ls_net_take_pulse(ctx->net);
    void       *mem;
    ls_status_t status;

    if (pulse != NULL) {
        ctx->flight = ls_pulse_flight(pulse, ctx->place.rank);
        return ls_watch_start(ctx, pulse, &ctx->watch);
    }
    status = ls_mem_alloc(sizeof(*ctx->own_flight), "flight recorder", &mem);
    if (status == LS_OK) {
        ctx->flight = ctx->own_flight = mem;
    }
    return status;
}

static void close_watch(ls_context_h ctx, bool is_orderly)
{
    ls_watch_stop(ctx->watch, is_orderly);
    ls_mem_free(ctx->own_flight);
    ctx->watch      = NULL;
    ctx->own_flight = NULL;
}

static ls_status_t open_engine(ls_context_h ctx)
{
    ls_schedule_params_t params = {
        .fusion_bytes   = ctx->config.fusion_bytes,
        .patience_ns    = ctx->config.patience_ms * LS_NS_PER_MS,
        .stall_warn_ns  = (uint64_t)(ctx->config.stall_warn_s * 1e9),
        .stall_abort_ns = (uint64_t)(ctx->config.stall_abort_s * 1e9),
        .ops            = &schedule_ops,
        .arg            = ctx,
    };
    ls_status_t status;

    status = ctx->is_local
                 ? ls_net_create_local(ctx->params.local_job, ctx->params.local_rank, &ctx->config, &ctx->net)
                 : ls_net_create_mpi(&ctx->config, &ctx->net);
    if (status != LS_OK) {
        return status;
    }
    ctx->place = *ls_net_place(ctx->net);
    ctx->bell  = ls_net_bell(ctx->net);
    ls_log_set_rank(ctx->place.rank);
    params.rank      = ctx->place.rank;
    params.num_ranks = ctx->place.topology.num_ranks;
    status           = open_watch(ctx);
    if (status != LS_OK) {
        goto err_destroy_net;
    }
    status = ls_schedule_create(&params, &ctx->schedule);
    if (status != LS_OK) {
        goto err_close_watch;
    }
    status = ls_work_pool_init(&ctx->works, &ctx->config, ctx->net, ctx->choices);
    if (status != LS_OK) {
        goto err_destroy_schedule;
    }
    status = ls_fault_parse(ctx->config.fault, ctx->place.rank, &ctx->works.shared.fault);
    if (status != LS_OK) {
        goto err_clear_works;
    }
    ctx->now_ns = ls_clock_ns();
    LS_FLY(ctx, LS_FLIGHT_START, 0, params.num_ranks, NULL);
    (void)ls_fault_at(&ctx->works.shared.fault, LS_FAULT_START);
    if (ctx->config.trace[0] != '\0' &&
        ls_trace_create(ctx->config.trace, ctx->place.rank, ctx->place.host, &ctx->trace) != LS_OK) {
        ls_warn("%s: going on without a trace", ls_last_error());
    }
    if (ctx->place.rank == 0) {
        ls_info("%u ranks on %u nodes, %s, kernels %s", ctx->place.topology.num_ranks, ctx->place.topology.num_nodes,
                ctx->place.description, ls_kernel_path());
    }
    return LS_OK;

err_clear_works:
    ls_work_pool_clear(&ctx->works);
err_destroy_schedule:
    ls_schedule_destroy(ctx->schedule);
err_close_watch:
    snprintf(ctx->lost_message, sizeof(ctx->lost_message), "%s", ls_last_error());
    close_watch(ctx, false);
err_destroy_net:
    ls_net_destroy(ctx->net, false);
    return status;
}

static void close_engine(ls_context_h ctx)
{
    const bool    is_orderly = !ctx->is_lost;
    ls_request_t *stop       = ctx->stop_request;
    bool          moved;

    atomic_store(&ctx->is_closed, true);
    if (is_orderly) {
        (void)ls_fault_at(&ctx->works.shared.fault, LS_FAULT_STOP);
        ls_control_fail_all(ctx, LS_ERR_STOPPED, ls_status_str(LS_ERR_STOPPED));
    }
    ls_engine_take_requests(ctx, &moved); /* they fail at once */
    ls_registry_remove(ctx);
    ls_trace_destroy(ctx->trace);
    ls_work_pool_clear(&ctx->works);
    ls_schedule_destroy(ctx->schedule);
    wait_for_givers(ctx);
    ls_net_destroy(ctx->net, is_orderly); /* MPI waits for all ranks here: still watched */
    close_watch(ctx, is_orderly);
    ls_request_finish(stop, LS_OK, "");
}

static void report_start(ls_context_h ctx, ls_status_t status)
{
    pthread_mutex_lock(&ctx->start_lock);
    ctx->is_started   = true;
    ctx->start_status = status;
    snprintf(ctx->start_message, sizeof(ctx->start_message), "%s", (status == LS_OK) ? "" : ls_last_error());
    pthread_cond_signal(&ctx->start_cond);
    pthread_mutex_unlock(&ctx->start_lock);
}

void *ls_engine_main(void *arg)
{
    ls_context_h ctx = arg;
    ls_status_t  status;

    ls_thread_ask_short_slices();
    (void)ls_floats_enter();
    status = open_engine(ctx);
    report_start(ctx, status);
    if (status == LS_OK) {
        pthread_mutex_lock(&ctx->turn_lock);
        ctx->takes_guests = ls_net_is_for_any_thread(ctx->net);
        while (!ctx->is_finished) {
            turn(ctx);
        }
        ctx->takes_guests = false;
        pthread_mutex_unlock(&ctx->turn_lock);
        close_engine(ctx);
    }
    return NULL;
}

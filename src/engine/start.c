/* SPDX-License-Identifier: Apache-2.0 */
/* Start, stop and queries. */
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/mem.h"
#include "device/kernel.h"
#include "engine/engine_int.h"

#define FOR_EVER_S 1e8

static ls_status_t load_settings(ls_context_h ctx)
{
    ls_status_t status = ls_config_load(&ctx->config);

    if (status != LS_OK) {
        return status;
    }
    ls_log_set_level((ls_log_level_t)ctx->config.log);
    status = ls_kernel_select(ctx->config.simd);
    if (status != LS_OK) {
        return ls_error_set(status, "LOCKSTEP_SIMD is '%s': %s", ctx->config.simd, ls_last_error());
    }
    status = ls_choice_table_create(ctx->config.algo, &ctx->choices);
    return (status != LS_OK) ? status : ls_request_create(LS_REQUEST_STOP, NULL, &ctx->stop);
}

/* All signals go to the program's own threads. */
static int create_thread(ls_context_h ctx)
{
    sigset_t all, before;
    int      code;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    code = pthread_create(&ctx->thread, NULL, ls_engine_main, ctx);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (code == 0) {
        pthread_setname_np(ctx->thread, "ls-engine");
    }
    return code;
}

/* Up to here nothing has been said to other ranks. */
static ls_status_t prepare(ls_context_h ctx)
{
    ls_status_t status = load_settings(ctx);

    if (status == LS_OK) {
        const int code = create_thread(ctx);

        if (code != 0) {
            status = ls_error_set(LS_ERR_SYSTEM, "cannot start the engine thread: %s", strerror(code));
        }
    }
    return status;
}

/* Ranks that are threads would wait for one that does not come; processes see it end. */
static ls_status_t refuse(const ls_start_params_t *params, ls_status_t status)
{
    return (params == NULL || params->local_job == NULL)
               ? status
               : ls_net_refuse_local(params->local_job, params->local_rank, status);
}

/* False: the thread has not come back in that time.  lock: start_lock */
static bool wait_until(ls_context_h ctx, uint64_t until_ns)
{
    const struct timespec until = {.tv_sec = (time_t)(until_ns / LS_NS_PER_S), .tv_nsec = (long)(until_ns % LS_NS_PER_S)};
    int                   code  = 0;

    while (!ctx->is_started && code != ETIMEDOUT) {
        code = pthread_cond_timedwait(&ctx->start_cond, &ctx->start_lock, &until);
    }
    return ctx->is_started;
}

/* The others are not watched before all have started: only time tells that one does not come.  Ranks that are threads
 * always come, if only to refuse.  *is_stuck_p: the thread is inside MPI, and keeps the context. */
static ls_status_t wait_for_thread(ls_context_h ctx, bool *is_stuck_p)
{
    const uint64_t begin_ns = ls_clock_ns();
    const double   limit_s  = ctx->is_local ? FOR_EVER_S : ctx->config.stall_abort_s;
    const uint64_t end_ns   = begin_ns + (uint64_t)(limit_s * 1e9);
    const uint64_t warn_ns  = begin_ns + (uint64_t)(ctx->config.stall_warn_s * 1e9);

    pthread_mutex_lock(&ctx->start_lock);
    if (!wait_until(ctx, warn_ns < end_ns ? warn_ns : end_ns)) {
        ls_warn("the start waits %.0f s for other ranks, inside MPI", ctx->config.stall_warn_s);
    }
    *is_stuck_p = !wait_until(ctx, end_ns);
    pthread_mutex_unlock(&ctx->start_lock);
    if (*is_stuck_p) {
        return ls_error_set(LS_ERR_STALL, "not all ranks have started within %.0f s (LOCKSTEP_STALL_ABORT_S)",
                            ctx->config.stall_abort_s);
    }
    if (ctx->start_status != LS_OK) {
        pthread_join(ctx->thread, NULL);
        return ls_error_set(ctx->start_status, "%s", ctx->start_message);
    }
    return LS_OK;
}

/* Monotonic: the clock on the wall may be set. */
static void init_start(ls_context_h ctx)
{
    pthread_condattr_t attributes;

    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_mutex_init(&ctx->start_lock, NULL);
    pthread_mutex_init(&ctx->turn_lock, NULL);
    pthread_cond_init(&ctx->start_cond, &attributes);
    pthread_condattr_destroy(&attributes);
}

static void context_destroy(ls_context_h ctx)
{
    ls_request_destroy(ctx->stop);
    ls_choice_table_destroy(ctx->choices);
    pthread_cond_destroy(&ctx->start_cond);
    pthread_mutex_destroy(&ctx->turn_lock);
    pthread_mutex_destroy(&ctx->start_lock);
    ls_mem_free(ctx);
}

ls_status_t ls_start(const ls_start_params_t *params, ls_context_h *ctx_p)
{
    ls_context_h ctx;
    ls_status_t  status;
    bool         is_stuck = false;
    void        *mem;

    ls_error_clear();
    if (ctx_p == NULL) {
        return ls_error_set(LS_ERR_INVALID, "ls_start needs a place for the context");
    }
    status = ls_mem_alloc(sizeof(*ctx), "context", &mem);
    if (status != LS_OK) {
        return refuse(params, status);
    }
    ctx = mem;
    init_start(ctx);
    if (params != NULL) {
        ctx->params = *params;
    }
    ctx->is_local = ctx->params.local_job != NULL;
    status        = prepare(ctx);
    status        = (status == LS_OK) ? wait_for_thread(ctx, &is_stuck) : refuse(params, status);
    if (status != LS_OK) {
        if (!is_stuck) {
            context_destroy(ctx);
        }
        return status;
    }
    ls_registry_add(ctx);
    *ctx_p = ctx;
    return LS_OK;
}

ls_status_t ls_stop(ls_context_h ctx)
{
    ls_status_t   status = LS_OK;
    ls_request_t *stop;

    if (ctx == NULL) {
        return LS_OK;
    }
    if (ls_engine_is_here(ctx)) {
        ls_error("a callback must not stop the engine that calls it");
        return LS_ERR_INVALID;
    }
    stop      = ctx->stop;
    ctx->stop = NULL; /* the engine's, who frees it */
    ls_engine_give(ctx, &stop->link);
    pthread_join(ctx->thread, NULL);
    if (ctx->lost_status != LS_ERR_STOPPED) { /* which is how it ends well */
        status = ls_error_set(ctx->lost_status, "%s", ctx->lost_message);
    }
    context_destroy(ctx);
    return status;
}

unsigned ls_rank(ls_context_h ctx)
{
    return ctx->place.rank;
}

unsigned ls_size(ls_context_h ctx)
{
    return ctx->place.topology.num_ranks;
}

unsigned ls_local_rank(ls_context_h ctx)
{
    return ctx->place.local_rank;
}

unsigned ls_local_size(ls_context_h ctx)
{
    return ctx->place.local_size;
}

unsigned ls_num_nodes(ls_context_h ctx)
{
    return ctx->place.topology.num_nodes;
}

void ls_step(ls_context_h ctx, uint64_t step)
{
    atomic_store_explicit(&ctx->script_step, step, memory_order_relaxed);
}

const char *ls_host(ls_context_h ctx)
{
    return ctx->place.host;
}

const char *ls_transport(ls_context_h ctx)
{
    return ctx->place.description;
}

const char *ls_version(void)
{
    return LOCKSTEP_VERSION;
}

ls_status_t ls_setting(const char *name, char *text, size_t room)
{
    return ls_config_text(name, text, room) ? LS_OK : LS_ERR_CONFIG;
}

ls_status_t ls_print_settings(int fd, int with_values)
{
    return ls_config_print(fd, with_values != 0);
}

ls_status_t ls_print_choices(int fd)
{
    ls_config_t        config;
    ls_choice_table_t *table;
    ls_status_t        status = ls_config_load(&config);

    if (status != LS_OK || (status = ls_choice_table_create(config.algo, &table)) != LS_OK) {
        return status;
    }
    ls_choice_print(table, fd);
    ls_choice_table_destroy(table);
    return LS_OK;
}

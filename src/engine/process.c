/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The context of this process.
 *
 * Two locks: start_stop_lock lets one thread at a time start or stop, which takes long; use_lock is held
 * (shared) by those between get and put.  Stopping takes use_lock only to hide the context, never while it
 * waits for other ranks: callbacks of the last requests may still look for the context meanwhile.
 */
#include <pthread.h>
#include <unistd.h>

#include "base/error.h"
#include "engine/engine_int.h"

static pthread_mutex_t  start_stop_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t use_lock        = PTHREAD_RWLOCK_INITIALIZER;
static ls_context_h     process_ctx; /* lock: use_lock; written under both */
static pid_t            process_pid; /* lock: use_lock; a forked child has no engine thread */

ls_status_t ls_process_start(void)
{
    ls_context_h ctx    = NULL;
    ls_status_t  status = LS_OK;

    ls_error_clear();
    pthread_mutex_lock(&start_stop_lock);
    if (process_ctx != NULL) {
        if (process_pid != getpid()) {
            status = ls_error_set(LS_ERR_INVALID, "this process is the child of a rank, and no rank itself");
        }
        pthread_mutex_unlock(&start_stop_lock);
        return status;
    }
    status = ls_start(NULL, &ctx);
    if (status == LS_OK) {
        pthread_rwlock_wrlock(&use_lock);
        process_ctx = ctx;
        process_pid = getpid();
        pthread_rwlock_unlock(&use_lock);
    }
    pthread_mutex_unlock(&start_stop_lock);
    return status;
}

/* In a callback, where the thread may have the context in use already. */
static bool is_called_back(void)
{
    ls_context_h ctx     = ls_process_get();
    const bool   is_here = (ctx != NULL) && ls_engine_is_here(ctx);

    ls_process_put(ctx);
    return is_here;
}

ls_status_t ls_process_stop(void)
{
    ls_status_t  status;
    ls_context_h ctx = NULL;

    if (is_called_back()) {
        return ls_error_set(LS_ERR_INVALID, "a callback must not stop the engine that calls it");
    }
    pthread_mutex_lock(&start_stop_lock);
    pthread_rwlock_wrlock(&use_lock);
    if (process_pid == getpid()) {
        ctx         = process_ctx;
        process_ctx = NULL;
    }
    pthread_rwlock_unlock(&use_lock);
    status = ls_stop(ctx);
    pthread_mutex_unlock(&start_stop_lock);
    return status;
}

ls_context_h ls_process_get(void)
{
    pthread_rwlock_rdlock(&use_lock);
    if (process_ctx != NULL && process_pid == getpid()) {
        return process_ctx;
    }
    pthread_rwlock_unlock(&use_lock);
    return NULL;
}

void ls_process_put(ls_context_h ctx)
{
    if (ctx != NULL) {
        pthread_rwlock_unlock(&use_lock);
    }
}

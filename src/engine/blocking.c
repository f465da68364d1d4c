/* SPDX-License-Identifier: Apache-2.0 */
/* The blocking collectives: hand in, sleep until `done`. */
#include "engine/blocking.h"

#include <stdio.h>

#include "base/bell.h"
#include "base/error.h"
#include "engine/engine_int.h"

/* Lives on the caller's stack. */
typedef struct waiter {
    ls_gate_t    done;
    ls_status_t  status;
    ls_output_fn output_fn;
    void        *output_arg;
    char         message[LS_ENGINE_MESSAGE_ROOM];
} waiter_t;

static void on_done(void *arg, ls_status_t status, const char *message)
{
    waiter_t *waiter = arg;

    waiter->status = status;
    snprintf(waiter->message, sizeof(waiter->message), "%s", message);
    ls_gate_open(&waiter->done);
}

static void *on_output(void *arg, const uint64_t *counts, unsigned num_ranks)
{
    waiter_t *waiter = arg;

    return waiter->output_fn(waiter->output_arg, counts, num_ranks);
}

/* In a callback it would wait for its own thread. */
static ls_status_t check_may_wait(ls_context_h ctx)
{
    return ls_engine_is_here(ctx)
               ? ls_error_set(LS_ERR_INVALID, "a callback must not wait: use the asynchronous call")
               : LS_OK;
}

/* `taken` is what the asynchronous call answered. */
static ls_status_t wait(waiter_t *waiter, ls_status_t taken)
{
    if (taken != LS_OK) {
        return taken;
    }
    ls_gate_wait(&waiter->done);
    return (waiter->status == LS_OK) ? LS_OK : ls_error_set(waiter->status, "%s", waiter->message);
}

void ls_blocking_hand_over(ls_context_h ctx, ls_request_t *request)
{
    waiter_t waiter = {0};

    request->done = on_done;
    request->arg  = &waiter;
    ls_engine_give(ctx, &request->link);
    (void)wait(&waiter, LS_OK);
}

ls_status_t ls_allreduce(ls_context_h ctx, const ls_tensor_t *tensor, const ls_reduce_t *reduce)
{
    waiter_t          waiter = {0};
    const ls_status_t status = check_may_wait(ctx);

    return (status != LS_OK) ? status
                             : wait(&waiter, ls_allreduce_async(ctx, tensor, reduce, on_done, &waiter));
}

ls_status_t ls_allreduce_group(ls_context_h ctx, const ls_tensor_t *tensors, unsigned num_tensors,
                               const ls_reduce_t *reduce)
{
    waiter_t          waiter = {0};
    const ls_status_t status = check_may_wait(ctx);

    return (status != LS_OK)
               ? status
               : wait(&waiter, ls_allreduce_group_async(ctx, tensors, num_tensors, reduce, on_done, &waiter));
}

ls_status_t ls_broadcast(ls_context_h ctx, const ls_tensor_t *tensor, unsigned root)
{
    waiter_t          waiter = {0};
    const ls_status_t status = check_may_wait(ctx);

    return (status != LS_OK) ? status
                             : wait(&waiter, ls_broadcast_async(ctx, tensor, root, on_done, &waiter));
}

ls_status_t ls_allgather(ls_context_h ctx, const ls_tensor_t *tensor, ls_output_fn output_fn, void *arg)
{
    waiter_t          waiter = {0};
    const ls_status_t status = check_may_wait(ctx);

    waiter.output_fn  = output_fn;
    waiter.output_arg = arg;
    return (status != LS_OK)
               ? status
               : wait(&waiter, ls_allgather_async(ctx, tensor, (output_fn == NULL) ? NULL : on_output,
                                                  on_done, &waiter));
}

ls_status_t ls_reduce_scatter(ls_context_h ctx, const ls_tensor_t *tensor, const ls_reduce_t *reduce)
{
    waiter_t          waiter = {0};
    const ls_status_t status = check_may_wait(ctx);

    return (status != LS_OK) ? status
                             : wait(&waiter, ls_reduce_scatter_async(ctx, tensor, reduce, on_done, &waiter));
}

ls_status_t ls_alltoall(ls_context_h ctx, const ls_tensor_t *tensor, const uint64_t *send_counts,
                        ls_output_fn output_fn, void *arg)
{
    waiter_t          waiter = {0};
    const ls_status_t status = check_may_wait(ctx);

    waiter.output_fn  = output_fn;
    waiter.output_arg = arg;
    return (status != LS_OK)
               ? status
               : wait(&waiter, ls_alltoall_async(ctx, tensor, send_counts,
                                                 (output_fn == NULL) ? NULL : on_output, on_done, &waiter));
}

ls_status_t ls_barrier(ls_context_h ctx, const char *name)
{
    waiter_t          waiter = {0};
    const ls_status_t status = check_may_wait(ctx);

    return (status != LS_OK) ? status : wait(&waiter, ls_barrier_async(ctx, name, on_done, &waiter));
}

ls_status_t ls_join(ls_context_h ctx)
{
    waiter_t          waiter = {0};
    const ls_status_t status = check_may_wait(ctx);

    return (status != LS_OK) ? status : wait(&waiter, ls_join_async(ctx, on_done, &waiter));
}

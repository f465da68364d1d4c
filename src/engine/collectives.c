/* SPDX-License-Identifier: Apache-2.0 */
/* The asynchronous collectives: check, make a request, hand it to the engine. */
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "engine/blocking.h"
#include "engine/engine_int.h"
#include "engine/unfinite.h"
#include "engine/widen.h"

static ls_status_t refuse_if_closed(ls_context_h ctx)
{
    return atomic_load_explicit(&ctx->is_closed, memory_order_relaxed)
               ? ls_error_set(LS_ERR_STOPPED, "the engine has stopped")
               : LS_OK;
}

static ls_status_t hand_over(ls_context_h ctx, ls_request_t *request)
{
    const ls_status_t status = refuse_if_closed(ctx);

    if (status != LS_OK) {
        ls_request_destroy(request);
        return status;
    }
    ls_engine_give(ctx, &request->link);
    return LS_OK;
}

/* A checked request for one tensor. */
static ls_status_t make_request(ls_context_h ctx, const ls_tensor_t *tensor, ls_coll_t coll, const ls_reduce_t *reduce,
                                ls_done_fn done, void *arg, ls_request_t **request_p)
{
    uint64_t      output_count;
    ls_request_t *request = NULL;
    ls_status_t   status;

    ls_error_clear();
    if (tensor == NULL || done == NULL) {
        return ls_error_set(LS_ERR_INVALID, "a request needs a tensor and a callback");
    }
    status = ls_request_create(LS_REQUEST_COLLECTIVE, tensor->name, &request);
    if (status != LS_OK) {
        return status;
    }
    request->done = done;
    request->arg  = arg;
    output_count  = (coll == LS_COLL_REDUCE_SCATTER) ? ls_block_count(tensor->count, ls_size(ctx), ls_rank(ctx))
                                                     : tensor->count;
    if ((status = ls_request_set_tensor(request, tensor, coll)) != LS_OK ||
        (status = ls_request_set_reduce(request, reduce)) != LS_OK ||
        (status = ls_widen_request(request, output_count)) != LS_OK) {
        ls_request_destroy(request);
        return status;
    }
    request->watcher = ls_unfinite_is_wanted(ctx, tensor) ? ctx : NULL;
    *request_p       = request;
    return LS_OK;
}

ls_status_t ls_allreduce_async(ls_context_h ctx, const ls_tensor_t *tensor, const ls_reduce_t *reduce,
                               ls_done_fn done, void *arg)
{
    ls_request_t     *request = NULL;
    const ls_status_t status = make_request(ctx, tensor, LS_COLL_ALLREDUCE, reduce, done, arg, &request);

    return (status == LS_OK) ? hand_over(ctx, request) : status;
}

static void destroy_chain(ls_queue_link_t *link)
{
    while (link != NULL) {
        ls_queue_link_t *next = link->next;

        ls_request_destroy((ls_request_t *)link);
        link = next;
    }
}

/* All requests of a group are made before any is handed over: a bad one must not leave others behind. */
static ls_status_t make_group(ls_context_h ctx, const ls_tensor_t *tensors, unsigned num_tensors,
                              const ls_reduce_t *reduce, ls_request_group_t *group, ls_queue_link_t **chain_p)
{
    ls_queue_link_t *chain = NULL, **end = &chain;

    for (unsigned i = 0; i < num_tensors; i++) {
        ls_request_t     *request = NULL;
        const ls_status_t status =
            make_request(ctx, &tensors[i], LS_COLL_ALLREDUCE, reduce, group->done, group->arg, &request);

        if (status != LS_OK) {
            destroy_chain(chain);
            return status;
        }
        request->group     = group;
        request->link.next = NULL;
        *end               = &request->link;
        end                = &request->link.next;
    }
    *chain_p = chain;
    return LS_OK;
}

static ls_status_t hand_over_nothing(ls_context_h ctx, ls_request_kind_t kind, ls_done_fn done, void *arg)
{
    ls_request_t     *request = NULL;
    const ls_status_t status = ls_request_create(kind, NULL, &request);

    if (status == LS_OK) {
        request->done = done;
        request->arg  = arg;
        return hand_over(ctx, request);
    }
    return status;
}

ls_status_t ls_allreduce_group_async(ls_context_h ctx, const ls_tensor_t *tensors, unsigned num_tensors,
                                     const ls_reduce_t *reduce, ls_done_fn done, void *arg)
{
    ls_request_group_t *group;
    ls_queue_link_t    *chain;
    ls_status_t         status;
    void               *mem;

    ls_error_clear();
    if (done == NULL || (tensors == NULL && num_tensors > 0)) {
        return ls_error_set(LS_ERR_INVALID, "a group needs tensors and a callback");
    }
    if (num_tensors == 0) {
        return hand_over_nothing(ctx, LS_REQUEST_NOTHING, done, arg);
    }
    status = refuse_if_closed(ctx);
    if (status == LS_OK) {
        status = ls_mem_alloc(sizeof(*group), "group", &mem);
    }
    if (status != LS_OK) {
        return status;
    }
    group  = mem;
    *group = (ls_request_group_t){.num_open = num_tensors, .done = done, .arg = arg};
    status = make_group(ctx, tensors, num_tensors, reduce, group, &chain);
    if (status != LS_OK) {
        ls_mem_free(group);
        return status;
    }
    ls_engine_give(ctx, chain);
    return LS_OK;
}

ls_status_t ls_broadcast_async(ls_context_h ctx, const ls_tensor_t *tensor, unsigned root, ls_done_fn done, void *arg)
{
    ls_request_t *request = NULL;
    ls_status_t   status;

    if (root >= ls_size(ctx)) {
        return ls_error_set(LS_ERR_INVALID, "root %u is not a rank of this job of %u", root, ls_size(ctx));
    }
    status = make_request(ctx, tensor, LS_COLL_BROADCAST, NULL, done, arg, &request);
    if (status == LS_OK) {
        request->item.signature.root = root;
        status                       = hand_over(ctx, request);
    }
    return status;
}

ls_status_t ls_allgather_async(ls_context_h ctx, const ls_tensor_t *tensor, ls_output_fn output_fn, ls_done_fn done,
                               void *arg)
{
    ls_request_t *request = NULL;
    ls_status_t   status;

    if (output_fn == NULL) {
        return ls_error_set(LS_ERR_INVALID, "an all-gather needs a function that gives room for the output");
    }
    status = make_request(ctx, tensor, LS_COLL_ALLGATHER, NULL, done, arg, &request);
    if (status == LS_OK) {
        request->output_fn = output_fn;
        status             = hand_over(ctx, request);
    }
    return status;
}

ls_status_t ls_reduce_scatter_async(ls_context_h ctx, const ls_tensor_t *tensor, const ls_reduce_t *reduce,
                                    ls_done_fn done, void *arg)
{
    ls_request_t     *request = NULL;
    const ls_status_t status = make_request(ctx, tensor, LS_COLL_REDUCE_SCATTER, reduce, done, arg, &request);

    return (status == LS_OK) ? hand_over(ctx, request) : status;
}

uint64_t ls_block_count(uint64_t count, unsigned num_ranks, unsigned rank)
{
    return count / num_ranks + ((rank < count % num_ranks) ? 1 : 0);
}

static ls_status_t copy_counts(ls_request_t *request, const uint64_t *counts, unsigned num_ranks, uint64_t count)
{
    uint64_t    sum = 0;
    ls_status_t status;
    void       *mem;

    for (unsigned rank = 0; rank < num_ranks && sum <= count; rank++) {
        sum = (counts[rank] > count) ? UINT64_MAX : sum + counts[rank];
    }
    if (sum != count) {
        return ls_error_set(LS_ERR_INVALID, "tensor '%s' has %llu elements, but %llu are to be sent", request->name,
                            (unsigned long long)count, (unsigned long long)sum);
    }
    status = ls_mem_alloc(num_ranks * sizeof(*counts), "send counts", &mem);
    if (status == LS_OK) {
        memcpy(mem, counts, num_ranks * sizeof(*counts));
        request->send_counts = mem;
    }
    return status;
}

ls_status_t ls_alltoall_async(ls_context_h ctx, const ls_tensor_t *tensor, const uint64_t *send_counts,
                              ls_output_fn output_fn, ls_done_fn done, void *arg)
{
    ls_request_t *request = NULL;
    ls_status_t   status;

    if (output_fn == NULL || send_counts == NULL) {
        return ls_error_set(LS_ERR_INVALID, "an all-to-all needs send counts and a function that gives room for the output");
    }
    status = make_request(ctx, tensor, LS_COLL_ALLTOALL, NULL, done, arg, &request);
    if (status != LS_OK) {
        return status;
    }
    status = copy_counts(request, send_counts, ls_size(ctx), tensor->count);
    if (status != LS_OK) {
        ls_request_destroy(request);
        return status;
    }
    request->output_fn = output_fn;
    return hand_over(ctx, request);
}

ls_status_t ls_barrier_async(ls_context_h ctx, const char *name, ls_done_fn done, void *arg)
{
    const ls_tensor_t nothing = {.name = name, .dtype = LS_UINT8};
    ls_request_t     *request = NULL;
    const ls_status_t status = make_request(ctx, &nothing, LS_COLL_BARRIER, NULL, done, arg, &request);

    return (status == LS_OK) ? hand_over(ctx, request) : status;
}

ls_status_t ls_join_async(ls_context_h ctx, ls_done_fn done, void *arg)
{
    return hand_over_nothing(ctx, LS_REQUEST_JOIN, done, arg);
}

void ls_dump(ls_context_h ctx, int fd)
{
    ls_request_t *request = NULL;

    if (ls_engine_is_here(ctx)) {
        ls_dump_write(ctx, fd);
    } else if (ls_request_create(LS_REQUEST_DUMP, NULL, &request) == LS_OK) {
        request->fd = fd;
        ls_blocking_hand_over(ctx, request);
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The operators.  Each compute function prepares a call and hands it over; it returns soon, and the
 * engine ends the call.
 *
 * They are not stateful, so that TensorFlow runs those of one function side by side.  The attribute in_place
 * keeps Grappler from computing an operator with constant inputs once and for all, on this rank only.
 */
#include "tf/operators.h"

#include <stdlib.h>

#include "tf/shapes.h"

#define TYPES      "{half, bfloat16, float, double, int32, int64, int8, uint8, bool}"
#define OPERATIONS "{'sum', 'mean', 'weighted_mean', 'min', 'max', 'product'}"

enum { ALLREDUCE, ALLREDUCE_GROUP, BROADCAST, ALLGATHER, REDUCE_SCATTER, ALLTOALL, BARRIER, NUM_OPERATORS };

/* ---- handing over ------------------------------------------------------------------------------------ */

typedef ls_status_t (*hand_over_fn)(ls_context_h ctx, ls_call_t *call, void *extra);

/* After a hand-over that succeeded the call is the engine's, and may be gone already. */
static void hand_over(ls_context_h ctx, ls_call_t *call, hand_over_fn function, void *extra)
{
    const ls_status_t status = function(ctx, call, extra);

    if (status != LS_OK) {
        ls_process_put(ctx);
        ls_call_finish(call, status, ls_last_error());
        return;
    }
    ls_process_put(ctx);
}

/* The context, or NULL with the problem noted. */
static ls_context_h get_context(ls_call_t *call)
{
    ls_context_h ctx = ls_process_get();

    if (ctx == NULL) {
        (void)ls_call_problem(
            call, "lockstep: tensor '%s': the engine is not started in this process (lockstep.start())",
            call->attributes->num_names > 0 ? call->attributes->names[0] : "");
    }
    return ctx;
}

/* ---- all-reduce -------------------------------------------------------------------------------------- */

static ls_status_t start_allreduce(ls_context_h ctx, ls_call_t *call, void *extra)
{
    return ls_allreduce_async(ctx, &call->tensors[0].tensor, extra, ls_call_finish, call);
}

static ls_status_t start_allreduce_group(ls_context_h ctx, ls_call_t *call, void *extra)
{
    ls_tensor_t *tensors = malloc((call->num_tensors + 1) * sizeof(*tensors));
    ls_status_t  status;

    if (tensors == NULL) {
        return LS_ERR_NO_MEMORY;
    }
    for (unsigned i = 0; i < call->num_tensors; i++) {
        tensors[i] = call->tensors[i].tensor;
    }
    status = ls_allreduce_group_async(ctx, tensors, call->num_tensors, extra, ls_call_finish, call);
    free(tensors); /* the engine has copied it */
    return status;
}

static bool prepare_allreduce(ls_call_t *call, ls_reduce_t *reduce)
{
    if (call->attributes->num_names != call->num_tensors) {
        return ls_call_problem(call, "lockstep: %u tensors, but %u names", call->num_tensors,
                               call->attributes->num_names);
    }
    for (unsigned i = 0; i < call->num_tensors; i++) {
        if (!ls_call_input(call, i) || !ls_call_forward(call, i)) {
            return false;
        }
    }
    return ls_call_words(call, (int)call->num_tensors, &reduce->weight, 1);
}

static void allreduce(void *kernel, TF_OpKernelContext *tf_ctx, TF_AsyncOpKernelDoneCallback *done)
{
    const ls_attributes_t *attributes  = kernel;
    const unsigned         num_tensors = (unsigned)ls_tf.NumInputs(tf_ctx) - 1;
    ls_call_t             *call        = ls_call_create(attributes, num_tensors, tf_ctx, done);
    ls_reduce_t            reduce      = attributes->reduce;
    ls_context_h           ctx;

    if (call == NULL) {
        return;
    }
    if (!prepare_allreduce(call, &reduce) || (ctx = get_context(call)) == NULL) {
        ls_call_refuse(call);
        return;
    }
    hand_over(ctx, call, attributes->op->has_name_list ? start_allreduce_group : start_allreduce, &reduce);
}

/* ---- broadcast --------------------------------------------------------------------------------------- */

static ls_status_t start_broadcast(ls_context_h ctx, ls_call_t *call, void *extra)
{
    (void)extra;
    return ls_broadcast_async(ctx, &call->tensors[0].tensor, call->attributes->root, ls_call_finish, call);
}

static void broadcast(void *kernel, TF_OpKernelContext *tf_ctx, TF_AsyncOpKernelDoneCallback *done)
{
    ls_call_t   *call = ls_call_create(kernel, 1, tf_ctx, done);
    ls_context_h ctx;

    if (call == NULL) {
        return;
    }
    if (!ls_call_input(call, 0) || !ls_call_forward(call, 0) || (ctx = get_context(call)) == NULL) {
        ls_call_refuse(call);
        return;
    }
    hand_over(ctx, call, start_broadcast, NULL);
}

/* ---- all-gather and all-to-all ----------------------------------------------------------------------- */

/* Rows of no elements cannot be counted by the elements that arrive. */
static bool prepare_rows(ls_call_t *call, unsigned num_ranks)
{
    const ls_tensor_t *tensor = &call->tensors[0].tensor;
    const int64_t      length = num_ranks;
    void              *data   = NULL;

    if (tensor->num_dims == 0 || ls_call_row_size(tensor) == 0) {
        return ls_call_problem(
            call,
            "lockstep: tensor '%s' has no rows that could be counted: it needs a first dimension, "
            "and no other of 0",
            tensor->name);
    }
    if (!ls_call_allocate(call, 1, TF_INT64, &length, 1, &data)) {
        return false;
    }
    call->rows = data;
    return true;
}

static ls_status_t start_allgather(ls_context_h ctx, ls_call_t *call, void *extra)
{
    (void)extra;
    return ls_allgather_async(ctx, &call->tensors[0].tensor, ls_call_room, ls_call_finish, call);
}

static void allgather(void *kernel, TF_OpKernelContext *tf_ctx, TF_AsyncOpKernelDoneCallback *done)
{
    ls_call_t   *call = ls_call_create(kernel, 1, tf_ctx, done);
    ls_context_h ctx  = NULL;

    if (call == NULL) {
        return;
    }
    if (!ls_call_input(call, 0) || (ctx = get_context(call)) == NULL || !prepare_rows(call, ls_size(ctx))) {
        ls_process_put(ctx);
        ls_call_refuse(call);
        return;
    }
    hand_over(ctx, call, start_allgather, NULL);
}

static ls_status_t start_alltoall(ls_context_h ctx, ls_call_t *call, void *extra)
{
    return ls_alltoall_async(ctx, &call->tensors[0].tensor, extra, ls_call_room, ls_call_finish, call);
}

/* Splits count rows, the engine elements. */
static bool read_splits(ls_call_t *call, uint64_t *counts, unsigned num_ranks)
{
    const ls_tensor_t *tensor = &call->tensors[0].tensor;
    uint64_t           sum    = 0;

    if (!ls_call_words(call, 1, counts, num_ranks)) {
        return false;
    }
    for (unsigned rank = 0; rank < num_ranks; rank++) {
        if (counts[rank] > (uint64_t)tensor->shape[0]) { /* also the negative ones */
            return ls_call_problem(
                call, "lockstep: tensor '%s' has %lld rows, but %lld of them shall go to rank %u",
                tensor->name, (long long)tensor->shape[0], (long long)counts[rank], rank);
        }
        sum += counts[rank];
        counts[rank] *= ls_call_row_size(tensor);
    }
    if (sum != (uint64_t)tensor->shape[0]) {
        return ls_call_problem(call, "lockstep: tensor '%s' has %lld rows, but its splits add up to %llu",
                               tensor->name, (long long)tensor->shape[0], (unsigned long long)sum);
    }
    return true;
}

static void alltoall(void *kernel, TF_OpKernelContext *tf_ctx, TF_AsyncOpKernelDoneCallback *done)
{
    ls_call_t   *call   = ls_call_create(kernel, 1, tf_ctx, done);
    uint64_t    *counts = NULL;
    ls_context_h ctx    = NULL;

    if (call == NULL) {
        return;
    }
    if (!ls_call_input(call, 0) || (ctx = get_context(call)) == NULL || !prepare_rows(call, ls_size(ctx))) {
        goto err_put_context;
    }
    counts = malloc(ls_size(ctx) * sizeof(*counts));
    if (counts == NULL) {
        (void)ls_call_problem(call, "lockstep: no memory for the splits of '%s'", call->attributes->names[0]);
        goto err_put_context;
    }
    if (!read_splits(call, counts, ls_size(ctx))) {
        goto err_free_counts;
    }
    hand_over(ctx, call, start_alltoall, counts);
    free(counts); /* the engine has copied them */
    return;

err_free_counts:
    free(counts);
err_put_context:
    ls_process_put(ctx);
    ls_call_refuse(call);
}

/* ---- reduce-scatter ---------------------------------------------------------------------------------- */

static ls_status_t start_reduce_scatter(ls_context_h ctx, ls_call_t *call, void *extra)
{
    return ls_reduce_scatter_async(ctx, &call->tensors[0].tensor, extra, ls_call_finish, call);
}

/* The engine cuts between elements, we may only cut between rows. */
static bool prepare_block(ls_call_t *call, ls_context_h ctx)
{
    ls_call_tensor_t *own      = &call->tensors[0];
    ls_tensor_t      *tensor   = &own->tensor;
    const uint64_t    num_rows = (tensor->num_dims > 0) ? (uint64_t)own->shape[0] : 0;
    int64_t           shape[LS_CALL_MAX_DIMS];

    if (tensor->num_dims == 0) {
        return ls_call_problem(call, "lockstep: tensor '%s' is a scalar and cannot be scattered",
                               tensor->name);
    }
    if (num_rows % ls_size(ctx) != 0 && ls_call_row_size(tensor) > 1) {
        return ls_call_problem(
            call,
            "lockstep: tensor '%s' has %llu rows, which cannot be scattered evenly over %u ranks; "
            "only a vector may be uneven",
            tensor->name, (unsigned long long)num_rows, ls_size(ctx));
    }
    for (unsigned i = 0; i < tensor->num_dims; i++) {
        shape[i] = own->shape[i];
    }
    shape[0] = (int64_t)ls_block_count(num_rows, ls_size(ctx), ls_rank(ctx));
    return ls_call_allocate(call, 0, own->dtype, shape, tensor->num_dims, &tensor->output);
}

static void reduce_scatter(void *kernel, TF_OpKernelContext *tf_ctx, TF_AsyncOpKernelDoneCallback *done)
{
    const ls_attributes_t *attributes = kernel;
    ls_call_t             *call       = ls_call_create(attributes, 1, tf_ctx, done);
    ls_reduce_t            reduce     = attributes->reduce;
    ls_context_h           ctx        = NULL;

    if (call == NULL) {
        return;
    }
    if (!ls_call_input(call, 0) || !ls_call_words(call, 1, &reduce.weight, 1) ||
        (ctx = get_context(call)) == NULL || !prepare_block(call, ctx)) {
        ls_process_put(ctx);
        ls_call_refuse(call);
        return;
    }
    hand_over(ctx, call, start_reduce_scatter, &reduce);
}

/* ---- barrier ----------------------------------------------------------------------------------------- */

static ls_status_t start_barrier(ls_context_h ctx, ls_call_t *call, void *extra)
{
    (void)extra;
    return ls_barrier_async(ctx, call->attributes->names[0], ls_call_finish, call);
}

static void barrier(void *kernel, TF_OpKernelContext *tf_ctx, TF_AsyncOpKernelDoneCallback *done)
{
    ls_call_t   *call = ls_call_create(kernel, 0, tf_ctx, done);
    ls_context_h ctx;

    if (call == NULL) {
        return;
    }
    if ((ctx = get_context(call)) == NULL) {
        ls_call_refuse(call);
        return;
    }
    hand_over(ctx, call, start_barrier, NULL);
}

/* ---- the table --------------------------------------------------------------------------------------- */

/* TensorFlow passes nothing to the function that makes a kernel: each operator needs its own. */
#define CREATE_FN(_name, _operator)                                          \
    static void *_name(TF_OpKernelConstruction *construction)                \
    {                                                                        \
        return ls_attributes_create(&ls_operators[_operator], construction); \
    }

CREATE_FN(create_allreduce, ALLREDUCE)
CREATE_FN(create_allreduce_group, ALLREDUCE_GROUP)
CREATE_FN(create_broadcast, BROADCAST)
CREATE_FN(create_allgather, ALLGATHER)
CREATE_FN(create_reduce_scatter, REDUCE_SCATTER)
CREATE_FN(create_alltoall, ALLTOALL)
CREATE_FN(create_barrier, BARRIER)

#define ATTR_TYPE      "T: " TYPES
#define ATTR_NAME      "tensor_name: string"
#define ATTR_IN_PLACE  "in_place: bool = true"
#define ATTR_OP        "op: " OPERATIONS " = 'sum'"
#define ATTR_PRESCALE  "prescale: float = 1.0"
#define ATTR_POSTSCALE "postscale: float = 1.0"

const ls_operator_t ls_operators[] = {
    [ALLREDUCE]       = {.name    = "LockstepAllreduce",
                         .inputs  = {"tensor: T", "weight: double"},
                         .outputs = {"reduced: T"},
                         .attrs   = {ATTR_TYPE, ATTR_NAME, ATTR_OP, ATTR_PRESCALE, ATTR_POSTSCALE, ATTR_IN_PLACE},
                         .has_reduce = true,
                         .shape_fn   = ls_shapes_reduced,
                         .create_fn  = create_allreduce,
                         .compute_fn = allreduce},
    [ALLREDUCE_GROUP] = {.name          = "LockstepAllreduceGroup",
                         .inputs        = {"tensors: T", "weight: double"},
                         .outputs       = {"reduced: T"},
                         .attrs         = {"T: list(" TYPES ") >= 1", "tensor_names: list(string)", ATTR_OP,
                                           ATTR_PRESCALE, ATTR_POSTSCALE, ATTR_IN_PLACE},
                         .has_name_list = true,
                         .has_reduce    = true,
                         .shape_fn      = ls_shapes_reduced,
                         .create_fn     = create_allreduce_group,
                         .compute_fn    = allreduce},
    [BROADCAST]       = {.name       = "LockstepBroadcast",
                         .inputs     = {"tensor: T"},
                         .outputs    = {"output: T"},
                         .attrs      = {ATTR_TYPE, ATTR_NAME, "root: int >= 0 = 0", ATTR_IN_PLACE},
                         .has_root   = true,
                         .shape_fn   = ls_shapes_same,
                         .create_fn  = create_broadcast,
                         .compute_fn = broadcast},
    [ALLGATHER]       = {.name       = "LockstepAllgather",
                         .inputs     = {"tensor: T"},
                         .outputs    = {"output: T", "rows: int64"},
                         .attrs      = {ATTR_TYPE, ATTR_NAME, ATTR_IN_PLACE},
                         .shape_fn   = ls_shapes_rows_and_counts,
                         .create_fn  = create_allgather,
                         .compute_fn = allgather},
    [REDUCE_SCATTER]  = {.name       = "LockstepReduceScatter",
                         .inputs     = {"tensor: T", "weight: double"},
                         .outputs    = {"block: T"},
                         .attrs      = {ATTR_TYPE, ATTR_NAME, ATTR_OP, ATTR_PRESCALE, ATTR_POSTSCALE,
                                        ATTR_IN_PLACE},
                         .has_reduce = true,
                         .shape_fn   = ls_shapes_rows,
                         .create_fn  = create_reduce_scatter,
                         .compute_fn = reduce_scatter},
    [ALLTOALL]        = {.name       = "LockstepAlltoall",
                         .inputs     = {"tensor: T", "splits: int64"},
                         .outputs    = {"output: T", "rows: int64"},
                         .attrs      = {ATTR_TYPE, ATTR_NAME, ATTR_IN_PLACE},
                         .shape_fn   = ls_shapes_rows_and_counts,
                         .create_fn  = create_alltoall,
                         .compute_fn = alltoall},
    [BARRIER]         = {.name        = "LockstepBarrier",
                         .attrs       = {ATTR_NAME},
                         .is_stateful = true,
                         .shape_fn    = ls_shapes_none,
                         .create_fn   = create_barrier,
                         .compute_fn  = barrier},
};

const unsigned ls_num_operators = NUM_OPERATORS;

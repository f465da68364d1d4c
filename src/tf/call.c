/* SPDX-License-Identifier: Apache-2.0 */
#include "tf/call.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MESSAGE_ROOM 2048

/*
 * Not CANCELLED, ABORTED, UNAVAILABLE or OUT_OF_RANGE: TensorFlow takes these as "nothing wrong here", "try
 * again" and "end of the data".
 */
static TF_Code code_of(ls_status_t status)
{
    static const TF_Code codes[] = {
        [-LS_ERR_INVALID]     = TF_INVALID_ARGUMENT,    [-LS_ERR_MISMATCH]  = TF_INVALID_ARGUMENT,
        [-LS_ERR_CONFIG]      = TF_INVALID_ARGUMENT,    [-LS_ERR_STALL]     = TF_DEADLINE_EXCEEDED,
        [-LS_ERR_STOPPED]     = TF_FAILED_PRECONDITION, [-LS_ERR_NO_MEMORY] = TF_RESOURCE_EXHAUSTED,
        [-LS_ERR_UNSUPPORTED] = TF_UNIMPLEMENTED,
    };
    const size_t index = (size_t)-status;

    return (index < sizeof(codes) / sizeof(codes[0]) && codes[index] != TF_OK) ? codes[index] : TF_INTERNAL;
}

static bool find_dtype(TF_DataType type, ls_dtype_t *dtype_p)
{
    static const struct {
        TF_DataType tf;
        ls_dtype_t  ls;
    } dtypes[] = {
        {TF_FLOAT, LS_FLOAT32},  {TF_HALF, LS_FLOAT16}, {TF_BFLOAT16, LS_BFLOAT16},
        {TF_DOUBLE, LS_FLOAT64}, {TF_INT32, LS_INT32},  {TF_INT64, LS_INT64},
        {TF_INT8, LS_INT8},      {TF_UINT8, LS_UINT8},  {TF_BOOL, LS_BOOL},
    };

    for (size_t i = 0; i < sizeof(dtypes) / sizeof(dtypes[0]); i++) {
        if (dtypes[i].tf == type) {
            *dtype_p = dtypes[i].ls;
            return true;
        }
    }
    return false;
}

/* Nothing was taken: `done` is still where TensorFlow keeps it, and may be run there. */
static void fail_at_once(TF_OpKernelContext *ctx, TF_AsyncOpKernelDoneCallback *done)
{
    TF_Status *status = ls_tf.NewStatus();

    ls_tf.SetStatus(status, TF_RESOURCE_EXHAUSTED, "lockstep: no memory for an operator");
    ls_tf.OpKernelContext_Failure(ctx, status);
    ls_tf.DeleteStatus(status);
    ls_tf.RunAsyncOpKernelDoneCallback(done);
}

ls_call_t *ls_call_create(const ls_attributes_t *attributes, unsigned num_tensors, TF_OpKernelContext *ctx,
                          TF_AsyncOpKernelDoneCallback *done)
{
    ls_call_t *call = calloc(1, sizeof(*call) + num_tensors * sizeof(call->tensors[0]));

    if (call == NULL) {
        goto err_fail;
    }
    call->done = ls_cxx_done_take(done);
    if (call->done == NULL) {
        goto err_free_call;
    }
    call->ctx         = ctx;
    call->status      = ls_tf.NewStatus();
    call->attributes  = attributes;
    call->num_tensors = num_tensors;
    return call;

err_free_call:
    free(call);
err_fail:
    fail_at_once(ctx, done);
    return NULL;
}

/* Nothing of the call is used after `done`: the rest of the graph runs, and the kernel may go away. */
static void end(ls_call_t *call)
{
    ls_cxx_done_t *done = call->done;

    if (ls_tf.GetCode(call->status) != TF_OK) {
        ls_tf.OpKernelContext_Failure(call->ctx, call->status);
    }
    ls_tf.DeleteStatus(call->status);
    free(call);
    ls_cxx_done_run(done);
}

void ls_call_finish(void *arg, ls_status_t status, const char *message)
{
    ls_call_t *call = arg;
    char       text[MESSAGE_ROOM];

    /* A problem that we met while the engine ran (no room for the output) is the cause of what it reports. */
    if (status != LS_OK && ls_tf.GetCode(call->status) == TF_OK) {
        snprintf(text, sizeof(text), "lockstep: %s", message[0] != '\0' ? message : ls_status_str(status));
        ls_tf.SetStatus(call->status, code_of(status), text);
    }
    end(call);
}

bool ls_call_problem(ls_call_t *call, const char *format, ...)
{
    char    text[MESSAGE_ROOM];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    ls_tf.SetStatus(call->status, TF_INVALID_ARGUMENT, text);
    return false;
}

void ls_call_refuse(ls_call_t *call)
{
    end(call);
}

static bool is_ok(const ls_call_t *call)
{
    return ls_tf.GetCode(call->status) == TF_OK;
}

static const char *name_of(const ls_call_t *call, unsigned index)
{
    return call->attributes->names[index];
}

bool ls_call_input(ls_call_t *call, unsigned index)
{
    ls_call_tensor_t *own   = &call->tensors[index];
    TF_Tensor        *input = NULL;
    int               num_dims;
    bool              is_good;

    ls_tf.GetInput(call->ctx, (int)index, &input, call->status);
    if (!is_ok(call)) {
        return false;
    }
    num_dims   = ls_tf.NumDims(input);
    own->dtype = ls_tf.TensorType(input);
    is_good    = find_dtype(own->dtype, &own->tensor.dtype) && num_dims <= LS_CALL_MAX_DIMS;
    if (is_good) {
        for (int i = 0; i < num_dims; i++) {
            own->shape[i] = ls_tf.Dim(input, i);
        }
        own->tensor.name     = name_of(call, index);
        own->tensor.num_dims = (unsigned)num_dims;
        own->tensor.shape    = own->shape;
        own->tensor.count    = (uint64_t)ls_tf.TensorElementCount(input);
        own->tensor.input    = ls_tf.TensorData(input); /* kept alive by the context */
    } else {
        (void)ls_call_problem(call, "lockstep: tensor '%s': type %d with %d dimensions (at most %d) is not supported",
                              name_of(call, index), (int)own->dtype, num_dims, LS_CALL_MAX_DIMS);
    }
    ls_tf.DeleteTensor(input); /* or it could not be forwarded */
    return is_good;
}

bool ls_call_forward(ls_call_t *call, unsigned index)
{
    ls_tensor_t *tensor    = &call->tensors[index].tensor;
    const int    candidate = (int)index;
    int          forwarded = -1;
    TF_Tensor *output = ls_tf.ForwardInputOrAllocateOutput(call->ctx, &candidate, 1, candidate, tensor->shape,
                                                           (int)tensor->num_dims, &forwarded, call->status);

    if (output == NULL || !is_ok(call)) {
        return false;
    }
    tensor->output = ls_tf.TensorData(output);
    ls_tf.DeleteTensor(output);
    return true;
}

bool ls_call_allocate(ls_call_t *call, int index, TF_DataType dtype, const int64_t *shape, unsigned num_dims,
                      void **data_p)
{
    /* The length is only used for types of variable size. */
    TF_Tensor *output = ls_tf.AllocateOutput(call->ctx, index, dtype, shape, (int)num_dims, 0, call->status);

    if (output == NULL || !is_ok(call)) {
        return false;
    }
    *data_p = ls_tf.TensorData(output);
    ls_tf.DeleteTensor(output);
    return true;
}

bool ls_call_words(ls_call_t *call, int index, void *words, uint64_t num_words)
{
    TF_Tensor *input = NULL;
    uint64_t   count;

    ls_tf.GetInput(call->ctx, index, &input, call->status);
    if (!is_ok(call)) {
        return false;
    }
    count = (uint64_t)ls_tf.TensorElementCount(input);
    if (count == num_words) {
        memcpy(words, ls_tf.TensorData(input), num_words * sizeof(uint64_t));
    }
    ls_tf.DeleteTensor(input);
    if (count != num_words) {
        return ls_call_problem(call, "lockstep: tensor '%s': input %d has %llu elements instead of %llu",
                               name_of(call, 0), index, (unsigned long long)count,
                               (unsigned long long)num_words);
    }
    return true;
}

uint64_t ls_call_row_size(const ls_tensor_t *tensor)
{
    uint64_t size = 1;

    for (unsigned i = 1; i < tensor->num_dims; i++) {
        size *= (uint64_t)tensor->shape[i];
    }
    return size;
}

void *ls_call_room(void *arg, const uint64_t *counts, unsigned num_ranks)
{
    static char       nothing; /* for an output without elements */
    ls_call_t        *call = arg;
    ls_call_tensor_t *own  = &call->tensors[0];
    const uint64_t    row  = ls_call_row_size(&own->tensor);
    uint64_t          rows = 0;
    void             *data = NULL;

    for (unsigned rank = 0; rank < num_ranks; rank++) {
        call->rows[rank] = (int64_t)(counts[rank] / row);
        rows += counts[rank] / row;
    }
    own->shape[0] = (int64_t)rows;
    if (!ls_call_allocate(call, 0, own->dtype, own->shape, own->tensor.num_dims, &data)) {
        return NULL;
    }
    return (data == NULL) ? &nothing : data;
}

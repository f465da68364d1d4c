/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/request.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "device/dtype.h"
#include "engine/widen.h"

ls_status_t ls_request_create(ls_request_kind_t kind, const char *name, ls_request_t **request_p)
{
    const size_t  length = (name == NULL) ? 0 : strlen(name);
    ls_request_t *request;
    ls_status_t   status;
    void         *mem;

    if (kind == LS_REQUEST_COLLECTIVE && (length == 0 || length >= LS_SCHEDULE_NAME_ROOM)) {
        return ls_error_set(LS_ERR_INVALID, "a request needs a name of 1 to %d bytes", LS_SCHEDULE_NAME_ROOM - 1);
    }
    status = ls_mem_alloc(sizeof(*request) + length + 1, "request", &mem);
    if (status != LS_OK) {
        return status;
    }
    request            = mem;
    request->kind      = kind;
    request->item.name = request->name;
    memcpy(request->name, (name == NULL) ? "" : name, length + 1);
    *request_p = request;
    return LS_OK;
}

static bool overlaps(const ls_tensor_t *tensor, size_t output_bytes)
{
    const uintptr_t in  = (uintptr_t)tensor->input;
    const uintptr_t out = (uintptr_t)tensor->output;
    const size_t    in_bytes = tensor->count * ls_dtype_size(tensor->dtype);

    return in != out && in < out + output_bytes && out < in + in_bytes;
}

static ls_status_t check_shape(const ls_tensor_t *tensor)
{
    uint64_t product = 1;

    if (tensor->num_dims > LS_SIGNATURE_MAX_DIMS) {
        return ls_error_set(LS_ERR_INVALID, "tensor '%s' has %u dimensions; at most %d are supported", tensor->name,
                            tensor->num_dims, LS_SIGNATURE_MAX_DIMS);
    }
    if (tensor->shape == NULL && tensor->num_dims > 0) {
        return ls_error_set(LS_ERR_INVALID, "tensor '%s' has %u dimensions but no shape", tensor->name,
                            tensor->num_dims);
    }
    for (unsigned i = 0; i < tensor->num_dims; i++) {
        if (tensor->shape[i] < 0) {
            return ls_error_set(LS_ERR_INVALID, "tensor '%s': dimension %u is negative", tensor->name, i);
        }
        product *= (uint64_t)tensor->shape[i];
    }
    if (tensor->shape != NULL && product != tensor->count) {
        return ls_error_set(LS_ERR_INVALID, "tensor '%s' has %llu elements, but its shape has %llu", tensor->name,
                            (unsigned long long)tensor->count, (unsigned long long)product);
    }
    return LS_OK;
}

/* Does the collective take input from, and give output to, the memory in ls_tensor_t? */
static ls_status_t check_memory(const ls_tensor_t *tensor, ls_coll_t coll)
{
    const bool has_output = (coll == LS_COLL_ALLREDUCE || coll == LS_COLL_BROADCAST || coll == LS_COLL_REDUCE_SCATTER);

    if (tensor->count > SIZE_MAX / 16) {
        return ls_error_set(LS_ERR_INVALID, "tensor '%s' has %llu elements: too many", tensor->name,
                            (unsigned long long)tensor->count);
    }
    if (tensor->count > 0 && (tensor->input == NULL || (has_output && tensor->output == NULL))) {
        return ls_error_set(LS_ERR_INVALID, "tensor '%s' has elements but no %s", tensor->name,
                            tensor->input == NULL ? "input" : "output");
    }
    if (has_output && coll != LS_COLL_REDUCE_SCATTER && tensor->count > 0 &&
        overlaps(tensor, tensor->count * ls_dtype_size(tensor->dtype))) {
        return ls_error_set(LS_ERR_INVALID, "tensor '%s': input and output overlap without being the same",
                            tensor->name);
    }
    return LS_OK;
}

ls_status_t ls_request_set_tensor(ls_request_t *request, const ls_tensor_t *tensor, ls_coll_t coll)
{
    ls_signature_t *signature = &request->item.signature;
    ls_status_t     status;

    if ((unsigned)tensor->dtype >= LS_DTYPE_COUNT) {
        return ls_error_set(LS_ERR_INVALID, "tensor '%s' has unknown type %d", tensor->name, (int)tensor->dtype);
    }
    if ((status = check_shape(tensor)) != LS_OK || (status = check_memory(tensor, coll)) != LS_OK) {
        return status;
    }
    signature->coll      = coll;
    signature->dtype     = tensor->dtype;
    signature->op        = LS_SUM;
    signature->prescale  = 1.0;
    signature->postscale = 1.0;
    signature->count     = tensor->count;
    signature->num_dims  = (tensor->shape == NULL) ? 1 : tensor->num_dims;
    signature->shape[0]  = (int64_t)tensor->count;
    if (tensor->shape != NULL && tensor->num_dims > 0) {
        memcpy(signature->shape, tensor->shape, tensor->num_dims * sizeof(*tensor->shape));
    }
    request->input  = tensor->input;
    request->output = tensor->output;
    return LS_OK;
}

ls_status_t ls_request_set_reduce(ls_request_t *request, const ls_reduce_t *reduce)
{
    ls_signature_t *signature = &request->item.signature;
    const bool      is_float  = ls_dtype_is_float(signature->dtype);
    double          prescale, postscale;

    if (reduce == NULL) {
        return LS_OK;
    }
    prescale  = (reduce->prescale == 0) ? 1.0 : reduce->prescale;
    postscale = (reduce->postscale == 0) ? 1.0 : reduce->postscale;
    if ((unsigned)reduce->op >= LS_OP_COUNT) {
        return ls_error_set(LS_ERR_INVALID, "tensor '%s': unknown operation %d", request->name, (int)reduce->op);
    }
    if (!is_float && (prescale != 1.0 || postscale != 1.0 || reduce->op == LS_WEIGHTED_MEAN)) {
        return ls_error_set(LS_ERR_INVALID, "tensor '%s': scales and weights need a float type, not %s", request->name,
                            ls_dtype_name(signature->dtype));
    }
    if (signature->dtype == LS_BOOL && reduce->op == LS_MEAN) {
        return ls_error_set(LS_ERR_INVALID, "tensor '%s': bool has no mean", request->name);
    }
    if (reduce->op == LS_WEIGHTED_MEAN && !(reduce->weight >= 0 && isfinite(reduce->weight))) {
        return ls_error_set(LS_ERR_INVALID, "tensor '%s': weight %g is not a number of 0 or more", request->name,
                            reduce->weight);
    }
    signature->op        = reduce->op;
    signature->prescale  = prescale;
    signature->postscale = postscale;
    request->weight      = reduce->weight;
    return LS_OK;
}

void ls_request_destroy(ls_request_t *request)
{
    if (request != NULL) {
        ls_mem_free(request->send_counts);
        ls_mem_free(request->widened);
        ls_mem_free(request);
    }
}

static void group_finish(ls_request_group_t *group, ls_status_t status, const char *message)
{
    if (status != LS_OK && group->status == LS_OK) {
        group->status = status;
        /* Without memory for the text the status alone must do. */
        (void)ls_mem_strdup(message, "group message", &group->message);
    }
    if (--group->num_open == 0) {
        group->done(group->arg, group->status, (group->message == NULL) ? "" : group->message);
        ls_mem_free(group->message);
        ls_mem_free(group);
    }
}

void ls_request_finish(ls_request_t *request, ls_status_t status, const char *message)
{
    if (request->widened != NULL && status == LS_OK) {
        ls_widen_narrow(request);
    }
    if (request->group != NULL) {
        group_finish(request->group, status, message);
    } else if (request->done != NULL) {
        request->done(request->arg, status, message);
    }
    ls_request_destroy(request);
}

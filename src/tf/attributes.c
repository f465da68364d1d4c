/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory comes from malloc here and in call.c: the engine's tagged memory is not part of its public
 * interface.
 */
#include "tf/attributes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tf/operators.h"

#define OP_NAME_ROOM 32

static const char *const op_names[LS_OP_COUNT] = {
    [LS_SUM] = "sum", [LS_MEAN] = "mean", [LS_WEIGHTED_MEAN] = "weighted_mean",
    [LS_MIN] = "min", [LS_MAX] = "max",   [LS_PRODUCT] = "product",
};

bool ls_attributes_find_op(const char *name, ls_op_t *op_p)
{
    for (unsigned op = 0; op < LS_OP_COUNT; op++) {
        if (strcmp(op_names[op], name) == 0) {
            *op_p = (ls_op_t)op;
            return true;
        }
    }
    return false;
}

static bool is_ok(const TF_Status *status)
{
    return ls_tf.GetCode(status) == TF_OK;
}

/* The block: attributes, pointers to the names, the names with an end mark each. */
static ls_attributes_t *allocate(size_t num_names, size_t num_bytes, TF_Status *status)
{
    ls_attributes_t *attributes =
        calloc(1, sizeof(*attributes) + num_names * sizeof(char *) + num_bytes + num_names);

    if (attributes == NULL) {
        ls_tf.SetStatus(status, TF_RESOURCE_EXHAUSTED,
                        "lockstep: no memory for the attributes of an operator");
        return NULL;
    }
    attributes->num_names = (unsigned)num_names;
    attributes->names     = (char **)(attributes + 1);
    return attributes;
}

static ls_attributes_t *read_name(TF_OpKernelConstruction *construction, TF_Status *status)
{
    ls_attributes_t *attributes;
    int32_t          list_size, total_size = 0;

    ls_tf.OpKernelConstruction_GetAttrSize(construction, "tensor_name", &list_size, &total_size, status);
    if (!is_ok(status) || (attributes = allocate(1, (size_t)total_size, status)) == NULL) {
        return NULL;
    }
    attributes->names[0] = (char *)(attributes->names + 1);
    ls_tf.OpKernelConstruction_GetAttrString(construction, "tensor_name", attributes->names[0],
                                             (size_t)total_size, status);
    return attributes;
}

/* TensorFlow gives the names without end marks, one after the other: read them, then spread them. */
static bool read_list(TF_OpKernelConstruction *construction, ls_attributes_t *attributes, size_t num_bytes,
                      TF_Status *status)
{
    const size_t num_names = attributes->num_names;
    char        *text      = (char *)(attributes->names + num_names);
    char        *packed    = malloc(num_bytes + 1);
    char       **starts    = malloc((num_names + 1) * sizeof(*starts));
    size_t      *lengths   = malloc((num_names + 1) * sizeof(*lengths));

    if (packed == NULL || starts == NULL || lengths == NULL) {
        ls_tf.SetStatus(status, TF_RESOURCE_EXHAUSTED, "lockstep: no memory for the names of a group");
    } else {
        ls_tf.OpKernelConstruction_GetAttrStringList(construction, "tensor_names", starts, lengths,
                                                     (int)num_names, packed, num_bytes, status);
    }
    for (size_t i = 0; i < num_names && is_ok(status); i++) {
        attributes->names[i] = memcpy(text, starts[i], lengths[i]);
        text += lengths[i] + 1;
    }
    free(lengths);
    free(starts);
    free(packed);
    return is_ok(status);
}

static ls_attributes_t *read_names(TF_OpKernelConstruction *construction, TF_Status *status)
{
    ls_attributes_t *attributes;
    int32_t          num_names = 0, num_bytes = 0;

    ls_tf.OpKernelConstruction_GetAttrSize(construction, "tensor_names", &num_names, &num_bytes, status);
    if (!is_ok(status) || (attributes = allocate((size_t)num_names, (size_t)num_bytes, status)) == NULL) {
        return NULL;
    }
    (void)read_list(construction, attributes, (size_t)num_bytes, status);
    return attributes;
}

static void read_reduce(TF_OpKernelConstruction *construction, ls_reduce_t *reduce, TF_Status *status)
{
    char    name[OP_NAME_ROOM] = "", message[96];
    float   prescale = 1, postscale = 1;
    int32_t list_size, length       = 0;

    ls_tf.OpKernelConstruction_GetAttrSize(construction, "op", &list_size, &length, status);
    if (is_ok(status)) {
        ls_tf.OpKernelConstruction_GetAttrString(construction, "op", name, sizeof(name) - 1, status);
    }
    if (is_ok(status) && !ls_attributes_find_op(name, &reduce->op)) {
        snprintf(message, sizeof(message), "lockstep: there is no operation '%s'", name);
        ls_tf.SetStatus(status, TF_INVALID_ARGUMENT, message);
    }
    if (is_ok(status)) {
        ls_tf.OpKernelConstruction_GetAttrFloat(construction, "prescale", &prescale, status);
    }
    if (is_ok(status)) {
        ls_tf.OpKernelConstruction_GetAttrFloat(construction, "postscale", &postscale, status);
    }
    reduce->prescale  = (double)prescale;
    reduce->postscale = (double)postscale;
}

static void read_root(TF_OpKernelConstruction *construction, unsigned *root_p, TF_Status *status)
{
    int64_t root = 0;

    ls_tf.OpKernelConstruction_GetAttrInt64(construction, "root", &root, status);
    if (is_ok(status)) {
        *root_p = (root < 0 || root > INT32_MAX) ? UINT32_MAX : (unsigned)root; /* the engine refuses it */
    }
}

ls_attributes_t *ls_attributes_create(const ls_operator_t *op, TF_OpKernelConstruction *construction)
{
    TF_Status       *status = ls_tf.NewStatus();
    ls_attributes_t *attributes =
        op->has_name_list ? read_names(construction, status) : read_name(construction, status);

    if (is_ok(status) && op->has_reduce) {
        read_reduce(construction, &attributes->reduce, status);
    }
    if (is_ok(status) && op->has_root) {
        read_root(construction, &attributes->root, status);
    }
    if (is_ok(status)) {
        attributes->op = op;
    } else {
        ls_tf.OpKernelConstruction_Failure(construction, status);
        ls_attributes_destroy(attributes);
        attributes = NULL;
    }
    ls_tf.DeleteStatus(status);
    return attributes;
}

void ls_attributes_destroy(void *attributes)
{
    free(attributes);
}

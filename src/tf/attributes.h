/* SPDX-License-Identifier: Apache-2.0 */
/* What is fixed when a kernel is made: the attributes of its node. */
#ifndef LS_TF_ATTRIBUTES_H
#define LS_TF_ATTRIBUTES_H

#include "lockstep.h"
#include "tf/tf_api.h"

typedef struct ls_attributes {
    const struct ls_operator *op;
    unsigned                  num_names;
    char                    **names; /* one per tensor; in the same block as this */
    ls_reduce_t               reduce;
    unsigned                  root;
} ls_attributes_t;

/* NULL: it failed, and TensorFlow was told. */
ls_attributes_t *ls_attributes_create(const struct ls_operator *op, TF_OpKernelConstruction *construction);
void             ls_attributes_destroy(void *attributes); /* NULL is allowed */

/* "mean" to LS_MEAN; false: there is none of that name. */
bool ls_attributes_find_op(const char *name, ls_op_t *op_p);

#endif

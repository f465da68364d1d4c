/* SPDX-License-Identifier: Apache-2.0 */
/* The table of operators: what TensorFlow is told about each, and how an execution begins. */
#ifndef LS_TF_OPERATORS_H
#define LS_TF_OPERATORS_H

#include "tf/attributes.h"
#include "tf/call.h"

#define LS_OPERATOR_MAX_SPECS 6

typedef struct ls_operator {
    const char *name;
    const char *inputs[LS_OPERATOR_MAX_SPECS];
    const char *outputs[LS_OPERATOR_MAX_SPECS];
    const char *attrs[LS_OPERATOR_MAX_SPECS];

    /* Which attributes there are. */
    bool has_name_list; /* tensor_names instead of tensor_name */
    bool has_reduce;    /* op, prescale, postscale */
    bool has_root;
    /* TensorFlow runs stateful operators of a function one after another, and never drops one. */
    bool is_stateful;

    ls_tf_shape_fn   shape_fn;
    ls_tf_create_fn  create_fn;
    ls_tf_compute_fn compute_fn;
} ls_operator_t;

extern const ls_operator_t ls_operators[];
extern const unsigned      ls_num_operators;

#endif

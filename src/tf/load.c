/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What happens when the library is loaded: the operators are registered.  It must happen there, since
 * tf.load_op_library() makes Python functions only for what is registered meanwhile.
 */
#include <stdio.h>

#include "lockstep.h"
#include "tf/operators.h"
#include "tf/rows.h"
#include "tf/xla.h"

static char load_problem[512];

/* "" or what went wrong when the library was loaded. */
LS_API const char *lockstep_tf_problem(void);

const char *lockstep_tf_problem(void)
{
    return load_problem;
}

static void register_op(const ls_operator_t *op, TF_Status *status)
{
    TF_OpDefinitionBuilder *builder = ls_tf.NewOpDefinitionBuilder(op->name);

    for (unsigned i = 0; i < LS_OPERATOR_MAX_SPECS; i++) {
        if (op->inputs[i] != NULL) {
            ls_tf.OpDefinitionBuilderAddInput(builder, op->inputs[i]);
        }
        if (op->outputs[i] != NULL) {
            ls_tf.OpDefinitionBuilderAddOutput(builder, op->outputs[i]);
        }
        if (op->attrs[i] != NULL) {
            ls_tf.OpDefinitionBuilderAddAttr(builder, op->attrs[i]);
        }
    }
    if (op->is_stateful) { /* setting it to false makes it true */
        ls_tf.OpDefinitionBuilderSetIsStateful(builder, true);
    }
    ls_tf.OpDefinitionBuilderSetShapeInferenceFunction(builder, op->shape_fn);
    ls_tf.RegisterOpDefinition(builder, status); /* takes the builder */
}

static void register_kernel(const ls_operator_t *op, TF_Status *status)
{
    TF_KernelBuilder *builder =
        ls_tf.NewAsyncKernelBuilder(op->name, "CPU", op->create_fn, op->compute_fn, ls_attributes_destroy);

    ls_tf.RegisterKernelBuilder(op->name, builder, status); /* takes the builder */
}

__attribute__((constructor)) static void on_load(void)
{
    const char *problem = ls_tf_api_load();
    TF_Status  *status;

    if (problem != NULL) {
        snprintf(load_problem, sizeof(load_problem), "%s", problem);
        return;
    }
    status = ls_tf.NewStatus();
    for (unsigned i = 0; i < ls_num_operators && ls_tf.GetCode(status) == TF_OK; i++) {
        register_op(&ls_operators[i], status);
        if (ls_tf.GetCode(status) == TF_OK) {
            register_kernel(&ls_operators[i], status);
        }
        if (ls_tf.GetCode(status) != TF_OK) {
            snprintf(load_problem, sizeof(load_problem), "cannot register %s: %s", ls_operators[i].name,
                     ls_tf.Message(status));
        }
    }
    if (ls_tf.GetCode(status) == TF_OK) {
        ls_rows_register(status);
        if (ls_tf.GetCode(status) != TF_OK) {
            snprintf(load_problem, sizeof(load_problem), "cannot register the reading of rows: %s", ls_tf.Message(status));
        }
    }
    ls_tf.DeleteStatus(status);
    ls_xla_register();
}

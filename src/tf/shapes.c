/* SPDX-License-Identifier: Apache-2.0 */
#include "tf/shapes.h"

static bool is_ok(const TF_Status *status)
{
    return ls_tf.GetCode(status) == TF_OK;
}

static void copy_shape(TF_ShapeInferenceContext *ctx, int index, TF_Status *status)
{
    TF_ShapeHandle *shape = ls_tf.NewShapeHandle();

    ls_tf.ShapeInferenceContextGetInput(ctx, index, shape, status);
    if (is_ok(status)) {
        ls_tf.ShapeInferenceContextSetOutput(ctx, index, shape, status);
    }
    ls_tf.DeleteShapeHandle(shape);
}

static void check_scalar(TF_ShapeInferenceContext *ctx, int index, TF_Status *status)
{
    TF_ShapeHandle *shape = ls_tf.NewShapeHandle();

    ls_tf.ShapeInferenceContextGetInput(ctx, index, shape, status);
    if (is_ok(status)) {
        ls_tf.ShapeInferenceContextWithRank(ctx, shape, 0, shape, status);
    }
    ls_tf.DeleteShapeHandle(shape);
}

void ls_shapes_reduced(TF_ShapeInferenceContext *ctx, TF_Status *status)
{
    const int weight = (int)ls_tf.ShapeInferenceContextNumInputs(ctx) - 1;

    for (int i = 0; i < weight && is_ok(status); i++) {
        copy_shape(ctx, i, status);
    }
    if (is_ok(status)) {
        check_scalar(ctx, weight, status);
    }
}

void ls_shapes_same(TF_ShapeInferenceContext *ctx, TF_Status *status)
{
    copy_shape(ctx, 0, status);
}

/* A handle that was not filled stands for "nothing known"; with a rank it is a shape of unknown dimensions.
 */
static void set_vector(TF_ShapeInferenceContext *ctx, int output, TF_Status *status)
{
    TF_ShapeHandle *vector = ls_tf.NewShapeHandle();

    ls_tf.ShapeInferenceContextWithRank(ctx, vector, 1, vector, status);
    if (is_ok(status)) {
        ls_tf.ShapeInferenceContextSetOutput(ctx, output, vector, status);
    }
    ls_tf.DeleteShapeHandle(vector);
}

static void set_rows(TF_ShapeInferenceContext *ctx, TF_ShapeHandle *shape, TF_ShapeHandle *first,
                     TF_Status *status)
{
    ls_tf.ShapeInferenceContextGetInput(ctx, 0, shape, status);
    if (is_ok(status)) {
        ls_tf.ShapeInferenceContextWithRankAtLeast(ctx, shape, 1, shape, status);
    }
    if (is_ok(status)) {
        ls_tf.ShapeInferenceContextSubshape(ctx, shape, 1, INT64_MAX, shape, status);
    }
    if (is_ok(status)) {
        ls_tf.ShapeInferenceContextWithRank(ctx, first, 1, first, status);
    }
    if (is_ok(status)) {
        ls_tf.ShapeInferenceContextConcatenateShapes(ctx, first, shape, shape, status);
    }
    if (is_ok(status)) {
        ls_tf.ShapeInferenceContextSetOutput(ctx, 0, shape, status);
    }
}

void ls_shapes_rows(TF_ShapeInferenceContext *ctx, TF_Status *status)
{
    TF_ShapeHandle *shape = ls_tf.NewShapeHandle();
    TF_ShapeHandle *first = ls_tf.NewShapeHandle();

    set_rows(ctx, shape, first, status);
    ls_tf.DeleteShapeHandle(first);
    ls_tf.DeleteShapeHandle(shape);
}

void ls_shapes_rows_and_counts(TF_ShapeInferenceContext *ctx, TF_Status *status)
{
    ls_shapes_rows(ctx, status);
    if (is_ok(status)) {
        set_vector(ctx, 1, status);
    }
}

void ls_shapes_none(TF_ShapeInferenceContext *ctx, TF_Status *status)
{
    (void)ctx;
    (void)status;
}

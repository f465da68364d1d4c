/* SPDX-License-Identifier: Apache-2.0 */
/* Shape functions: what TensorFlow can know of the results before anything ran. */
#ifndef LS_TF_SHAPES_H
#define LS_TF_SHAPES_H

#include "tf/tf_api.h"

/* Output i has the shape of input i; the last input, the weight, is a scalar. */
void ls_shapes_reduced(TF_ShapeInferenceContext *ctx, TF_Status *status);

/* The output has the shape of the input. */
void ls_shapes_same(TF_ShapeInferenceContext *ctx, TF_Status *status);

/* The first dimension is not known; output 1, of one number per rank, where there is one. */
void ls_shapes_rows(TF_ShapeInferenceContext *ctx, TF_Status *status);
void ls_shapes_rows_and_counts(TF_ShapeInferenceContext *ctx, TF_Status *status);

void ls_shapes_none(TF_ShapeInferenceContext *ctx, TF_Status *status);

#endif

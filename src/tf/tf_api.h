/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What we use of TensorFlow's C API (tensorflow/c/{kernels,ops,tf_tensor,tf_status}.h), declared here so that
 * one binary, built without TensorFlow, serves every TensorFlow that has these functions.
 *
 * They are found in the libraries that `import tensorflow` has loaded, by soname, and called through the
 * table ls_tf: ls_tf.GetInput is TF_GetInput.
 */
#ifndef LS_TF_TF_API_H
#define LS_TF_TF_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct TF_Status                    TF_Status;
typedef struct TF_Tensor                    TF_Tensor;
typedef struct TF_OpDefinitionBuilder       TF_OpDefinitionBuilder;
typedef struct TF_ShapeInferenceContext     TF_ShapeInferenceContext;
typedef struct TF_ShapeHandle               TF_ShapeHandle;
typedef struct TF_KernelBuilder             TF_KernelBuilder;
typedef struct TF_OpKernelConstruction      TF_OpKernelConstruction;
typedef struct TF_OpKernelContext           TF_OpKernelContext;
typedef struct TF_AsyncOpKernelDoneCallback TF_AsyncOpKernelDoneCallback;

/* Numbers of TensorFlow's own; they are in saved models and never change. */
typedef enum TF_DataType {
    TF_FLOAT    = 1,
    TF_DOUBLE   = 2,
    TF_INT32    = 3,
    TF_UINT8    = 4,
    TF_INT16    = 5,
    TF_INT8     = 6,
    TF_STRING   = 7,
    TF_INT64    = 9,
    TF_BOOL     = 10,
    TF_BFLOAT16 = 14,
    TF_UINT16   = 17,
    TF_HALF     = 19,
    TF_UINT32   = 22,
    TF_UINT64   = 23,
} TF_DataType;

typedef enum TF_Code {
    TF_OK                  = 0,
    TF_INVALID_ARGUMENT    = 3,
    TF_DEADLINE_EXCEEDED   = 4,
    TF_RESOURCE_EXHAUSTED  = 8,
    TF_FAILED_PRECONDITION = 9,
    TF_UNIMPLEMENTED       = 12,
    TF_INTERNAL            = 13,
} TF_Code;

typedef void (*ls_tf_shape_fn)(TF_ShapeInferenceContext *ctx, TF_Status *status);
typedef void *(*ls_tf_create_fn)(TF_OpKernelConstruction *construction);
typedef void (*ls_tf_compute_fn)(void *kernel, TF_OpKernelContext *ctx, TF_AsyncOpKernelDoneCallback *done);
typedef void (*ls_tf_compute_now_fn)(void *kernel, TF_OpKernelContext *ctx);
typedef void (*ls_tf_delete_fn)(void *kernel);

/* Result, name without TF_, arguments.  One list gives the table and the look-up. */
#define LS_TF_API_LIST(X)                                                                                            \
    X(TF_Status *, NewStatus, (void))                                                                                \
    X(void, DeleteStatus, (TF_Status *))                                                                             \
    X(void, SetStatus, (TF_Status *, TF_Code, const char *))                                                         \
    X(TF_Code, GetCode, (const TF_Status *))                                                                         \
    X(const char *, Message, (const TF_Status *))                                                                    \
    X(void, DeleteTensor, (TF_Tensor *))                                                                             \
    X(TF_DataType, TensorType, (const TF_Tensor *))                                                                  \
    X(int, NumDims, (const TF_Tensor *))                                                                             \
    X(int64_t, Dim, (const TF_Tensor *, int))                                                                        \
    X(void *, TensorData, (const TF_Tensor *))                                                                       \
    X(int64_t, TensorElementCount, (const TF_Tensor *))                                                              \
    X(TF_OpDefinitionBuilder *, NewOpDefinitionBuilder, (const char *))                                              \
    X(void, RegisterOpDefinition, (TF_OpDefinitionBuilder *, TF_Status *))                                           \
    X(void, OpDefinitionBuilderAddAttr, (TF_OpDefinitionBuilder *, const char *))                                    \
    X(void, OpDefinitionBuilderAddInput, (TF_OpDefinitionBuilder *, const char *))                                   \
    X(void, OpDefinitionBuilderAddOutput, (TF_OpDefinitionBuilder *, const char *))                                  \
    X(void, OpDefinitionBuilderSetIsStateful, (TF_OpDefinitionBuilder *, bool))                                      \
    X(void, OpDefinitionBuilderSetShapeInferenceFunction, (TF_OpDefinitionBuilder *, ls_tf_shape_fn))                \
    X(int64_t, ShapeInferenceContextNumInputs, (TF_ShapeInferenceContext *))                                         \
    X(void, ShapeInferenceContextSetUnknownShape, (TF_ShapeInferenceContext *, TF_Status *))                         \
    X(TF_ShapeHandle *, NewShapeHandle, (void))                                                                      \
    X(void, DeleteShapeHandle, (TF_ShapeHandle *))                                                                   \
    X(void, ShapeInferenceContextGetInput, (TF_ShapeInferenceContext *, int, TF_ShapeHandle *, TF_Status *))         \
    X(void, ShapeInferenceContextSetOutput, (TF_ShapeInferenceContext *, int, TF_ShapeHandle *, TF_Status *))        \
    X(void, ShapeInferenceContextWithRank,                                                                           \
      (TF_ShapeInferenceContext *, TF_ShapeHandle *, int64_t, TF_ShapeHandle *, TF_Status *))                        \
    X(void, ShapeInferenceContextWithRankAtLeast,                                                                    \
      (TF_ShapeInferenceContext *, TF_ShapeHandle *, int64_t, TF_ShapeHandle *, TF_Status *))                        \
    X(void, ShapeInferenceContextSubshape,                                                                           \
      (TF_ShapeInferenceContext *, TF_ShapeHandle *, int64_t, int64_t, TF_ShapeHandle *, TF_Status *))               \
    X(void, ShapeInferenceContextConcatenateShapes,                                                                  \
      (TF_ShapeInferenceContext *, TF_ShapeHandle *, TF_ShapeHandle *, TF_ShapeHandle *, TF_Status *))               \
    X(TF_KernelBuilder *, NewAsyncKernelBuilder,                                                                     \
      (const char *, const char *, ls_tf_create_fn, ls_tf_compute_fn, ls_tf_delete_fn))                              \
    X(TF_KernelBuilder *, NewKernelBuilder,                                                                          \
      (const char *, const char *, ls_tf_create_fn, ls_tf_compute_now_fn, ls_tf_delete_fn))                          \
    X(void, RegisterKernelBuilder, (const char *, TF_KernelBuilder *, TF_Status *))                                  \
    X(void, OpKernelConstruction_Failure, (TF_OpKernelConstruction *, TF_Status *))                                  \
    X(void, OpKernelConstruction_GetAttrSize,                                                                        \
      (TF_OpKernelConstruction *, const char *, int32_t *, int32_t *, TF_Status *))                                  \
    X(void, OpKernelConstruction_GetAttrInt64, (TF_OpKernelConstruction *, const char *, int64_t *, TF_Status *))    \
    X(void, OpKernelConstruction_GetAttrFloat, (TF_OpKernelConstruction *, const char *, float *, TF_Status *))      \
    X(void, OpKernelConstruction_GetAttrString,                                                                      \
      (TF_OpKernelConstruction *, const char *, char *, size_t, TF_Status *))                                        \
    X(void, OpKernelConstruction_GetAttrStringList,                                                                  \
      (TF_OpKernelConstruction *, const char *, char **, size_t *, int, void *, size_t, TF_Status *))                \
    X(void, OpKernelContext_Failure, (TF_OpKernelContext *, TF_Status *))                                            \
    X(void, RunAsyncOpKernelDoneCallback, (TF_AsyncOpKernelDoneCallback *))                                          \
    X(int, NumInputs, (TF_OpKernelContext *))                                                                        \
    X(int, NumOutputs, (TF_OpKernelContext *))                                                                       \
    X(TF_DataType, ExpectedOutputDataType, (TF_OpKernelContext *, int))                                              \
    X(void, GetInput, (TF_OpKernelContext *, int, TF_Tensor **, TF_Status *))                                        \
    X(TF_Tensor *, AllocateOutput,                                                                                   \
      (TF_OpKernelContext *, int, TF_DataType, const int64_t *, int, size_t, TF_Status *))                           \
    X(TF_Tensor *, ForwardInputOrAllocateOutput,                                                                     \
      (TF_OpKernelContext *, const int *, int, int, const int64_t *, int, int *, TF_Status *))

typedef struct ls_tf_api {
#define LS_TF_API_FIELD(_result, _name, _args) _result(*_name) _args;
    LS_TF_API_LIST(LS_TF_API_FIELD)
#undef LS_TF_API_FIELD
} ls_tf_api_t;

extern ls_tf_api_t ls_tf;

/* Fill ls_tf.  NULL, or what is missing; the text stays valid. */
const char *ls_tf_api_load(void);

#ifdef __cplusplus
}
#endif

#endif

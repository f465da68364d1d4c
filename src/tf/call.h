/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One execution of an operator: from compute, on a thread of TensorFlow's, to done, on who has the engine's turn.
 *
 *     compute                            engine, or a guest of it
 *     -------                            ------------------------
 *     ls_call_create   takes `done`
 *     ls_call_input    what to send
 *     ls_call_forward  where to put it
 *     ls_*_async  ────────────────────►  ls_call_room    (lengths known: allocate the output)
 *     returns                            ls_call_finish  (status to TensorFlow, done, free)
 */
#ifndef LS_TF_CALL_H
#define LS_TF_CALL_H

#include "lockstep.h"
#include "tf/attributes.h"
#include "tf/cxx.h"
#include "tf/tf_api.h"

#define LS_CALL_MAX_DIMS 16 /* of the engine */

/* A tensor of a call: input of the operator, and what the engine is told about it. */
typedef struct ls_call_tensor {
    int64_t     shape[LS_CALL_MAX_DIMS];
    TF_DataType dtype;
    ls_tensor_t tensor; /* .shape points to the above */
} ls_call_tensor_t;

typedef struct ls_call {
    TF_OpKernelContext    *ctx; /* valid until done has run */
    ls_cxx_done_t         *done;
    TF_Status             *status;
    const ls_attributes_t *attributes;
    int64_t               *rows; /* all-gather, all-to-all: the output that tells the rows from each rank */
    unsigned               num_tensors;
    ls_call_tensor_t       tensors[];
} ls_call_t;

/* NULL: no memory; TensorFlow was told. */
ls_call_t *ls_call_create(const ls_attributes_t *attributes, unsigned num_tensors, TF_OpKernelContext *ctx,
                          TF_AsyncOpKernelDoneCallback *done);

/* End the call; matches ls_done_fn. */
void ls_call_finish(void *call, ls_status_t status, const char *message);

/*
 * These return false when they failed; `problem` then holds the message, and the call is to be ended with
 * ls_call_refuse().
 */
bool ls_call_input(ls_call_t *call, unsigned index);

/* Room for a result of the input's shape: the input itself, where nobody else uses it. */
bool ls_call_forward(ls_call_t *call, unsigned index);

/* Room for output `index` of `dtype`; *data_p may be NULL where there are no elements. */
bool ls_call_allocate(ls_call_t *call, int index, TF_DataType dtype, const int64_t *shape, unsigned num_dims,
                      void **data_p);

/* Copies an input of 8-byte words (weight, splits). */
bool ls_call_words(ls_call_t *call, int index, void *words, uint64_t num_words);

/* ls_output_fn: output 0 is as many rows as all ranks together have; fills call->rows. */
void *ls_call_room(void *call, const uint64_t *counts, unsigned num_ranks);

/* Notes a problem in call->status; always false. */
bool ls_call_problem(ls_call_t *call, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* End a call that was not handed over, with the problem that was noted. */
void ls_call_refuse(ls_call_t *call);

/* Elements of a row: the product of all dimensions but the first. */
uint64_t ls_call_row_size(const ls_tensor_t *tensor);

#endif

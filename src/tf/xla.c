/* SPDX-License-Identifier: Apache-2.0 */
/*
 * XLA knows no asynchronous calls on a CPU: the call hands all its tensors over and waits for all.  So one
 * call takes a whole group: ranks whose compiled programs order their calls differently could otherwise wait
 * for each other.
 *
 * in[0] is the weight, in[1 + i] tensor i; what may come behind them only keeps calls in order.  out is the
 * result, or with several a list of results.  What else is to be known comes as text, in lines:
 *
 *     mean 1 0.5                    operation, prescale, postscale
 *     2                             tensors
 *     float32 2 128 64 dense/kernel type, number of dimensions, dimensions, name to the end of the line
 *     float32 0 scale
 */
#include "tf/xla.h"

#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lockstep.h"
#include "tf/attributes.h"
#include "tf/call.h"
#include "tf/cxx.h"

#define MESSAGE_ROOM 2048
#define WORD_ROOM    32

static const char *xla_problem = "not registered";

/* NULL or why jit_compile is not to be had. */
LS_API const char *lockstep_tf_xla_problem(void);

const char *lockstep_tf_xla_problem(void)
{
    return xla_problem;
}

static const char *const dtype_names[LS_DTYPE_COUNT] = {
    [LS_FLOAT16] = "float16", [LS_BFLOAT16] = "bfloat16", [LS_FLOAT32] = "float32",
    [LS_FLOAT64] = "float64", [LS_INT8] = "int8",         [LS_UINT8] = "uint8",
    [LS_INT32] = "int32",     [LS_INT64] = "int64",       [LS_BOOL] = "bool",
};

typedef struct text {
    char *at;
    bool  is_bad;
} text_t;

/* The next word of the line; "" where there is none. */
static void read_word(text_t *text, char *word)
{
    const size_t length = strcspn(text->at, " \n");

    if (length == 0 || length >= WORD_ROOM) {
        text->is_bad = true;
        word[0]      = '\0';
        return;
    }
    memcpy(word, text->at, length);
    word[length] = '\0';
    text->at += length + (text->at[length] != '\0');
}

static double read_number(text_t *text)
{
    char   word[WORD_ROOM], *end;
    double value;

    read_word(text, word);
    value = strtod(word, &end);
    text->is_bad |= *end != '\0';
    return value;
}

static int64_t read_integer(text_t *text, int64_t max)
{
    char    word[WORD_ROOM], *end;
    int64_t value;

    read_word(text, word);
    value = strtoll(word, &end, 10);
    text->is_bad |= *end != '\0' || value < 0 || value > max;
    return text->is_bad ? 0 : value;
}

static void read_tensor(text_t *text, ls_call_tensor_t *own)
{
    char     word[WORD_ROOM];
    unsigned dtype = 0;

    read_word(text, word);
    while (dtype < LS_DTYPE_COUNT && strcmp(dtype_names[dtype], word) != 0) {
        dtype++;
    }
    text->is_bad |= dtype == LS_DTYPE_COUNT;
    own->tensor.dtype    = (ls_dtype_t)dtype;
    own->tensor.num_dims = (unsigned)read_integer(text, LS_CALL_MAX_DIMS);
    own->tensor.shape    = own->shape;
    own->tensor.count    = 1;
    for (unsigned i = 0; i < own->tensor.num_dims; i++) {
        own->shape[i] = read_integer(text, INT64_MAX);
        own->tensor.count *= (uint64_t)own->shape[i];
    }
    own->tensor.name = text->at;
    text->at += strcspn(text->at, "\n");
    if (*text->at != '\0') {
        *text->at++ = '\0';
    }
}

/* A call while XLA waits for it. */
typedef struct waiting {
    sem_t       done;
    ls_status_t status;
    char        message[MESSAGE_ROOM];
} waiting_t;

static void on_done(void *arg, ls_status_t status, const char *message)
{
    waiting_t *waiting = arg;

    waiting->status = status;
    snprintf(waiting->message, sizeof(waiting->message), "%s", message);
    sem_post(&waiting->done);
}

/* The context is given back before the wait, so that it can be stopped meanwhile. */
static void reduce_and_wait(const ls_tensor_t *tensors, unsigned num_tensors, const ls_reduce_t *reduce,
                            waiting_t *waiting)
{
    ls_context_h ctx = ls_process_get();
    ls_status_t  status;

    if (ctx == NULL) {
        waiting->status = LS_ERR_STOPPED;
        snprintf(waiting->message, sizeof(waiting->message), "the engine is not started in this process");
        return;
    }
    sem_init(&waiting->done, 0, 0);
    status = ls_allreduce_group_async(ctx, tensors, num_tensors, reduce, on_done, waiting);
    ls_process_put(ctx);
    if (status != LS_OK) { /* otherwise waiting is written by on_done, perhaps already */
        waiting->status = status;
        snprintf(waiting->message, sizeof(waiting->message), "%s", ls_last_error());
    } else {
        while (sem_wait(&waiting->done) != 0) {
            /* interrupted by a signal */
        }
    }
    sem_destroy(&waiting->done);
}

static void run(char *line, void *out, const void **in, waiting_t *waiting)
{
    text_t            text = {.at = line};
    char              word[WORD_ROOM];
    ls_reduce_t       reduce = {.op = LS_SUM};
    unsigned          num_tensors;
    ls_call_tensor_t *owns;
    ls_tensor_t      *tensors;

    read_word(&text, word);
    text.is_bad |= !ls_attributes_find_op(word, &reduce.op);
    reduce.prescale  = read_number(&text);
    reduce.postscale = read_number(&text);
    memcpy(&reduce.weight, in[0], sizeof(reduce.weight));
    num_tensors = (unsigned)read_integer(&text, INT32_MAX);
    owns        = calloc(num_tensors + 1, sizeof(*owns));
    tensors     = calloc(num_tensors + 1, sizeof(*tensors));
    for (unsigned i = 0; i < num_tensors && owns != NULL && tensors != NULL; i++) {
        read_tensor(&text, &owns[i]);
        tensors[i]        = owns[i].tensor;
        tensors[i].input  = in[i + 1];
        tensors[i].output = (num_tensors == 1) ? out : ((void **)out)[i];
    }
    if (owns == NULL || tensors == NULL) {
        waiting->status = LS_ERR_NO_MEMORY;
    } else if (text.is_bad) {
        waiting->status = LS_ERR_INVALID;
        snprintf(waiting->message, sizeof(waiting->message),
                 "the compiled call has a description that cannot be read");
    } else {
        reduce_and_wait(tensors, num_tensors, &reduce, waiting);
    }
    free(tensors);
    free(owns);
}

static void xla_allreduce(void *out, const void **in, const char *opaque, size_t opaque_length,
                          XlaCustomCallStatus *status)
{
    waiting_t waiting = {.status = LS_ERR_NO_MEMORY};
    char     *line    = strndup(opaque, opaque_length);
    char      message[MESSAGE_ROOM + WORD_ROOM];

    if (line != NULL) {
        run(line, out, in, &waiting);
    }
    free(line);
    if (waiting.status != LS_OK) {
        snprintf(message, sizeof(message), "lockstep: %s",
                 waiting.message[0] != '\0' ? waiting.message : ls_status_str(waiting.status));
        ls_cxx_xla_fail(status, message);
    }
}

void ls_xla_register(void)
{
    xla_problem = ls_cxx_xla_register("lockstep_tf_xla_allreduce", xla_allreduce);
}

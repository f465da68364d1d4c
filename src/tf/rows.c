/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Data sets are known to the operator by number, so that one which has been closed is an error and not a
 * crash:
 *
 *     lockstep_tf_share(data)     gives it a number
 *     LockstepReadRows(number, rows, bounds, step)   rows[bounds[step]] up to rows[bounds[step + 1]], not
 * with it lockstep_tf_unshare(number) waits for reads that are under way; then the data set may be closed
 */
#include "tf/rows.h"

#include <pthread.h>
#include <stdlib.h>

#include "lockstep_data.h"
#include "tf/tstring.h"

#define NAME "LockstepReadRows"

typedef struct shared_data {
    ls_data_h data; /* NULL: no longer shared */
    unsigned  num_reads;
} shared_data_t;

static bool            is_registered;
static pthread_mutex_t lock    = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t  is_done = PTHREAD_COND_INITIALIZER;
static shared_data_t  *shared;     /* lock: lock; by number */
static int64_t         num_shared; /* lock: lock */

LS_API int64_t lockstep_tf_share(ls_data_h data);
LS_API void    lockstep_tf_unshare(int64_t number);
LS_API int     lockstep_tf_reads(void);

/* Can the operator be used? */
int lockstep_tf_reads(void)
{
    return is_registered;
}

static bool has_strings(ls_data_h data)
{
    const ls_data_info_t *info = ls_data_info(data);
    unsigned              i    = 0;

    while (i < info->num_fields && info->fields[i].type != LS_DATA_BYTES) {
        i++;
    }
    return i < info->num_fields;
}

/* -1: no memory. */
int64_t lockstep_tf_share(ls_data_h data)
{
    int64_t        number = -1;
    shared_data_t *grown;

    if (has_strings(data)) {
        ls_tstring_keep_memory();
    }
    pthread_mutex_lock(&lock);
    grown = realloc(shared, (size_t)(num_shared + 1) * sizeof(*shared));
    if (grown != NULL) {
        shared         = grown;
        number         = num_shared++;
        shared[number] = (shared_data_t){.data = data};
    }
    pthread_mutex_unlock(&lock);
    return number;
}

void lockstep_tf_unshare(int64_t number)
{
    pthread_mutex_lock(&lock);
    if (number >= 0 && number < num_shared && shared[number].data != NULL) {
        shared[number].data = NULL;
        while (shared[number].num_reads > 0) {
            pthread_cond_wait(&is_done, &lock);
        }
    }
    pthread_mutex_unlock(&lock);
}

static ls_data_h get(int64_t number)
{
    ls_data_h data = NULL;

    pthread_mutex_lock(&lock);
    if (number >= 0 && number < num_shared && shared[number].data != NULL) {
        data = shared[number].data;
        shared[number].num_reads++;
    }
    pthread_mutex_unlock(&lock);
    return data;
}

static void put(int64_t number)
{
    pthread_mutex_lock(&lock);
    shared[number].num_reads--;
    pthread_cond_broadcast(&is_done);
    pthread_mutex_unlock(&lock);
}

/* ---- a read
 * ------------------------------------------------------------------------------------------------------- */

typedef struct wanted {
    const uint64_t *rows;
    int64_t         count;
} wanted_t;

static TF_DataType type_of(ls_data_type_t type)
{
    static const TF_DataType types[LS_DATA_TYPE_COUNT] = {
        [LS_DATA_BOOL] = TF_BOOL,     [LS_DATA_INT8] = TF_INT8,     [LS_DATA_INT16] = TF_INT16,
        [LS_DATA_INT32] = TF_INT32,   [LS_DATA_INT64] = TF_INT64,   [LS_DATA_UINT8] = TF_UINT8,
        [LS_DATA_UINT16] = TF_UINT16, [LS_DATA_UINT32] = TF_UINT32, [LS_DATA_UINT64] = TF_UINT64,
        [LS_DATA_FLOAT16] = TF_HALF,  [LS_DATA_FLOAT32] = TF_FLOAT, [LS_DATA_FLOAT64] = TF_DOUBLE,
        [LS_DATA_BYTES] = TF_STRING,
    };

    return types[type];
}

/* Output `index` with room for `count` rows; NULL in *memory_p where there are none. */
static bool allocate(TF_OpKernelContext *ctx, int index, const ls_data_field_t *field, int64_t count,
                     TF_Status *status, void **memory_p)
{
    int64_t    shape[1 + LS_DATA_MAX_DIMS] = {count};
    TF_Tensor *tensor;

    for (unsigned i = 0; i < field->num_dims; i++) {
        shape[1 + i] = (int64_t)field->shape[i];
    }
    tensor =
        ls_tf.AllocateOutput(ctx, index, type_of(field->type), shape, 1 + (int)field->num_dims, 0, status);
    if (tensor == NULL || ls_tf.GetCode(status) != TF_OK) {
        return false;
    }
    *memory_p = ls_tf.TensorData(tensor);
    ls_tf.DeleteTensor(tensor); /* our handle; the context has its own */
    return true;
}

/* Rows of different length become strings, and are read straight into them. */
static void *place_string(void *strings, uint64_t row, size_t length)
{
    return ls_tstring_room((char *)strings + row * LS_TSTRING_BYTES, length);
}

/* Was the operator made for the fields of this data set? */
static bool is_made_for(TF_OpKernelContext *ctx, const ls_data_info_t *info, TF_Status *status)
{
    bool is_same = ls_tf.NumOutputs(ctx) == (int)info->num_fields;

    for (unsigned i = 0; i < info->num_fields && is_same; i++) {
        is_same = ls_tf.ExpectedOutputDataType(ctx, (int)i) == type_of(info->fields[i].type);
    }
    if (!is_same) {
        ls_tf.SetStatus(status, TF_INVALID_ARGUMENT,
                        "lockstep: the operator has other types than the data set");
    }
    return is_same;
}

static void read_rows(TF_OpKernelContext *ctx, ls_data_h data, const wanted_t *wanted,
                      ls_data_column_t *columns, TF_Status *status)
{
    const ls_data_info_t *info    = ls_data_info(data);
    const int64_t         count   = wanted->count;
    bool                  is_good = is_made_for(ctx, info, status);

    for (unsigned i = 0; i < info->num_fields && is_good; i++) {
        void *memory = NULL;

        is_good    = allocate(ctx, (int)i, &info->fields[i], count, status, &memory);
        columns[i] = info->fields[i].type == LS_DATA_BYTES
                         ? (ls_data_column_t){.field = i, .place = place_string, .place_arg = memory}
                         : (ls_data_column_t){.field = i, .data = memory};
    }
    if (is_good && ls_data_read_at(data, wanted->rows, (uint64_t)count, columns, info->num_fields) != LS_OK) {
        ls_tf.SetStatus(status, TF_INVALID_ARGUMENT, ls_last_error());
    }
}

static void read_shared(TF_OpKernelContext *ctx, ls_data_h data, const wanted_t *wanted, TF_Status *status)
{
    ls_data_column_t *columns = calloc(ls_data_info(data)->num_fields + 1, sizeof(*columns));

    if (columns == NULL) {
        ls_tf.SetStatus(status, TF_RESOURCE_EXHAUSTED, "lockstep: no memory for columns");
    } else {
        read_rows(ctx, data, wanted, columns, status);
    }
    free(columns);
}

enum { INPUT_SOURCE, INPUT_ROWS, INPUT_BOUNDS, INPUT_STEP, NUM_INPUTS }; /* all int64 */

static int64_t number_at(const TF_Tensor *tensor, int64_t index)
{
    return ((const int64_t *)ls_tf.TensorData(tensor))[index];
}

static bool find_wanted(TF_Tensor *const *inputs, wanted_t *wanted_p)
{
    const int64_t num_bounds = ls_tf.TensorElementCount(inputs[INPUT_BOUNDS]);
    const int64_t step =
        ls_tf.TensorElementCount(inputs[INPUT_STEP]) == 1 ? number_at(inputs[INPUT_STEP], 0) : -1;

    if (step < 0 || step >= num_bounds - 1) {
        return false;
    }
    const int64_t begin = number_at(inputs[INPUT_BOUNDS], step),
                  end   = number_at(inputs[INPUT_BOUNDS], step + 1);

    if (begin < 0 || end < begin || end > ls_tf.TensorElementCount(inputs[INPUT_ROWS])) {
        return false;
    }
    *wanted_p = (wanted_t){(const uint64_t *)ls_tf.TensorData(inputs[INPUT_ROWS]) + begin, end - begin};
    return true;
}

static void compute_with(TF_OpKernelContext *ctx, TF_Tensor *const *inputs, TF_Status *status)
{
    int64_t   number = -1;
    ls_data_h data   = NULL;
    wanted_t  wanted;

    if (!find_wanted(inputs, &wanted)) {
        ls_tf.SetStatus(status, TF_INVALID_ARGUMENT, "lockstep: there is no such step of rows");
        return;
    }
    if (ls_tf.TensorElementCount(inputs[INPUT_SOURCE]) == 1) {
        number = number_at(inputs[INPUT_SOURCE], 0);
        data   = get(number);
    }
    if (data == NULL) {
        ls_tf.SetStatus(status, TF_FAILED_PRECONDITION, "lockstep: the data set has been closed");
        return;
    }
    read_shared(ctx, data, &wanted, status);
    put(number);
}

static void compute(void *kernel, TF_OpKernelContext *ctx)
{
    TF_Status *status             = ls_tf.NewStatus();
    TF_Tensor *inputs[NUM_INPUTS] = {NULL};

    (void)kernel;
    for (int i = 0; i < NUM_INPUTS && ls_tf.GetCode(status) == TF_OK; i++) {
        ls_tf.GetInput(ctx, i, &inputs[i], status);
    }
    if (ls_tf.GetCode(status) == TF_OK) {
        compute_with(ctx, inputs, status);
    }
    if (ls_tf.GetCode(status) != TF_OK) {
        ls_tf.OpKernelContext_Failure(ctx, status);
    }
    for (int i = 0; i < NUM_INPUTS; i++) {
        if (inputs[i] != NULL) {
            ls_tf.DeleteTensor(inputs[i]);
        }
    }
    ls_tf.DeleteStatus(status);
}

/* ---- registration
 * --------------------------------------------------------------------------------------------------- */

/* Shapes are set in Python, which knows the fields. */
static void no_shapes(TF_ShapeInferenceContext *ctx, TF_Status *status)
{
    ls_tf.ShapeInferenceContextSetUnknownShape(ctx, status);
}

static void *create(TF_OpKernelConstruction *construction)
{
    (void)construction;
    return NULL;
}

static void delete (void *kernel)
{
    (void)kernel;
}

void ls_rows_register(TF_Status *status)
{
    TF_OpDefinitionBuilder *builder;

    if (!ls_tstring_is_known()) {
        return;
    }
    builder = ls_tf.NewOpDefinitionBuilder(NAME);
    ls_tf.OpDefinitionBuilderAddInput(builder, "source: int64");
    ls_tf.OpDefinitionBuilderAddInput(builder, "rows: int64");
    ls_tf.OpDefinitionBuilderAddInput(builder, "bounds: int64");
    ls_tf.OpDefinitionBuilderAddInput(builder, "step: int64");
    ls_tf.OpDefinitionBuilderAddOutput(builder, "columns: types");
    ls_tf.OpDefinitionBuilderAddAttr(builder, "types: list(type) >= 1");
    ls_tf.OpDefinitionBuilderSetShapeInferenceFunction(builder, no_shapes);
    ls_tf.RegisterOpDefinition(builder, status); /* takes the builder */
    if (ls_tf.GetCode(status) == TF_OK) {
        ls_tf.RegisterKernelBuilder(NAME, ls_tf.NewKernelBuilder(NAME, "CPU", create, compute, delete),
                                    status);
    }
    is_registered = ls_tf.GetCode(status) == TF_OK;
}

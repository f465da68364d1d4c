/* SPDX-License-Identifier: Apache-2.0 */
#include "bench_data.h"

#include <math.h>
#include <string.h>

typedef struct type_row {
    const char *name;
    size_t      bytes;
    double      tolerance; /* of one rounding, with room for one more; 0 for integers */
} type_row_t;

static const type_row_t types[LS_DTYPE_COUNT] = {
    [LS_FLOAT16]  = {.name = "float16", .bytes = 2, .tolerance = 0x1p-10},
    [LS_BFLOAT16] = {.name = "bfloat16", .bytes = 2, .tolerance = 0x1p-7},
    [LS_FLOAT32]  = {.name = "float32", .bytes = 4, .tolerance = 0x1p-22},
    [LS_FLOAT64]  = {.name = "float64", .bytes = 8, .tolerance = 0x1p-51},
    [LS_INT8]     = {.name = "int8", .bytes = 1},
    [LS_UINT8]    = {.name = "uint8", .bytes = 1},
    [LS_INT32]    = {.name = "int32", .bytes = 4},
    [LS_INT64]    = {.name = "int64", .bytes = 8},
    [LS_BOOL]     = {.name = "bool", .bytes = 1},
};

static const char *const ops[LS_OP_COUNT] = {
    [LS_SUM] = "sum", [LS_MEAN] = "mean", [LS_WEIGHTED_MEAN] = "weighted_mean",
    [LS_MIN] = "min", [LS_MAX] = "max",   [LS_PRODUCT] = "product",
};

const char *bench_data_type_name(ls_dtype_t dtype)
{
    return types[dtype].name;
}

const char *bench_data_op_name(ls_op_t op)
{
    return ops[op];
}

bool bench_data_find_type(const char *name, ls_dtype_t *dtype_p)
{
    for (unsigned i = 0; i < LS_DTYPE_COUNT; i++) {
        if (strcmp(name, types[i].name) == 0) {
            *dtype_p = (ls_dtype_t)i;
            return true;
        }
    }
    return false;
}

bool bench_data_find_op(const char *name, ls_op_t *op_p)
{
    for (unsigned i = 0; i < LS_OP_COUNT; i++) {
        if (strcmp(name, ops[i]) == 0) {
            *op_p = (ls_op_t)i;
            return true;
        }
    }
    return false;
}

size_t bench_data_type_size(ls_dtype_t dtype)
{
    return types[dtype].bytes;
}

bool bench_data_has_op(ls_dtype_t dtype, ls_op_t op)
{
    const bool is_float = types[dtype].tolerance > 0.0;

    return is_float || (op != LS_WEIGHTED_MEAN && !(dtype == LS_BOOL && op == LS_MEAN));
}

MPI_Datatype bench_data_mpi_type(ls_dtype_t dtype)
{
    switch (dtype) {
    case LS_FLOAT32:
        return MPI_FLOAT;
    case LS_FLOAT64:
        return MPI_DOUBLE;
    case LS_INT8:
        return MPI_INT8_T;
    case LS_UINT8:
        return MPI_UINT8_T;
    case LS_INT32:
        return MPI_INT32_T;
    case LS_INT64:
        return MPI_INT64_T;
    case LS_BOOL:
        return MPI_C_BOOL;
    default:
        return MPI_DATATYPE_NULL;
    }
}

MPI_Op bench_data_mpi_op(ls_dtype_t dtype, ls_op_t op)
{
    const bool is_bool = (dtype == LS_BOOL);

    switch (op) {
    case LS_MIN:
        return is_bool ? MPI_LAND : MPI_MIN;
    case LS_MAX:
        return is_bool ? MPI_LOR : MPI_MAX;
    case LS_PRODUCT:
        return is_bool ? MPI_LAND : MPI_PROD;
    default:
        return is_bool ? MPI_LOR : MPI_SUM;
    }
}

double bench_data_weight(unsigned rank)
{
    return (double)rank + 1.0;
}

/* 0, 1 or 2; for a product 1 or 2, for bool 0 or 1. */
static double value_of(ls_dtype_t dtype, ls_op_t op, unsigned rank, unsigned seed, unsigned index)
{
    const unsigned mixed = index * index + (rank + 1U) * index + seed + rank;

    if (dtype == LS_BOOL) {
        return (double)(mixed % 2U);
    }
    return (op == LS_PRODUCT) ? (double)(1U + mixed % 2U) : (double)(mixed % 3U);
}

/* Enough of a conversion for the values used here, which are exact in both types. */
static uint16_t half_of_small(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return (value == 0.0F) ? 0 : (uint16_t)((((bits >> 23) - 112U) << 10) | ((bits >> 13) & 0x3FFU));
}

static double half_to_double(uint16_t half)
{
    const int    exponent = (half >> 10) & 0x1F;
    const double fraction = (double)(half & 0x3FF);
    double       value;

    if (exponent == 0x1F) {
        value = (fraction == 0.0) ? (double)INFINITY : (double)NAN;
    } else if (exponent == 0) {
        value = ldexp(fraction, -24);
    } else {
        value = ldexp(fraction + 1024.0, exponent - 25);
    }
    return (half & 0x8000U) ? -value : value;
}

static void store(void *place, ls_dtype_t dtype, double value)
{
    const float    f32   = (float)value;
    const int64_t  i64   = (int64_t)value;
    const int32_t  i32   = (int32_t)value;
    const uint8_t  small = (uint8_t)value;
    const uint16_t half  = half_of_small(f32);
    uint32_t       bits;

    memcpy(&bits, &f32, sizeof(bits));
    const uint16_t brain = (uint16_t)(bits >> 16);

    switch (dtype) {
    case LS_FLOAT16:
        memcpy(place, &half, 2);
        break;
    case LS_BFLOAT16:
        memcpy(place, &brain, 2);
        break;
    case LS_FLOAT32:
        memcpy(place, &f32, 4);
        break;
    case LS_FLOAT64:
        memcpy(place, &value, 8);
        break;
    case LS_INT32:
        memcpy(place, &i32, 4);
        break;
    case LS_INT64:
        memcpy(place, &i64, 8);
        break;
    default:
        memcpy(place, &small, 1);
        break;
    }
}

static double load(const unsigned char *place, ls_dtype_t dtype)
{
    union {
        float    f32;
        double   f64;
        uint16_t u16;
        int32_t  i32;
        int64_t  i64;
        uint32_t bits;
    } as;

    memcpy(&as, place, types[dtype].bytes);
    switch (dtype) {
    case LS_FLOAT16:
        return half_to_double(as.u16);
    case LS_BFLOAT16:
        as.bits = (uint32_t)as.u16 << 16;
        return (double)as.f32;
    case LS_FLOAT32:
        return (double)as.f32;
    case LS_FLOAT64:
        return as.f64;
    case LS_INT8:
        return (double)(int8_t)place[0];
    case LS_INT32:
        return (double)as.i32;
    case LS_INT64:
        return (double)as.i64;
    default:
        return (double)place[0];
    }
}

void bench_data_fill(void *buffer, uint64_t count, ls_dtype_t dtype, ls_op_t op, unsigned rank, unsigned seed)
{
    const size_t   bytes = types[dtype].bytes;
    unsigned char  period[BENCH_DATA_PERIOD * sizeof(double)];
    unsigned char *place = buffer;

    for (unsigned i = 0; i < BENCH_DATA_PERIOD; i++) {
        store(period + i * bytes, dtype, value_of(dtype, op, rank, seed, i));
    }
    while (count > 0) {
        const uint64_t part = (count < BENCH_DATA_PERIOD) ? count : BENCH_DATA_PERIOD;

        memcpy(place, period, part * bytes);
        place += part * bytes;
        count -= part;
    }
}

void bench_data_expect_rank(ls_dtype_t dtype, ls_op_t op, unsigned rank, unsigned seed,
                            bench_expected_t *expected_p)
{
    *expected_p = (bench_expected_t){.dtype = dtype};
    for (unsigned i = 0; i < BENCH_DATA_PERIOD; i++) {
        expected_p->values[i] = value_of(dtype, op, rank, seed, i);
    }
}

/* Whole numbers as the type holds them: integers wrap, bool is "any" or "all". */
static double as_held(ls_dtype_t dtype, double value)
{
    switch (dtype) {
    case LS_INT8:
        return (double)(int8_t)(uint8_t)(int64_t)value;
    case LS_UINT8:
        return (double)(uint8_t)(int64_t)value;
    case LS_INT32:
        return (double)(int32_t)(uint32_t)(int64_t)value;
    case LS_BOOL:
        return (value != 0.0) ? 1.0 : 0.0;
    default:
        return value;
    }
}

static double reduced_value(ls_dtype_t dtype, ls_op_t op, unsigned num_ranks, unsigned seed, unsigned index)
{
    double sum = 0.0, weighted = 0.0, weights = 0.0, product = 1.0, low = INFINITY, high = -INFINITY;

    for (unsigned rank = 0; rank < num_ranks; rank++) {
        const double value = value_of(dtype, op, rank, seed, index);

        sum += value;
        weighted += bench_data_weight(rank) * value;
        weights += bench_data_weight(rank);
        product *= value;
        low  = fmin(low, value);
        high = fmax(high, value);
    }
    switch (op) {
    case LS_MEAN:
        return (types[dtype].tolerance > 0.0) ? sum / num_ranks : trunc(sum / num_ranks);
    case LS_WEIGHTED_MEAN:
        return weighted / weights;
    case LS_MIN:
        return low;
    case LS_MAX:
        return high;
    case LS_PRODUCT:
        return as_held(dtype, product);
    default:
        return as_held(dtype, sum);
    }
}

void bench_data_expect_reduced(ls_dtype_t dtype, ls_op_t op, unsigned num_ranks, unsigned seed,
                               bench_expected_t *expected_p)
{
    const bool is_rounded = (op == LS_MEAN || op == LS_WEIGHTED_MEAN);

    *expected_p = (bench_expected_t){.dtype = dtype, .tolerance = is_rounded ? types[dtype].tolerance : 0.0};
    for (unsigned i = 0; i < BENCH_DATA_PERIOD; i++) {
        expected_p->values[i] = reduced_value(dtype, op, num_ranks, seed, i);
    }
}

uint64_t bench_data_wrong(const void *buffer, uint64_t count, uint64_t position,
                          const bench_expected_t *expected)
{
    const size_t         bytes = types[expected->dtype].bytes;
    const unsigned char *place = buffer;
    unsigned             index = (unsigned)(position % BENCH_DATA_PERIOD);
    uint64_t             wrong = 0;

    for (uint64_t i = 0; i < count; i++, place += bytes) {
        const double value = expected->values[index];

        /* Written so that NAN is wrong. */
        if (!(fabs(load(place, expected->dtype) - value) <= expected->tolerance * fabs(value))) {
            wrong++;
        }
        index = (index + 1U == BENCH_DATA_PERIOD) ? 0 : index + 1U;
    }
    return wrong;
}

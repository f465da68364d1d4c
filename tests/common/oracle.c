/* SPDX-License-Identifier: Apache-2.0 */
#include "oracle.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Float or integer, by type; bool is an integer. */
typedef struct value {
    long double real;
    int64_t     whole;
} value_t;

typedef struct type_row {
    const char *name;
    size_t      size;
    bool        is_float;
    int         exponent_bits, mantissa_bits; /* of floats */
} type_row_t;

static const type_row_t types[LS_DTYPE_COUNT] = {
    [LS_FLOAT16]  = {.name = "float16", .size = 2, .is_float = true, .exponent_bits = 5, .mantissa_bits = 10},
    [LS_BFLOAT16] = {.name = "bfloat16", .size = 2, .is_float = true, .exponent_bits = 8, .mantissa_bits = 7},
    [LS_FLOAT32]  = {.name = "float32", .size = 4, .is_float = true, .exponent_bits = 8, .mantissa_bits = 23},
    [LS_FLOAT64]  = {.name = "float64", .size = 8, .is_float = true, .exponent_bits = 11, .mantissa_bits = 52},
    [LS_INT8]     = {.name = "int8", .size = 1},
    [LS_UINT8]    = {.name = "uint8", .size = 1},
    [LS_INT32]    = {.name = "int32", .size = 4},
    [LS_INT64]    = {.name = "int64", .size = 8},
    [LS_BOOL]     = {.name = "bool", .size = 1},
};

static const char *const op_names[LS_OP_COUNT] = {
    [LS_SUM] = "sum", [LS_MEAN] = "mean", [LS_WEIGHTED_MEAN] = "weighted mean",
    [LS_MIN] = "min", [LS_MAX] = "max",   [LS_PRODUCT] = "product",
};

size_t oracle_size(ls_dtype_t dtype)
{
    return types[dtype].size;
}

const char *oracle_dtype_name(ls_dtype_t dtype)
{
    return types[dtype].name;
}

const char *oracle_op_name(ls_op_t op)
{
    return op_names[op];
}

bool oracle_is_float(ls_dtype_t dtype)
{
    return types[dtype].is_float;
}

bool oracle_is_allowed(ls_dtype_t dtype, ls_op_t op)
{
    return op == LS_WEIGHTED_MEAN ? oracle_is_float(dtype) : op != LS_MEAN || dtype != LS_BOOL;
}

uint64_t oracle_mix(uint64_t a, uint64_t b)
{
    uint64_t x = a * 0x9E3779B97F4A7C15ULL + b + 0x632BE59BD9B4E019ULL;

    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
    return x ^ (x >> 31);
}

uint64_t oracle_hash(uint64_t seed, const void *data, size_t bytes)
{
    const unsigned char *at = data;
    uint64_t             hash = oracle_mix(seed, bytes), word;

    for (; bytes >= sizeof(word); bytes -= sizeof(word), at += sizeof(word)) {
        memcpy(&word, at, sizeof(word));
        hash = oracle_mix(hash, word);
    }
    for (; bytes > 0; bytes--, at++) {
        hash = oracle_mix(hash, *at);
    }
    return hash;
}

/* ---- 16-bit floats -------------------------------------------------------------------------- */

/* Round to nearest even, by arithmetic, so that it shares nothing with the code under test. */
static uint16_t encode16(double value, const type_row_t *type)
{
    const int      bias = (1 << (type->exponent_bits - 1)) - 1;
    const int      mantissa_bits = type->mantissa_bits;
    const uint16_t sign = signbit(value) ? 0x8000 : 0;
    const uint16_t infinity = (uint16_t)(((1 << type->exponent_bits) - 1) << mantissa_bits);
    int            exponent;
    double         mantissa;

    if (isnan(value)) {
        return (uint16_t)(infinity | (1 << (mantissa_bits - 1)));
    }
    if (value == 0) {
        return sign;
    }
    exponent = isinf(value) ? bias + 1 : ilogb(value);
    exponent = exponent < 1 - bias ? 1 - bias : exponent; /* subnormal */
    if (exponent > bias) {
        return sign | infinity;
    }
    mantissa = nearbyint(scalbn(fabs(value), mantissa_bits - exponent));
    /* A mantissa that was rounded up to 2 carries into the exponent, and on to infinity. */
    return (uint16_t)(sign | (((exponent + bias - 1) << mantissa_bits) + (int)mantissa));
}

static double decode16(uint16_t bits, const type_row_t *type)
{
    const int bias = (1 << (type->exponent_bits - 1)) - 1;
    const int exponent = (bits & 0x7FFF) >> type->mantissa_bits;
    const int mantissa = bits & ((1 << type->mantissa_bits) - 1);
    double    value;

    if (exponent == (1 << type->exponent_bits) - 1) {
        value = mantissa != 0 ? (double)NAN : (double)INFINITY;
    } else if (exponent == 0) {
        value = scalbn(mantissa, 1 - bias - type->mantissa_bits);
    } else {
        value = scalbn(mantissa + (1 << type->mantissa_bits), exponent - bias - type->mantissa_bits);
    }
    return (bits & 0x8000) != 0 ? -value : value;
}

/* ---- elements in memory --------------------------------------------------------------------- */

static void store(ls_dtype_t dtype, double real, int64_t whole, void *at)
{
    const float    single = (float)real;
    const uint16_t half = types[dtype].size == 2 ? encode16(real, &types[dtype]) : 0;
    const int32_t  whole32 = (int32_t)(uint32_t)(uint64_t)whole;
    const uint8_t  byte = (uint8_t)(uint64_t)whole;
    const void    *from = dtype == LS_FLOAT64   ? (const void *)&real
                          : dtype == LS_FLOAT32 ? (const void *)&single
                          : dtype == LS_INT64   ? (const void *)&whole
                          : dtype == LS_INT32   ? (const void *)&whole32
                          : types[dtype].size == 2 ? (const void *)&half
                                                   : (const void *)&byte;

    memcpy(at, from, types[dtype].size);
}

static value_t load(ls_dtype_t dtype, const void *at)
{
    value_t  value = {0};
    float    single = 0;
    double   real = 0;
    uint16_t half = 0;
    int32_t  whole32 = 0;

    switch (dtype) {
    case LS_FLOAT16:
    case LS_BFLOAT16:
        memcpy(&half, at, sizeof(half));
        value.real = decode16(half, &types[dtype]);
        break;
    case LS_FLOAT32:
        memcpy(&single, at, sizeof(single));
        value.real = single;
        break;
    case LS_FLOAT64:
        memcpy(&real, at, sizeof(real));
        value.real = real;
        break;
    case LS_INT8:
        value.whole = *(const int8_t *)at;
        break;
    case LS_INT32:
        memcpy(&whole32, at, sizeof(whole32));
        value.whole = whole32;
        break;
    case LS_INT64:
        memcpy(&value.whole, at, sizeof(value.whole));
        break;
    default:
        value.whole = *(const uint8_t *)at;
        break;
    }
    return value;
}

/* ---- inputs --------------------------------------------------------------------------------- */

static double chance_real(const oracle_case_t *what, uint64_t chance)
{
    if (what->op == LS_PRODUCT) {
        const double size = 0.8 + (double)(chance % 401) / 1000;

        return (chance >> 60) == 0 ? -size : size;
    }
    /* Every eighth is a small whole number; no zero with a sign, whose min and max nobody defines. */
    return (chance >> 61) == 0 ? (double)(chance % 9) : ((double)(chance % 2001) - 1000.0) / 70.0 + 0.001;
}

static int64_t chance_whole(const oracle_case_t *what, uint64_t chance)
{
    static const int64_t factors[] = {1, 2, 3, -1, -2, -3};
    const int64_t        pick = (int64_t)(chance >> 8);
    const int64_t        limit = what->dtype == LS_INT8    ? 127 / (int64_t)what->num_ranks
                                 : what->dtype == LS_UINT8 ? 255 / (int64_t)what->num_ranks
                                                           : 1000000;

    if (what->dtype == LS_BOOL) {
        const bool is_rare = chance % (2 * what->num_ranks) == 0;

        return (what->op == LS_PRODUCT || what->op == LS_MIN) ? !is_rare : is_rare;
    }
    if (what->op == LS_PRODUCT) {
        return factors[pick % (what->dtype == LS_UINT8 ? 3 : 6)];
    }
    if (what->op == LS_MEAN) { /* the sum must not wrap */
        return what->dtype == LS_UINT8 ? pick % (limit + 1) : pick % (2 * limit + 1) - limit;
    }
    return (int64_t)chance;
}

static void store_input(const oracle_case_t *what, unsigned rank, uint64_t index, void *at)
{
    const uint64_t chance = oracle_mix(what->seed * ORACLE_MAX_RANKS + rank, index);
    const bool     is_unread = what->op == LS_WEIGHTED_MEAN && what->weights[rank] == 0;

    if (!oracle_is_float(what->dtype)) {
        store(what->dtype, 0, chance_whole(what, chance), at);
    } else {
        store(what->dtype, is_unread ? (double)NAN : chance_real(what, chance), 0, at);
    }
}

void oracle_fill_from(const oracle_case_t *what, unsigned rank, uint64_t first, uint64_t count, void *data)
{
    const size_t size = oracle_size(what->dtype);

    for (uint64_t i = 0; i < count; i++) {
        store_input(what, rank, first + i, (char *)data + i * size);
    }
}

void oracle_fill(const oracle_case_t *what, unsigned rank, void *data)
{
    oracle_fill_from(what, rank, 0, what->count, data);
}

/* ---- results -------------------------------------------------------------------------------- */

static bool is_absent(const oracle_case_t *what, unsigned rank)
{
    return ((what->absent >> rank) & 1) != 0;
}

static int64_t expect_whole(const oracle_case_t *what, uint64_t index)
{
    uint64_t sum = 0, product = 1;
    int64_t  least = INT64_MAX, most = INT64_MIN, num_given = 0;
    uint64_t room = 0;

    for (unsigned rank = 0; rank < what->num_ranks; rank++) {
        if (!is_absent(what, rank)) {
            store_input(what, rank, index, &room);
            const int64_t x = load(what->dtype, &room).whole;

            sum += (uint64_t)x;
            product *= (uint64_t)x;
            least = x < least ? x : least;
            most = x > most ? x : most;
            num_given++;
        }
    }
    if (what->op == LS_MIN || (what->dtype == LS_BOOL && what->op == LS_PRODUCT)) {
        return least;
    }
    if (what->op == LS_MAX || what->dtype == LS_BOOL) {
        return most;
    }
    sum = what->op == LS_PRODUCT ? product : sum;
    sum = what->op == LS_MEAN ? (uint64_t)((int64_t)sum / num_given) : sum;
    store(what->dtype, 0, (int64_t)sum, &room); /* wraps */
    return load(what->dtype, &room).whole;
}

/* Half a unit in the last place of 1 in the coarsest type on the way. */
static long double unit_of(const oracle_case_t *what)
{
    const ls_dtype_t dtype = what->dtype == LS_FLOAT32 ? what->wire : what->dtype;

    return scalbnl(1, -types[dtype].mantissa_bits - 1);
}

/* Half of the smallest number above 0: what a rounding near 0 may lose. */
static long double underflow_of(const oracle_case_t *what)
{
    const type_row_t *type = &types[what->dtype == LS_FLOAT32 ? what->wire : what->dtype];

    return scalbnl(1, 2 - (1 << (type->exponent_bits - 1)) - type->mantissa_bits - 1);
}

static double scale_of(double scale)
{
    return scale == 0 ? 1 : scale;
}

static long double expect_real(const oracle_case_t *what, uint64_t index, long double *bound_p)
{
    const double      pre = scale_of(what->prescale), post = scale_of(what->postscale);
    const bool        is_rounded_on_way = what->dtype == LS_FLOAT32 && what->wire != LS_FLOAT32;
    const long double unit = unit_of(what), n = what->num_ranks;
    long double       sum = 0, size = 0, product = 1, least = INFINITY, most = -INFINITY, weight = 0;
    uint64_t          room = 0;

    for (unsigned rank = 0; rank < what->num_ranks; rank++) {
        const double own = what->op == LS_WEIGHTED_MEAN ? what->weights[rank] : 1;

        if (!is_absent(what, rank) && own != 0) {
            store_input(what, rank, index, &room);
            const long double x = load(what->dtype, &room).real * pre;

            sum += x * own;
            size += fabsl(x * own);
            product *= x;
            least = x < least ? x : least;
            most = x > most ? x : most;
            weight += own;
        }
    }
    if (what->op == LS_PRODUCT) {
        *bound_p = (2 * n + 4) * unit * fabsl(product * post);
        return product * post;
    }
    if (what->op == LS_MIN || what->op == LS_MAX) {
        const long double result = (what->op == LS_MIN ? least : most) * post;

        *bound_p = 2 * ((pre != 1) + (post != 1) + is_rounded_on_way) * unit * fabsl(result);
        return result;
    }
    weight = what->op == LS_SUM || weight == 0 ? 1 : weight;
    *bound_p = (n + 4) * (unit * size / weight + (size > 0 ? underflow_of(what) : 0)) * fabs(post);
    return sum / weight * post;
}

bool oracle_check_reduced(const oracle_case_t *what, const oracle_range_t *range, const void *result,
                          char *text, size_t room)
{
    const unsigned stride = range->stride == 0 ? 1 : range->stride;
    const size_t   size = oracle_size(what->dtype);

    for (uint64_t i = range->phase; i < range->count; i += stride) {
        const value_t got = load(what->dtype, (const char *)result + i * size);

        if (oracle_is_float(what->dtype)) {
            long double       bound;
            const long double expected = expect_real(what, range->first + i, &bound);

            if (!(fabsl(got.real - expected) <= bound)) {
                snprintf(text, room, "element %llu is %.17Lg, not %.17Lg (error %.3Lg, bound %.3Lg)",
                         (unsigned long long)(range->first + i), got.real, expected,
                         fabsl(got.real - expected), bound);
                return false;
            }
        } else {
            const int64_t expected = expect_whole(what, range->first + i);

            if (got.whole != expected) {
                snprintf(text, room, "element %llu is %lld, not %lld",
                         (unsigned long long)(range->first + i), (long long)got.whole, (long long)expected);
                return false;
            }
        }
    }
    return true;
}

bool oracle_check_moved(const oracle_case_t *what, unsigned rank, uint64_t first, uint64_t count,
                        const void *result, char *text, size_t room)
{
    const size_t size = oracle_size(what->dtype);

    for (uint64_t i = 0; i < count; i++) {
        uint64_t expected = 0;

        store_input(what, rank, first + i, &expected);
        if (memcmp((const char *)result + i * size, &expected, size) != 0) {
            snprintf(text, room, "element %llu of rank %u's part is not what that rank gave",
                     (unsigned long long)(first + i), rank);
            return false;
        }
    }
    return true;
}

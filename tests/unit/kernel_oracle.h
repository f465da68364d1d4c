/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernels should compute, one element at a time and as plainly as possible. */
#ifndef LS_TESTS_KERNEL_ORACLE_H
#define LS_TESTS_KERNEL_ORACLE_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "device/dtype.h"
#include "device/kernel.h"

#define ORACLE_UNUSED __attribute__((unused))

static const char *const oracle_paths[] = {"c", "avx2", "avx512"};
#define ORACLE_NUM_PATHS (sizeof(oracle_paths) / sizeof(oracle_paths[0]))

static uint64_t oracle_random_state = 1;

/* splitmix64 */
ORACLE_UNUSED static uint64_t oracle_random(void)
{
    uint64_t x = (oracle_random_state += 0x9e3779b97f4a7c15ULL);

    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    return x ^ (x >> 31);
}

/* A binary format of 16 bits: `fraction` bits after the leading one, exponents from `low` on. */
typedef struct oracle_format {
    int fraction;
    int low;  /* exponent of the smallest normal number */
    int high; /* exponent of the largest */
} oracle_format_t;

static const oracle_format_t oracle_f16  = {.fraction = 10, .low = -14, .high = 15};
static const oracle_format_t oracle_bf16 = {.fraction = 7, .low = -126, .high = 127};

static const oracle_format_t *oracle_format(ls_dtype_t dtype)
{
    return (dtype == LS_FLOAT16) ? &oracle_f16 : &oracle_bf16;
}

static double oracle_decode(const oracle_format_t *format, uint16_t bits)
{
    const int    exponent = (bits & 0x7fff) >> format->fraction;
    const int    fraction = bits & ((1 << format->fraction) - 1);
    const double sign     = (bits & 0x8000) != 0 ? -1.0 : 1.0;
    const int    last     = format->low - format->fraction;

    if (exponent == format->high - format->low + 2) {
        return (fraction != 0) ? __builtin_nan("") : sign * __builtin_inf();
    }
    if (exponent == 0) {
        return sign * ldexp(fraction, last);
    }
    return sign * ldexp(fraction + (1 << format->fraction), last + exponent - 1);
}

/* Nearest, ties to even: of the steps around x / step. */
static uint16_t oracle_encode(const oracle_format_t *format, double x)
{
    const uint16_t sign = (uint16_t)(__builtin_signbit(x) ? 0x8000 : 0);
    const uint16_t inf  = (uint16_t)((format->high - format->low + 2) << format->fraction);
    double         rest;
    int            exponent;
    uint64_t       steps;

    if (__builtin_isnan(x)) {
        return 0xffff;
    }
    if (__builtin_isinf(x) || __builtin_fabs(x) >= ldexp(1.0, format->high + 1)) {
        return sign | inf;
    }
    (void)frexp(x, &exponent); /* of x as 0.1..., one more than of 1.... */
    exponent = (x == 0.0 || exponent - 1 < format->low) ? format->low : exponent - 1;
    rest     = ldexp(__builtin_fabs(x), format->fraction - exponent);
    steps    = (uint64_t)rest;
    rest -= (double)steps;
    if (rest > 0.5 || (rest == 0.5 && steps % 2 == 1)) {
        steps++;
    }
    /* The leading one, and a carry out of the fraction, count up the exponent by themselves. */
    return (uint16_t)(sign | (steps + ((uint64_t)(exponent - format->low) << format->fraction)));
}

/* The value of a float type's element, exactly. */
ORACLE_UNUSED static double oracle_get(ls_dtype_t dtype, const void *at)
{
    double   f64;
    float    f32;
    uint16_t bits;

    switch (dtype) {
    case LS_FLOAT64:
        memcpy(&f64, at, sizeof(f64));
        return f64;
    case LS_FLOAT32:
        memcpy(&f32, at, sizeof(f32));
        return (double)f32;
    default:
        memcpy(&bits, at, sizeof(bits));
        return oracle_decode(oracle_format(dtype), bits);
    }
}

/* Round to the type; every NaN becomes the one with all bits set. */
ORACLE_UNUSED static void oracle_put(ls_dtype_t dtype, double value, void *at)
{
    const float f32  = (float)value;
    uint16_t    bits = 0;

    if (__builtin_isnan(value)) {
        memset(at, 0xff, ls_dtype_size(dtype));
    } else if (dtype == LS_FLOAT64) {
        memcpy(at, &value, sizeof(value));
    } else if (dtype == LS_FLOAT32) {
        memcpy(at, &f32, sizeof(f32));
    } else {
        bits = oracle_encode(oracle_format(dtype), value);
        memcpy(at, &bits, sizeof(bits));
    }
}

/* In the type that products and sums are computed in. */
ORACLE_UNUSED static double oracle_times(ls_dtype_t dtype, double a, double b)
{
    return (dtype == LS_FLOAT64) ? a * b : (double)((float)a * (float)b);
}

ORACLE_UNUSED static double oracle_plus(ls_dtype_t dtype, double a, double b)
{
    return (dtype == LS_FLOAT64) ? a + b : (double)((float)a + (float)b);
}

static const double oracle_specials[] = {
    0.0,    -0.0,    1.0,     -1.0,    65504.0,  65520.0, 65519.0,       -65536.0,       0x1p-14,
    0x1p-15, 0x1p-24, 0x1p-25, 0x3p-26, -0x1p-126, 0x1p-133, 0x1p-134, 0x1.ffp127, 0x1.fffffep127,
    0x1p-149, -__builtin_inf(), __builtin_inf(), __builtin_nan(""),
};

/* Mostly ordinary values, one in eight at an edge; for floats also signalling NaNs. */
ORACLE_UNUSED static void oracle_fill(ls_dtype_t dtype, void *data, size_t count)
{
    const size_t size = ls_dtype_size(dtype), num_specials = sizeof(oracle_specials) / sizeof(double);

    for (size_t i = 0; i < count; i++) {
        uint8_t *const at     = (uint8_t *)data + i * size;
        const uint64_t random = oracle_random();

        if (!ls_dtype_is_float(dtype) || random % 64 == 1) {
            memcpy(at, &(uint64_t){random >> 8}, size);
        } else if (random % 8 == 0) {
            oracle_put(dtype, oracle_specials[(random >> 8) % num_specials], at);
        } else {
            oracle_put(dtype, (double)((int64_t)(random >> 16) % 4001) / 700.0 - 2.5, at);
        }
        if (dtype == LS_BOOL && random % 3 == 0) {
            *at = 0;
        }
    }
}

#endif

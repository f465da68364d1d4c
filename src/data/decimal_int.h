/* SPDX-License-Identifier: Apache-2.0 */
/* From decimal digits and an exponent of ten to a double, for those who find the digits in another way. */
#ifndef LS_DATA_DECIMAL_INT_H
#define LS_DATA_DECIMAL_INT_H

#include <stdbool.h>
#include <stdint.h>

#define LS_DECIMAL_MIN_POWER  (-342) /* less than half of the smallest double with 19 digits */
#define LS_DECIMAL_MAX_POWER  308
#define LS_DECIMAL_NUM_POWERS (LS_DECIMAL_MAX_POWER - LS_DECIMAL_MIN_POWER + 1)
#define LS_DECIMAL_MAX_DIGITS 19 /* that fit into 64 bits */

#define LS_DECIMAL_MANTISSA_BITS  52
#define LS_DECIMAL_EXPONENT_BIAS  1023
#define LS_DECIMAL_EXPONENT_LIMIT 0x7ff

__extension__ typedef unsigned __int128 ls_uint128_t;

typedef struct ls_decimal_power {
    uint64_t high, low;
} ls_decimal_power_t;

/* 5^q at q - LS_DECIMAL_MIN_POWER, shifted so that the first bit is set; rounded up for negative q. */
extern ls_decimal_power_t ls_decimal_powers[LS_DECIMAL_NUM_POWERS];

/* The bits of w * 10^q, w not 0; false where 128 bits of 5^q do not decide, or the result is not a normal
 * double. */
static inline bool ls_decimal_product(uint64_t w, int q, uint64_t *bits_p)
{
    const ls_decimal_power_t power   = ls_decimal_powers[q - LS_DECIMAL_MIN_POWER];
    const int                zeros   = __builtin_clzll(w);
    const uint64_t           shifted = w << zeros;
    const ls_uint128_t       first   = (ls_uint128_t)shifted * power.high;
    uint64_t                 high    = (uint64_t)(first >> 64);
    uint64_t                 low     = (uint64_t)first;

    if ((high & 0x1ff) == 0x1ff) { /* the bits after the mantissa could still carry */
        const uint64_t second = (uint64_t)(((ls_uint128_t)shifted * power.low) >> 64);

        low += second;
        high += (low < second);
        if (low == UINT64_MAX) {
            return false;
        }
    }
    const int upper    = (int)(high >> 63);
    const int shift    = upper + 64 - LS_DECIMAL_MANTISSA_BITS - 3;
    uint64_t  mantissa = high >> shift;
    /* 217706 / 2^16 is log2(10), near enough for these q. */
    int exponent = ((217706 * q) >> 16) + 63 + upper - zeros + LS_DECIMAL_EXPONENT_BIAS;

    if (low <= 1 && (mantissa & 3) == 1 && (mantissa << shift) == high) {
        return false; /* perhaps half way between two doubles */
    }
    mantissa = (mantissa + (mantissa & 1)) >> 1;
    if (mantissa >> (LS_DECIMAL_MANTISSA_BITS + 1) != 0) {
        mantissa >>= 1;
        exponent++;
    }
    if (exponent <= 0 || exponent >= LS_DECIMAL_EXPONENT_LIMIT) {
        return false;
    }
    *bits_p = (mantissa & ((1ULL << LS_DECIMAL_MANTISSA_BITS) - 1)) |
              ((uint64_t)exponent << LS_DECIMAL_MANTISSA_BITS);
    return true;
}

#endif

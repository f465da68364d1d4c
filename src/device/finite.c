/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A float is not finite when all bits of its exponent are 1.  The loop looks at bits, has no branch and is cut into blocks,
 * so compilers make vector instructions of it, and a bad block ends it.
 */
#include "device/finite.h"

#define BLOCK 4096

#define DEFINE_FINITE(_name, _word, _exponent)                                          \
    static bool _name##_block(const _word *words, uint64_t count)                       \
    {                                                                                   \
        _word bad = 0;                                                                  \
                                                                                        \
        for (uint64_t i = 0; i < count; i++) {                                          \
            bad |= (_word)((words[i] & (_exponent)) == (_exponent));                    \
        }                                                                               \
        return bad == 0;                                                                \
    }                                                                                   \
                                                                                        \
    static uint64_t _name##_good(const _word *words, uint64_t count)                    \
    {                                                                                   \
        uint64_t at = 0;                                                                \
                                                                                        \
        while (at < count && _name##_block(words + at, count - at < BLOCK ? count - at : BLOCK)) { \
            at += BLOCK;                                                                \
        }                                                                               \
        return at < count ? at : count;                                                 \
    }                                                                                   \
                                                                                        \
    static uint64_t _name##_first(const _word *words, uint64_t count, bool *is_nan_p)   \
    {                                                                                   \
        for (uint64_t i = _name##_good(words, count); i < count; i++) {                 \
            if ((words[i] & (_exponent)) == (_exponent)) {                              \
                /* The top bit is the sign; below the exponent is what tells NaN from infinity. */ \
                *is_nan_p = (_word)(words[i] << 1) != (_word)((_word)(_exponent) << 1); \
                return i;                                                               \
            }                                                                           \
        }                                                                               \
        return count;                                                                   \
    }

DEFINE_FINITE(float16, uint16_t, 0x7c00u)
DEFINE_FINITE(bfloat16, uint16_t, 0x7f80u)
DEFINE_FINITE(float32, uint32_t, 0x7f800000u)
DEFINE_FINITE(float64, uint64_t, 0x7ff0000000000000u)

bool ls_finite_all(ls_dtype_t dtype, const void *data, uint64_t count)
{
    switch (dtype) {
    case LS_FLOAT16:
        return float16_good(data, count) == count;
    case LS_BFLOAT16:
        return bfloat16_good(data, count) == count;
    case LS_FLOAT32:
        return float32_good(data, count) == count;
    case LS_FLOAT64:
        return float64_good(data, count) == count;
    default:
        return true;
    }
}

uint64_t ls_finite_first_bad(ls_dtype_t dtype, const void *data, uint64_t count, bool *is_nan_p)
{
    switch (dtype) {
    case LS_FLOAT16:
        return float16_first(data, count, is_nan_p);
    case LS_BFLOAT16:
        return bfloat16_first(data, count, is_nan_p);
    case LS_FLOAT32:
        return float32_first(data, count, is_nan_p);
    case LS_FLOAT64:
        return float64_first(data, count, is_nan_p);
    default:
        return count;
    }
}

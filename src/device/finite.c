/* SPDX-License-Identifier: Apache-2.0 */
/* A float is not finite when all bits of its exponent are 1. */
#include "device/finite.h"

#define DEFINE_FIRST(_name, _word, _exponent)                                                      \
    static uint64_t _name##_first(const _word *words, uint64_t count, bool *is_nan_p)              \
    {                                                                                              \
        for (uint64_t i = 0; i < count; i++) {                                                     \
            if ((words[i] & (_exponent)) == (_exponent)) {                                         \
                /* The top bit is the sign; below the exponent is what tells NaN from infinity. */ \
                *is_nan_p = (_word)(words[i] << 1) != (_word)((_word)(_exponent) << 1);            \
                return i;                                                                          \
            }                                                                                      \
        }                                                                                          \
        return count;                                                                              \
    }

DEFINE_FIRST(float16, uint16_t, 0x7c00u)
DEFINE_FIRST(bfloat16, uint16_t, 0x7f80u)
DEFINE_FIRST(float32, uint32_t, 0x7f800000u)
DEFINE_FIRST(float64, uint64_t, 0x7ff0000000000000u)

static uint64_t first_bad(ls_dtype_t dtype, const void *values, uint64_t count, bool *is_nan_p)
{
    switch (dtype) {
    case LS_FLOAT16:
        return float16_first(values, count, is_nan_p);
    case LS_BFLOAT16:
        return bfloat16_first(values, count, is_nan_p);
    case LS_FLOAT32:
        return float32_first(values, count, is_nan_p);
    case LS_FLOAT64:
        return float64_first(values, count, is_nan_p);
    default:
        return count;
    }
}

void ls_finite_note(ls_dtype_t dtype, const void *values, uint64_t count, uint64_t at, ls_bad_value_t *bad)
{
    bool           is_nan = false;
    const uint64_t index  = bad->is_found ? count : first_bad(dtype, values, count, &is_nan);

    if (index < count) {
        *bad = (ls_bad_value_t){.is_found = true, .is_nan = is_nan, .at = at + index};
    }
}

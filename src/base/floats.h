/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a thread computes with floats.  Threads of the program may round otherwise, or flush small numbers to 0, as
 * TensorFlow's do; a sum that all ranks compute for themselves must have the same bits whoever computes it.
 */
#ifndef LS_BASE_FLOATS_H
#define LS_BASE_FLOATS_H

#if defined(__x86_64__)
#include <xmmintrin.h>

typedef unsigned ls_floats_t;

#define LS_FLOATS_USUAL 0x1f80U /* to nearest, nothing flushed, no traps */
#define LS_FLOATS_FLAGS 0x3fU   /* what happened so far */

/* Compute in the usual way, until leave() puts back how it was.  Asking costs next to nothing, setting tens of cycles. */
static inline ls_floats_t ls_floats_enter(void)
{
    const unsigned before = _mm_getcsr();

    if ((before & ~LS_FLOATS_FLAGS) != LS_FLOATS_USUAL) {
        _mm_setcsr(LS_FLOATS_USUAL);
    }
    return before;
}

static inline void ls_floats_leave(ls_floats_t before)
{
    if ((before & ~LS_FLOATS_FLAGS) != LS_FLOATS_USUAL) {
        _mm_setcsr(before);
    }
}

#else
#include <fenv.h>

typedef fenv_t ls_floats_t;

static inline ls_floats_t ls_floats_enter(void)
{
    fenv_t before;

    fegetenv(&before);
    fesetenv(FE_DFL_ENV);
    return before;
}

static inline void ls_floats_leave(ls_floats_t before)
{
    fesetenv(&before);
}
#endif

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Monotonic time. */
#ifndef LS_BASE_CLOCK_H
#define LS_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

#define LS_NS_PER_US 1000ULL
#define LS_NS_PER_MS 1000000ULL
#define LS_NS_PER_S  1000000000ULL

static inline uint64_t ls_clock_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * LS_NS_PER_S + (uint64_t)now.tv_nsec;
}

#if defined(__x86_64__)
#define LS_CLOCK_PAUSE() __builtin_ia32_pause()
#elif defined(__aarch64__)
#define LS_CLOCK_PAUSE() __asm__ volatile("yield")
#else
#define LS_CLOCK_PAUSE() ((void)0)
#endif

/* Tell the processor that this is a wait loop. */
static inline void ls_clock_relax(void)
{
    LS_CLOCK_PAUSE();
}

#endif

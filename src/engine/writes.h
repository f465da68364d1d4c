/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How stages are written: through the caches, or past them.
 *
 * Two cores that share a last-level cache hand data over fastest through it.  Two cores that do not - on
 * another die, or another socket - pay for every line that must be taken out of the reader's cache before it can
 * be written again; then it is faster to write past the caches (non-temporal stores) and let the reader
 * fetch from memory.  64 KiB written by one core and added up by another, two cores of one EPYC:
 *
 *                              one die     two dies
 *     through the caches        3.8 us        31 us
 *     past them                 6.5 us         6 us
 *
 * Which case it is, the system does not tell (a virtual processor even moves).  So now and then half of a stage
 * is written one way and half the other, and the clock decides.  It decides apart for packing and for reducing:
 * one was seen to be slow where the other was not, for the same two cores.  Engine thread only.
 */
#ifndef LS_ENGINE_WRITES_H
#define LS_ENGINE_WRITES_H

#include <stdbool.h>
#include <stdint.h>

typedef struct ls_writes {
    /* How many times faster writing past the caches must be to be chosen, and to stay so: it makes reading slower. */
    uint32_t stream_percent, cached_percent;
    bool     is_streaming; /* the present answer */
    uint32_t until_trial;  /* stages */
    uint32_t interval;     /* stages between trials; grows while they confirm the answer */
} ls_writes_t;

/* Through the caches, and try soon.  Packing is little but writing; a reduction also reads, which takes as long
 * either way and makes the difference look smaller. */
#define LS_WRITES_PACK   {.stream_percent = 300, .cached_percent = 200}
#define LS_WRITES_REDUCE {.stream_percent = 180, .cached_percent = 140}

/* Is it time for a trial with a stage of so many bytes? */
bool ls_writes_wants_trial(ls_writes_t *writes, uint64_t bytes);

/* What a trial showed: the time for equal amounts. */
void ls_writes_learn(ls_writes_t *writes, uint64_t cached_ns, uint64_t streamed_ns);

#endif

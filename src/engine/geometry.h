/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Geometry: how long a plan's blocks are and where they lie.
 *
 * Block b is counts[b] elements at input_at[b] of the input and at output_at[b] of the output.  A large
 * collective runs its plan once per chunk: chunk c is elements [c*step, (c+1)*step) of every block.
 *
 *     blocks     |------- 0 -------|------- 1 -------|---- 2 ----|
 *     chunk 0     aaaaa             aaaaa             aaaaa
 *     chunk 1          bbbbb             bbbbb             bbbbb
 *     chunk 2               ccccc             ccccc
 */
#ifndef LS_ENGINE_GEOMETRY_H
#define LS_ENGINE_GEOMETRY_H

#include <stdbool.h>
#include <stdint.h>

#include "lockstep.h"

typedef struct ls_geometry {
    uint32_t  num_blocks;
    uint64_t *counts;
    uint64_t *input_at;
    uint64_t *output_at;
    uint64_t  step; /* elements of each block per chunk, >= 1 */
    uint32_t  num_chunks;
} ls_geometry_t;

/* Room for num_blocks blocks, all empty. */
ls_status_t ls_geometry_init(ls_geometry_t *geometry, uint32_t num_blocks);
void        ls_geometry_clear(ls_geometry_t *geometry);

/* `count` elements in equal blocks, in input and output alike; boundaries fall on multiples of
 * 16 elements, so that vector loads start well and two ranks do not write one cache line. */
void ls_geometry_set_even(ls_geometry_t *geometry, uint64_t count);

/* Cut into chunks of `step` elements of each block; call it last.  There is at least one chunk, because
 * a collective without data still orders the ranks.  is_shared: all ranks know all counts, so they can
 * agree without a word on equal chunks instead of a short last one. */
void ls_geometry_set_chunks(ls_geometry_t *geometry, uint64_t step, bool is_shared);

/* Part of `block` that belongs to `chunk`. */
typedef struct ls_range {
    uint64_t input_at, output_at, count;
} ls_range_t;

ls_range_t ls_geometry_range(const ls_geometry_t *geometry, uint32_t chunk, uint32_t block);

/* Elements of `chunk` in blocks [block, block + num_blocks). */
uint64_t ls_geometry_count(const ls_geometry_t *geometry, uint32_t chunk, uint32_t block, uint32_t num_blocks);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* What the paths of the scanner share. */
#ifndef LS_DATA_CSV_SCAN_INT_H
#define LS_DATA_CSV_SCAN_INT_H

#include "data/csv_scan.h"

/* Bit i is byte i of the block; bytes past the end of the data have no bit. */
typedef struct masks {
    uint64_t valid, delimiter, line_feed, cr, quote, nul;
} masks_t;

/* The bits of the first `length` bytes. */
static inline uint64_t valid_bits(size_t length)
{
    return (length >= 64) ? UINT64_MAX : (1ULL << length) - 1;
}

/* Eight at a time without asking, then as many as there are: most blocks have about that many. */
static inline uint32_t *ls_csv_scan_put(uint64_t mask, uint32_t base, uint32_t *to)
{
    const int num = __builtin_popcountll(mask);

    for (int done = 0; done < num; done += 8) {
        for (int i = 0; i < 8; i++) {
            to[done + i] = base + (uint32_t)__builtin_ctzll(mask | (1ULL << 63));
            mask &= mask - 1;
        }
    }
    return to + num;
}

#endif

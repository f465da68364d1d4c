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

#endif

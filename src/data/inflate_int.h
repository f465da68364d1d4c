/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Input: a buffer of the file; behind its last byte there are zeros, so that the decoder may read a little
 * too far and the end is checked once per piece instead of once per symbol.  `bits` holds at least 56 bits
 * after a refill, which is enough for a match: 15 + 5 bits of length, 15 + 13 of distance.
 *
 * Output: the window: 32 KiB of what came before, then the piece.  A piece ends after the symbol that fills
 * it, so there is room for one longest match behind it, and no symbol is ever cut in two: a place to go back
 * to is a bit of the input, the block that it is in, and the 32 KiB before it.
 */
#ifndef LS_DATA_INFLATE_INT_H
#define LS_DATA_INFLATE_INT_H

#include <stdbool.h>

#include "data/huffman.h"
#include "data/inflate.h"

#define LS_INFLATE_INPUT   (256 * 1024)
#define LS_INFLATE_HEADER  1024 /* more than the header of a block */
#define LS_INFLATE_ZEROS   LS_INFLATE_HEADER
#define LS_INFLATE_KEPT    16 /* bytes before `in` that may have to be read again: they are in `bits` */
#define LS_INFLATE_HISTORY (32 * 1024)
#define LS_INFLATE_PIECE   (224 * 1024)
#define LS_INFLATE_MATCH   320

typedef enum inflate_mode {
    LS_INFLATE_AT_HEADER,
    LS_INFLATE_AT_STORED,
    LS_INFLATE_AT_CODES,
    LS_INFLATE_AT_END
} ls_inflate_mode_t;

/* A place in the stream; what else is needed follows from the block's header. */
typedef struct place {
    uint64_t          bit;       /* of the file: the next one */
    uint64_t          block_bit; /* where the header of the current block begins */
    ls_inflate_mode_t mode;
    bool              is_last; /* the current block */
    uint32_t          stored;  /* bytes left of a stored block */
} ls_inflate_place_t;

struct ls_inflate {
    const ls_file_t *file;
    uint64_t         next_offset, end; /* of the file: next byte to be put into input; end of the data */
    unsigned char   *in, *in_end;
    uint64_t         bits;
    unsigned         num_bits;

    ls_inflate_place_t place; /* `bit` is up to date only between pieces */
    unsigned char     *out;   /* end of what has been decoded */
    size_t history;           /* valid bytes before the piece, at the end of the first 32 KiB of the window */

    uint32_t      literals[LS_HUFFMAN_LITERAL_ROOM];
    uint32_t      distances[LS_HUFFMAN_DISTANCE_ROOM];
    unsigned char input[LS_INFLATE_KEPT + LS_INFLATE_INPUT + LS_INFLATE_ZEROS];
    unsigned char window[LS_INFLATE_HISTORY + LS_INFLATE_PIECE + LS_INFLATE_MATCH];
};

/* inflate.c: the input */

/* The bit of the file that comes next. */
uint64_t ls_inflate_next_bit(const struct ls_inflate *inflate);

/* At least `needed` bytes behind `in`, less only at the end of the data. */
ls_status_t ls_inflate_fill(struct ls_inflate *inflate, size_t needed);

/* inflate_block.c: each goes as far as the piece has room. */
ls_status_t ls_inflate_block_header(struct ls_inflate *inflate);
ls_status_t ls_inflate_block_stored(struct ls_inflate *inflate);
ls_status_t ls_inflate_block_coded(struct ls_inflate *inflate);

/* The next `count` (at most 16) bits. */
unsigned ls_inflate_block_take(struct ls_inflate *inflate, unsigned count);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the fields and rows of a text table end: 64 bytes at a time become masks, one bit per byte, and a
 * delimiter or line feed between quotes does not count.
 *
 * Words.  inside: between an opening quote and its closing one.  A row end is a line feed that is not inside
 * and does not end a blank line ("" or "\r").  A piece is a part of a file that is looked at alone: whether
 * its first byte is inside is not known yet, so everything about it is found twice, for start[0]: not inside,
 * start[1]: inside.
 */
#ifndef LS_DATA_CSV_SCAN_H
#define LS_DATA_CSV_SCAN_H

#include <stddef.h>
#include <stdint.h>

#include "lockstep.h"

#define LS_CSV_SCAN_NONE UINT64_MAX
#define LS_CSV_SCAN_BAD  SIZE_MAX

/* Bytes that must be readable after the data. */
#define LS_CSV_SCAN_SLACK 64

/* Positions that may be written after the last. */
#define LS_CSV_SCAN_ROOM_BEHIND 16

typedef struct ls_csv_marks {
    char delimiter;
    char quote;
} ls_csv_marks_t;

typedef struct ls_csv_count {
    uint64_t rows[2]; /* row ends, for each start */
    uint64_t
        bad_quote[2]; /* where the first quote is that neither begins nor ends a field; LS_CSV_SCAN_NONE */
    uint64_t nul;     /* the first zero byte; LS_CSV_SCAN_NONE */
    unsigned is_odd;  /* quotes in the piece: 1 changes inside to not inside */
} ls_csv_count_t;

/*
 * `before` are the two bytes before the piece; at the beginning of a file "\n\n".  At its end, append a line
 * feed to a last line that has none.
 */
typedef void (*ls_csv_count_fn)(const ls_csv_marks_t *marks, const char *before, const char *data,
                                size_t length, ls_csv_count_t *count_p);

/*
 * Positions of the delimiters and line feeds that are not inside.  *inside_p: 1 when the first byte is
 * inside; of the byte after the last on return.  *num_lines_p: how many of the positions are line feeds.
 * Returns their number; there must be room for `length` + LS_CSV_SCAN_ROOM_BEHIND.
 */
typedef size_t (*ls_csv_ends_fn)(const ls_csv_marks_t *marks, const char *data, size_t length,
                                 unsigned *inside_p, uint32_t *positions, size_t *num_lines_p);

typedef struct ls_csv_scan_ops {
    const char     *name;
    ls_csv_count_fn count;
    ls_csv_ends_fn  ends;
    ls_csv_ends_fn
        good_ends; /* the data begin a row: LS_CSV_SCAN_BAD where there is a zero byte or a bad quote */
} ls_csv_scan_ops_t;

/* NULL where the processor lacks the instructions. */
const ls_csv_scan_ops_t *ls_csv_scan_c_get(void);
const ls_csv_scan_ops_t *ls_csv_scan_avx2_get(void);
const ls_csv_scan_ops_t *ls_csv_scan_avx512_get(void);

/* The best of these. */
const ls_csv_scan_ops_t *ls_csv_scan_get(void);

#endif

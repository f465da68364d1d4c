/* SPDX-License-Identifier: Apache-2.0 */
/* A window that goes over the rows of a text table, with a buffer of fixed size unless one row is larger. */
#ifndef LS_DATA_CSV_ROWS_H
#define LS_DATA_CSV_ROWS_H

#include <stdbool.h>

#include "data/csv_index.h"

#define LS_CSV_MAX_ROW_BYTES ((size_t)64 * 1024 * 1024)

/* Whole rows in the buffer.  Field c of row r is at [ends[i - 1] + 1, ends[i]) of data, i = r * num_fields +
 * c; the first field may begin with blank lines, the last may end with a carriage return. */
typedef struct ls_csv_batch {
    const char           *data; /* LS_CSV_SCAN_SLACK bytes after the last row are readable */
    const uint32_t       *ends;
    unsigned              num_fields;
    size_t                num_rows;
    uint64_t              first_row; /* number in the data set */
    uint64_t              offset;    /* of data in the file */
    const ls_csv_index_t *index;
    unsigned              file;
    bool                  has_cr; /* false: no row ends with a carriage return */
} ls_csv_batch_t;

typedef struct ls_csv_rows {
    const ls_csv_index_t    *index;
    const ls_csv_scan_ops_t *scan;
    unsigned                 num_fields;
    uint64_t                 next_row; /* what the next batch begins with; LS_CSV_SCAN_NONE: nowhere */
    unsigned                 file;
    uint64_t                 offset; /* of the buffer's first byte in the file */
    char                    *data;
    size_t                   length, room;        /* bytes */
    uint32_t                *ends;                /* ends[-1] is there */
    size_t                   num_rows, done_rows; /* in the buffer, and how many of them were given */
    size_t                   block_rows;          /* most that are given at once */
    bool                     has_cr;        /* false: no row in the buffer ends with a carriage return */
    bool                     is_sequential; /* fill the whole buffer: more will be asked for */
    bool                     is_sweep;      /* nothing has been counted yet: check what is read */
    struct ls_csv_rows      *next;          /* in the list of unused ones; owner: the list */
} ls_csv_rows_t;

ls_status_t ls_csv_rows_create(const ls_csv_index_t *index, unsigned num_fields, ls_csv_rows_t **rows_p);
void        ls_csv_rows_destroy(ls_csv_rows_t *rows); /* NULL is allowed */

/* The next batch begins with `row`, which must be there.  Costs nothing if it would anyway. */
ls_status_t ls_csv_rows_seek(ls_csv_rows_t *rows, uint64_t row);

/* Up to `most` rows, at least one; there must be one. */
ls_status_t ls_csv_rows_next(ls_csv_rows_t *rows, uint64_t most, ls_csv_batch_t *batch_p);

/*
 * The rows of a file in their order, when no more is known of the index than its files and marks: those that
 * begin at `offset`, where a line begins, and before `limit`.  Rows are numbered from 0, a header is one of
 * them.
 */
void ls_csv_rows_sweep(ls_csv_rows_t *rows, unsigned file, uint64_t offset);

/* Up to `most` rows; none: no more begins before the limit, and rows->offset is where the next line begins.
 * Anything that is wrong with the text is an error that says less than ls_csv_index_build() and
 * ls_csv_rows_next() will. */
ls_status_t ls_csv_rows_sweep_next(ls_csv_rows_t *rows, uint64_t limit, uint64_t most,
                                   ls_csv_batch_t *batch_p);

/* The first place at or after `from` where a line begins, if `from` is not between quotes; `to`: there is
 * none before that. */
ls_status_t ls_csv_rows_line(ls_csv_rows_t *rows, unsigned file, uint64_t from, uint64_t to,
                             uint64_t *line_p);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which row of a text table is where.  Two ways lead to an index: csv_ahead.c has one as a by-product;
 * without it the files are cut into pieces of equal length; each rank counts the row ends in its own pieces,
 * for both states in which a piece may begin (csv_scan.h), the ranks exchange the counts, and from the
 * beginning of each file the states follow.  So no row is cut or counted twice where two ranks meet, whatever
 * the quotes around it, and every rank can find every row.
 */
#ifndef LS_DATA_CSV_INDEX_H
#define LS_DATA_CSV_INDEX_H

#include "data/csv_scan.h"
#include "data/file.h"
#include "lockstep_data.h"

#define LS_CSV_BUFFER_BYTES ((size_t)256 * 1024)

typedef struct ls_csv_piece {
    uint64_t rows_before;   /* row ends before it in its file, the header's too */
    uint64_t offset : 63;   /* in the file */
    uint64_t is_inside : 1; /* its first byte is between quotes */
} ls_csv_piece_t;

typedef struct ls_csv_file {
    ls_file_t file;
    uint64_t  begin;     /* after a byte order mark */
    uint64_t  first_row; /* of the data set, that is the first of this file */
    uint64_t  num_lines; /* rows with the header */
    size_t    first_piece, num_pieces;
} ls_csv_file_t;

typedef struct ls_csv_index {
    ls_csv_file_t  *files;
    unsigned        num_files;
    unsigned        num_headers; /* per file: 0 or 1 */
    uint64_t        num_rows;    /* of all files, without headers */
    uint64_t        piece_bytes; /* about */
    ls_csv_piece_t *pieces;
    size_t          num_pieces;
    ls_csv_marks_t  marks;
} ls_csv_index_t;

/* Where a row is found: behind `skip` row ends from `offset` on. */
typedef struct ls_csv_place {
    unsigned file;
    unsigned is_inside; /* at offset */
    uint64_t offset;
    uint64_t skip;
} ls_csv_place_t;

/* Opens the files; index->marks and num_headers come later, from who looks into them. */
ls_status_t ls_csv_index_open(const char *const *paths, unsigned num_paths, ls_csv_index_t *index);

/* Is the status of all ranks LS_OK, and do they see the same files?  Collective; to be asked before anything
 * is exchanged whose length depends on the files. */
ls_status_t ls_csv_index_agree(const ls_data_part_t *part, const ls_csv_index_t *index, ls_status_t status);

/* Counts rows; collective.  Finds zero bytes, and quotes that are not around a whole field. */
ls_status_t ls_csv_index_build(const ls_data_options_t *options, ls_csv_index_t *index);

void ls_csv_index_close(ls_csv_index_t *index);

ls_csv_place_t ls_csv_index_find(const ls_csv_index_t *index, uint64_t row);

/* Rows of the data set before a place given as a file and the number of row ends before it. */
uint64_t ls_csv_index_row(const ls_csv_index_t *index, unsigned file, uint64_t num_lines);

#endif

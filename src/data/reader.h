/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a format must give to be read: one constant of type ls_reader_ops_t, listed in formats.c.
 *
 *   lockstep_data.h   the public functions; data.c checks their arguments, finds the files, joins several
 * files into one data set, picks columns, makes ranks fail together, locks; then calls the table below
 *   reader.h          the table (this file)
 *   formats.c         the list of tables
 *   file.h            opening, exact reads, "has the file changed", errors that name file, record and byte
 *   part.h            what ranks do together while they open a text
 *   <format>.c        one per format, its table at the end: const ls_reader_ops_t ls_reader_<format>
 *
 * To add a format: write <format>.c with its table, name the table in formats.c.  If it needs a library, let
 * CMake take <format>.c where the library is found and <format>_without.c otherwise: the latter is a table
 * with name, title and `missing_library` only, and who asks for the format is told the library's name.
 *
 * Rules.
 * - Nothing in a file is trusted: sizes are compared with the size of the file, products are checked for
 * overflow, before memory is asked for.  Errors come from ls_file_error() (file.h): file, record or row,
 * byte, reason.
 * - No memory in proportion to the file, except an index of a few bytes per record.
 * - Rows are read with ls_file_read(), not through a mapping: a file cut short then gives an error, not a
 * signal.
 * - Ranks: with part->allgather, open() must call it equally often on every rank, whatever goes wrong on one
 * of them: ls_part_agree() before each exchange turns the error of one rank into the error of all.  data.c
 * itself agrees on the outcome of open().  After open() nothing is collective: any rank may read any row at
 * any time.
 */
#ifndef LS_DATA_READER_H
#define LS_DATA_READER_H

#include <stdbool.h>

#include "lockstep_data.h"

#define LS_READER_HEAD_BYTES 512

/* What is known about a file before it is opened. */
typedef struct ls_reader_head {
    const char          *path;
    const char          *name; /* of path, after the last / */
    uint64_t             file_bytes;
    const unsigned char *bytes;     /* the beginning of the file */
    size_t               num_bytes; /* LS_READER_HEAD_BYTES, less in a shorter file */
} ls_reader_head_t;

typedef struct ls_reader_params {
    const char *const       *paths; /* one, unless takes_many */
    unsigned                 num_paths;
    const ls_data_options_t *options; /* never NULL, valid as long as the reader; part.size >= 1 */
} ls_reader_params_t;

/* Format's own state; created by open. */
typedef struct ls_reader *ls_reader_h;

typedef struct ls_reader_ops {
    const char *name;  /* "idx" */
    const char *title; /* "IDX (MNIST), plain or gzip" */

    const char *missing_library; /* not NULL: this build cannot; then all functions but recognise are NULL */

    /* Several files are opened by one open(), as one data set.  Otherwise data.c opens one reader per file.
     */
    bool takes_many;

    /* read() may run in several threads at once.  Otherwise data.c holds a lock. */
    bool is_parallel;

    /* Is this file of this format?  The formats are asked in the order of formats.c; needs only be surer than
     * those after. */
    bool (*recognise)(const ls_reader_head_t *head);

    ls_status_t (*open)(const ls_reader_params_t *params, ls_reader_h *reader_p);

    /* All fields of the file (not only options->columns), the same at each call; owned by the reader. */
    const ls_data_info_t *(*info)(ls_reader_h reader);

    /* NULL, or: which rows options->ahead was given; returns their number. */
    uint64_t (*ahead)(ls_reader_h reader, uint64_t *first_p);

    /*
     * Rows [first, first + count) of the fields in `columns` (each at most once); the range has been checked.
     * LS_DATA_BYTES: ls_column_append() (column.h) for each row in turn, whatever the column holds already.
     * `count` may be 0.
     */
    ls_status_t (*read)(ls_reader_h reader, uint64_t first, uint64_t count, ls_data_column_t *columns,
                        unsigned num_columns);

    /* NULL, or: all rows of a field in memory without a copy; LS_ERR_UNSUPPORTED where this file does not
     * allow it. */
    ls_status_t (*map)(ls_reader_h reader, unsigned field, const void **rows_p);

    void (*close)(ls_reader_h reader);
} ls_reader_ops_t;

/* formats.c: the tables in the order in which they are asked; ends with NULL. */
extern const ls_reader_ops_t *const ls_formats[];

#endif

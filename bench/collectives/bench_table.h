/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The report: `#` lines and tables on standard output, and the same as JSON when asked for:
 *   {"header": {"ranks": "2", ...}, "tables": [{"name": "...", "rows": [{...}, ...]}, ...],
 *    "wrong": 0, "ok": true}
 * Only rank 0 prints; on the others every function does nothing.
 */
#ifndef LS_BENCH_TABLE_H
#define LS_BENCH_TABLE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef struct bench_column {
    const char *title;
    const char *key; /* in JSON; NULL: the title */
    int         width;
    int         digits;  /* after the point */
    bool        has_bar; /* a bar before it */
} bench_column_t;

/* Text, or where that is NULL a number; NAN is printed as "-" and is null in JSON. */
typedef struct bench_cell {
    const char *text;
    double      number;
} bench_cell_t;

typedef struct bench_table {
    FILE                 *out;  /* NULL: silent */
    FILE                 *json; /* NULL: no twin */
    const bench_column_t *columns;
    unsigned              num_columns;
    unsigned              num_tables, num_rows, num_headers;
} bench_table_t;

/* False and errno when the JSON file cannot be made. */
bool bench_table_open(bench_table_t *report, bool is_printing, const char *json_path);

/* All header lines come before the first table. */
void bench_table_header(bench_table_t *report, const char *key, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

void bench_table_begin(bench_table_t *report, const char *name, const char *legend,
                       const bench_column_t *columns, unsigned num_columns);
void bench_table_row(bench_table_t *report, const bench_cell_t *cells);
void bench_table_end(bench_table_t *report);

/* The footer: OK or FAILED.  False and errno when the JSON file could not be written. */
bool bench_table_close(bench_table_t *report, uint64_t num_wrong);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The types of the columns of a text table: given, or found in some of its rows. */
#ifndef LS_DATA_CSV_TYPES_H
#define LS_DATA_CSV_TYPES_H

#include "data/csv_convert.h"
#include "data/csv_head.h"
#include "data/csv_rows.h"

/* What is known about a table before it is read. */
typedef struct ls_csv_table {
    const ls_data_options_t *options;
    ls_csv_index_t           index;
    ls_csv_head_t            head;
    ls_csv_missing_t         missing;
} ls_csv_table_t;

/* All bytes of all files. */
uint64_t ls_csv_types_bytes(const ls_csv_index_t *index);

/* In all rows, or in rows spread over the data set, the same ones whatever the number of ranks.  The index is
 * built. */
ls_status_t ls_csv_types_find(const ls_csv_table_t *table, ls_csv_rows_t *rows, ls_data_type_t *types);

/* What ls_csv_types_find() will probably say, when the index is not built yet; and the bytes of a row, about.
 * Fails where it cannot tell. */
ls_status_t ls_csv_types_guess(const ls_csv_table_t *table, ls_csv_rows_t *rows, ls_data_type_t *types,
                               double *row_bytes_p);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows that are converted in the same pass over the files in which they are found, for a caller that will
 * want all of them anyway (ls_data_ahead_t).  The rest of the reader then has an index too.
 */
#ifndef LS_DATA_CSV_AHEAD_H
#define LS_DATA_CSV_AHEAD_H

#include "data/csv_types.h"

typedef struct ls_csv_ahead ls_csv_ahead_t;

/* Memory for it, and whether there is anything to do ahead: otherwise NULL. */
ls_status_t ls_csv_ahead_create(const ls_csv_table_t *table, ls_csv_ahead_t **ahead_p);
void        ls_csv_ahead_destroy(ls_csv_ahead_t *ahead); /* NULL is allowed */

/*
 * Collective.  Builds table->index and gives rows to the caller, or neither, on all ranks together: where
 * anything about the text is unusual or wrong.  An error only if the work was stopped or ranks could not
 * talk.
 */
ls_status_t ls_csv_ahead_read(ls_csv_ahead_t *ahead, ls_csv_table_t *table, ls_csv_rows_t *rows);

/* Rows [*first_p, *first_p + returned number) were given, unless the columns turn out to have other types. */
uint64_t ls_csv_ahead_rows(const ls_csv_ahead_t *ahead, const ls_data_type_t *types, uint64_t *first_p);

#endif

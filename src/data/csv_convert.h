/* SPDX-License-Identifier: Apache-2.0 */
/* From the text of fields to values of a type. */
#ifndef LS_DATA_CSV_CONVERT_H
#define LS_DATA_CSV_CONVERT_H

#include <stdbool.h>

#include "data/csv_rows.h"

/* Texts that stand for a missing value: NaN in a column of floats, an error in one of integers. */
typedef struct ls_csv_missing {
    const char *const *texts;
    unsigned           num_texts;
    bool               is_number; /* one of them looks like a number: ask before parsing */
} ls_csv_missing_t;

ls_csv_missing_t ls_csv_convert_missing(const char *const *texts,
                                        unsigned           num_texts); /* NULL: the usual ones */

bool ls_csv_convert_can(ls_data_type_t type);

/* Field `field` of all rows of the batch; `done` rows of the column are there.  `name` of the column, for
 * errors. */
ls_status_t ls_csv_convert(const ls_csv_batch_t *batch, const ls_csv_missing_t *missing, unsigned field,
                           const char *name, ls_data_type_t type, ls_data_column_t *column, uint64_t done);

/* What is known about a column of unknown type: LS_DATA_AUTO (nothing) < int64 < float64 < bytes. */
typedef struct ls_csv_found {
    ls_data_type_t type;
    bool           has_missing;
} ls_csv_found_t;

/* Takes the rows of the batch into account. */
void ls_csv_convert_find(const ls_csv_batch_t *batch, const ls_csv_missing_t *missing, unsigned field,
                         ls_csv_found_t *found);

#endif

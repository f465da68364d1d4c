/* SPDX-License-Identifier: Apache-2.0 */
/* The texts of fields, without the quotes around them. */
#ifndef LS_DATA_CSV_TEXT_H
#define LS_DATA_CSV_TEXT_H

#include "data/csv_rows.h"

/* Field `field` of all rows of the batch, after the rows that the column has. */
ls_status_t ls_csv_text_convert(const ls_csv_batch_t *batch, unsigned field, ls_data_column_t *column);

/* The text of a field without its quotes: into `to`, which has room for the field; returns the length. */
size_t ls_csv_text_copy(const ls_csv_batch_t *batch, size_t row, unsigned field, char *to);

/* Length of the field with its quotes. */
size_t ls_csv_text_length(const ls_csv_batch_t *batch, size_t row, unsigned field);

#endif

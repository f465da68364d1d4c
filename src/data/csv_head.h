/* SPDX-License-Identifier: Apache-2.0 */
/* What the beginning of a text table tells: delimiter, number of fields, header, names. */
#ifndef LS_DATA_CSV_HEAD_H
#define LS_DATA_CSV_HEAD_H

#include "data/csv_index.h"

typedef struct ls_csv_head {
    unsigned num_fields;
    char   **names; /* of the header; without one "0", "1", ... */
} ls_csv_head_t;

/* Sets index->marks and index->num_headers too.  Every rank finds the same, from the first file that is not
 * empty. */
ls_status_t ls_csv_head_read(const ls_data_options_t *options, ls_csv_index_t *index, ls_csv_head_t *head_p);

/* Do the files that are this rank's to look at have the same header? */
ls_status_t ls_csv_head_compare(const ls_data_part_t *part, const ls_csv_index_t *index);

/* The field of this name or, if there is none, of this number; num_fields: none. */
unsigned ls_csv_head_field(const ls_csv_head_t *head, const char *name);

void ls_csv_head_free(ls_csv_head_t *head);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The fields of a data set: those that the caller wants, of files that agree. */
#ifndef LS_DATA_DATA_FIELDS_H
#define LS_DATA_DATA_FIELDS_H

#include "lockstep_data.h"

typedef struct ls_data_fields {
    ls_data_info_t         info;   /* the chosen fields */
    unsigned              *chosen; /* the reader's number of each of them */
    const ls_data_field_t *all;    /* the reader's */
} ls_data_fields_t;

/* All of `info`, or those that options->columns names; a name that is not there is an error that lists what
 * is. */
ls_status_t ls_data_fields_choose(const ls_data_info_t *info, const ls_data_options_t *options,
                                  const char *path, ls_data_fields_t *fields_p);
void        ls_data_fields_clear(ls_data_fields_t *fields);

/* Can the two files be parts of one data set? */
ls_status_t ls_data_fields_agree(const ls_data_info_t *info, const ls_data_info_t *other, const char *path,
                                 const char *other_path);

void ls_data_fields_set_rows(ls_data_fields_t *fields, uint64_t num_rows);

/* At least one row for each rank? */
ls_status_t ls_data_fields_enough(const ls_data_fields_t *fields, unsigned ranks, const char *path);

#endif

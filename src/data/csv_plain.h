/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Columns of plain numbers, fast: [-] digits [. digits] [e+dd or e-dd], at most 19 digits and 31 bytes. Stops
 * at the first field that is anything else, which is then for decimal.c to judge.
 */
#ifndef LS_DATA_CSV_PLAIN_H
#define LS_DATA_CSV_PLAIN_H

#include <stddef.h>
#include <stdint.h>

/* Bytes before the data that must be readable. */
#define LS_CSV_PLAIN_SLACK 64

/* Field i is at [ends[i * stride - 1] + 1, ends[i * stride] - trim) of data. */
typedef struct ls_csv_plain {
    const char     *data;
    const uint32_t *ends;
    size_t          stride;
    size_t          count;
    int             has_cr; /* the last byte of a field may be a carriage return that is not part of it */
} ls_csv_plain_t;

typedef struct ls_csv_plain_ops {
    /* Return how many fields were converted before the first that is not plain. */
    size_t (*doubles)(const ls_csv_plain_t *fields, double *to);
    size_t (*integers)(const ls_csv_plain_t *fields, int64_t *to);
} ls_csv_plain_ops_t;

/* NULL where the processor lacks the instructions. */
const ls_csv_plain_ops_t *ls_csv_plain_get(void);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The header of NetCDF's classic formats: CDF-1, CDF-2 (64-bit offsets) and CDF-5 (64-bit counts). Everything
 * is big-endian and padded to 4 bytes:
 *
 *   'C' 'D' 'F' version, number of records, list of dimensions, list of attributes, list of variables
 *
 * A variable whose first dimension has length 0 is a record variable: its rows are `record_bytes` apart,
 * those of the other record variables in between.  The rows of any other variable lie one after another.
 */
#ifndef LS_DATA_NETCDF_HEADER_H
#define LS_DATA_NETCDF_HEADER_H

#include "data/array.h"

typedef struct ls_netcdf_variable {
    ls_array_t array;  /* name owned; offset of row 0; bytes without what is in between */
    uint64_t   stride; /* from row to row */
    bool       is_record;
    bool       is_text;       /* NC_CHAR */
    bool       is_coordinate; /* has the name of its only dimension: it labels the others' rows or columns */
    bool       has_rows;      /* at least one dimension */
} ls_netcdf_variable_t;

typedef struct ls_netcdf_header {
    ls_netcdf_variable_t *variables;
    unsigned              num_variables;
} ls_netcdf_header_t;

/* Checks that all rows of all variables are in the file. */
ls_status_t ls_netcdf_header_read(const ls_file_t *file, ls_netcdf_header_t *header_p);
void        ls_netcdf_header_free(ls_netcdf_header_t *header);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The datasets of an HDF5 file that can be fields. */
#ifndef LS_DATA_HDF5_FIELDS_H
#define LS_DATA_HDF5_FIELDS_H

#include <stdbool.h>

#include "data/array.h"
#include "data/hdf5_api.h"

typedef struct ls_hdf5_field {
    ls_array_t array; /* name owned; offset only where is_plain */
    hid_t      dataset;
    hid_t      memory_type; /* not owned */
    bool       is_plain;    /* rows lie one after another in the file, as they are in memory */
    bool       is_scale;    /* a dimension scale of NetCDF-4 or h5py: the coordinates of others, not data */
    uint64_t   chunk_rows;  /* 1: not chunked */
} ls_hdf5_field_t;

typedef struct ls_hdf5_fields {
    ls_hdf5_field_t *list; /* by name; groups are part of it: "group/data" */
    unsigned         num, room;
} ls_hdf5_fields_t;

/*
 * All numeric datasets with at least one dimension.  `columns` are what the user asked for: dimension scales
 * are left out unless they are among them, and one that is there but cannot be read is an error that says
 * why.
 */
ls_status_t ls_hdf5_fields_find(const ls_hdf5_api_t *api, hid_t file, const char *path,
                                const ls_data_options_t *options, ls_hdf5_fields_t *fields_p);
void        ls_hdf5_fields_clear(const ls_hdf5_api_t *api, ls_hdf5_fields_t *fields);

#endif

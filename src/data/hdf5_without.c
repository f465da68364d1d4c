/* SPDX-License-Identifier: Apache-2.0 */
/* In place of hdf5*.c where libhdf5 was not there when this was built. */
#include "data/hdf5_magic.h"

const ls_reader_ops_t ls_reader_hdf5 = {
    .name            = "hdf5",
    .title           = "HDF5 and NetCDF-4",
    .missing_library = "libhdf5 (Debian: libhdf5-dev)",
    .recognise       = ls_hdf5_magic_recognise,
};

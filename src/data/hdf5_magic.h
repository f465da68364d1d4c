/* SPDX-License-Identifier: Apache-2.0 */
/* What HDF5 files begin with; known also where libhdf5 is absent, to say what is missing. */
#ifndef LS_DATA_HDF5_MAGIC_H
#define LS_DATA_HDF5_MAGIC_H

#include "data/reader.h"

bool ls_hdf5_magic_recognise(const ls_reader_head_t *head);

#endif

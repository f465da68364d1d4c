/* SPDX-License-Identifier: Apache-2.0 */
/* The header of NumPy's .npy, alone in a file or inside an .npz. */
#ifndef LS_DATA_NPY_HEADER_H
#define LS_DATA_NPY_HEADER_H

#include "data/array.h"

#define LS_NPY_MAGIC       "\x93NUMPY"
#define LS_NPY_MAGIC_BYTES 6

/*
 * Fills *array_p except for the name.  `where` names the array in errors ("" in a file of its own), `origin`
 * is the byte of the file at which the stream begins.  The stream must have exactly the announced length.
 */
ls_status_t ls_npy_header_read(ls_stream_h stream, const char *path, const char *where, uint64_t origin,
                               ls_array_t *array_p);

#endif

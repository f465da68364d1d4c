/* SPDX-License-Identifier: Apache-2.0 */
/* The directory of a zip file. */
#ifndef LS_DATA_ZIP_H
#define LS_DATA_ZIP_H

#include "data/stream.h"

#define LS_ZIP_MAX_NAME 256

typedef struct ls_zip_entry {
    char              name[LS_ZIP_MAX_NAME];
    ls_stream_entry_t stream;
} ls_zip_entry_t;

/* All entries, in the order of the directory; freed with ls_mem_free(). */
ls_status_t ls_zip_list(const ls_file_t *file, ls_zip_entry_t **entries_p, unsigned *count_p);

#endif

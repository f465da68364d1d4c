/* SPDX-License-Identifier: Apache-2.0 */
/* Which format a file has. */
#ifndef LS_DATA_FORMATS_H
#define LS_DATA_FORMATS_H

#include "data/reader.h"

/* The format named `name`, or, where that is NULL, the one that recognises the file; one that this build can
 * read. */
ls_status_t ls_formats_find(const char *path, const char *name, const ls_reader_ops_t **ops_p);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* From what the user names to a list of files. */
#ifndef LS_DATA_PATHS_H
#define LS_DATA_PATHS_H

#include "lockstep.h"

typedef struct ls_paths {
    char   **names;
    unsigned count;
} ls_paths_t;

/*
 * Adds the file `path`, or the files below the folder `path` (hidden ones left out), or those that match the
 * pattern `path`, in the order of their names.  Nothing found is an error.
 */
ls_status_t ls_paths_add(ls_paths_t *paths, const char *path);
void        ls_paths_clear(ls_paths_t *paths);

#endif

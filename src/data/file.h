/* SPDX-License-Identifier: Apache-2.0 */
/* A file that is being read: exact reads by offset, and errors that say where. */
#ifndef LS_DATA_FILE_H
#define LS_DATA_FILE_H

#include <stdint.h>
#include <time.h>

#include "lockstep.h"

#define LS_FILE_NOWHERE UINT64_MAX /* as record or offset: the error is not about one */

typedef struct ls_file {
    char           *path;
    int             fd;
    uint64_t        bytes; /* when it was opened */
    struct timespec modified;
    void           *mapping; /* NULL: not mapped */
} ls_file_t;

/* A regular file, readable; anything else is an error that names it. */
ls_status_t ls_file_open(const char *path, ls_file_t *file_p);
void        ls_file_close(ls_file_t *file); /* also one that is all zeros, or was not opened */

/* Exactly `bytes` from `offset`; a file that ends before is an error.  Any thread. */
ls_status_t ls_file_read(const ls_file_t *file, uint64_t offset, size_t bytes, void *memory);

/* Error if size or time of modification are not what they were: to be called at the end of each read(). */
ls_status_t ls_file_unchanged(const ls_file_t *file);

/* The whole file, read-only; unmapped by ls_file_close().  Checks that the file has not changed. */
ls_status_t ls_file_map(ls_file_t *file, const unsigned char **bytes_p);

/*
 * Sets the error "PATH: record 17, byte 4096: REASON" and returns LS_ERR_INVALID.  `unit` is "record", "row",
 * ...
 */
ls_status_t ls_file_error(const char *path, const char *unit, uint64_t record, uint64_t offset,
                          const char *reason, ...) __attribute__((format(printf, 5, 6)));

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Headers and trailers of gzip members (RFC 1952). */
#ifndef LS_DATA_GZIP_H
#define LS_DATA_GZIP_H

#include <stdbool.h>

#include "data/file.h"

#define LS_GZIP_TRAILER_BYTES 8

bool ls_gzip_is(const unsigned char *bytes, size_t count);

/* A member begins at `offset`; its deflated data at *data_p. */
ls_status_t ls_gzip_header(const ls_file_t *file, uint64_t offset, uint64_t *data_p);

/* The trailer at `offset` must hold this checksum and length. */
ls_status_t ls_gzip_trailer(const ls_file_t *file, uint64_t offset, uint32_t crc, uint64_t bytes);

#endif

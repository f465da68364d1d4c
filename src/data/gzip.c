/* SPDX-License-Identifier: Apache-2.0 */
#include "data/gzip.h"

#include <string.h>

#define FIXED_BYTES 10
#define HEADER_ROOM 4096

enum { FLAG_HEADER_CRC = 2, FLAG_EXTRA = 4, FLAG_NAME = 8, FLAG_COMMENT = 16, FLAGS_UNKNOWN = 0xe0 };

bool ls_gzip_is(const unsigned char *bytes, size_t count)
{
    return count >= 3 && bytes[0] == 0x1f && bytes[1] == 0x8b && bytes[2] == 8;
}

static size_t after_text(const unsigned char *header, size_t at, size_t room)
{
    while (at < room && header[at] != 0) {
        at++;
    }
    return at + 1;
}

ls_status_t ls_gzip_header(const ls_file_t *file, uint64_t offset, uint64_t *data_p)
{
    unsigned char  header[HEADER_ROOM] = {0};
    const uint64_t left                = file->bytes - offset;
    const size_t   room                = left < HEADER_ROOM ? (size_t)left : HEADER_ROOM;
    size_t         at                  = FIXED_BYTES;
    ls_status_t    status              = ls_file_read(file, offset, room, header);

    if (status != LS_OK) {
        return status;
    }
    if (!ls_gzip_is(header, room)) {
        return ls_file_error(file->path, "", LS_FILE_NOWHERE, offset,
                             "neither the end of the file nor more gzip data follows the gzip data before");
    }
    if (header[3] & FLAGS_UNKNOWN) {
        return ls_file_error(file->path, "", LS_FILE_NOWHERE, offset + 3,
                             "unknown flags 0x%02x in a gzip header", header[3]);
    }
    if (header[3] & FLAG_EXTRA) {
        at += at + 2 <= room ? 2u + header[at] + 256u * header[at + 1] : 2u;
    }
    if (header[3] & FLAG_NAME) {
        at = after_text(header, at, room);
    }
    if (header[3] & FLAG_COMMENT) {
        at = after_text(header, at, room);
    }
    if (header[3] & FLAG_HEADER_CRC) {
        at += 2;
    }
    if (at > room) {
        return ls_file_error(file->path, "", LS_FILE_NOWHERE, offset,
                             "the gzip header is cut short or too long (%zu bytes)", at);
    }
    *data_p = offset + at;
    return LS_OK;
}

ls_status_t ls_gzip_trailer(const ls_file_t *file, uint64_t offset, uint32_t crc, uint64_t bytes)
{
    uint32_t    trailer[2];
    ls_status_t status;

    if (file->bytes - offset < LS_GZIP_TRAILER_BYTES) {
        return ls_file_error(file->path, "", LS_FILE_NOWHERE, file->bytes,
                             "the file ends in the middle of the gzip checksum");
    }
    status = ls_file_read(file, offset, sizeof(trailer), trailer);
    if (status != LS_OK) {
        return status;
    }
    if (trailer[0] != crc) {
        return ls_file_error(file->path, "", LS_FILE_NOWHERE, offset,
                             "wrong checksum: the file says CRC 0x%08x, its data has 0x%08x", trailer[0],
                             crc);
    }
    if (trailer[1] != (uint32_t)bytes) {
        return ls_file_error(file->path, "", LS_FILE_NOWHERE, offset + 4,
                             "wrong length: the file says %u bytes (modulo 4 GiB), its data has %u",
                             trailer[1], (uint32_t)bytes);
    }
    return LS_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes of a file, or of a part of it, as if they were not compressed; read at any offset, by any thread.
 *
 * Compressed data can only be inflated from its beginning, or from a place that has been passed and
 * remembered: about 256 of them, 32 KiB each.  A checksum is verified when the last byte has been passed for
 * the first time; what was read before then is unverified until then, so who reads only a part calls
 * ls_stream_verify() first.
 */
#ifndef LS_DATA_STREAM_H
#define LS_DATA_STREAM_H

#include "data/file.h"
#include "data/progress.h"

typedef struct ls_stream *ls_stream_h;

/* Bytes [offset, offset + bytes) of the file, no checksum.  The file must stay open as long as the stream,
 * always. */
ls_status_t ls_stream_plain(const ls_file_t *file, uint64_t offset, uint64_t bytes, ls_stream_h *stream_p);

/* The whole file is gzip, one member or several; its length is known when it has been said or seen. */
ls_status_t ls_stream_gzip(const ls_file_t *file, ls_stream_h *stream_p);

/* Bytes [offset, offset + packed) of the file hold `bytes`, stored or deflated, as in a zip file. */
typedef struct ls_stream_entry {
    uint64_t offset, packed, bytes;
    int      is_deflated;
    uint32_t crc;
} ls_stream_entry_t;

ls_status_t ls_stream_zip(const ls_file_t *file, const ls_stream_entry_t *entry, ls_stream_h *stream_p);

void ls_stream_destroy(ls_stream_h stream);

/* Exactly these bytes. */
ls_status_t ls_stream_read(ls_stream_h stream, uint64_t offset, size_t bytes, void *memory);

/* How long it must be; what is shorter or longer is an error when it is seen. */
ls_status_t ls_stream_expect(ls_stream_h stream, uint64_t bytes);

/* Passes over everything that has not been passed yet, and verifies length and checksum. */
ls_status_t ls_stream_verify(ls_stream_h stream, const ls_data_options_t *options);

/* Bytes that are read together at little cost; 1: any. */
uint64_t ls_stream_chunk(ls_stream_h stream);

#endif

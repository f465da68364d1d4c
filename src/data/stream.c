/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Words: a piece is what inflate gives at a time; pieces always begin at the same offsets, whether they come
 * from the beginning or from a mark.  The frontier is how far the data has been passed without a gap: only
 * there the checksum is continued and marks are made.
 */
#include "data/stream.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "data/crc.h"
#include "data/gzip.h"
#include "data/inflate.h"

#define MAX_MARKS    256
#define MARK_BYTES   (1UL << 20) /* marks are no closer than this */
#define PASS_BYTES   (256 * 1024)
#define REPORT_BYTES (16UL << 20)
#define UNKNOWN      UINT64_MAX
#define FAILURE_ROOM 1024

typedef enum stream_kind { STREAM_PLAIN, STREAM_STORED, STREAM_DEFLATED, STREAM_GZIP } stream_kind_t;

typedef struct stream_mark {
    uint64_t          offset;
    ls_inflate_mark_h mark;
} stream_mark_t;

struct ls_stream {
    const ls_file_t *file;
    stream_kind_t    kind;
    uint64_t         begin, packed; /* in the file */
    uint64_t         bytes;         /* UNKNOWN: not yet known */
    uint32_t         expected_crc;  /* zip */

    /* lock: what follows */
    pthread_mutex_t      lock;
    ls_inflate_h         inflate;
    const unsigned char *piece;
    uint64_t             piece_offset;
    size_t               piece_bytes;
    uint64_t             frontier, member; /* where the current gzip member begins */
    uint32_t             crc;              /* from `member` to `frontier` */
    bool                 is_verified;
    char                 failure[FAILURE_ROOM]; /* "", or the error that every call gets from then on */
    stream_mark_t        marks[MAX_MARKS];
    unsigned             num_marks;
};

static ls_status_t fail(const struct ls_stream *stream, const char *what, uint64_t wanted)
{
    return ls_file_error(stream->file->path, "", LS_FILE_NOWHERE, stream->begin + stream->packed,
                         "the data %s %" PRIu64 " bytes when unpacked", what, wanted);
}

/* ---- compressed
 * ------------------------------------------------------------------------------------------------- */

static uint64_t mark_distance(const struct ls_stream *stream)
{
    const uint64_t spread = stream->bytes == UNKNOWN ? 0 : stream->bytes / (MAX_MARKS - 1);

    return spread > MARK_BYTES ? spread : MARK_BYTES;
}

static ls_status_t add_mark(struct ls_stream *stream)
{
    const uint64_t last = stream->num_marks > 0 ? stream->marks[stream->num_marks - 1].offset : 0;
    stream_mark_t *mark = &stream->marks[stream->num_marks];
    ls_status_t    status;

    if (stream->num_marks == MAX_MARKS || stream->frontier - last < mark_distance(stream)) {
        return LS_OK;
    }
    status = ls_inflate_mark(stream->inflate, &mark->mark);
    if (status == LS_OK) {
        mark->offset = stream->frontier;
        stream->num_marks++;
    }
    return status;
}

static ls_status_t check_zip_end(const struct ls_stream *stream, uint64_t end)
{
    if (end != stream->begin + stream->packed) {
        return ls_file_error(stream->file->path, "", LS_FILE_NOWHERE, end,
                             "the deflated data ends here, the directory says at byte %" PRIu64,
                             stream->begin + stream->packed);
    }
    if (stream->crc != stream->expected_crc) {
        return ls_file_error(stream->file->path, "", LS_FILE_NOWHERE, stream->begin,
                             "wrong checksum: the file says CRC 0x%08x, its data has 0x%08x",
                             stream->expected_crc, stream->crc);
    }
    return LS_OK;
}

/* The deflated data is over.  Gzip may have another member; otherwise *is_end_p. */
static ls_status_t end_member(struct ls_stream *stream, bool *is_end_p)
{
    const uint64_t end            = ls_inflate_end(stream->inflate);
    const bool     is_at_frontier = stream->piece_offset == stream->frontier;
    uint64_t       data;
    ls_status_t    status = LS_OK;

    if (stream->kind == STREAM_DEFLATED) {
        *is_end_p = true;
        return is_at_frontier ? check_zip_end(stream, end) : LS_OK;
    }
    if (is_at_frontier) {
        status         = ls_gzip_trailer(stream->file, end, stream->crc, stream->frontier - stream->member);
        stream->member = stream->frontier;
        stream->crc    = 0;
    }
    *is_end_p = end + LS_GZIP_TRAILER_BYTES >= stream->file->bytes;
    if (status == LS_OK && !*is_end_p) {
        status = ls_gzip_header(stream->file, end + LS_GZIP_TRAILER_BYTES, &data);
        if (status == LS_OK) {
            ls_inflate_restart(stream->inflate, data);
        }
    }
    return status;
}

/* The piece after the current one; an empty one at the end of everything. */
static ls_status_t next_piece(struct ls_stream *stream)
{
    bool        is_end = false;
    ls_status_t status = LS_OK;

    stream->piece_offset += stream->piece_bytes;
    stream->piece_bytes = 0;
    if (stream->piece_offset == stream->frontier) {
        status = add_mark(stream);
    }
    while (status == LS_OK && stream->piece_bytes == 0 && !is_end) {
        status = ls_inflate_more(stream->inflate, &stream->piece, &stream->piece_bytes);
        if (status == LS_OK && stream->piece_bytes == 0) {
            status = end_member(stream, &is_end);
        }
    }
    if (status != LS_OK || stream->piece_offset != stream->frontier) {
        return status;
    }
    stream->crc = ls_crc_32(stream->crc, stream->piece, stream->piece_bytes);
    stream->frontier += stream->piece_bytes;
    if (stream->bytes != UNKNOWN && stream->frontier > stream->bytes) {
        return fail(stream, "has more than the expected", stream->bytes);
    }
    if (is_end) {
        if (stream->bytes != UNKNOWN && stream->frontier < stream->bytes) {
            return fail(stream, "ends too early: it must have", stream->bytes);
        }
        stream->bytes       = stream->frontier;
        stream->is_verified = true;
    }
    return LS_OK;
}

static ls_status_t go_to(struct ls_stream *stream, uint64_t offset)
{
    const uint64_t piece_end = stream->piece_offset + stream->piece_bytes;
    unsigned       best      = stream->num_marks;

    while (best > 0 && stream->marks[best - 1].offset > offset) {
        best--;
    }
    if (offset >= stream->piece_offset && (best == 0 || stream->marks[best - 1].offset <= piece_end)) {
        return LS_OK; /* straight on */
    }
    stream->piece_bytes  = 0;
    stream->piece_offset = best > 0 ? stream->marks[best - 1].offset : 0;
    if (best > 0) {
        return ls_inflate_go_back(stream->inflate, stream->marks[best - 1].mark);
    }
    ls_inflate_restart(stream->inflate, stream->begin);
    return LS_OK;
}

/* Checks the end as soon as the last byte has been passed. */
static ls_status_t check_if_done(struct ls_stream *stream)
{
    const bool is_done =
        stream->frontier == stream->bytes && stream->piece_offset + stream->piece_bytes == stream->frontier;

    return is_done && !stream->is_verified ? next_piece(stream) : LS_OK;
}

static ls_status_t read_inflated(struct ls_stream *stream, uint64_t offset, size_t bytes,
                                 unsigned char *memory)
{
    ls_status_t status = go_to(stream, offset);

    while (status == LS_OK && bytes > 0) {
        if (offset < stream->piece_offset + stream->piece_bytes) {
            const size_t from = (size_t)(offset - stream->piece_offset);
            const size_t have = stream->piece_bytes - from, count = have < bytes ? have : bytes;

            memcpy(memory, stream->piece + from, count);
            memory += count;
            offset += count;
            bytes -= count;
        } else {
            status = next_piece(stream);
            if (status == LS_OK && stream->piece_bytes == 0) {
                return fail(stream, "ends too early: there must be", offset + bytes);
            }
        }
    }
    return status == LS_OK ? check_if_done(stream) : status;
}

/* ---- stored, with a checksum
 * ---------------------------------------------------------------------------------------- */

/* Reads at the frontier, in portions that the checksum finds in the cache. */
static ls_status_t pass_stored(struct ls_stream *stream, size_t bytes, unsigned char *memory)
{
    ls_status_t status = LS_OK;

    while (status == LS_OK && bytes > 0) {
        const size_t count = bytes < PASS_BYTES ? bytes : PASS_BYTES;

        status = ls_file_read(stream->file, stream->begin + stream->frontier, count, memory);
        if (status == LS_OK) {
            stream->crc = ls_crc_32(stream->crc, memory, count);
            stream->frontier += count;
            memory += count;
            bytes -= count;
        }
    }
    if (status == LS_OK && stream->frontier == stream->bytes && !stream->is_verified) {
        status              = check_zip_end(stream, stream->begin + stream->frontier);
        stream->is_verified = status == LS_OK;
    }
    return status;
}

static ls_status_t skip_stored(struct ls_stream *stream, uint64_t to)
{
    unsigned char *scratch = NULL;
    ls_status_t    status  = LS_OK;

    if (stream->frontier < to) {
        status = ls_mem_alloc(PASS_BYTES, "checked data", (void **)&scratch);
    }
    while (status == LS_OK && stream->frontier < to) {
        const uint64_t left = to - stream->frontier;

        status = pass_stored(stream, left < PASS_BYTES ? (size_t)left : PASS_BYTES, scratch);
    }
    ls_mem_free(scratch);
    return status;
}

static ls_status_t read_stored(struct ls_stream *stream, uint64_t offset, size_t bytes, unsigned char *memory)
{
    ls_status_t  status = skip_stored(stream, offset);
    const size_t known  = stream->frontier - offset < bytes ? (size_t)(stream->frontier - offset) : bytes;

    if (status == LS_OK) {
        status = ls_file_read(stream->file, stream->begin + offset, known, memory);
    }
    return status == LS_OK ? pass_stored(stream, bytes - known, memory + known) : status;
}

/* ---- all kinds
 * ---------------------------------------------------------------------------------------------------- */

static ls_status_t create(const ls_file_t *file, stream_kind_t kind, uint64_t begin, uint64_t packed,
                          uint64_t bytes, ls_stream_h *stream_p)
{
    struct ls_stream *stream = NULL;
    ls_status_t       status = ls_mem_alloc(sizeof(*stream), "stream of a data file", (void **)&stream);

    if (status != LS_OK) {
        return status;
    }
    stream->file        = file;
    stream->kind        = kind;
    stream->begin       = begin;
    stream->packed      = packed;
    stream->bytes       = bytes;
    stream->is_verified = kind == STREAM_PLAIN;
    if (kind == STREAM_DEFLATED || kind == STREAM_GZIP) {
        status = ls_inflate_create(file, begin, begin + packed, &stream->inflate);
    }
    if (status != LS_OK) {
        ls_mem_free(stream);
        return status;
    }
    pthread_mutex_init(&stream->lock, NULL);
    *stream_p = stream;
    return LS_OK;
}

ls_status_t ls_stream_plain(const ls_file_t *file, uint64_t offset, uint64_t bytes, ls_stream_h *stream_p)
{
    return create(file, STREAM_PLAIN, offset, bytes, bytes, stream_p);
}

ls_status_t ls_stream_gzip(const ls_file_t *file, ls_stream_h *stream_p)
{
    uint64_t          data   = 0;
    const ls_status_t status = ls_gzip_header(file, 0, &data);

    return status != LS_OK ? status : create(file, STREAM_GZIP, data, file->bytes - data, UNKNOWN, stream_p);
}

ls_status_t ls_stream_zip(const ls_file_t *file, const ls_stream_entry_t *entry, ls_stream_h *stream_p)
{
    const stream_kind_t kind   = entry->is_deflated ? STREAM_DEFLATED : STREAM_STORED;
    const ls_status_t   status = create(file, kind, entry->offset, entry->packed, entry->bytes, stream_p);

    if (status == LS_OK) {
        (*stream_p)->expected_crc = entry->crc;
    }
    return status;
}

void ls_stream_destroy(ls_stream_h stream)
{
    if (stream == NULL) {
        return;
    }
    for (unsigned i = 0; i < stream->num_marks; i++) {
        ls_inflate_forget(stream->marks[i].mark);
    }
    ls_inflate_destroy(stream->inflate);
    pthread_mutex_destroy(&stream->lock);
    ls_mem_free(stream);
}

/* Takes the lock, unless the stream has failed before. */
static ls_status_t enter(struct ls_stream *stream)
{
    pthread_mutex_lock(&stream->lock);
    if (stream->failure[0] == '\0') {
        return LS_OK;
    }
    pthread_mutex_unlock(&stream->lock);
    return ls_error_set(LS_ERR_INVALID, "%s", stream->failure);
}

static ls_status_t leave(struct ls_stream *stream, ls_status_t status)
{
    if (status != LS_OK && status != LS_ERR_STOPPED) {
        snprintf(stream->failure, sizeof(stream->failure), "%s", ls_last_error());
    }
    pthread_mutex_unlock(&stream->lock);
    return status;
}

ls_status_t ls_stream_read(ls_stream_h stream, uint64_t offset, size_t bytes, void *memory)
{
    ls_status_t status;

    if (stream->bytes != UNKNOWN && (offset > stream->bytes || bytes > stream->bytes - offset)) {
        return fail(stream, "is too short: it has", stream->bytes);
    }
    if (stream->kind == STREAM_PLAIN) {
        return ls_file_read(stream->file, stream->begin + offset, bytes, memory);
    }
    status = enter(stream);
    if (status != LS_OK) {
        return status;
    }
    return leave(stream, stream->kind == STREAM_STORED ? read_stored(stream, offset, bytes, memory)
                                                       : read_inflated(stream, offset, bytes, memory));
}

ls_status_t ls_stream_expect(ls_stream_h stream, uint64_t bytes)
{
    ls_status_t status;

    if (stream->bytes != UNKNOWN && stream->bytes != bytes) {
        return ls_file_error(stream->file->path, "", LS_FILE_NOWHERE, stream->begin,
                             "the header announces %" PRIu64 " bytes in all, there are %" PRIu64, bytes,
                             stream->bytes);
    }
    status = enter(stream);
    if (status != LS_OK) {
        return status;
    }
    stream->bytes = bytes;
    if (stream->frontier > bytes) {
        status = fail(stream, "has more than the expected", bytes);
    } else if (stream->kind == STREAM_GZIP) {
        status = check_if_done(stream);
    }
    return leave(stream, status);
}

ls_status_t ls_stream_verify(ls_stream_h stream, const ls_data_options_t *options)
{
    uint64_t    reported = 0;
    ls_status_t status   = enter(stream);

    if (status != LS_OK) {
        return status;
    }
    while (status == LS_OK && !stream->is_verified) {
        if (stream->kind == STREAM_STORED) {
            const uint64_t left = stream->bytes - stream->frontier;

            status = skip_stored(stream, stream->frontier + (left < REPORT_BYTES ? left : REPORT_BYTES));
            status = left == 0 && status == LS_OK ? pass_stored(stream, 0, NULL) : status;
        } else {
            status = go_to(stream, stream->frontier);
            status = status == LS_OK ? next_piece(stream) : status;
        }
        if (status == LS_OK && stream->frontier - reported >= REPORT_BYTES) {
            reported = stream->frontier;
            status   = ls_progress_report(options, stream->file->path, stream->frontier, stream->bytes);
        }
    }
    return leave(stream, status);
}

uint64_t ls_stream_chunk(ls_stream_h stream)
{
    return stream->kind == STREAM_DEFLATED || stream->kind == STREAM_GZIP ? mark_distance(stream) : 1;
}

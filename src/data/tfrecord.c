/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TFRecord: length (8 bytes), its checksum (4), data, checksum of the data (4); little endian, checksums are
 * masked CRC-32C. One field, "record", of bytes.  Any record is found by the index.
 */
#include <inttypes.h>
#include <string.h>

#include "base/mem.h"
#include "data/column.h"
#include "data/crc.h"
#include "data/file.h"
#include "data/part.h"
#include "data/reader.h"
#include "data/tfrecord_index.h"

#define BUFFER_BYTES (256UL * 1024)
#define SMALL_BYTES  (16UL * 1024) /* a buffer on the stack */
#define LARGE_BYTES \
    (32UL * 1024) /* from here on a copy costs more than reading head and tail by themselves */

struct ls_reader {
    ls_file_t          *files;
    unsigned            num_files;
    ls_tfrecord_index_t index;
    bool                skip_checksums;
    ls_data_field_t     field;
    ls_data_info_t      info;
};

/* Records [first, end) of one file, read through a buffer. */
typedef struct run {
    struct ls_reader *reader;
    const ls_file_t  *file;
    uint64_t          first_of_file, end_offset;
    unsigned char    *buffer;
    size_t            room, bytes;
    uint64_t          offset; /* of the buffer in the file */
} run_t;

static bool tfrecord_recognise(const ls_reader_head_t *head)
{
    uint64_t length;

    return head->num_bytes >= LS_TFRECORD_HEAD &&
           ls_tfrecord_index_is_head(head->bytes, 0, UINT64_MAX, &length);
}

static void tfrecord_close(ls_reader_h reader)
{
    for (unsigned i = 0; i < reader->num_files; i++) {
        ls_file_close(&reader->files[i]);
    }
    ls_tfrecord_index_clear(&reader->index);
    ls_mem_free(reader->files);
    ls_mem_free(reader);
}

static ls_status_t open_files(struct ls_reader *reader, const ls_reader_params_t *params)
{
    ls_status_t status =
        ls_mem_alloc(params->num_paths * sizeof(*reader->files), "TFRecord files", (void **)&reader->files);

    while (status == LS_OK && reader->num_files < params->num_paths) {
        status = ls_file_open(params->paths[reader->num_files], &reader->files[reader->num_files]);
        if (status == LS_OK) {
            reader->num_files++;
        }
    }
    return status;
}

static ls_status_t tfrecord_open(const ls_reader_params_t *params, ls_reader_h *reader_p)
{
    struct ls_reader *reader = NULL;
    ls_status_t       status = ls_mem_alloc(sizeof(*reader), "reader of TFRecord", (void **)&reader);

    if (status == LS_OK) {
        status = open_files(reader, params);
    }
    status = ls_part_agree(&params->options->part, status);
    if (status == LS_OK) {
        status = ls_tfrecord_index_create(reader->files, reader->num_files, params->options, &reader->index);
    }
    if (status != LS_OK) {
        if (reader != NULL) {
            tfrecord_close(reader);
        }
        return status;
    }
    reader->skip_checksums = params->options->skip_checksums != 0;
    reader->field =
        (ls_data_field_t){.name = "record", .type = LS_DATA_BYTES, .num_rows = reader->index.count};
    reader->info =
        (ls_data_info_t){.format = "tfrecord", .num_fields = 1, .fields = &reader->field, .chunk_rows = 1};
    *reader_p = reader;
    return LS_OK;
}

static const ls_data_info_t *tfrecord_info(ls_reader_h reader)
{
    return &reader->info;
}

static ls_status_t bad(const run_t *run, uint64_t record, uint64_t offset, const char *reason)
{
    return ls_file_error(run->file->path, "record", record - run->first_of_file, offset, "%s", reason);
}

/* The record's bytes are where they were when the index was made? */
static ls_status_t check_head(const run_t *run, uint64_t record, uint64_t offset, const unsigned char *head,
                              uint64_t expected)
{
    uint64_t length = 0;

    if (!ls_tfrecord_index_is_head(head, offset, run->file->bytes, &length) || length != expected) {
        return bad(run, record, offset, "the record's length is not what it was; has the file been changed?");
    }
    return LS_OK;
}

static ls_status_t check_data(const run_t *run, uint64_t record, uint64_t offset, const unsigned char *data,
                              uint64_t length, const unsigned char *tail)
{
    uint32_t expected;

    memcpy(&expected, tail, 4);
    if (!run->reader->skip_checksums && ls_crc_masked(ls_crc_32c(0, data, length)) != expected) {
        return bad(run, record, offset + LS_TFRECORD_HEAD, "the record's data has a wrong checksum");
    }
    return LS_OK;
}

/* A large record goes straight to the caller. */
static ls_status_t read_large(run_t *run, uint64_t record, uint64_t offset, uint64_t length,
                              ls_data_column_t *column)
{
    unsigned char head[LS_TFRECORD_HEAD], tail[LS_TFRECORD_TAIL];
    void         *room   = NULL;
    ls_status_t   status = ls_file_read(run->file, offset, sizeof(head), head);

    if (status == LS_OK) {
        status = check_head(run, record, offset, head, length);
    }
    if (status == LS_OK) {
        status = ls_column_append(column, length, &room);
    }
    if (status == LS_OK) {
        status = ls_file_read(run->file, offset + LS_TFRECORD_HEAD, length, room);
    }
    if (status == LS_OK) {
        status = ls_file_read(run->file, offset + LS_TFRECORD_HEAD + length, sizeof(tail), tail);
    }
    return status == LS_OK ? check_data(run, record, offset, room, length, tail) : status;
}

static ls_status_t fill(run_t *run, uint64_t offset, uint64_t bytes)
{
    if (offset < run->offset || offset + bytes > run->offset + run->bytes) {
        const uint64_t left = run->end_offset - offset;

        run->offset = offset;
        run->bytes  = left < run->room ? (size_t)left : run->room;
        return ls_file_read(run->file, offset, run->bytes, run->buffer);
    }
    return LS_OK;
}

static ls_status_t read_small(run_t *run, uint64_t record, uint64_t offset, uint64_t length,
                              ls_data_column_t *column)
{
    const unsigned char *at;
    void                *room   = NULL;
    ls_status_t          status = fill(run, offset, LS_TFRECORD_HEAD + length + LS_TFRECORD_TAIL);

    at = run->buffer + (offset - run->offset);
    if (status == LS_OK) {
        status = check_head(run, record, offset, at, length);
    }
    at += LS_TFRECORD_HEAD;
    if (status == LS_OK) {
        status = check_data(run, record, offset, at, length, at + length);
    }
    if (status == LS_OK) {
        status = ls_column_append(column, length, &room);
    }
    if (status == LS_OK) {
        memcpy(room, at, length);
    }
    return status;
}

/* Where the record ends: where the next begins, or the file ends. */
static uint64_t end_of(const struct ls_reader *reader, unsigned file, uint64_t record)
{
    return record + 1 < reader->index.starts[file + 1] ? reader->index.offsets[record + 1]
                                                       : reader->files[file].bytes;
}

static ls_status_t read_run(struct ls_reader *reader, unsigned file, uint64_t first, uint64_t end,
                            ls_data_column_t *column)
{
    const uint64_t *offsets = reader->index.offsets;
    run_t           run     = {.reader        = reader,
                               .file          = &reader->files[file],
                               .first_of_file = reader->index.starts[file],
                               .end_offset    = end_of(reader, file, end - 1)};
    const uint64_t  bytes   = run.end_offset - offsets[first];
    unsigned char   small[SMALL_BYTES];
    void           *buffer = NULL;
    ls_status_t     status;

    run.room   = bytes < BUFFER_BYTES ? (size_t)bytes : BUFFER_BYTES;
    run.buffer = small;
    status =
        ls_column_reserve(column, end - first, bytes - (end - first) * (LS_TFRECORD_HEAD + LS_TFRECORD_TAIL));
    if (status == LS_OK && run.room > sizeof(small)) {
        status     = ls_mem_alloc(run.room, "buffer for records", &buffer);
        run.buffer = buffer;
    }
    for (uint64_t record = first; record < end && status == LS_OK; record++) {
        const uint64_t whole  = end_of(reader, file, record) - offsets[record];
        const uint64_t length = whole - LS_TFRECORD_HEAD - LS_TFRECORD_TAIL;

        status = whole > LARGE_BYTES ? read_large(&run, record, offsets[record], length, column)
                                     : read_small(&run, record, offsets[record], length, column);
    }
    ls_mem_free(buffer);
    return status == LS_OK ? ls_file_unchanged(run.file) : status;
}

/* The file that holds a record: the last one that begins at or before it (files may be empty). */
static unsigned file_of(const struct ls_reader *reader, uint64_t record)
{
    unsigned low = 0, high = reader->num_files;

    while (high - low > 1) {
        const unsigned middle = low + (high - low) / 2;

        if (reader->index.starts[middle] <= record) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

static ls_status_t tfrecord_read(ls_reader_h reader, uint64_t first, uint64_t count,
                                 ls_data_column_t *columns, unsigned num_columns)
{
    const uint64_t end    = first + count;
    ls_status_t    status = LS_OK;

    while (num_columns > 0 && first < end && status == LS_OK) {
        const unsigned file     = file_of(reader, first);
        const uint64_t file_end = reader->index.starts[file + 1], stop = end < file_end ? end : file_end;

        status = read_run(reader, file, first, stop, &columns[0]);
        first  = stop;
    }
    return status;
}

const ls_reader_ops_t ls_reader_tfrecord = {
    .name        = "tfrecord",
    .title       = "TFRecord",
    .takes_many  = true,
    .is_parallel = true,
    .recognise   = tfrecord_recognise,
    .open        = tfrecord_open,
    .info        = tfrecord_info,
    .read        = tfrecord_read,
    .close       = tfrecord_close,
};

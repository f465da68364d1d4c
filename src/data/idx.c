/* SPDX-License-Identifier: Apache-2.0 */
/*
 * IDX, the form of MNIST: two zero bytes, type, number of dimensions, each dimension in 4 bytes, then the
 * elements; all big endian.  Plain or gzip.
 */
#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "data/array.h"
#include "data/gzip.h"
#include "data/reader.h"

struct ls_reader {
    ls_file_t      file;
    ls_stream_h    stream;
    bool           is_plain;
    ls_array_t     array;
    ls_data_info_t info;
};

static ls_data_type_t type_of(unsigned char code)
{
    static const ls_data_type_t types[] = {
        [0x08] = LS_DATA_UINT8, [0x09] = LS_DATA_INT8,    [0x0a] = LS_DATA_AUTO,   [0x0b] = LS_DATA_INT16,
        [0x0c] = LS_DATA_INT32, [0x0d] = LS_DATA_FLOAT32, [0x0e] = LS_DATA_FLOAT64};

    return code >= 0x08 && code <= 0x0e ? types[code] : LS_DATA_AUTO;
}

static bool idx_recognise(const ls_reader_head_t *head)
{
    const unsigned char *bytes = head->bytes;

    return ls_gzip_is(bytes, head->num_bytes) ||
           (head->num_bytes >= 8 && bytes[0] == 0 && bytes[1] == 0 && type_of(bytes[2]) != LS_DATA_AUTO &&
            bytes[3] > 0 && bytes[3] <= LS_DATA_MAX_DIMS);
}

static ls_status_t read_header(struct ls_reader *reader)
{
    const char    *path = reader->file.path;
    unsigned char  header[4 + 4 * LS_DATA_MAX_DIMS];
    uint64_t       dims[LS_DATA_MAX_DIMS];
    unsigned       num_dims;
    ls_data_type_t type;
    ls_status_t    status = ls_stream_read(reader->stream, 0, 4, header);

    if (status != LS_OK) {
        return status;
    }
    type     = type_of(header[2]);
    num_dims = header[3];
    if (header[0] != 0 || header[1] != 0 || type == LS_DATA_AUTO) {
        return ls_file_error(
            path, "", LS_FILE_NOWHERE, 0,
            "this is not IDX%s: it begins with %02x %02x %02x %02x, not with 00 00 and a type from 08 to 0e",
            reader->is_plain ? "" : " inside gzip", header[0], header[1], header[2], header[3]);
    }
    if (num_dims == 0 || num_dims > LS_DATA_MAX_DIMS) {
        return ls_file_error(path, "", LS_FILE_NOWHERE, 3, "%u dimensions; 1 to %d are supported", num_dims,
                             LS_DATA_MAX_DIMS);
    }
    status = ls_stream_read(reader->stream, 4, 4 * (size_t)num_dims, header + 4);
    if (status != LS_OK) {
        return status;
    }
    for (unsigned i = 0; i < num_dims; i++) {
        uint32_t big_endian;

        memcpy(&big_endian, header + 4 + 4 * i, 4);
        dims[i] = __builtin_bswap32(big_endian);
    }
    reader->array.offset     = 4 + 4 * (uint64_t)num_dims;
    reader->array.is_swapped = ls_data_type_size(type) > 1;
    reader->array.field.name = "data";
    if (!ls_array_describe(&reader->array, type, dims, num_dims)) {
        return ls_file_error(path, "", LS_FILE_NOWHERE, 4,
                             "the dimensions multiply to more than any file can hold");
    }
    return ls_stream_expect(reader->stream, reader->array.offset + reader->array.bytes);
}

static void idx_close(ls_reader_h reader)
{
    ls_stream_destroy(reader->stream);
    ls_file_close(&reader->file);
    ls_mem_free(reader);
}

static ls_status_t open_stream(struct ls_reader *reader)
{
    unsigned char head[3] = {0};
    ls_status_t   status =
        ls_file_read(&reader->file, 0, reader->file.bytes < 3 ? (size_t)reader->file.bytes : 3, head);

    if (status != LS_OK) {
        return status;
    }
    reader->is_plain = !ls_gzip_is(head, sizeof(head));
    return reader->is_plain ? ls_stream_plain(&reader->file, 0, reader->file.bytes, &reader->stream)
                            : ls_stream_gzip(&reader->file, &reader->stream);
}

static ls_status_t idx_open(const ls_reader_params_t *params, ls_reader_h *reader_p)
{
    struct ls_reader *reader = NULL;
    ls_status_t       status = ls_mem_alloc(sizeof(*reader), "reader of IDX", (void **)&reader);

    if (status != LS_OK) {
        return status;
    }
    status = ls_file_open(params->paths[0], &reader->file);
    if (status == LS_OK) {
        status = open_stream(reader);
    }
    if (status == LS_OK) {
        status = read_header(reader);
    }
    if (status == LS_OK && params->options->part.size > 1) { /* this rank may never come to the checksum */
        status = ls_stream_verify(reader->stream, params->options);
    }
    if (status != LS_OK) {
        idx_close(reader);
        return status;
    }
    reader->info = (ls_data_info_t){.format     = "idx",
                                    .num_fields = 1,
                                    .fields     = &reader->array.field,
                                    .chunk_rows = ls_array_chunk(&reader->array, reader->stream)};
    *reader_p    = reader;
    return LS_OK;
}

static const ls_data_info_t *idx_info(ls_reader_h reader)
{
    return &reader->info;
}

static ls_status_t idx_read(ls_reader_h reader, uint64_t first, uint64_t count, ls_data_column_t *columns,
                            unsigned num_columns)
{
    ls_status_t status = LS_OK;

    for (unsigned i = 0; i < num_columns && status == LS_OK; i++) {
        status = ls_array_read(&reader->array, reader->stream, first, count, columns[i].data);
    }
    return status == LS_OK ? ls_file_unchanged(&reader->file) : status;
}

static ls_status_t idx_map(ls_reader_h reader, unsigned field, const void **rows_p)
{
    (void)field;
    return reader->is_plain
               ? ls_array_map(&reader->array, &reader->file, 0, rows_p)
               : ls_error_set(LS_ERR_UNSUPPORTED, "%s: compressed data cannot be mapped", reader->file.path);
}

const ls_reader_ops_t ls_reader_idx = {
    .name        = "idx",
    .title       = "IDX (MNIST), plain or gzip",
    .is_parallel = true,
    .recognise   = idx_recognise,
    .open        = idx_open,
    .info        = idx_info,
    .read        = idx_read,
    .map         = idx_map,
    .close       = idx_close,
};

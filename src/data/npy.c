/* SPDX-License-Identifier: Apache-2.0 */
/* NumPy's .npy: one array. */
#include <string.h>

#include "base/mem.h"
#include "data/npy_header.h"
#include "data/reader.h"

struct ls_reader {
    ls_file_t      file;
    ls_stream_h    stream;
    ls_array_t     array;
    ls_data_info_t info;
};

static bool npy_recognise(const ls_reader_head_t *head)
{
    return head->num_bytes >= LS_NPY_MAGIC_BYTES &&
           memcmp(head->bytes, LS_NPY_MAGIC, LS_NPY_MAGIC_BYTES) == 0;
}

static void npy_close(ls_reader_h reader)
{
    ls_stream_destroy(reader->stream);
    ls_file_close(&reader->file);
    ls_mem_free(reader);
}

static ls_status_t npy_open(const ls_reader_params_t *params, ls_reader_h *reader_p)
{
    struct ls_reader *reader = NULL;
    ls_status_t       status = ls_mem_alloc(sizeof(*reader), "reader of npy", (void **)&reader);

    if (status != LS_OK) {
        return status;
    }
    status = ls_file_open(params->paths[0], &reader->file);
    if (status == LS_OK) {
        status = ls_stream_plain(&reader->file, 0, reader->file.bytes, &reader->stream);
    }
    if (status == LS_OK) {
        status = ls_npy_header_read(reader->stream, reader->file.path, "", 0, &reader->array);
    }
    if (status != LS_OK) {
        npy_close(reader);
        return status;
    }
    reader->array.field.name = "data";
    reader->info =
        (ls_data_info_t){.format = "npy", .num_fields = 1, .fields = &reader->array.field, .chunk_rows = 1};
    *reader_p = reader;
    return LS_OK;
}

static const ls_data_info_t *npy_info(ls_reader_h reader)
{
    return &reader->info;
}

static ls_status_t npy_read(ls_reader_h reader, uint64_t first, uint64_t count, ls_data_column_t *columns,
                            unsigned num_columns)
{
    ls_status_t status = LS_OK;

    for (unsigned i = 0; i < num_columns && status == LS_OK; i++) {
        status = ls_array_read(&reader->array, reader->stream, first, count, columns[i].data);
    }
    return status == LS_OK ? ls_file_unchanged(&reader->file) : status;
}

static ls_status_t npy_map(ls_reader_h reader, unsigned field, const void **rows_p)
{
    (void)field;
    return ls_array_map(&reader->array, &reader->file, 0, rows_p);
}

const ls_reader_ops_t ls_reader_npy = {
    .name        = "npy",
    .title       = "NumPy array (.npy)",
    .is_parallel = true,
    .recognise   = npy_recognise,
    .open        = npy_open,
    .info        = npy_info,
    .read        = npy_read,
    .map         = npy_map,
    .close       = npy_close,
};

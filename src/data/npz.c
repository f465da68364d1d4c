/* SPDX-License-Identifier: Apache-2.0 */
/* NumPy's .npz: a zip file of .npy files, stored (numpy.savez) or deflated (numpy.savez_compressed); a field
 * for each. */
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "data/npy_header.h"
#include "data/reader.h"
#include "data/zip.h"

struct ls_reader {
    ls_file_t        file;
    ls_zip_entry_t  *entries;
    unsigned         count;
    ls_array_t      *arrays;
    ls_data_field_t *fields;
    ls_stream_h     *streams; /* NULL where the field is not wanted: each has buffers */
    ls_data_info_t   info;
};

static bool npz_recognise(const ls_reader_head_t *head)
{
    return head->num_bytes >= 4 && memcmp(head->bytes, "PK\3\4", 4) == 0;
}

static void npz_close(ls_reader_h reader)
{
    for (unsigned i = 0; i < reader->count && reader->streams != NULL; i++) {
        ls_stream_destroy(reader->streams[i]);
    }
    ls_mem_free(reader->streams);
    ls_mem_free(reader->fields);
    ls_mem_free(reader->arrays);
    ls_mem_free(reader->entries);
    ls_file_close(&reader->file);
    ls_mem_free(reader);
}

static bool is_wanted(const ls_data_options_t *options, const char *name)
{
    bool is_named = options->columns == NULL;

    for (unsigned i = 0; i < options->num_columns && !is_named; i++) {
        is_named = strcmp(options->columns[i], name) == 0;
    }
    return is_named;
}

/* Entry i becomes field `count`. */
static ls_status_t open_entry(struct ls_reader *reader, unsigned i, const ls_data_options_t *options)
{
    const unsigned  field  = reader->count;
    ls_zip_entry_t *entry  = &reader->entries[i];
    const size_t    length = strlen(entry->name);
    ls_stream_h     stream = NULL;
    ls_array_t     *array  = &reader->arrays[field];
    ls_status_t     status = ls_stream_zip(&reader->file, &entry->stream, &stream);

    if (length > 4 && strcmp(entry->name + length - 4, ".npy") == 0) {
        entry->name[length - 4] = '\0';
    }
    if (status == LS_OK) {
        status = ls_npy_header_read(stream, reader->file.path, entry->name, entry->stream.offset, array);
    }
    if (!is_wanted(options,
                   entry->name)) { /* then it is listed if it could be read, and does no harm otherwise */
        ls_stream_destroy(stream);
        stream = NULL;
        if (status != LS_OK) {
            return LS_OK;
        }
    }
    array->field.name      = entry->name;
    reader->fields[field]  = array->field;
    reader->streams[field] = stream;
    reader->count++;
    if (status != LS_OK || stream == NULL) {
        return status;
    }
    const uint64_t chunk = ls_array_chunk(array, stream);

    reader->info.chunk_rows = chunk > reader->info.chunk_rows ? chunk : reader->info.chunk_rows;
    /* One of several ranks may never come to the checksum. */
    return options->part.size > 1 ? ls_stream_verify(stream, options) : LS_OK;
}

static ls_status_t open_entries(struct ls_reader *reader, const ls_data_options_t *options)
{
    unsigned    count  = 0;
    ls_status_t status = ls_zip_list(&reader->file, &reader->entries, &count);

    if (status == LS_OK) {
        status = ls_mem_alloc(count * sizeof(*reader->arrays), "arrays", (void **)&reader->arrays);
    }
    if (status == LS_OK) {
        status = ls_mem_alloc(count * sizeof(*reader->fields), "fields", (void **)&reader->fields);
    }
    if (status == LS_OK) {
        status = ls_mem_alloc(count * sizeof(*reader->streams), "streams", (void **)&reader->streams);
    }
    if (status == LS_OK && count == 0) {
        status = ls_file_error(reader->file.path, "", LS_FILE_NOWHERE, 0, "there is no array in this file");
    }
    for (unsigned i = 0; i < count && status == LS_OK; i++) {
        status = open_entry(reader, i, options);
    }
    return status;
}

static ls_status_t npz_open(const ls_reader_params_t *params, ls_reader_h *reader_p)
{
    struct ls_reader *reader = NULL;
    ls_status_t       status = ls_mem_alloc(sizeof(*reader), "reader of npz", (void **)&reader);

    if (status != LS_OK) {
        return status;
    }
    reader->info.chunk_rows = 1;
    status                  = ls_file_open(params->paths[0], &reader->file);
    if (status == LS_OK) {
        status = open_entries(reader, params->options);
    }
    if (status != LS_OK) {
        npz_close(reader);
        return status;
    }
    reader->info.format     = "npz";
    reader->info.num_fields = reader->count;
    reader->info.fields     = reader->fields;
    *reader_p               = reader;
    return LS_OK;
}

static const ls_data_info_t *npz_info(ls_reader_h reader)
{
    return &reader->info;
}

static ls_status_t npz_read(ls_reader_h reader, uint64_t first, uint64_t count, ls_data_column_t *columns,
                            unsigned num_columns)
{
    ls_status_t status = LS_OK;

    for (unsigned i = 0; i < num_columns && status == LS_OK; i++) {
        const unsigned field = columns[i].field;

        status = ls_array_read(&reader->arrays[field], reader->streams[field], first, count, columns[i].data);
    }
    return status == LS_OK ? ls_file_unchanged(&reader->file) : status;
}

const ls_reader_ops_t ls_reader_npz = {
    .name        = "npz",
    .title       = "NumPy arrays (.npz), stored or deflated",
    .is_parallel = true,
    .recognise   = npz_recognise,
    .open        = npz_open,
    .info        = npz_info,
    .read        = npz_read,
    .close       = npz_close,
};

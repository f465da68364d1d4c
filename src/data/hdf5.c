/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HDF5, and NetCDF-4, which is HDF5 with names for dimensions.  Each numeric dataset is a field.  libhdf5
 * (serial) reads what is chunked, compressed or of another byte order; what lies in the file as it is in
 * memory is read from there.
 */
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "data/hdf5_fields.h"
#include "data/hdf5_magic.h"
#include "data/progress.h"
#include "data/reader.h"

#define STEP_BYTES ((uint64_t)64 * 1024 * 1024) /* read between two reports of progress */

struct ls_reader {
    const ls_data_options_t *options;
    ls_file_t                plain; /* for what needs no libhdf5, and to notice changes */
    hid_t                    file;  /* < 0: not open */
    ls_hdf5_fields_t         fields;
    ls_data_field_t         *shown;
    ls_data_info_t           info;
};

/* ---- open and close ----------------------------------------------------------------------------- */

static void hdf5_close(ls_reader_h reader)
{
    const ls_hdf5_api_t *api;

    if (reader->file >= 0 && ls_hdf5_api_begin(&api) == LS_OK) {
        ls_hdf5_fields_clear(api, &reader->fields);
        api->H5Fclose(reader->file);
        ls_hdf5_api_end();
    }
    ls_file_close(&reader->plain);
    ls_mem_free(reader->shown);
    ls_mem_free(reader);
}

/* Where rows are taken from the file directly, they must be in it. */
static ls_status_t check_sizes(const struct ls_reader *reader)
{
    for (unsigned i = 0; i < reader->fields.num; i++) {
        const ls_hdf5_field_t *field = &reader->fields.list[i];

        if (field->is_plain && (field->array.offset > reader->plain.bytes ||
                                field->array.bytes > reader->plain.bytes - field->array.offset)) {
            return ls_file_error(
                reader->plain.path, "", LS_FILE_NOWHERE, field->array.offset,
                "dataset '%s' begins here and has %llu bytes, more than the file: it is damaged or cut short",
                field->array.field.name, (unsigned long long)field->array.bytes);
        }
    }
    return LS_OK;
}

static ls_status_t show_fields(struct ls_reader *reader)
{
    const unsigned num   = reader->fields.num;
    uint64_t       chunk = 1;
    ls_status_t    status =
        ls_mem_alloc(num * sizeof(*reader->shown), "fields of an HDF5 file", (void **)&reader->shown);

    for (unsigned i = 0; i < num && status == LS_OK; i++) {
        reader->shown[i] = reader->fields.list[i].array.field;
        chunk = reader->fields.list[i].chunk_rows > chunk ? reader->fields.list[i].chunk_rows : chunk;
    }
    reader->info =
        (ls_data_info_t){.format = "hdf5", .num_fields = num, .fields = reader->shown, .chunk_rows = chunk};
    return status;
}

static ls_status_t open_file(struct ls_reader *reader)
{
    const ls_hdf5_api_t *api;
    char                 reason[LS_HDF5_REASON_ROOM];
    ls_status_t          status = ls_hdf5_api_begin(&api);

    if (status != LS_OK) {
        return status;
    }
    reader->file = api->H5Fopen(reader->plain.path, H5F_ACC_RDONLY, H5P_DEFAULT);
    if (reader->file < 0) {
        ls_hdf5_api_reason(reason);
        status = ls_file_error(reader->plain.path, "", LS_FILE_NOWHERE, 0, "it cannot be opened as HDF5: %s",
                               reason);
    } else {
        status = ls_hdf5_fields_find(api, reader->file, reader->plain.path, reader->options, &reader->fields);
    }
    ls_hdf5_api_end();
    return status;
}

static ls_status_t hdf5_open(const ls_reader_params_t *params, ls_reader_h *reader_p)
{
    struct ls_reader *reader = NULL;
    ls_status_t       status = ls_mem_alloc(sizeof(*reader), "reader of HDF5", (void **)&reader);

    if (status != LS_OK) {
        return status;
    }
    reader->file    = -1;
    reader->options = params->options;
    status          = ls_file_open(params->paths[0], &reader->plain);
    if (status == LS_OK) {
        status = open_file(reader);
    }
    if (status == LS_OK) {
        status = check_sizes(reader);
    }
    if (status == LS_OK) {
        status = show_fields(reader);
    }
    if (status != LS_OK) {
        hdf5_close(reader);
        return status;
    }
    *reader_p = reader;
    return LS_OK;
}

static const ls_data_info_t *hdf5_info(ls_reader_h reader)
{
    return &reader->info;
}

/* ---- reading ------------------------------------------------------------------------------------ */

/* Rows [first, first + count) by libhdf5; its lock is held. */
static ls_status_t read_by_library(const ls_hdf5_api_t *api, const char *path, const ls_hdf5_field_t *field,
                                   uint64_t first, uint64_t count, void *memory)
{
    const ls_data_field_t *shape                        = &field->array.field;
    hsize_t                start[LS_DATA_MAX_DIMS + 1]  = {first};
    hsize_t                number[LS_DATA_MAX_DIMS + 1] = {count};
    const int              num_dims                     = (int)shape->num_dims + 1;
    herr_t                 result                       = -1;
    char                   reason[LS_HDF5_REASON_ROOM];

    for (unsigned i = 0; i < shape->num_dims; i++) {
        number[i + 1] = shape->shape[i];
    }
    const hid_t in_file   = api->H5Dget_space(field->dataset);
    const hid_t in_memory = api->H5Screate_simple(num_dims, number, NULL);

    if (in_file >= 0 && in_memory >= 0 &&
        api->H5Sselect_hyperslab(in_file, H5S_SELECT_SET, start, NULL, number, NULL) >= 0) {
        result = api->H5Dread(field->dataset, field->memory_type, in_memory, in_file, H5P_DEFAULT, memory);
    }
    ls_status_t status = LS_OK;

    if (result < 0) {
        ls_hdf5_api_reason(reason);
        status = ls_file_error(path, "row", first, LS_FILE_NOWHERE,
                               "dataset '%s' cannot be read here or soon after: %s", shape->name, reason);
    }
    if (in_file >= 0) {
        api->H5Sclose(in_file);
    }
    if (in_memory >= 0) {
        api->H5Sclose(in_memory);
    }
    return status;
}

static ls_status_t read_step(const struct ls_reader *reader, const ls_hdf5_field_t *field, uint64_t first,
                             uint64_t count, void *memory)
{
    const uint64_t       row_bytes = field->array.field.row_bytes;
    const ls_hdf5_api_t *api;
    ls_status_t          status;

    if (field->is_plain) {
        return ls_file_read(&reader->plain, field->array.offset + first * row_bytes, count * row_bytes,
                            memory);
    }
    status = ls_hdf5_api_begin(&api);
    if (status == LS_OK) {
        status = read_by_library(api, reader->plain.path, field, first, count, memory);
        ls_hdf5_api_end();
    }
    return status;
}

static ls_status_t read_field(const struct ls_reader *reader, const ls_hdf5_field_t *field, uint64_t first,
                              uint64_t count, char *memory)
{
    const uint64_t row_bytes = field->array.field.row_bytes > 0 ? field->array.field.row_bytes : 1;
    uint64_t       step      = STEP_BYTES / row_bytes / field->chunk_rows * field->chunk_rows;
    ls_status_t    status    = LS_OK;

    step = step > 0 ? step : field->chunk_rows;
    for (uint64_t done = 0; done < count && status == LS_OK;) {
        /* up to the edge of a chunk, so that none is unpacked twice */
        const uint64_t to_edge = step - (first + done) % field->chunk_rows;
        const uint64_t now     = count - done < to_edge ? count - done : to_edge;

        status = read_step(reader, field, first + done, now, memory + done * field->array.field.row_bytes);
        done += now;
        if (status == LS_OK && done < count) {
            status = ls_progress_report(reader->options, reader->plain.path, done, count);
        }
    }
    return status;
}

static ls_status_t hdf5_read(ls_reader_h reader, uint64_t first, uint64_t count, ls_data_column_t *columns,
                             unsigned num_columns)
{
    ls_status_t status = LS_OK;

    for (unsigned i = 0; i < num_columns && status == LS_OK; i++) {
        status = read_field(reader, &reader->fields.list[columns[i].field], first, count, columns[i].data);
    }
    return status == LS_OK ? ls_file_unchanged(&reader->plain) : status;
}

static ls_status_t hdf5_map(ls_reader_h reader, unsigned field, const void **rows_p)
{
    const ls_hdf5_field_t *one = &reader->fields.list[field];

    if (!one->is_plain) {
        return ls_error_set(LS_ERR_UNSUPPORTED,
                            "%s: dataset '%s' is chunked, compressed or of another type than in memory",
                            reader->plain.path, one->array.field.name);
    }
    return ls_array_map(&one->array, &reader->plain, 0, rows_p);
}

/* ---- the table ---------------------------------------------------------------------------------- */

const ls_reader_ops_t ls_reader_hdf5 = {
    .name        = "hdf5",
    .title       = "HDF5 and NetCDF-4",
    .is_parallel = true,
    .recognise   = ls_hdf5_magic_recognise,
    .open        = hdf5_open,
    .info        = hdf5_info,
    .read        = hdf5_read,
    .map         = hdf5_map,
    .close       = hdf5_close,
};

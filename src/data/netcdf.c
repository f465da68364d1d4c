/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NetCDF classic (CDF-1, 2, 5).  Each rank reads its own rows by itself; docs/design/data.md says why not
 * through PnetCDF.  NetCDF-4 files are HDF5.
 */
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "data/netcdf_header.h"
#include "data/progress.h"
#include "data/reader.h"

#define STEP_BYTES   ((uint64_t)16 * 1024 * 1024) /* read between two reports of progress */
#define BUFFER_BYTES ((uint64_t)1024 * 1024)      /* for short rows with others in between */
#define LONG_ROW     ((uint64_t)16 * 1024)        /* worth a system call of its own */

struct ls_reader {
    const ls_data_options_t *options;
    ls_file_t                file;
    ls_netcdf_header_t       header;
    unsigned                *variables; /* of each field */
    ls_data_field_t         *fields;
    ls_data_info_t           info;
};

/* ---- open and close ----------------------------------------------------------------------------- */

static bool is_wanted(const ls_data_options_t *options, const char *name)
{
    for (unsigned i = 0; options->columns != NULL && i < options->num_columns; i++) {
        if (strcmp(options->columns[i], name) == 0) {
            return true;
        }
    }
    return false;
}

/* What people mean by the data of a file: not its coordinates, texts and single numbers, unless they ask for
 * them. */
static bool is_data(const ls_netcdf_variable_t *variable)
{
    return variable->has_rows && !variable->is_text && !variable->is_coordinate;
}

static ls_status_t choose_fields(struct ls_reader *reader)
{
    const ls_netcdf_header_t *header   = &reader->header;
    unsigned                  num_data = 0, num = 0;
    ls_status_t               status = ls_mem_alloc(header->num_variables * sizeof(*reader->fields),
                                                    "fields of a NetCDF file", (void **)&reader->fields);

    if (status == LS_OK) {
        status = ls_mem_alloc(header->num_variables * sizeof(*reader->variables), "fields of a NetCDF file",
                              (void **)&reader->variables);
    }
    if (status != LS_OK) {
        return status;
    }
    for (unsigned i = 0; i < header->num_variables; i++) {
        num_data += is_data(&header->variables[i]);
    }
    for (unsigned i = 0; i < header->num_variables; i++) {
        const ls_netcdf_variable_t *variable = &header->variables[i];

        if (is_data(variable) || is_wanted(reader->options, variable->array.field.name) ||
            (num_data == 0 && variable->has_rows)) {
            reader->variables[num] = i;
            reader->fields[num++]  = variable->array.field;
        }
    }
    reader->info =
        (ls_data_info_t){.format = "netcdf", .num_fields = num, .fields = reader->fields, .chunk_rows = 1};
    return num > 0 ? LS_OK
                   : ls_file_error(reader->file.path, "", LS_FILE_NOWHERE, LS_FILE_NOWHERE,
                                   "it holds no variable with rows");
}

static void netcdf_close(ls_reader_h reader)
{
    ls_netcdf_header_free(&reader->header);
    ls_file_close(&reader->file);
    ls_mem_free(reader->fields);
    ls_mem_free(reader->variables);
    ls_mem_free(reader);
}

static ls_status_t netcdf_open(const ls_reader_params_t *params, ls_reader_h *reader_p)
{
    struct ls_reader *reader = NULL;
    ls_status_t       status = ls_mem_alloc(sizeof(*reader), "reader of NetCDF", (void **)&reader);

    if (status != LS_OK) {
        return status;
    }
    reader->options = params->options;
    status          = ls_file_open(params->paths[0], &reader->file);
    if (status == LS_OK) {
        status = ls_netcdf_header_read(&reader->file, &reader->header);
    }
    if (status == LS_OK) {
        status = choose_fields(reader);
    }
    if (status != LS_OK) {
        netcdf_close(reader);
        return status;
    }
    *reader_p = reader;
    return LS_OK;
}

static const ls_data_info_t *netcdf_info(ls_reader_h reader)
{
    return &reader->info;
}

/* ---- reading ------------------------------------------------------------------------------------ */

/* Short rows with others in between: as many records as fit into the buffer at a time. */
static ls_status_t read_picked(const ls_file_t *file, const ls_netcdf_variable_t *variable, uint64_t first,
                               uint64_t count, char *memory)
{
    const uint64_t row_bytes = variable->array.field.row_bytes, stride = variable->stride;
    const uint64_t most   = BUFFER_BYTES / stride + 1;
    char          *buffer = NULL;
    ls_status_t    status = ls_mem_alloc(most * stride, "records of a NetCDF file", (void **)&buffer);

    for (uint64_t done = 0; done < count && status == LS_OK;) {
        const uint64_t now = count - done < most ? count - done : most;

        status = ls_file_read(file, variable->array.offset + (first + done) * stride,
                              (now - 1) * stride + row_bytes, buffer);
        for (uint64_t i = 0; i < now && status == LS_OK; i++) {
            memcpy(memory + (done + i) * row_bytes, buffer + i * stride, row_bytes);
        }
        done += now;
    }
    ls_mem_free(buffer);
    return status;
}

static ls_status_t read_step(const ls_file_t *file, const ls_netcdf_variable_t *variable, uint64_t first,
                             uint64_t count, char *memory)
{
    const uint64_t row_bytes = variable->array.field.row_bytes, begin = variable->array.offset;
    ls_status_t    status = LS_OK;

    if (variable->stride == row_bytes) {
        status = ls_file_read(file, begin + first * row_bytes, count * row_bytes, memory);
    } else if (row_bytes >= LONG_ROW || variable->stride > BUFFER_BYTES) {
        for (uint64_t i = 0; i < count && status == LS_OK; i++) {
            status =
                ls_file_read(file, begin + (first + i) * variable->stride, row_bytes, memory + i * row_bytes);
        }
    } else {
        status = read_picked(file, variable, first, count, memory);
    }
    if (status == LS_OK && variable->array.is_swapped) {
        ls_array_swap(memory, count * row_bytes, ls_data_type_size(variable->array.field.type));
    }
    return status;
}

static ls_status_t read_variable(const struct ls_reader *reader, const ls_netcdf_variable_t *variable,
                                 uint64_t first, uint64_t count, char *memory)
{
    const uint64_t row_bytes = variable->array.field.row_bytes;
    const uint64_t step      = row_bytes < STEP_BYTES ? STEP_BYTES / (row_bytes > 0 ? row_bytes : 1) : 1;
    ls_status_t    status    = LS_OK;

    for (uint64_t done = 0; done < count && status == LS_OK && row_bytes > 0;) {
        const uint64_t now = count - done < step ? count - done : step;

        status = read_step(&reader->file, variable, first + done, now, memory + done * row_bytes);
        done += now;
        if (status == LS_OK && done < count) {
            status = ls_progress_report(reader->options, reader->file.path, done, count);
        }
    }
    return status;
}

static ls_status_t netcdf_read(ls_reader_h reader, uint64_t first, uint64_t count, ls_data_column_t *columns,
                               unsigned num_columns)
{
    ls_status_t status = LS_OK;

    for (unsigned i = 0; i < num_columns && status == LS_OK; i++) {
        const ls_netcdf_variable_t *variable = &reader->header.variables[reader->variables[columns[i].field]];

        status = read_variable(reader, variable, first, count, columns[i].data);
    }
    return status == LS_OK ? ls_file_unchanged(&reader->file) : status;
}

static ls_status_t netcdf_map(ls_reader_h reader, unsigned field, const void **rows_p)
{
    const ls_netcdf_variable_t *variable = &reader->header.variables[reader->variables[field]];

    if (variable->stride != variable->array.field.row_bytes) {
        return ls_error_set(LS_ERR_UNSUPPORTED,
                            "%s: the rows of variable '%s' have those of others in between",
                            reader->file.path, variable->array.field.name);
    }
    return ls_array_map(&variable->array, &reader->file, 0, rows_p);
}

/* ---- the table ---------------------------------------------------------------------------------- */

static bool netcdf_recognise(const ls_reader_head_t *head)
{
    const size_t length = strlen(head->name);

    return (head->num_bytes >= 4 && memcmp(head->bytes, "CDF", 3) == 0 && head->bytes[3] < ' ') ||
           (length > 3 && strcmp(head->name + length - 3, ".nc") == 0);
}

const ls_reader_ops_t ls_reader_netcdf = {
    .name        = "netcdf",
    .title       = "NetCDF classic (CDF-1, CDF-2, CDF-5)",
    .is_parallel = true,
    .recognise   = netcdf_recognise,
    .open        = netcdf_open,
    .info        = netcdf_info,
    .read        = netcdf_read,
    .map         = netcdf_map,
    .close       = netcdf_close,
};

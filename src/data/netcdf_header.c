/* SPDX-License-Identifier: Apache-2.0 */
#include "data/netcdf_header.h"

#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"

#define TAG_DIMENSION 10
#define TAG_VARIABLE  11
#define TAG_ATTRIBUTE 12

#define MAX_NAME_BYTES 256 /* NC_MAX_NAME */
#define MIN_ENTRY      8   /* bytes of the shortest entry in any list */
#define NO_DIMENSION   UINT64_MAX

/* By nc_type; 1 to 6 are in all versions, the others in CDF-5 only. */
static const ls_data_type_t types[] = {LS_DATA_AUTO,   LS_DATA_INT8,    LS_DATA_UINT8,   LS_DATA_INT16,
                                       LS_DATA_INT32,  LS_DATA_FLOAT32, LS_DATA_FLOAT64, LS_DATA_UINT8,
                                       LS_DATA_UINT16, LS_DATA_UINT32,  LS_DATA_INT64,   LS_DATA_UINT64};

#define TYPE_CHAR         2
#define NUM_CLASSIC_TYPES 7

typedef struct dimension {
    char     name[MAX_NAME_BYTES + 1];
    uint64_t length; /* 0: the record dimension */
} dimension_t;

/* Goes through the header; after the first error every number is 0. */
typedef struct cursor {
    const ls_file_t *file;
    uint64_t         offset; /* of the next byte */
    int              version;
    ls_status_t      status;
    unsigned char    buffer[4096];
    uint64_t         buffer_offset;
    size_t           buffer_bytes;

    uint64_t     num_records;
    bool         is_streaming; /* the number of records follows from the size of the file */
    dimension_t *dimensions;
    uint64_t     num_dimensions;
    uint64_t     record_dimension; /* NO_DIMENSION: none */
} cursor_t;

#define FAIL(_cursor, ...)                                                                                 \
    do {                                                                                                   \
        if ((_cursor)->status == LS_OK) {                                                                  \
            (_cursor)->status =                                                                            \
                ls_file_error((_cursor)->file->path, "", LS_FILE_NOWHERE, (_cursor)->offset, __VA_ARGS__); \
        }                                                                                                  \
    } while (0)

/* ---- bytes -------------------------------------------------------------------------------------- */

/* The next `bytes` (at most 8), most significant first. */
static uint64_t take(cursor_t *cursor, unsigned bytes)
{
    uint64_t value = 0;

    if (cursor->status == LS_OK && cursor->file->bytes - cursor->offset < bytes) {
        FAIL(cursor, "the file ends inside its header: it is cut short");
    }
    if (cursor->status == LS_OK && (cursor->offset < cursor->buffer_offset ||
                                    cursor->offset + bytes > cursor->buffer_offset + cursor->buffer_bytes)) {
        const uint64_t left   = cursor->file->bytes - cursor->offset;
        cursor->buffer_offset = cursor->offset;
        cursor->buffer_bytes  = left < sizeof(cursor->buffer) ? (size_t)left : sizeof(cursor->buffer);
        cursor->status = ls_file_read(cursor->file, cursor->offset, cursor->buffer_bytes, cursor->buffer);
    }
    if (cursor->status != LS_OK) {
        return 0;
    }
    for (unsigned i = 0; i < bytes; i++) {
        value = value << 8 | cursor->buffer[cursor->offset - cursor->buffer_offset + i];
    }
    cursor->offset += bytes;
    return value;
}

/* Counts and lengths have 8 bytes in CDF-5. */
static uint64_t take_count(cursor_t *cursor)
{
    const uint64_t value = take(cursor, cursor->version == 5 ? 8 : 4);

    if (value > INT64_MAX || (cursor->version != 5 && value > INT32_MAX)) {
        FAIL(cursor, "a length of %" PRIu64 " just before this byte is negative in this format", value);
        return 0;
    }
    return value;
}

static void skip(cursor_t *cursor, uint64_t bytes)
{
    const uint64_t padded = bytes + (4 - bytes % 4) % 4;

    if (cursor->status == LS_OK && (bytes > INT64_MAX || padded > cursor->file->bytes - cursor->offset)) {
        FAIL(cursor, "%" PRIu64 " bytes should follow, more than the file has", bytes);
    }
    if (cursor->status == LS_OK) {
        cursor->offset += padded;
    }
}

static void take_name(cursor_t *cursor, char name[MAX_NAME_BYTES + 1])
{
    const uint64_t length = take_count(cursor);

    if (length > MAX_NAME_BYTES) {
        FAIL(cursor, "a name of %" PRIu64 " bytes should follow; names have at most %d", length,
             MAX_NAME_BYTES);
    }
    for (uint64_t i = 0; i < length && cursor->status == LS_OK; i++) {
        name[i] = (char)take(cursor, 1);
        if (name[i] == '\0') {
            FAIL(cursor, "a name has a zero byte");
        }
    }
    if (cursor->status == LS_OK) {
        name[length] = '\0';
        (void)take(cursor, (unsigned)(4 - length % 4) % 4);
    }
}

static ls_data_type_t take_type(cursor_t *cursor, uint64_t *number_p)
{
    const uint64_t number = take(cursor, 4);
    const uint64_t limit  = cursor->version == 5 ? sizeof(types) / sizeof(types[0]) : NUM_CLASSIC_TYPES;

    if (number < 1 || number >= limit) {
        FAIL(cursor, "type %" PRIu64 " just before this byte is none of CDF-%d", number, cursor->version);
        return LS_DATA_INT8;
    }
    *number_p = number;
    return types[number];
}

/* How many entries follow; 0 where the list is absent. */
static uint64_t take_list(cursor_t *cursor, uint32_t tag, const char *what)
{
    const uint64_t found = take(cursor, 4);
    const uint64_t count = take_count(cursor);

    if ((found != tag && found != 0) || (found == 0 && count != 0)) {
        FAIL(cursor, "a list of %s should begin 8 or 12 bytes before, but its mark is %" PRIu64, what, found);
        return 0;
    }
    if (cursor->status == LS_OK && count > (cursor->file->bytes - cursor->offset) / MIN_ENTRY) {
        FAIL(cursor, "%" PRIu64 " %s should follow, more than the file has room for", count, what);
        return 0;
    }
    return cursor->status == LS_OK ? count : 0;
}

/* ---- lists -------------------------------------------------------------------------------------- */

static void take_dimensions(cursor_t *cursor)
{
    const uint64_t count = take_list(cursor, TAG_DIMENSION, "dimensions");

    cursor->record_dimension = NO_DIMENSION;
    if (cursor->status == LS_OK) {
        cursor->status = ls_mem_alloc(count * sizeof(dimension_t), "dimensions of a NetCDF file",
                                      (void **)&cursor->dimensions);
    }
    for (uint64_t i = 0; i < count && cursor->status == LS_OK; i++) {
        take_name(cursor, cursor->dimensions[i].name);
        cursor->dimensions[i].length = take_count(cursor);
        if (cursor->dimensions[i].length == 0 && cursor->status == LS_OK) {
            if (cursor->record_dimension != NO_DIMENSION) {
                FAIL(cursor, "dimension '%s' is a second one without a length; there is only one for records",
                     cursor->dimensions[i].name);
            }
            cursor->record_dimension = i;
        }
        cursor->num_dimensions = i + 1;
    }
}

static void skip_attributes(cursor_t *cursor)
{
    const uint64_t count = take_list(cursor, TAG_ATTRIBUTE, "attributes");

    for (uint64_t i = 0; i < count && cursor->status == LS_OK; i++) {
        char     name[MAX_NAME_BYTES + 1];
        uint64_t number, bytes;

        take_name(cursor, name);
        const ls_data_type_t type   = take_type(cursor, &number);
        const uint64_t       length = take_count(cursor);

        if (__builtin_mul_overflow(length, ls_data_type_size(type), &bytes)) {
            FAIL(cursor, "attribute '%s' has an impossible length", name);
            return;
        }
        skip(cursor, bytes);
    }
}

static void take_shape(cursor_t *cursor, const char *name, uint64_t *shape, unsigned num_dims,
                       ls_netcdf_variable_t *variable)
{
    for (unsigned i = 0; i < num_dims && cursor->status == LS_OK; i++) {
        const uint64_t id = take_count(cursor);

        if (id >= cursor->num_dimensions) {
            FAIL(cursor, "variable '%s' has dimension %" PRIu64 ", but there are %" PRIu64, name, id,
                 cursor->num_dimensions);
            return;
        }
        if (id == cursor->record_dimension && i > 0) {
            FAIL(cursor, "variable '%s' has the record dimension in another place than the first", name);
            return;
        }
        variable->is_record |= (id == cursor->record_dimension);
        variable->is_coordinate = (num_dims == 1 && strcmp(name, cursor->dimensions[id].name) == 0);
        shape[i] = id == cursor->record_dimension ? cursor->num_records : cursor->dimensions[id].length;
    }
}

static void take_variable(cursor_t *cursor, ls_netcdf_variable_t *variable)
{
    char     name[MAX_NAME_BYTES + 1];
    uint64_t shape[LS_DATA_MAX_DIMS + 1] = {0};
    uint64_t number                      = 0;

    take_name(cursor, name);
    const uint64_t num_dims = take_count(cursor);

    if (cursor->status == LS_OK && num_dims > LS_DATA_MAX_DIMS + 1) {
        FAIL(cursor, "variable '%s' has %" PRIu64 " dimensions; at most %d can be read", name, num_dims,
             LS_DATA_MAX_DIMS + 1);
    }
    if (cursor->status == LS_OK) {
        take_shape(cursor, name, shape, (unsigned)num_dims, variable);
    }
    skip_attributes(cursor);
    const ls_data_type_t type = take_type(cursor, &number);

    (void)take(cursor,
               cursor->version == 5 ? 8 : 4); /* its size, which follows from the shape and may be wrong */
    variable->array.offset     = take(cursor, cursor->version == 1 ? 4 : 8);
    variable->array.is_swapped = ls_data_type_size(type) > 1;
    variable->is_text          = (number == TYPE_CHAR);
    variable->has_rows         = (num_dims > 0);
    if (cursor->status == LS_OK && !ls_array_describe(&variable->array, type, shape, (unsigned)num_dims)) {
        FAIL(cursor, "variable '%s' is larger than any file", name);
    }
    if (cursor->status == LS_OK) {
        cursor->status =
            ls_mem_strdup(name, "name of a variable", (char **)(uintptr_t)&variable->array.field.name);
    }
}

/* ---- where rows are ----------------------------------------------------------------------------- */

/* A record holds one row of each record variable, each padded, unless there is only one of them. */
static void set_strides(cursor_t *cursor, ls_netcdf_header_t *header)
{
    uint64_t record_bytes = 0, last_bytes = 0;
    unsigned num = 0;

    for (unsigned i = 0; i < header->num_variables; i++) {
        const ls_netcdf_variable_t *variable = &header->variables[i];

        if (variable->is_record) {
            last_bytes = variable->array.field.row_bytes;
            num++;
            if (__builtin_add_overflow(record_bytes, last_bytes + (4 - last_bytes % 4) % 4, &record_bytes)) {
                FAIL(cursor, "a record is larger than any file");
                return;
            }
        }
    }
    record_bytes = num == 1 ? last_bytes : record_bytes;
    for (unsigned i = 0; i < header->num_variables; i++) {
        ls_netcdf_variable_t *variable = &header->variables[i];

        variable->stride = variable->is_record ? record_bytes : variable->array.field.row_bytes;
    }
}

/* Of a file that was written as a stream: as many records as there is room for after the first. */
static void count_records(cursor_t *cursor, ls_netcdf_header_t *header)
{
    uint64_t begin = UINT64_MAX, stride = 0;

    for (unsigned i = 0; i < header->num_variables; i++) {
        const ls_netcdf_variable_t *variable = &header->variables[i];

        if (variable->is_record && variable->array.offset < begin) {
            begin  = variable->array.offset;
            stride = variable->stride;
        }
    }
    const uint64_t left = begin < cursor->file->bytes ? cursor->file->bytes - begin : 0;

    cursor->num_records = stride > 0 ? left / stride : 0;
    for (unsigned i = 0; i < header->num_variables; i++) {
        ls_array_t *array = &header->variables[i].array;

        if (header->variables[i].is_record) {
            array->field.num_rows = cursor->num_records;
            array->bytes          = cursor->num_records * array->field.row_bytes;
        }
    }
}

static void check_ends(cursor_t *cursor, const ls_netcdf_header_t *header)
{
    for (unsigned i = 0; i < header->num_variables && cursor->status == LS_OK; i++) {
        const ls_netcdf_variable_t *variable = &header->variables[i];
        const ls_data_field_t      *field    = &variable->array.field;
        uint64_t                    span     = 0;

        if (field->num_rows == 0 || field->row_bytes == 0) {
            continue;
        }
        if (__builtin_mul_overflow(field->num_rows - 1, variable->stride, &span) ||
            __builtin_add_overflow(span, field->row_bytes, &span) ||
            variable->array.offset > cursor->file->bytes ||
            span > cursor->file->bytes - variable->array.offset) {
            cursor->status = ls_file_error(
                cursor->file->path, "row", field->num_rows - 1, variable->array.offset,
                "variable '%s' begins at this byte and has %" PRIu64 " rows, which need more than "
                "the %" PRIu64 " bytes of the file: it is cut short, or its header is wrong",
                field->name, field->num_rows, cursor->file->bytes);
        }
    }
}

static void take_variables(cursor_t *cursor, ls_netcdf_header_t *header)
{
    const uint64_t count = take_list(cursor, TAG_VARIABLE, "variables");

    if (cursor->status == LS_OK) {
        cursor->status = ls_mem_alloc(count * sizeof(*header->variables), "variables of a NetCDF file",
                                      (void **)&header->variables);
    }
    for (uint64_t i = 0; i < count && cursor->status == LS_OK; i++) {
        header->num_variables = (unsigned)i + 1;
        take_variable(cursor, &header->variables[i]);
    }
}

static void take_magic(cursor_t *cursor)
{
    const uint64_t magic   = take(cursor, 4);
    const int      version = (int)(magic & 0xff);

    if (cursor->status == LS_OK &&
        (magic >> 8 != 0x434446 || (version != 1 && version != 2 && version != 5))) {
        cursor->offset = 0;
        FAIL(cursor, "it does not begin with CDF and 1, 2 or 5: this is no classic NetCDF file");
    }
    cursor->version      = version;
    cursor->num_records  = take(cursor, version == 5 ? 8 : 4);
    cursor->is_streaming = cursor->num_records == (version == 5 ? UINT64_MAX : UINT32_MAX);
    if (cursor->is_streaming) {
        cursor->num_records = 0;
    }
}

void ls_netcdf_header_free(ls_netcdf_header_t *header)
{
    for (unsigned i = 0; i < header->num_variables; i++) {
        ls_mem_free((void *)(uintptr_t)header->variables[i].array.field.name);
    }
    ls_mem_free(header->variables);
    *header = (ls_netcdf_header_t){0};
}

ls_status_t ls_netcdf_header_read(const ls_file_t *file, ls_netcdf_header_t *header_p)
{
    cursor_t           cursor = {.file = file, .status = LS_OK};
    ls_netcdf_header_t header = {0};

    take_magic(&cursor);
    take_dimensions(&cursor);
    skip_attributes(&cursor);
    take_variables(&cursor, &header);
    if (cursor.status == LS_OK) {
        set_strides(&cursor, &header);
    }
    if (cursor.status == LS_OK && cursor.is_streaming) {
        count_records(&cursor, &header);
    }
    check_ends(&cursor, &header);
    ls_mem_free(cursor.dimensions);
    if (cursor.status != LS_OK) {
        ls_netcdf_header_free(&header);
        return cursor.status;
    }
    *header_p = header;
    return LS_OK;
}

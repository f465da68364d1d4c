/* SPDX-License-Identifier: Apache-2.0 */
#include "data/array.h"

#include <byteswap.h>
#include <string.h>

#include "base/error.h"

#define MOST_BYTES ((uint64_t)INT64_MAX) /* of a file */

bool ls_array_describe(ls_array_t *array, ls_data_type_t type, const uint64_t *dims, unsigned num_dims)
{
    ls_data_field_t *field = &array->field;

    field->type      = type;
    field->num_rows  = num_dims > 0 ? dims[0] : 1;
    field->num_dims  = num_dims > 0 ? num_dims - 1 : 0;
    field->row_bytes = ls_data_type_size(type);
    for (unsigned i = 0; i < field->num_dims; i++) {
        field->shape[i] = dims[i + 1];
        if (__builtin_mul_overflow(field->row_bytes, dims[i + 1], &field->row_bytes)) {
            return false;
        }
    }
    return !__builtin_mul_overflow(field->row_bytes, field->num_rows, &array->bytes) &&
           array->bytes <= MOST_BYTES && field->row_bytes <= MOST_BYTES;
}

void ls_array_swap(void *memory, uint64_t bytes, size_t element)
{
    unsigned char *const end = (unsigned char *)memory + bytes;

    for (unsigned char *at = memory; at < end; at += element) {
        uint16_t two;
        uint32_t four;
        uint64_t eight;

        if (element == 2) {
            memcpy(&two, at, 2);
            two = bswap_16(two);
            memcpy(at, &two, 2);
        } else if (element == 4) {
            memcpy(&four, at, 4);
            four = bswap_32(four);
            memcpy(at, &four, 4);
        } else {
            memcpy(&eight, at, 8);
            eight = bswap_64(eight);
            memcpy(at, &eight, 8);
        }
    }
}

ls_status_t ls_array_read(const ls_array_t *array, ls_stream_h stream, uint64_t first, uint64_t count,
                          void *memory)
{
    const uint64_t    row_bytes = array->field.row_bytes;
    const ls_status_t status =
        ls_stream_read(stream, array->offset + first * row_bytes, count * row_bytes, memory);

    if (status == LS_OK && array->is_swapped) {
        ls_array_swap(memory, count * row_bytes, ls_data_type_size(array->field.type));
    }
    return status;
}

ls_status_t ls_array_map(const ls_array_t *array, ls_file_t *file, uint64_t stream_offset,
                         const void **rows_p)
{
    const uint64_t       offset = stream_offset + array->offset;
    const unsigned char *bytes;
    ls_status_t          status;

    if (array->is_swapped || offset % ls_data_type_size(array->field.type) != 0) {
        return ls_error_set(LS_ERR_UNSUPPORTED,
                            "%s: field '%s' has another byte order or alignment and must be copied",
                            file->path, array->field.name);
    }
    status = ls_file_map(file, &bytes);
    if (status == LS_OK) {
        *rows_p = bytes + offset;
    }
    return status;
}

uint64_t ls_array_chunk(const ls_array_t *array, ls_stream_h stream)
{
    const uint64_t rows = array->field.row_bytes > 0 ? ls_stream_chunk(stream) / array->field.row_bytes : 1;

    return rows > 0 ? rows : 1;
}

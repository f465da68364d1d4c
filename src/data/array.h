/* SPDX-License-Identifier: Apache-2.0 */
/* A field whose rows lie one after another in a stream. */
#ifndef LS_DATA_ARRAY_H
#define LS_DATA_ARRAY_H

#include <stdbool.h>

#include "data/stream.h"

typedef struct ls_array {
    ls_data_field_t field;
    uint64_t        offset;     /* of row 0 in the stream */
    uint64_t        bytes;      /* of all rows */
    bool            is_swapped; /* the other byte order */
} ls_array_t;

/*
 * Sets type, shape, rows and bytes from the dimensions of the whole array; without dimensions it is one row.
 * False if the product is larger than any file.
 */
bool ls_array_describe(ls_array_t *array, ls_data_type_t type, const uint64_t *dims, unsigned num_dims);

ls_status_t ls_array_read(const ls_array_t *array, ls_stream_h stream, uint64_t first, uint64_t count,
                          void *memory);

/* Turns round the bytes of each element; `element` is 2, 4 or 8. */
void ls_array_swap(void *memory, uint64_t bytes, size_t element);

/* All rows in the mapped file; the stream begins at `stream_offset` of it. */
ls_status_t ls_array_map(const ls_array_t *array, ls_file_t *file, uint64_t stream_offset,
                         const void **rows_p);

/* Rows that are cheap to read together. */
uint64_t ls_array_chunk(const ls_array_t *array, ls_stream_h stream);

#endif

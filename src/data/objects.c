/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of different length as objects.  Columns of text often have few values: a table of those seen lately
 * saves making, and keeping, an object for each row. */
#include <string.h>

#include "base/error.h"
#include "lockstep_data.h"

#define LONGEST  64 /* bytes of a row that is looked up */
#define SEEN_LOG 9
#define NO_ROW   UINT64_MAX

typedef struct text {
    const char *bytes;
    size_t      length;
} text_t;

static text_t row_at(const ls_data_column_t *column, uint64_t row)
{
    const uint64_t begin = column->offsets[row];

    return (text_t){(const char *)column->data + begin, (size_t)(column->offsets[row + 1] - begin)};
}

/* From the length and up to 16 bytes: enough to tell most texts apart. */
static size_t slot_of(text_t text)
{
    uint64_t first = 0, last = 0;

    if (text.length >= sizeof(first)) {
        memcpy(&first, text.bytes, sizeof(first));
        memcpy(&last, text.bytes + text.length - sizeof(last), sizeof(last));
    } else {
        for (size_t i = 0; i < text.length; i++) {
            first = first << 8 | (unsigned char)text.bytes[i];
        }
    }
    return (size_t)(((first ^ (last << 1 | last >> 63) ^ text.length) * 0x9e3779b97f4a7c15) >>
                    (64 - SEEN_LOG));
}

/* The row that was last seen with this text, and `row` instead of it; NO_ROW: none. */
static uint64_t look_up(const ls_data_column_t *column, uint64_t *seen, uint64_t row)
{
    const text_t   text  = row_at(column, row);
    uint64_t      *slot  = &seen[slot_of(text)];
    const uint64_t found = *slot;

    *slot = row;
    if (found != NO_ROW) {
        const text_t other = row_at(column, found);

        if (other.length == text.length && memcmp(other.bytes, text.bytes, text.length) == 0) {
            return found;
        }
    }
    return NO_ROW;
}

ls_status_t ls_data_column_objects(const ls_data_column_t *column, const ls_data_objects_t *functions,
                                   void **objects)
{
    uint64_t seen[1 << SEEN_LOG];

    memset(seen, 0xff, sizeof(seen));
    for (uint64_t row = 0; row < column->num_rows; row++) {
        const text_t   text  = row_at(column, row);
        const uint64_t found = text.length <= LONGEST ? look_up(column, seen, row) : NO_ROW;
        void *const    old   = objects[row];

        if (found != NO_ROW) {
            objects[row] = objects[found];
            functions->keep(objects[row]);
        } else {
            objects[row] = functions->make(text.bytes, (ptrdiff_t)text.length);
        }
        if (old != NULL) {
            functions->drop(old);
        }
        if (objects[row] == NULL) {
            return ls_error_set(LS_ERR_NO_MEMORY, "no memory for a row of %zu bytes", text.length);
        }
    }
    return LS_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of different length as objects.  Columns of text often have few values: a table of those seen lately
 * saves making, and keeping, an object for each row. */
#include <stdbool.h>
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

/* A text as far as it is compared first: all of it where it has no more than 16 bytes. */
typedef struct brief {
    uint64_t first, last; /* eight bytes each, of a shorter text all and none */
    uint64_t length;
} brief_t;

typedef struct seen {
    brief_t  brief;
    uint64_t row;
} seen_t;

static uint64_t load_word(const char *bytes)
{
    uint64_t word;

    memcpy(&word, bytes, sizeof(word));
    return word;
}

/* No branch depends on the length of the text, which differs from row to row. */
static brief_t brief_of(const ls_data_column_t *column, text_t text)
{
    const size_t   behind   = column->data_room - (size_t)(text.bytes - (const char *)column->data);
    const bool     is_short = text.length < sizeof(uint64_t);
    const uint64_t mask     = is_short ? (1ULL << (8 * text.length % 64)) - 1 : UINT64_MAX;
    brief_t        brief    = {.length = text.length};

    if (behind < sizeof(brief.first)) { /* the last rows of all */
        memcpy(&brief.first, text.bytes, text.length);
        return brief;
    }
    brief.first = load_word(text.bytes) & mask; /* without what comes after the text */
    brief.last  = load_word(text.bytes + (is_short ? 0 : text.length - sizeof(brief.last)));
    brief.last  = is_short ? 0 : brief.last;
    return brief;
}

static size_t slot_of(const brief_t *brief)
{
    return (size_t)(((brief->first ^ (brief->last << 1 | brief->last >> 63) ^ brief->length) *
                     0x9e3779b97f4a7c15) >>
                    (64 - SEEN_LOG));
}

/* A row that was seen with this text lately; NO_ROW: none, and now `row` is. */
static uint64_t look_up(const ls_data_column_t *column, seen_t *seen, uint64_t row, text_t text)
{
    const brief_t brief = brief_of(column, text);
    seen_t *const slot  = &seen[slot_of(&brief)];

    if (slot->row != NO_ROW && slot->brief.first == brief.first && slot->brief.last == brief.last &&
        slot->brief.length == brief.length &&
        (text.length <= 2 * sizeof(uint64_t) ||
         memcmp(row_at(column, slot->row).bytes, text.bytes, text.length) == 0)) {
        return slot->row;
    }
    *slot = (seen_t){brief, row};
    return NO_ROW;
}

ls_status_t ls_data_column_objects(const ls_data_column_t *column, const ls_data_objects_t *functions,
                                   void **objects)
{
    seen_t seen[1 << SEEN_LOG];

    memset(seen, 0xff, sizeof(seen)); /* NO_ROW in each */
    for (uint64_t row = 0; row < column->num_rows; row++) {
        const text_t   text  = row_at(column, row);
        const uint64_t found = text.length <= LONGEST ? look_up(column, seen, row, text) : NO_ROW;
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

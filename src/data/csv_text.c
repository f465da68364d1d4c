/* SPDX-License-Identifier: Apache-2.0 */
#include "data/csv_text.h"

#include <string.h>

#include "data/column.h"
#include "data/csv_convert_int.h"

#define COPY_BYTES    16
#define LONGEST_LOOSE 64

_Static_assert(COPY_BYTES <= LS_CSV_SCAN_SLACK, "texts are copied from the buffer");

size_t ls_csv_text_length(const ls_csv_batch_t *batch, size_t row, unsigned field)
{
    const span_t span = field_at(batch, row, field);

    return (size_t)(span.end - span.begin);
}

/* What is between quotes, where each quote is written twice. */
static size_t copy_quoted(const char *begin, const char *end, char quote, char *to)
{
    size_t length = 0;

    for (const char *from = begin; from < end; from++) {
        to[length++] = *from;
        from += (*from == quote);
    }
    return length;
}

static size_t copy_text(const ls_csv_batch_t *batch, span_t span, char *to)
{
    if (is_quoted(batch, span)) {
        return copy_quoted(span.begin + 1, span.end - 1, batch->index->marks.quote, to);
    }
    memcpy(to, span.begin, (size_t)(span.end - span.begin));
    return (size_t)(span.end - span.begin);
}

size_t ls_csv_text_copy(const ls_csv_batch_t *batch, size_t row, unsigned field, char *to)
{
    return copy_text(batch, field_at(batch, row, field), to);
}

/* Short texts are copied 16 bytes at a time, whatever their length: both buffers have that much more. */
static void copy_loosely(char *to, const char *from, size_t length)
{
    if (length > LONGEST_LOOSE) {
        memcpy(to, from, length);
        return;
    }
    for (size_t i = 0; i < length; i += COPY_BYTES) {
        memcpy(to + i, from + i, COPY_BYTES);
    }
}

#define EACH(_byte) (0x0101010101010101 * (uint64_t)(unsigned char)(_byte))

/* Bit i: byte i of the eight is this one. */
static inline unsigned equal_bits(const char *bytes, char byte)
{
    uint64_t word;

    memcpy(&word, bytes, sizeof(word));
    word ^= EACH(byte);
    word = ~(((word & EACH(0x7f)) + EACH(0x7f)) | word | EACH(0x7f)); /* 0x80 where a byte is 0 */
    return (unsigned)((word >> 7) * 0x0102040810204080 >> 56);
}

/* As copy_text(), where COPY_BYTES after the text may be written.  Texts with and without quotes alternate as
 * they like: few branches depend on it. */
static inline size_t put_text(char quote, span_t span, char *to)
{
    const size_t   length = (size_t)(span.end - span.begin);
    const unsigned quotes = (length >= 2) & (*span.begin == quote) & (span.end[-1] == quote);
    const char    *from   = span.begin + quotes;
    const size_t   inner  = length - 2 * quotes;

    if (inner <= COPY_BYTES) {
        unsigned pairs =
            (equal_bits(from, quote) | equal_bits(from + 8, quote) << 8) & ((1U << inner) - 1) & -quotes;
        size_t saved = 0;

        memcpy(to, from, COPY_BYTES);
        for (; pairs != 0; saved++) { /* behind a quote that is written twice, all comes one byte earlier */
            const unsigned at = (unsigned)__builtin_ctz(pairs);

            to += at + 1;
            from += at + 2;
            pairs = pairs >> at >> 2;
            memcpy(to, from, COPY_BYTES);
        }
        return inner - saved;
    }
    if (quotes && memchr(from, quote, inner) != NULL) {
        return copy_quoted(from, from + inner, quote, to);
    }
    copy_loosely(to, from, inner);
    return inner;
}

/* Of the text of a field without its quotes. */
static size_t text_length(const ls_csv_batch_t *batch, span_t span)
{
    const char quote  = batch->index->marks.quote;
    size_t     length = (size_t)(span.end - span.begin);

    if (!is_quoted(batch, span)) {
        return length;
    }
    length -= 2;
    for (const char *from = span.begin + 1; from < span.end - 1; from++) {
        if (*from == quote) { /* written twice */
            length--;
            from++;
        }
    }
    return length;
}

/* Each row to a place of its own. */
static ls_status_t to_places(const ls_csv_batch_t *batch, unsigned field, ls_data_column_t *column)
{
    ls_status_t status = LS_OK;

    for (size_t row = 0; row < batch->num_rows && status == LS_OK; row++) {
        const span_t span = field_at(batch, row, field);
        void        *room = NULL;

        status = ls_column_append(column, text_length(batch, span), &room);
        if (status == LS_OK) {
            copy_text(batch, span, room);
        }
    }
    return status;
}

ls_status_t ls_csv_text_convert(const ls_csv_batch_t *batch, unsigned field, ls_data_column_t *column)
{
    if (column->place != NULL) {
        return to_places(batch, field, column);
    }
    const size_t      most = batch->ends[batch->num_rows * batch->num_fields - 1] - (batch->ends[-1] + 1U);
    const ls_status_t status =
        batch->num_rows > 0 ? ls_column_reserve(column, batch->num_rows, most + COPY_BYTES) : LS_OK;

    if (status != LS_OK || batch->num_rows == 0) {
        return status;
    }
    const bool is_first = field == 0, is_last = field + 1 == batch->num_fields;
    const char quote = batch->index->marks.quote, *const data = batch->data;
    const uint32_t *end    = batch->ends + field;
    const size_t    stride = batch->num_fields, num_rows = batch->num_rows;
    uint64_t *const offsets = column->offsets + column->num_rows;
    uint64_t        at      = column->num_rows > 0 ? *offsets : 0;
    char *const     to      = column->data;

    offsets[0] = at;
    for (size_t row = 0; row < num_rows; row++, end += stride) {
        at += put_text(quote, span_at(data, end, is_first, is_last), to + at);
        offsets[row + 1] = at;
    }
    column->num_rows += batch->num_rows;
    return LS_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What converting numbers and texts shares: where a field is. */
#ifndef LS_DATA_CSV_CONVERT_INT_H
#define LS_DATA_CSV_CONVERT_INT_H

#include "data/csv_convert.h"

typedef struct span {
    const char *begin, *end;
} span_t;

/* The field that ends at data[*end]. */
static inline span_t span_at(const char *data, const uint32_t *end, bool is_first, bool is_last)
{
    span_t span = {data + (uint32_t)(end[-1] + 1), data + *end};

    while (is_first && span.begin < span.end && (*span.begin == '\n' || *span.begin == '\r')) {
        span.begin++; /* blank lines before the row */
    }
    if (is_last && span.end > span.begin && span.end[-1] == '\r') {
        span.end--;
    }
    return span;
}

static inline span_t field_at(const ls_csv_batch_t *batch, size_t row, unsigned field)
{
    return span_at(batch->data, batch->ends + row * batch->num_fields + field, field == 0,
                   field + 1 == batch->num_fields);
}

static inline bool is_quoted(const ls_csv_batch_t *batch, span_t span)
{
    return span.end - span.begin >= 2 && *span.begin == batch->index->marks.quote &&
           span.end[-1] == batch->index->marks.quote;
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Column by column over the rows in the buffer: the buffer and the ends of its fields stay in the cache.  A
 * field that is no plain number (quotes, blanks around it, missing) takes a slower way.
 */
#include "data/csv_convert.h"

#include <math.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "data/csv_convert_int.h"
#include "data/csv_plain.h"
#include "data/csv_text.h"
#include "data/decimal.h"

_Static_assert(LS_DECIMAL_SLACK <= LS_CSV_SCAN_SLACK, "numbers are parsed in the buffer");

#define SHOWN_BYTES   40 /* of a bad field, in an error */
#define FOUND_AT_ONCE 64 /* rows whose type is looked for */

/* What a column is made from. */
typedef struct source {
    const ls_csv_batch_t   *batch;
    const ls_csv_missing_t *missing;
    unsigned                field;
    const char             *name;
    ls_data_type_t          type;
} source_t;

/* Without quotes around it and blanks around that. */
static span_t bare(const ls_csv_batch_t *batch, span_t span)
{
    if (is_quoted(batch, span)) {
        span.begin++;
        span.end--;
    }
    while (span.begin < span.end && *span.begin == ' ') {
        span.begin++;
    }
    while (span.begin < span.end && span.end[-1] == ' ') {
        span.end--;
    }
    return span;
}

/* ---- missing values ----------------------------------------------------------------------------- */

ls_csv_missing_t ls_csv_convert_missing(const char *const *texts, unsigned num_texts)
{
    static const char *const usual[] = {"", "NA", "N/A", "nan", "NaN", "null", "NULL"};
    ls_csv_missing_t         missing = {usual, sizeof(usual) / sizeof(usual[0]), false};

    if (texts == NULL) {
        return missing;
    }
    missing = (ls_csv_missing_t){texts, num_texts, false};
    for (unsigned i = 0; i < num_texts; i++) {
        char         padded[64] = "";
        const size_t length     = strlen(texts[i]);
        double       value;

        if (length + LS_DECIMAL_SLACK < sizeof(padded)) {
            memcpy(padded, texts[i], length);
            missing.is_number |= ls_decimal_double(padded, padded + length, &value);
        }
    }
    return missing;
}

static bool is_missing(const ls_csv_missing_t *missing, span_t span)
{
    const size_t length = (size_t)(span.end - span.begin);

    for (unsigned i = 0; i < missing->num_texts; i++) {
        if (strlen(missing->texts[i]) == length && memcmp(missing->texts[i], span.begin, length) == 0) {
            return true;
        }
    }
    return false;
}

static ls_status_t bad_field(const source_t *source, size_t row)
{
    const ls_csv_batch_t *batch  = source->batch;
    const span_t          span   = field_at(batch, row, source->field);
    const size_t          length = (size_t)(span.end - span.begin);
    const char           *path   = batch->index->files[batch->file].file.path;
    const uint64_t        offset = batch->offset + (uint64_t)(span.begin - batch->data);

    if (is_missing(source->missing, bare(batch, span))) {
        return ls_file_error(
            path, "row", batch->first_row + row, offset,
            "column '%s' of type %s has a missing value here; read it as float64, where that is NaN",
            source->name, ls_data_type_name(source->type));
    }
    return ls_file_error(
        path, "row", batch->first_row + row, offset,
        "column '%s' has '%.*s%s' here, which is no %s; give the column another type (bytes holds any "
        "text)",
        source->name, (int)(length < SHOWN_BYTES ? length : SHOWN_BYTES), span.begin,
        length > SHOWN_BYTES ? "..." : "", ls_data_type_name(source->type));
}

/* ---- numbers ------------------------------------------------------------------------------------ */

/* The way for what is no plain number. */
static bool slow_double(const source_t *source, span_t span, double *value_p)
{
    span = bare(source->batch, span);
    if (is_missing(source->missing, span)) {
        *value_p = NAN;
        return true;
    }
    return ls_decimal_double(span.begin, span.end, value_p);
}

static inline bool get_double(const source_t *source, size_t row, double *value_p)
{
    const span_t span = field_at(source->batch, row, source->field);

    if (!source->missing->is_number && ls_decimal_double(span.begin, span.end, value_p)) {
        return true;
    }
    return slow_double(source, span, value_p);
}

/* The rows from `row` on, for the fast way. */
static ls_csv_plain_t plain_rows(const source_t *source, size_t row)
{
    const ls_csv_batch_t *batch = source->batch;

    return (ls_csv_plain_t){
        .data   = batch->data,
        .ends   = batch->ends + row * batch->num_fields + source->field,
        .stride = batch->num_fields,
        .count  = batch->num_rows - row,
        .has_cr = batch->has_cr && source->field + 1 == batch->num_fields,
    };
}

static ls_status_t to_float64(const source_t *source, void *to)
{
    const ls_csv_plain_ops_t *plain  = source->missing->is_number ? NULL : ls_csv_plain_get();
    double                   *values = to;

    for (size_t row = 0; row < source->batch->num_rows; row++) {
        if (plain != NULL) {
            const ls_csv_plain_t rest = plain_rows(source, row);

            row += plain->doubles(&rest, values + row);
        }
        if (row < source->batch->num_rows && !get_double(source, row, &values[row])) {
            return bad_field(source, row);
        }
    }
    return LS_OK;
}

static ls_status_t to_float32(const source_t *source, void *to)
{
    float *values = to;
    double value;

    for (size_t row = 0; row < source->batch->num_rows; row++) {
        if (!get_double(source, row, &value)) {
            return bad_field(source, row);
        }
        values[row] = (float)value;
    }
    return LS_OK;
}

static bool get_int64(const source_t *source, size_t row, int64_t *value_p)
{
    span_t span = field_at(source->batch, row, source->field);

    if (!source->missing->is_number && ls_decimal_int64(span.begin, span.end, value_p)) {
        return true;
    }
    span = bare(source->batch, span);
    return !is_missing(source->missing, span) && ls_decimal_int64(span.begin, span.end, value_p);
}

static ls_status_t to_int64(const source_t *source, void *to)
{
    const ls_csv_plain_ops_t *plain  = source->missing->is_number ? NULL : ls_csv_plain_get();
    int64_t                  *values = to;

    for (size_t row = 0; row < source->batch->num_rows; row++) {
        if (plain != NULL) {
            const ls_csv_plain_t rest = plain_rows(source, row);

            row += plain->integers(&rest, values + row);
        }
        if (row < source->batch->num_rows && !get_int64(source, row, &values[row])) {
            return bad_field(source, row);
        }
    }
    return LS_OK;
}

/* Whole numbers of fewer bits: as int64, and then it must fit. */
#define DEFINE_TO_INTEGER(_name, _type, _least, _most)                                    \
    static ls_status_t _name(const source_t *source, void *to)                            \
    {                                                                                     \
        _type  *values = to;                                                              \
        int64_t value;                                                                    \
                                                                                          \
        for (size_t row = 0; row < source->batch->num_rows; row++) {                      \
            if (!get_int64(source, row, &value) || value < (_least) || value > (_most)) { \
                return bad_field(source, row);                                            \
            }                                                                             \
            values[row] = (_type)value;                                                   \
        }                                                                                 \
        return LS_OK;                                                                     \
    }

DEFINE_TO_INTEGER(to_int8, int8_t, INT8_MIN, INT8_MAX)
DEFINE_TO_INTEGER(to_int16, int16_t, INT16_MIN, INT16_MAX)
DEFINE_TO_INTEGER(to_int32, int32_t, INT32_MIN, INT32_MAX)
DEFINE_TO_INTEGER(to_uint8, uint8_t, 0, UINT8_MAX)
DEFINE_TO_INTEGER(to_uint16, uint16_t, 0, UINT16_MAX)
DEFINE_TO_INTEGER(to_uint32, uint32_t, 0, UINT32_MAX)

static ls_status_t to_uint64(const source_t *source, void *to)
{
    uint64_t *values = to;

    for (size_t row = 0; row < source->batch->num_rows; row++) {
        const span_t span = bare(source->batch, field_at(source->batch, row, source->field));

        if (is_missing(source->missing, span) || !ls_decimal_uint64(span.begin, span.end, &values[row])) {
            return bad_field(source, row);
        }
    }
    return LS_OK;
}

static bool is_word(span_t span, const char *word)
{
    const size_t length = strlen(word);

    return (size_t)(span.end - span.begin) == length && strncasecmp(span.begin, word, length) == 0;
}

static ls_status_t to_bool(const source_t *source, void *to)
{
    uint8_t *values = to;

    for (size_t row = 0; row < source->batch->num_rows; row++) {
        const span_t span  = bare(source->batch, field_at(source->batch, row, source->field));
        const bool   is_on = is_word(span, "1") || is_word(span, "true");

        if (!is_on && !is_word(span, "0") && !is_word(span, "false")) {
            return bad_field(source, row);
        }
        values[row] = is_on;
    }
    return LS_OK;
}

/* ---- all types ---------------------------------------------------------------------------------- */

typedef ls_status_t (*convert_fn)(const source_t *source, void *to);

static const convert_fn converters[LS_DATA_TYPE_COUNT] = {
    [LS_DATA_BOOL] = to_bool,       [LS_DATA_INT8] = to_int8,       [LS_DATA_INT16] = to_int16,
    [LS_DATA_INT32] = to_int32,     [LS_DATA_INT64] = to_int64,     [LS_DATA_UINT8] = to_uint8,
    [LS_DATA_UINT16] = to_uint16,   [LS_DATA_UINT32] = to_uint32,   [LS_DATA_UINT64] = to_uint64,
    [LS_DATA_FLOAT32] = to_float32, [LS_DATA_FLOAT64] = to_float64,
};

bool ls_csv_convert_can(ls_data_type_t type)
{
    return type == LS_DATA_BYTES || converters[type] != NULL;
}

ls_status_t ls_csv_convert(const ls_csv_batch_t *batch, const ls_csv_missing_t *missing, unsigned field,
                           const char *name, ls_data_type_t type, ls_data_column_t *column, uint64_t done)
{
    const source_t source = {batch, missing, field, name, type};

    if (type == LS_DATA_BYTES) {
        return ls_csv_text_convert(batch, field, column);
    }
    return converters[type](&source, (char *)column->data + done * ls_data_type_size(type));
}

static ls_data_type_t type_of(const source_t *source, size_t row)
{
    const span_t span = bare(source->batch, field_at(source->batch, row, source->field));
    int64_t      whole;
    double       value;

    if (source->missing->is_number && is_missing(source->missing, span)) {
        return LS_DATA_AUTO;
    }
    if (ls_decimal_int64(span.begin, span.end, &whole)) {
        return LS_DATA_INT64;
    }
    if (is_missing(source->missing, span)) {
        return LS_DATA_AUTO;
    }
    return ls_decimal_double(span.begin, span.end, &value) ? LS_DATA_FLOAT64 : LS_DATA_BYTES;
}

/* How many rows from `row` on surely have the type that is known already. */
static size_t rows_of_type(const source_t *source, size_t row, ls_data_type_t type)
{
    const ls_csv_plain_ops_t *plain = source->missing->is_number ? NULL : ls_csv_plain_get();
    ls_csv_plain_t            rest  = plain_rows(source, row);
    union {
        double  doubles[FOUND_AT_ONCE];
        int64_t integers[FOUND_AT_ONCE];
    } values;

    rest.count = rest.count < FOUND_AT_ONCE ? rest.count : FOUND_AT_ONCE;
    if (plain == NULL || (type != LS_DATA_FLOAT64 && type != LS_DATA_INT64)) {
        return 0;
    }
    return type == LS_DATA_FLOAT64 ? plain->doubles(&rest, values.doubles)
                                   : plain->integers(&rest, values.integers);
}

void ls_csv_convert_find(const ls_csv_batch_t *batch, const ls_csv_missing_t *missing, unsigned field,
                         ls_csv_found_t *found)
{
    const source_t source = {.batch = batch, .missing = missing, .field = field};

    for (size_t row = 0; row < batch->num_rows && found->type != LS_DATA_BYTES;) {
        const size_t surely = rows_of_type(&source, row, found->type);

        row += surely;
        if (surely == 0) {
            const ls_data_type_t one = type_of(&source, row++);

            found->has_missing |= (one == LS_DATA_AUTO);
            found->type = one > found->type ? one : found->type;
        }
    }
}

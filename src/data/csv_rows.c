/* SPDX-License-Identifier: Apache-2.0 */
#include "data/csv_rows.h"

#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "data/csv_plain.h"

#define ENDS_IN_FRONT 16 /* room for ends[-1] that keeps the rest on a cache line */
#define ENDS_BEHIND   LS_CSV_SCAN_ROOM_BEHIND
#define SMALL_READ    4096
#define BLOCK_BYTES   ((size_t)24 * 1024)

static void drop_room(ls_csv_rows_t *rows)
{
    if (rows->data != NULL) {
        ls_mem_free(rows->data - LS_CSV_PLAIN_SLACK);
        ls_mem_free(rows->ends - ENDS_IN_FRONT);
    }
}

static ls_status_t make_room(ls_csv_rows_t *rows, size_t room)
{
    char       *data   = NULL;
    uint32_t   *ends   = NULL;
    ls_status_t status = ls_mem_alloc(LS_CSV_PLAIN_SLACK + room + 1 + LS_CSV_SCAN_SLACK,
                                      "rows of a text table", (void **)&data);

    if (status != LS_OK) {
        return status;
    }
    status = ls_mem_alloc((room + 1 + ENDS_IN_FRONT + ENDS_BEHIND) * sizeof(*ends), "fields of a text table",
                          (void **)&ends);
    if (status != LS_OK) {
        ls_mem_free(data);
        return status;
    }
    drop_room(rows);
    rows->data = data + LS_CSV_PLAIN_SLACK;
    rows->ends = ends + ENDS_IN_FRONT;
    rows->room = room;
    return LS_OK;
}

ls_status_t ls_csv_rows_create(const ls_csv_index_t *index, unsigned num_fields, ls_csv_rows_t **rows_p)
{
    ls_csv_rows_t *rows   = NULL;
    ls_status_t    status = ls_mem_alloc(sizeof(*rows), "window of a text table", (void **)&rows);

    if (status != LS_OK) {
        return status;
    }
    *rows = (ls_csv_rows_t){
        .index = index, .scan = ls_csv_scan_get(), .num_fields = num_fields, .next_row = LS_CSV_SCAN_NONE};
    status = make_room(rows, LS_CSV_BUFFER_BYTES);
    if (status != LS_OK) {
        ls_csv_rows_destroy(rows);
        return status;
    }
    *rows_p = rows;
    return LS_OK;
}

void ls_csv_rows_destroy(ls_csv_rows_t *rows)
{
    if (rows == NULL) {
        return;
    }
    drop_room(rows);
    ls_mem_free(rows);
}

/* ---- filling the buffer ------------------------------------------------------------------------- */

static const ls_csv_file_t *file_of(const ls_csv_rows_t *rows)
{
    return &rows->index->files[rows->file];
}

/* `bytes` from rows->offset on, or what there is; a last line without an end gets one. */
static ls_status_t load(ls_csv_rows_t *rows, size_t bytes)
{
    const ls_file_t *file = &file_of(rows)->file;
    const uint64_t   left = file->bytes - rows->offset;

    rows->num_rows = rows->done_rows = 0;
    rows->length                     = left < bytes ? (size_t)left : bytes;
    const ls_status_t status         = ls_file_read(file, rows->offset, rows->length, rows->data);

    if (status == LS_OK && rows->length == left && rows->length > 0 && rows->data[rows->length - 1] != '\n') {
        rows->data[rows->length++] = '\n';
    }
    return status;
}

static bool is_at_file_end(const ls_csv_rows_t *rows)
{
    return rows->offset + rows->length >= file_of(rows)->file.bytes;
}

static bool is_blank(const char *data, size_t begin, size_t end)
{
    return end == begin || (end == begin + 1 && data[begin] == '\r');
}

static ls_status_t ragged(const ls_csv_rows_t *rows, uint64_t row, size_t begin, size_t num_fields)
{
    return ls_file_error(file_of(rows)->file.path, "row", row, rows->offset + begin,
                         "this row has %zu field%s, not %u as the first; is the delimiter '%c' right?",
                         num_fields, num_fields == 1 ? "" : "s", rows->num_fields,
                         rows->index->marks.delimiter);
}

/* Blank lines are taken out of `ends`; a row of another length is an error. */
static ls_status_t arrange(ls_csv_rows_t *rows, size_t num_ends)
{
    uint32_t *ends = rows->ends;
    size_t    kept = 0, num_rows = 0, begin = 0;

    for (size_t i = 0, fields = 0; i < num_ends; i++) {
        const uint32_t end = ends[i];

        if (fields == 0 && rows->data[end] == '\n' && is_blank(rows->data, begin, end)) {
            begin = end + 1;
            continue;
        }
        fields++;
        ends[kept++] = end;
        if (rows->data[end] != '\n') {
            continue;
        }
        if (fields != rows->num_fields) { /* an error only when it is its turn */
            rows->num_rows = num_rows;
            return num_rows > 0 ? LS_OK : ragged(rows, rows->next_row, begin, fields);
        }
        num_rows++;
        fields = 0;
        begin  = end + 1;
    }
    rows->num_rows = num_rows;
    return LS_OK;
}

/* Is each num_fields-th end, and no other, a line feed?  Then there is neither a blank line nor a ragged row,
 * except that with one field a blank line looks like a row. */
static bool is_regular(const ls_csv_rows_t *rows, size_t num_ends, size_t num_lines, bool *has_cr_p)
{
    const size_t stride = rows->num_fields;
    size_t       wrong = 0, num_cr = 0;

    if (num_lines * stride > num_ends || stride == 1) {
        return false;
    }
    for (size_t i = 1; i <= num_lines; i++) {
        const char *end = rows->data + rows->ends[i * stride - 1];

        wrong += (*end != '\n');
        num_cr += (end[-1] == '\r'); /* there is a delimiter at least */
    }
    *has_cr_p = num_cr > 0 || wrong > 0;
    return wrong == 0;
}

static ls_status_t find_rows(ls_csv_rows_t *rows)
{
    unsigned             is_inside = 0;
    size_t               num_lines;
    const ls_csv_ends_fn find = rows->is_sweep ? rows->scan->good_ends : rows->scan->ends;
    const size_t         num_ends =
        find(&rows->index->marks, rows->data, rows->length, &is_inside, rows->ends, &num_lines);

    if (num_ends == LS_CSV_SCAN_BAD) {
        return ls_file_error(file_of(rows)->file.path, "", LS_FILE_NOWHERE, rows->offset,
                             "behind this byte is a zero byte, or a quote that is not around a whole field");
    }
    rows->ends[-1] = UINT32_MAX; /* one before 0 */
    rows->has_cr   = true;
    if (is_regular(rows, num_ends, num_lines, &rows->has_cr)) {
        rows->num_rows = num_lines;
        return LS_OK;
    }
    return arrange(rows, num_ends);
}

/* Where the next buffer begins: after the last whole row. */
static uint64_t offset_after_rows(const ls_csv_rows_t *rows)
{
    return rows->offset + rows->ends[rows->num_rows * rows->num_fields - 1] + 1U;
}

static size_t wanted_bytes(const ls_csv_rows_t *rows, uint64_t most)
{
    const ls_csv_file_t *csv = file_of(rows);
    const uint64_t       row = csv->file.bytes / (csv->num_lines + 1) + 1;

    if (rows->is_sequential || most > rows->room / row) {
        return rows->room;
    }
    const size_t bytes = (size_t)(most * row) + SMALL_READ;

    return bytes < rows->room ? bytes : rows->room;
}

static ls_status_t too_long(const ls_csv_rows_t *rows)
{
    return ls_file_error(file_of(rows)->file.path, "row", rows->next_row, rows->offset,
                         "this row is longer than %zu MiB", LS_CSV_MAX_ROW_BYTES / LS_MIB);
}

/* Fills the buffer, at first with so many bytes, until there is a row in it. */
static ls_status_t refill(ls_csv_rows_t *rows, size_t bytes)
{
    ls_status_t status = LS_OK;

    while (status == LS_OK && rows->num_rows == 0) {
        status = load(rows, bytes);
        if (status == LS_OK) {
            status = find_rows(rows);
        }
        if (status != LS_OK || rows->num_rows > 0) {
            break;
        }
        if (is_at_file_end(rows)) {
            return ls_file_error(file_of(rows)->file.path, "row", rows->next_row, rows->offset,
                                 "this row is not there any more: the file has changed while it was read");
        }
        if (bytes == rows->room && rows->room >= LS_CSV_MAX_ROW_BYTES) {
            return too_long(rows);
        }
        if (bytes == rows->room) {
            status = make_room(rows, rows->room * 4);
        }
        bytes = rows->room;
    }
    return status;
}

/* ---- seeking ------------------------------------------------------------------------------------ */

/* A line that may have begun before the buffer. */
typedef struct line {
    uint64_t length;
    char     first;
} line_t;

static void add_to_line(line_t *line, const char *data, size_t length)
{
    if (line->length == 0 && length > 0) {
        line->first = data[0];
    }
    line->length += length;
}

static bool is_row(const line_t *line)
{
    return line->length > 1 || (line->length == 1 && line->first != '\r');
}

/* The line that `offset` is in, as far as it matters: the two bytes before decide whether it can be blank. */
static ls_status_t line_before(const ls_csv_rows_t *rows, uint64_t offset, line_t *line_p)
{
    char        before[2] = {'\n', '\n'};
    ls_status_t status    = LS_OK;

    if (offset - file_of(rows)->begin >= 2) {
        status = ls_file_read(&file_of(rows)->file, offset - 2, 2, before);
    }
    *line_p = (line_t){0};
    if (before[1] != '\n') {
        *line_p = (line_t){.length = before[0] == '\n' ? 1 : 2, .first = before[1]};
    }
    return status;
}

/* Goes to the place, and behind `skip` row ends. */
static ls_status_t skip_rows(ls_csv_rows_t *rows, const ls_csv_place_t *place)
{
    const ls_csv_marks_t only_lines  = {.delimiter = '\n', .quote = rows->index->marks.quote};
    const uint64_t       piece_bytes = rows->index->piece_bytes;
    unsigned             is_inside   = place->is_inside;
    uint64_t             skip        = place->skip;
    line_t               line;
    ls_status_t          status = line_before(rows, place->offset, &line);

    for (rows->offset = place->offset; status == LS_OK && skip > 0;) {
        size_t num_lines, from = 0;

        status = load(rows, piece_bytes < LS_CSV_BUFFER_BYTES ? (size_t)piece_bytes : LS_CSV_BUFFER_BYTES);
        if (status != LS_OK) {
            break;
        }
        const size_t num =
            rows->scan->ends(&only_lines, rows->data, rows->length, &is_inside, rows->ends, &num_lines);

        for (size_t i = 0; i < num && skip > 0; i++) {
            add_to_line(&line, rows->data + from, rows->ends[i] - from);
            skip -= is_row(&line);
            line = (line_t){0};
            from = rows->ends[i] + 1;
        }
        if (skip > 0 && is_at_file_end(rows)) {
            return ls_file_error(
                file_of(rows)->file.path, "", LS_FILE_NOWHERE, LS_FILE_NOWHERE,
                "%" PRIu64 " rows are not there any more: the file has changed while it was read", skip);
        }
        if (skip > 0) {
            add_to_line(&line, rows->data + from, rows->length - from);
            from = rows->length;
        }
        rows->offset += from;
    }
    return status;
}

static ls_status_t go_to(ls_csv_rows_t *rows, uint64_t row)
{
    const ls_csv_place_t place = ls_csv_index_find(rows->index, row);

    rows->file               = place.file;
    rows->next_row           = LS_CSV_SCAN_NONE;
    const ls_status_t status = skip_rows(rows, &place);

    rows->num_rows = rows->done_rows = 0;
    if (status == LS_OK) {
        rows->next_row = row;
    }
    return status;
}

ls_status_t ls_csv_rows_seek(ls_csv_rows_t *rows, uint64_t row)
{
    rows->is_sequential = !rows->is_sweep && rows->next_row == row; /* a sweep counts in its own way */
    rows->is_sweep      = false;
    return rows->is_sequential ? LS_OK : go_to(rows, row);
}

/* Rows whose text and ends stay in the first cache while one column after the other is converted. */
static size_t block_rows(const ls_csv_rows_t *rows)
{
    const size_t bytes = rows->ends[rows->num_rows * rows->num_fields - 1] / rows->num_rows +
                         rows->num_fields * sizeof(*rows->ends);

    return bytes < BLOCK_BYTES ? BLOCK_BYTES / bytes : 1;
}

/* Rows of the buffer that were not given yet. */
static void give(ls_csv_rows_t *rows, uint64_t most, ls_csv_batch_t *batch_p)
{
    const size_t left  = rows->num_rows - rows->done_rows;
    const size_t block = left < rows->block_rows ? left : rows->block_rows;
    const size_t num   = block < most ? block : (size_t)most;

    *batch_p = (ls_csv_batch_t){
        .data       = rows->data,
        .ends       = rows->ends + rows->done_rows * rows->num_fields,
        .num_fields = rows->num_fields,
        .num_rows   = num,
        .first_row  = rows->next_row,
        .offset     = rows->offset,
        .index      = rows->index,
        .file       = rows->file,
        .has_cr     = rows->has_cr,
    };
    rows->done_rows += num;
    rows->next_row += num;
}

ls_status_t ls_csv_rows_next(ls_csv_rows_t *rows, uint64_t most, ls_csv_batch_t *batch_p)
{
    ls_status_t status = LS_OK;

    if (rows->done_rows == rows->num_rows) {
        if (rows->num_rows > 0) {
            rows->offset = offset_after_rows(rows);
        }
        rows->num_rows = rows->done_rows = 0;
        if (rows->next_row == ls_csv_index_row(rows->index, rows->file, file_of(rows)->num_lines)) {
            status = go_to(rows, rows->next_row); /* in the next file */
        }
        if (status == LS_OK) {
            status = refill(rows, wanted_bytes(rows, most));
        }
        if (status == LS_OK) {
            rows->block_rows = block_rows(rows);
        }
    }
    if (status != LS_OK) {
        rows->next_row = LS_CSV_SCAN_NONE;
        return status;
    }
    give(rows, most, batch_p);
    return LS_OK;
}

/* ---- sweeping ----------------------------------------------------------------------------------- */

void ls_csv_rows_sweep(ls_csv_rows_t *rows, unsigned file, uint64_t offset)
{
    rows->file     = file;
    rows->offset   = offset;
    rows->num_rows = rows->done_rows = 0;
    rows->next_row                   = 0;
    rows->is_sweep                   = true;
}

/* There is nothing but blank lines after the offset. */
static ls_status_t is_rest_blank(ls_csv_rows_t *rows, bool *is_blank_p)
{
    size_t num_blank = 0;

    *is_blank_p = false;
    if (file_of(rows)->file.bytes - rows->offset >
        SMALL_READ) { /* so many blank lines are for the ordinary way */
        return LS_OK;
    }
    const ls_status_t status = load(rows, SMALL_READ);

    while (num_blank < rows->length && (rows->data[num_blank] == '\n' || rows->data[num_blank] == '\r')) {
        num_blank++;
    }
    *is_blank_p = status == LS_OK && num_blank == rows->length;
    return status;
}

/* Whole rows from rows->offset on, if it is before the limit; those that begin behind it are left for later.
 */
static ls_status_t sweep_more(ls_csv_rows_t *rows, uint64_t limit)
{
    const uint64_t end      = file_of(rows)->file.bytes;
    bool           is_blank = false;
    ls_status_t    status;

    limit = limit < end ? limit : end;
    if (rows->offset >= limit) {
        return LS_OK;
    }
    status = is_rest_blank(rows, &is_blank);
    if (status != LS_OK || is_blank) {
        rows->offset = is_blank ? end : rows->offset;
        return status;
    }
    const uint64_t left = limit - rows->offset + SMALL_READ;

    status = refill(rows, left < rows->room ? (size_t)left : rows->room);
    if (status != LS_OK) {
        return status;
    }
    while (rows->num_rows > 1 &&
           rows->offset + rows->ends[(rows->num_rows - 1) * rows->num_fields - 1] + 1U >= limit) {
        rows->num_rows--;
    }
    rows->block_rows = block_rows(rows);
    return LS_OK;
}

ls_status_t ls_csv_rows_sweep_next(ls_csv_rows_t *rows, uint64_t limit, uint64_t most,
                                   ls_csv_batch_t *batch_p)
{
    ls_status_t status = LS_OK;

    if (rows->done_rows == rows->num_rows) {
        if (rows->num_rows > 0) {
            rows->offset = offset_after_rows(rows);
        }
        rows->num_rows = rows->done_rows = 0;
        status                           = sweep_more(rows, limit);
    }
    if (status == LS_OK) {
        give(rows, most, batch_p);
    }
    return status;
}

ls_status_t ls_csv_rows_line(ls_csv_rows_t *rows, unsigned file, uint64_t from, uint64_t to, uint64_t *line_p)
{
    ls_status_t status = LS_OK;

    ls_csv_rows_sweep(rows, file, from);
    if (from == file_of(rows)->begin) {
        *line_p = from < to ? from : to;
        return LS_OK;
    }
    for (rows->offset = from - 1; status == LS_OK && rows->offset + 1 < to; rows->offset += rows->length) {
        const char *feed;

        status = load(rows, SMALL_READ);
        feed   = status == LS_OK ? memchr(rows->data, '\n', rows->length) : NULL;
        if (feed != NULL) {
            const uint64_t line = rows->offset + (uint64_t)(feed - rows->data) + 1;

            *line_p = line < to ? line : to;
            return LS_OK;
        }
    }
    *line_p = to;
    return status;
}

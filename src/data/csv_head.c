/* SPDX-License-Identifier: Apache-2.0 */
#include "data/csv_head.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/table.h"
#include "data/csv_convert.h"
#include "data/csv_text.h"
#include "data/part.h"

#define GUESS_ROWS    32
#define ENDS_IN_FRONT 16
#define NAME_ROOM     32 /* of a number, and of what is added to a name that comes twice */

/* The beginning of a file. */
typedef struct beginning {
    const ls_csv_file_t     *csv;
    const ls_csv_scan_ops_t *scan;
    char                    *data;
    uint32_t                *memory, *ends; /* ends[-1] is there */
    size_t                   length;
    bool                     is_whole; /* the file has no more */
} beginning_t;

static void drop(beginning_t *begin)
{
    ls_mem_free(begin->data);
    ls_mem_free(begin->memory);
    begin->data   = NULL;
    begin->memory = NULL;
}

static ls_status_t load(beginning_t *begin, size_t room)
{
    const ls_csv_file_t *csv  = begin->csv;
    const uint64_t       left = csv->file.bytes - csv->begin;
    ls_status_t          status;

    drop(begin);
    begin->length   = left < room ? (size_t)left : room;
    begin->is_whole = (begin->length == left);
    status =
        ls_mem_alloc(begin->length + 1 + LS_CSV_SCAN_SLACK, "head of a text table", (void **)&begin->data);
    if (status == LS_OK) {
        status = ls_mem_alloc((begin->length + 2 * ENDS_IN_FRONT) * sizeof(uint32_t), "head of a text table",
                              (void **)&begin->memory);
    }
    if (status != LS_OK) {
        return status;
    }
    begin->ends = begin->memory + ENDS_IN_FRONT;
    status      = ls_file_read(&csv->file, csv->begin, begin->length, begin->data);
    if (begin->is_whole && begin->length > 0 && begin->data[begin->length - 1] != '\n') {
        begin->data[begin->length++] = '\n';
    }
    return status;
}

/* Calls for rows: the first end of each row that is not blank, and its number of fields; returns how many
 * rows. */
typedef struct found_rows {
    size_t   num;
    uint32_t begin;     /* of the first row, in the data */
    size_t   first_end; /* of the first row, in ends */
    size_t   fields[GUESS_ROWS];
} found_rows_t;

static void find_rows(const beginning_t *begin, const ls_csv_marks_t *marks, found_rows_t *found)
{
    unsigned     is_inside = 0;
    size_t       num_lines, first = 0;
    uint32_t     from = 0;
    const size_t num =
        begin->scan->ends(marks, begin->data, begin->length, &is_inside, begin->ends, &num_lines);

    *found = (found_rows_t){0};
    for (size_t i = 0; i < num && found->num < GUESS_ROWS; i++) {
        const uint32_t end = begin->ends[i];

        if (begin->data[end] != '\n') {
            continue;
        }
        if (i > first || (end > from && !(end == from + 1 && begin->data[from] == '\r'))) {
            if (found->num == 0) {
                found->begin     = from;
                found->first_end = first;
            }
            found->fields[found->num++] = i - first + 1;
        }
        first = i + 1;
        from  = end + 1;
    }
}

/* The first of these that cuts the first rows into equally many fields, more than one. */
static char guess_delimiter(const beginning_t *begin, char quote)
{
    static const char candidates[] = {',', ';', '\t', '|', ' '};

    for (size_t i = 0; i < sizeof(candidates); i++) {
        found_rows_t found;
        bool         is_good;

        find_rows(begin, &(ls_csv_marks_t){candidates[i], quote}, &found);
        is_good = found.num > 0 && found.fields[0] > 1;
        for (size_t row = 1; row < found.num; row++) {
            is_good &= (found.fields[row] == found.fields[0]);
        }
        if (is_good) {
            return candidates[i];
        }
    }
    return ',';
}

/* A header has no number in it, and some text. */
static bool looks_like_header(const ls_csv_batch_t *row)
{
    const ls_csv_missing_t missing  = ls_csv_convert_missing(NULL, 0);
    bool                   has_text = false;

    for (unsigned field = 0; field < row->num_fields; field++) {
        ls_csv_found_t found = {.type = LS_DATA_AUTO};

        ls_csv_convert_find(row, &missing, field, &found);
        if (found.type != LS_DATA_AUTO && found.type != LS_DATA_BYTES) {
            return false;
        }
        has_text |= (found.type == LS_DATA_BYTES);
    }
    return has_text;
}

/* A name that came before gets .1, .2, ... behind it.  `seen` has for each name the number that comes next.
 */
static ls_status_t make_unique(ls_table_t *seen, char *name, size_t room)
{
    const size_t length = strlen(name);
    uintptr_t    next   = (uintptr_t)ls_table_get(seen, name);
    ls_status_t  status = LS_OK;

    while (next != 0 && ls_table_get(seen, name) != NULL && status == LS_OK) {
        name[length] = '\0';
        status       = ls_table_put(seen, name, (void *)(next + 1));
        snprintf(name + length, room - length, ".%" PRIuPTR, next++);
    }
    return status == LS_OK ? ls_table_put(seen, name, (void *)(uintptr_t)1) : status;
}

/* The name in the header; its number if that is empty or there is no header. */
static ls_status_t name_field(const ls_csv_batch_t *row, bool has_header, unsigned field, ls_table_t *seen,
                              ls_csv_head_t *head)
{
    const size_t room   = ls_csv_text_length(row, 0, field) + NAME_ROOM;
    ls_status_t  status = ls_mem_alloc(room, "name of a column", (void **)&head->names[field]);

    if (status != LS_OK) {
        return status;
    }
    char *name = head->names[field]; /* zeroed */

    if (has_header) {
        (void)ls_csv_text_copy(row, 0, field, name);
    }
    if (name[0] == '\0') {
        snprintf(name, room, "%u", field);
    }
    return make_unique(seen, name, room);
}

static ls_status_t name_fields(const ls_csv_batch_t *row, bool has_header, ls_csv_head_t *head)
{
    ls_table_t  seen = {0};
    ls_status_t status =
        ls_mem_alloc(row->num_fields * sizeof(char *), "names of columns", (void **)&head->names);

    for (unsigned field = 0; field < row->num_fields && status == LS_OK; field++) {
        head->num_fields = field + 1;
        status           = name_field(row, has_header, field, &seen, head);
    }
    ls_table_destroy(&seen);
    return status;
}

static const ls_csv_file_t *first_with_text(const ls_csv_index_t *index)
{
    for (unsigned i = 0; i < index->num_files; i++) {
        if (index->files[i].file.bytes > index->files[i].begin) {
            return &index->files[i];
        }
    }
    return NULL;
}

/* As much of the file as its first row needs. */
static ls_status_t load_first_row(const ls_data_options_t *options, ls_csv_index_t *index, beginning_t *begin,
                                  found_rows_t *found)
{
    for (size_t room = LS_CSV_BUFFER_BYTES;; room *= 4) {
        const ls_status_t status = load(begin, room);

        if (status != LS_OK) {
            return status;
        }
        index->marks.quote = options->quote != 0 ? options->quote : '"';
        index->marks.delimiter =
            options->delimiter != 0 ? options->delimiter : guess_delimiter(begin, index->marks.quote);
        find_rows(begin, &index->marks, found);
        if (found->num > 0) {
            return LS_OK;
        }
        if (begin->is_whole || room >= LS_CSV_MAX_ROW_BYTES) {
            return ls_file_error(begin->csv->file.path, "row", 0, begin->csv->begin,
                                 begin->is_whole
                                     ? "there is no row, or it begins with a quote that is never closed"
                                     : "this row is longer than 64 MiB, or a quote in it is never closed");
        }
    }
}

static ls_status_t check_marks(const ls_csv_index_t *index)
{
    const char delimiter = index->marks.delimiter, quote = index->marks.quote;

    if (delimiter == '\n' || delimiter == '\r' || quote == '\n' || quote == '\r' || delimiter == quote) {
        return ls_error_set(LS_ERR_INVALID,
                            "delimiter and quote of a text table must differ, and end no line");
    }
    return LS_OK;
}

ls_status_t ls_csv_head_read(const ls_data_options_t *options, ls_csv_index_t *index, ls_csv_head_t *head_p)
{
    beginning_t   begin = {.csv = first_with_text(index), .scan = ls_csv_scan_get()};
    found_rows_t  found;
    ls_csv_head_t head   = {0};
    ls_status_t   status = LS_OK;

    if (begin.csv == NULL) {
        return ls_file_error(index->files[0].file.path, "", LS_FILE_NOWHERE, 0, "the file is empty");
    }
    status = load_first_row(options, index, &begin, &found);
    if (status == LS_OK) {
        status = check_marks(index);
    }
    if (status == LS_OK) {
        const ls_csv_batch_t row = {
            .data       = begin.data,
            .ends       = begin.ends + found.first_end,
            .num_fields = (unsigned)found.fields[0],
            .num_rows   = 1,
            .index      = index,
        };
        begin.ends[-1]        = UINT32_MAX;
        const bool has_header = options->header == LS_DATA_HEADER_YES ||
                                (options->header == LS_DATA_HEADER_AUTO && looks_like_header(&row));

        index->num_headers = has_header;
        status             = name_fields(&row, has_header, &head);
    }
    drop(&begin);
    if (status != LS_OK) {
        ls_csv_head_free(&head);
        return status;
    }
    *head_p = head;
    return LS_OK;
}

/* Loads a file's first row, whose text begins at *row_p; length 0 where the file has none. */
static ls_status_t load_header(const ls_csv_index_t *index, const ls_csv_file_t *csv, size_t room,
                               beginning_t *begin, size_t *from_p, size_t *length_p)
{
    found_rows_t found;

    begin->csv         = csv;
    begin->scan        = ls_csv_scan_get();
    ls_status_t status = load(begin, room);

    if (status != LS_OK) {
        return status;
    }
    find_rows(begin, &index->marks, &found);
    *from_p   = found.begin;
    *length_p = found.num == 0 ? 0 : begin->ends[found.first_end + found.fields[0] - 1] - found.begin;
    if (*length_p > 0 && begin->data[*from_p + *length_p - 1] == '\r') {
        (*length_p)--;
    }
    return LS_OK;
}

ls_status_t ls_csv_head_compare(const ls_data_part_t *part, const ls_csv_index_t *index)
{
    beginning_t          first = {0}, other = {0};
    size_t               first_from, first_length, from, length;
    const ls_csv_file_t *reference = first_with_text(index);
    ls_status_t          status    = LS_OK;

    if (index->num_headers == 0 || index->num_files == 1) {
        return LS_OK;
    }
    status = load_header(index, reference, LS_CSV_MAX_ROW_BYTES, &first, &first_from, &first_length);
    for (unsigned i = ls_part_rank(part); i < index->num_files && status == LS_OK; i += ls_part_ranks(part)) {
        const ls_csv_file_t *csv = &index->files[i];

        status =
            load_header(index, csv, first_from + first_length + LS_CSV_BUFFER_BYTES, &other, &from, &length);
        if (status == LS_OK && csv->num_lines > 0 &&
            (length != first_length || memcmp(other.data + from, first.data + first_from, length) != 0)) {
            status = ls_file_error(
                csv->file.path, "", LS_FILE_NOWHERE, csv->begin + from,
                "the header is not that of %s; files that are read together need the same columns",
                reference->file.path);
        }
    }
    drop(&first);
    drop(&other);
    return status;
}

unsigned ls_csv_head_field(const ls_csv_head_t *head, const char *name)
{
    char         *end;
    unsigned long number;

    for (unsigned i = 0; i < head->num_fields; i++) {
        if (strcmp(head->names[i], name) == 0) {
            return i;
        }
    }
    number = strtoul(name, &end, 10);
    return (*name >= '0' && *name <= '9' && *end == '\0' && number < head->num_fields) ? (unsigned)number
                                                                                       : head->num_fields;
}

void ls_csv_head_free(ls_csv_head_t *head)
{
    for (unsigned i = 0; i < head->num_fields; i++) {
        ls_mem_free(head->names[i]);
    }
    ls_mem_free(head->names);
    *head = (ls_csv_head_t){0};
}

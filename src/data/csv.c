/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text tables.  Opening: look at the beginning (csv_head.c), count rows, each rank in its own bytes
 * (csv_index.c), find the types in places spread over the data set.  Reading: csv_rows.c cuts, csv_convert.c
 * converts.
 */
#include <pthread.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "base/mem.h"
#include "data/csv_convert.h"
#include "data/csv_head.h"
#include "data/csv_rows.h"
#include "data/part.h"
#include "data/progress.h"
#include "data/reader.h"

#define SAMPLES           16  /* places where types are looked for, in a data set that is not small */
#define SAMPLE_ROWS       250 /* in each of them */
#define SMALL_BYTES       ((uint64_t)1024 * 1024) /* of a data set all of whose rows are looked at */
#define PROGRESS_ROWS     100000
#define SHORT_PIECE_BYTES ((uint64_t)16 * 1024)

struct ls_reader {
    const ls_data_options_t *options;
    ls_csv_index_t           index;
    ls_csv_head_t            head;
    ls_csv_missing_t         missing;
    ls_data_field_t         *fields;
    ls_data_info_t           info;
    pthread_mutex_t          lock;
    ls_csv_rows_t           *unused; /* windows; lock: lock */
};

/* ---- types -------------------------------------------------------------------------------------- */

static uint64_t total_bytes(const ls_csv_index_t *index)
{
    uint64_t total = 0;

    for (unsigned i = 0; i < index->num_files; i++) {
        total += index->files[i].file.bytes;
    }
    return total;
}

static ls_status_t look_at_rows(const struct ls_reader *reader, ls_csv_rows_t *rows, uint64_t first,
                                uint64_t count, ls_csv_found_t *found)
{
    ls_status_t status = ls_csv_rows_seek(rows, first);

    while (count > 0 && status == LS_OK) {
        ls_csv_batch_t batch;

        status = ls_csv_rows_next(rows, count, &batch);
        for (unsigned i = 0; i < reader->head.num_fields && status == LS_OK; i++) {
            ls_csv_convert_find(&batch, &reader->missing, i, &found[i]);
        }
        count -= status == LS_OK ? batch.num_rows : 0;
    }
    return status;
}

/* All rows of a small data set, otherwise some here and there: the same ones whatever the number of ranks. */
static ls_status_t find_types(const struct ls_reader *reader, ls_csv_found_t *found)
{
    const uint64_t num_rows = reader->index.num_rows;
    const bool     is_small = total_bytes(&reader->index) <= SMALL_BYTES || num_rows <= SAMPLES * SAMPLE_ROWS;
    ls_csv_rows_t *rows     = NULL;
    ls_status_t    status   = ls_csv_rows_create(&reader->index, reader->head.num_fields, &rows);

    if (is_small && status == LS_OK) {
        status = look_at_rows(reader, rows, 0, num_rows, found);
    }
    for (uint64_t i = 0; i < SAMPLES && !is_small && status == LS_OK; i++) {
        /* the last place is the end of the data set */
        const uint64_t first = (num_rows - SAMPLE_ROWS) / (SAMPLES - 1) * i;

        status =
            look_at_rows(reader, rows, i + 1 < SAMPLES ? first : num_rows - SAMPLE_ROWS, SAMPLE_ROWS, found);
    }
    ls_csv_rows_destroy(rows);
    return status;
}

/* options->types belong to options->columns, or to all fields. */
static ls_status_t take_given_types(const struct ls_reader *reader, ls_csv_found_t *found)
{
    const ls_data_options_t *options = reader->options;
    const char              *path    = reader->index.files[0].file.path;
    const unsigned           num = options->columns != NULL ? options->num_columns : reader->head.num_fields;

    if (options->types == NULL) {
        return LS_OK;
    }
    if (options->num_types != num) {
        return ls_file_error(path, "", LS_FILE_NOWHERE, LS_FILE_NOWHERE, "%u types are given for %u columns",
                             options->num_types, num);
    }
    for (unsigned i = 0; i < num; i++) {
        const unsigned field =
            options->columns != NULL ? ls_csv_head_field(&reader->head, options->columns[i]) : i;

        if (field == reader->head.num_fields) {
            return ls_file_error(path, "", LS_FILE_NOWHERE, LS_FILE_NOWHERE, "there is no column '%s'",
                                 options->columns[i]);
        }
        if (options->types[i] != LS_DATA_AUTO && !ls_csv_convert_can(options->types[i])) {
            return ls_file_error(path, "", LS_FILE_NOWHERE, LS_FILE_NOWHERE,
                                 "column '%s' cannot be read as %s from a text", reader->head.names[field],
                                 ls_data_type_name(options->types[i]));
        }
        if (options->types[i] != LS_DATA_AUTO) {
            found[field] = (ls_csv_found_t){.type = options->types[i]};
        }
    }
    return LS_OK;
}

static ls_data_type_t settled_type(const ls_csv_found_t *found)
{
    const bool is_float = found->type == LS_DATA_AUTO || (found->type == LS_DATA_INT64 && found->has_missing);

    return is_float ? LS_DATA_FLOAT64 : found->type;
}

static ls_status_t describe(struct ls_reader *reader)
{
    const unsigned  num   = reader->head.num_fields;
    ls_csv_found_t *found = NULL;
    ls_status_t     status =
        ls_mem_alloc(num * sizeof(*reader->fields), "columns of a text table", (void **)&reader->fields);

    if (status == LS_OK) {
        status = ls_mem_alloc(num * sizeof(*found), "types of a text table", (void **)&found);
    }
    for (unsigned i = 0; i < num && status == LS_OK; i++) {
        found[i].type = LS_DATA_AUTO;
    }
    if (status == LS_OK) {
        status = find_types(reader, found);
    }
    if (status == LS_OK) {
        status = take_given_types(reader, found);
    }
    for (unsigned i = 0; i < num && status == LS_OK; i++) {
        const ls_data_type_t type = settled_type(&found[i]);

        reader->fields[i] = (ls_data_field_t){.name      = reader->head.names[i],
                                              .type      = type,
                                              .row_bytes = ls_data_type_size(type),
                                              .num_rows  = reader->index.num_rows};
    }
    ls_mem_free(found);
    /* Where pieces are short, a row read alone costs little more than in a run. */
    const bool is_long = reader->index.piece_bytes > SHORT_PIECE_BYTES;

    reader->info =
        (ls_data_info_t){.format     = "csv",
                         .num_fields = num,
                         .fields     = reader->fields,
                         .chunk_rows = is_long ? reader->index.num_rows / reader->index.num_pieces + 1 : 1};
    return status;
}

/* ---- open and close ----------------------------------------------------------------------------- */

static void csv_close(ls_reader_h reader)
{
    while (reader->unused != NULL) {
        ls_csv_rows_t *rows = reader->unused;

        reader->unused = rows->next;
        ls_csv_rows_destroy(rows);
    }
    ls_csv_head_free(&reader->head);
    ls_csv_index_close(&reader->index);
    ls_mem_free(reader->fields);
    pthread_mutex_destroy(&reader->lock);
    ls_mem_free(reader);
}

static ls_status_t open_files(const ls_reader_params_t *params, struct ls_reader *reader)
{
    ls_status_t status = ls_csv_index_open(params->paths, params->num_paths, &reader->index);

    return status != LS_OK ? status : ls_csv_head_read(params->options, &reader->index, &reader->head);
}

static ls_status_t look_inside(struct ls_reader *reader)
{
    ls_status_t status = LS_OK;

    if (reader->index.num_rows == 0) {
        return ls_file_error(reader->index.files[0].file.path, "", LS_FILE_NOWHERE, LS_FILE_NOWHERE,
                             reader->index.num_headers > 0 ? "there is a header, but no row"
                                                           : "there is no row");
    }
    status = ls_csv_head_compare(&reader->options->part, &reader->index);
    return status != LS_OK ? status : describe(reader);
}

static ls_status_t csv_open(const ls_reader_params_t *params, ls_reader_h *reader_p)
{
    const ls_data_part_t *part   = &params->options->part;
    struct ls_reader     *reader = NULL;
    ls_status_t           status = ls_mem_alloc(sizeof(*reader), "reader of a text table", (void **)&reader);

    if (status == LS_OK) {
        reader->options = params->options;
        reader->missing = ls_csv_convert_missing(params->options->missing, params->options->num_missing);
        pthread_mutex_init(&reader->lock, NULL);
        status = open_files(params, reader);
    }
    status = ls_part_agree(part, status);
    if (status == LS_OK) {
        status = ls_csv_index_build(params->options, &reader->index);
    }
    if (status == LS_OK) {
        status = look_inside(reader);
    }
    if (status != LS_OK) {
        if (reader != NULL) {
            csv_close(reader);
        }
        return status;
    }
    *reader_p = reader;
    return LS_OK;
}

static const ls_data_info_t *csv_info(ls_reader_h reader)
{
    return &reader->info;
}

/* ---- reading ------------------------------------------------------------------------------------ */

/* A window that is not in use, if possible one that is at `row` already. */
static ls_status_t take_window(struct ls_reader *reader, uint64_t row, ls_csv_rows_t **rows_p)
{
    ls_csv_rows_t **link, *rows;

    pthread_mutex_lock(&reader->lock);
    link = &reader->unused;
    while (*link != NULL && (*link)->next_row != row) {
        link = &(*link)->next;
    }
    link = *link != NULL ? link : &reader->unused;
    rows = *link;
    if (rows != NULL) {
        *link = rows->next;
    }
    pthread_mutex_unlock(&reader->lock);
    if (rows == NULL) {
        return ls_csv_rows_create(&reader->index, reader->head.num_fields, rows_p);
    }
    *rows_p = rows;
    return LS_OK;
}

static void give_back(struct ls_reader *reader, ls_csv_rows_t *rows)
{
    pthread_mutex_lock(&reader->lock);
    rows->next     = reader->unused;
    reader->unused = rows;
    pthread_mutex_unlock(&reader->lock);
}

static ls_status_t convert_batch(struct ls_reader *reader, const ls_csv_batch_t *batch,
                                 ls_data_column_t *columns, unsigned num_columns, uint64_t done)
{
    ls_status_t status = LS_OK;

    for (unsigned i = 0; i < num_columns && status == LS_OK; i++) {
        const unsigned field = columns[i].field;

        status = ls_csv_convert(batch, &reader->missing, field, reader->head.names[field],
                                reader->fields[field].type, &columns[i], done);
    }
    return status;
}

static ls_status_t read_rows(struct ls_reader *reader, ls_csv_rows_t *rows, uint64_t count,
                             ls_data_column_t *columns, unsigned num_columns)
{
    ls_status_t status = LS_OK;
    uint64_t    told   = 0;

    for (uint64_t done = 0; done < count && status == LS_OK;) {
        const unsigned last_file = rows->file;
        ls_csv_batch_t batch;

        status = ls_csv_rows_next(rows, count - done, &batch);
        if (status == LS_OK && (rows->file != last_file || done == 0)) {
            status = ls_file_unchanged(&reader->index.files[rows->file].file);
        }
        if (status == LS_OK) {
            status = convert_batch(reader, &batch, columns, num_columns, done);
            done += batch.num_rows;
        }
        if (status == LS_OK && done - told >= PROGRESS_ROWS) {
            told = done;
            status =
                ls_progress_report(reader->options, reader->index.files[rows->file].file.path, done, count);
        }
    }
    return status == LS_OK ? ls_file_unchanged(&reader->index.files[rows->file].file) : status;
}

static ls_status_t csv_read(ls_reader_h reader, uint64_t first, uint64_t count, ls_data_column_t *columns,
                            unsigned num_columns)
{
    ls_csv_rows_t *rows = NULL;
    ls_status_t    status;

    if (count == 0) {
        return LS_OK;
    }
    status = take_window(reader, first, &rows);
    if (status != LS_OK) {
        return status;
    }
    status = ls_csv_rows_seek(rows, first);
    if (status == LS_OK) {
        status = read_rows(reader, rows, count, columns, num_columns);
    }
    give_back(reader, rows);
    return status;
}

/* ---- the table ---------------------------------------------------------------------------------- */

static bool ends_with(const char *name, const char *end)
{
    const size_t length = strlen(name), end_length = strlen(end);

    return length > end_length && strcasecmp(name + length - end_length, end) == 0;
}

/* By its name; or text whose first line has something like a delimiter in it. */
static bool csv_recognise(const ls_reader_head_t *head)
{
    bool is_cut = false, is_first_line = true;

    if (ends_with(head->name, ".csv") || ends_with(head->name, ".tsv") || ends_with(head->name, ".txt")) {
        return true;
    }
    for (size_t i = 0; i < head->num_bytes; i++) {
        const unsigned char byte = head->bytes[i];

        if (byte < ' ' && byte != '\t' && byte != '\n' && byte != '\r') {
            return false;
        }
        is_first_line &= (byte != '\n');
        is_cut |= is_first_line && (byte == ',' || byte == ';' || byte == '\t' || byte == '|');
    }
    return is_cut;
}

const ls_reader_ops_t ls_reader_csv = {
    .name        = "csv",
    .title       = "CSV and other tables of text",
    .takes_many  = true,
    .is_parallel = true,
    .recognise   = csv_recognise,
    .open        = csv_open,
    .info        = csv_info,
    .read        = csv_read,
    .close       = csv_close,
};

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text tables.  Opening: look at the beginning (csv_head.c), count rows, each rank in its own bytes
 * (csv_index.c), find the types in places spread over the data set (csv_types.c).  Reading: csv_rows.c cuts,
 * csv_convert.c converts.  Where all rows are wanted at once, they are read while they are counted
 * (csv_ahead.c).
 */
#include <pthread.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "base/mem.h"
#include "data/csv_ahead.h"
#include "data/csv_convert.h"
#include "data/csv_rows.h"
#include "data/csv_types.h"
#include "data/part.h"
#include "data/progress.h"
#include "data/reader.h"

#define PROGRESS_ROWS     100000
#define SHORT_PIECE_BYTES ((uint64_t)16 * 1024)

struct ls_reader {
    ls_csv_table_t   table;
    ls_data_type_t  *types;
    ls_data_field_t *fields;
    ls_data_info_t   info;
    uint64_t         ahead_first, ahead_count; /* rows that the caller has already */
    pthread_mutex_t  lock;
    ls_csv_rows_t   *unused; /* windows, one at least while the reader is opened; lock: lock */
};

static ls_status_t describe(struct ls_reader *reader)
{
    const ls_csv_head_t  *head  = &reader->table.head;
    const ls_csv_index_t *index = &reader->table.index;
    const unsigned        num   = head->num_fields;
    ls_status_t           status =
        ls_mem_alloc(num * sizeof(*reader->fields), "columns of a text table", (void **)&reader->fields);

    if (status == LS_OK) {
        status =
            ls_mem_alloc(num * sizeof(*reader->types), "columns of a text table", (void **)&reader->types);
    }
    if (status == LS_OK) {
        status = ls_csv_types_find(&reader->table, reader->unused, reader->types);
    }
    for (unsigned i = 0; i < num && status == LS_OK; i++) {
        reader->fields[i] = (ls_data_field_t){.name      = head->names[i],
                                              .type      = reader->types[i],
                                              .row_bytes = ls_data_type_size(reader->types[i]),
                                              .num_rows  = index->num_rows};
    }
    /* Where pieces are short, a row read alone costs little more than in a run. */
    const bool is_long = index->piece_bytes > SHORT_PIECE_BYTES;

    reader->info = (ls_data_info_t){.format     = "csv",
                                    .num_fields = num,
                                    .fields     = reader->fields,
                                    .chunk_rows = is_long ? index->num_rows / index->num_pieces + 1 : 1};
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
    ls_csv_head_free(&reader->table.head);
    ls_csv_index_close(&reader->table.index);
    ls_mem_free(reader->fields);
    ls_mem_free(reader->types);
    pthread_mutex_destroy(&reader->lock);
    ls_mem_free(reader);
}

static ls_status_t open_files(const ls_reader_params_t *params, struct ls_reader *reader,
                              ls_csv_ahead_t **ahead_p)
{
    ls_csv_table_t *table  = &reader->table;
    ls_status_t     status = ls_csv_index_open(params->paths, params->num_paths, &table->index);

    if (status == LS_OK) {
        status = ls_csv_head_read(params->options, &table->index, &table->head);
    }
    if (status == LS_OK) {
        status = ls_csv_rows_create(&table->index, table->head.num_fields, &reader->unused);
    }
    return status == LS_OK ? ls_csv_ahead_create(table, ahead_p) : status;
}

/* Which row is where; collective. */
static ls_status_t find_rows(struct ls_reader *reader, ls_csv_ahead_t *ahead)
{
    ls_csv_table_t   *table  = &reader->table;
    const ls_status_t status = ahead != NULL ? ls_csv_ahead_read(ahead, table, reader->unused) : LS_OK;

    return status == LS_OK && table->index.pieces == NULL ? ls_csv_index_build(table->options, &table->index)
                                                          : status;
}

static ls_status_t look_inside(struct ls_reader *reader)
{
    const ls_csv_index_t *index  = &reader->table.index;
    ls_status_t           status = LS_OK;

    if (index->num_rows == 0) {
        return ls_file_error(index->files[0].file.path, "", LS_FILE_NOWHERE, LS_FILE_NOWHERE,
                             index->num_headers > 0 ? "there is a header, but no row" : "there is no row");
    }
    status = ls_csv_head_compare(&reader->table.options->part, index);
    return status != LS_OK ? status : describe(reader);
}

static ls_status_t csv_open(const ls_reader_params_t *params, ls_reader_h *reader_p)
{
    const ls_data_options_t *options = params->options;
    ls_csv_ahead_t          *ahead   = NULL;
    struct ls_reader        *reader  = NULL;
    ls_status_t status = ls_mem_alloc(sizeof(*reader), "reader of a text table", (void **)&reader);

    if (status != LS_OK) {
        return ls_part_agree(&options->part, status);
    }
    reader->table.options = options;
    reader->table.missing = ls_csv_convert_missing(options->missing, options->num_missing);
    pthread_mutex_init(&reader->lock, NULL);
    status = ls_csv_index_agree(&options->part, &reader->table.index, open_files(params, reader, &ahead));
    if (status == LS_OK) {
        status = find_rows(reader, ahead);
    }
    if (status == LS_OK) {
        status = look_inside(reader);
    }
    if (status == LS_OK && ahead != NULL) {
        reader->ahead_count = ls_csv_ahead_rows(ahead, reader->types, &reader->ahead_first);
    }
    ls_csv_ahead_destroy(ahead);
    if (status != LS_OK) {
        csv_close(reader);
        return status;
    }
    *reader_p = reader;
    return LS_OK;
}

static uint64_t csv_ahead(ls_reader_h reader, uint64_t *first_p)
{
    *first_p = reader->ahead_first;
    return reader->ahead_count;
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
        return ls_csv_rows_create(&reader->table.index, reader->table.head.num_fields, rows_p);
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

        status = ls_csv_convert(batch, &reader->table.missing, field, reader->table.head.names[field],
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
            status = ls_file_unchanged(&reader->table.index.files[rows->file].file);
        }
        if (status == LS_OK) {
            status = convert_batch(reader, &batch, columns, num_columns, done);
            done += batch.num_rows;
        }
        if (status == LS_OK && done - told >= PROGRESS_ROWS) {
            told   = done;
            status = ls_progress_report(reader->table.options,
                                        reader->table.index.files[rows->file].file.path, done, count);
        }
    }
    return status == LS_OK ? ls_file_unchanged(&reader->table.index.files[rows->file].file) : status;
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
    .ahead       = csv_ahead,
    .read        = csv_read,
    .close       = csv_close,
};

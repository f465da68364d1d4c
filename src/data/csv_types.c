/* SPDX-License-Identifier: Apache-2.0 */
#include "data/csv_types.h"

#include "base/error.h"
#include "base/mem.h"

#define SAMPLES     16  /* places where types are looked for, in a data set that is not small */
#define SAMPLE_ROWS 250 /* in each of them */
#define SMALL_BYTES ((uint64_t)1024 * 1024) /* of a data set all of whose rows are looked at */
#define GUESS_BYTES 2048                    /* of each place, for a guess */
#define FAR_BYTES   ((uint64_t)64 * 1024)   /* from a place to the next line, and behind a header */

uint64_t ls_csv_types_bytes(const ls_csv_index_t *index)
{
    uint64_t total = 0;

    for (unsigned i = 0; i < index->num_files; i++) {
        total += index->files[i].file.bytes;
    }
    return total;
}

static void look_at(const ls_csv_table_t *table, const ls_csv_batch_t *batch, ls_csv_found_t *found)
{
    for (unsigned i = 0; i < table->head.num_fields; i++) {
        ls_csv_convert_find(batch, &table->missing, i, &found[i]);
    }
}

/* ---- rows by their number ----------------------------------------------------------------------- */

static ls_status_t look_at_rows(const ls_csv_table_t *table, ls_csv_rows_t *rows, uint64_t first,
                                uint64_t count, ls_csv_found_t *found)
{
    ls_status_t status = ls_csv_rows_seek(rows, first);

    while (count > 0 && status == LS_OK) {
        ls_csv_batch_t batch;

        status = ls_csv_rows_next(rows, count, &batch);
        if (status == LS_OK) {
            look_at(table, &batch, found);
            count -= batch.num_rows;
        }
    }
    return status;
}

/* All rows of a small data set, otherwise some here and there. */
static ls_status_t look_in_index(const ls_csv_table_t *table, ls_csv_rows_t *rows, ls_csv_found_t *found)
{
    const uint64_t num_rows = table->index.num_rows;
    const bool     is_small =
        ls_csv_types_bytes(&table->index) <= SMALL_BYTES || num_rows <= SAMPLES * SAMPLE_ROWS;
    ls_status_t status = LS_OK;

    if (is_small) {
        return look_at_rows(table, rows, 0, num_rows, found);
    }
    for (uint64_t i = 0; i < SAMPLES && status == LS_OK; i++) {
        /* the last place is the end of the data set */
        const uint64_t first = (num_rows - SAMPLE_ROWS) / (SAMPLES - 1) * i;

        status =
            look_at_rows(table, rows, i + 1 < SAMPLES ? first : num_rows - SAMPLE_ROWS, SAMPLE_ROWS, found);
    }
    return status;
}

/* ---- rows by their place ------------------------------------------------------------------------ */

/* Adds some rows from the first line on that begins behind `from`, and their length. */
static ls_status_t look_at_bytes(const ls_csv_table_t *table, ls_csv_rows_t *rows, unsigned file,
                                 uint64_t from, ls_csv_found_t *found, uint64_t sums[2])
{
    const ls_csv_file_t *csv = &table->index.files[file];
    const uint64_t       end = csv->file.bytes;
    ls_csv_batch_t       batch;
    uint64_t             line, limit;
    ls_status_t          status =
        ls_csv_rows_line(rows, file, from, from + FAR_BYTES < end ? from + FAR_BYTES : end, &line);

    if (status != LS_OK) {
        return status;
    }
    limit = line + GUESS_BYTES;
    ls_csv_rows_sweep(rows, file, line);
    if (line == csv->begin && table->index.num_headers > 0) {
        limit  = line + FAR_BYTES;
        status = ls_csv_rows_sweep_next(rows, limit, 1, &batch);
    }
    if (status == LS_OK) {
        status = ls_csv_rows_sweep_next(rows, limit, UINT64_MAX, &batch);
    }
    if (status == LS_OK && batch.num_rows > 0) {
        look_at(table, &batch, found);
        sums[0] += batch.num_rows;
        sums[1] += batch.ends[batch.num_rows * batch.num_fields - 1] - batch.ends[-1];
    }
    return status;
}

static ls_status_t look_in_places(const ls_csv_table_t *table, ls_csv_rows_t *rows, ls_csv_found_t *found,
                                  double *row_bytes_p)
{
    const uint64_t total   = ls_csv_types_bytes(&table->index);
    uint64_t       before  = 0; /* bytes of the files before this one */
    uint64_t       sums[2] = {0, 0};
    unsigned       file    = 0;
    ls_status_t    status  = LS_OK;

    for (uint64_t i = 0; i < SAMPLES && status == LS_OK; i++) {
        const uint64_t place =
            i + 1 < SAMPLES ? total / (SAMPLES - 1) * i : total - total / (SAMPLES * SAMPLES) - 1;

        while (place >= before + table->index.files[file].file.bytes) {
            before += table->index.files[file++].file.bytes;
        }
        const uint64_t begin = table->index.files[file].begin, from = place - before;

        status = look_at_bytes(table, rows, file, from > begin ? from : begin, found, sums);
        /* a place between quotes may look wrong */
        status = status == LS_ERR_INVALID ? LS_OK : status;
    }
    if (status == LS_OK && sums[0] == 0) {
        return ls_error_set(LS_ERR_INVALID, "rows are longer than what is looked at for a guess");
    }
    *row_bytes_p = (double)sums[1] / (double)sums[0];
    return status;
}

/* ---- both --------------------------------------------------------------------------------------- */

/* options->types belong to options->columns, or to all fields. */
static ls_status_t take_given_types(const ls_csv_table_t *table, ls_csv_found_t *found)
{
    const ls_data_options_t *options = table->options;
    const char              *path    = table->index.files[0].file.path;
    const unsigned           num = options->columns != NULL ? options->num_columns : table->head.num_fields;

    if (options->types == NULL) {
        return LS_OK;
    }
    if (options->num_types != num) {
        return ls_file_error(path, "", LS_FILE_NOWHERE, LS_FILE_NOWHERE, "%u types are given for %u columns",
                             options->num_types, num);
    }
    for (unsigned i = 0; i < num; i++) {
        const unsigned field =
            options->columns != NULL ? ls_csv_head_field(&table->head, options->columns[i]) : i;

        if (field == table->head.num_fields) {
            return ls_file_error(path, "", LS_FILE_NOWHERE, LS_FILE_NOWHERE, "there is no column '%s'",
                                 options->columns[i]);
        }
        if (options->types[i] != LS_DATA_AUTO && !ls_csv_convert_can(options->types[i])) {
            return ls_file_error(path, "", LS_FILE_NOWHERE, LS_FILE_NOWHERE,
                                 "column '%s' cannot be read as %s from a text", table->head.names[field],
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

/* row_bytes_p: by their place; NULL: by their number. */
static ls_status_t find(const ls_csv_table_t *table, ls_csv_rows_t *rows, double *row_bytes_p,
                        ls_data_type_t *types)
{
    const unsigned  num    = table->head.num_fields;
    ls_csv_found_t *found  = NULL;
    ls_status_t     status = ls_mem_alloc(num * sizeof(*found), "types of a text table", (void **)&found);

    if (status != LS_OK) {
        return status;
    }
    for (unsigned i = 0; i < num; i++) {
        found[i].type = LS_DATA_AUTO;
    }
    status = row_bytes_p != NULL ? look_in_places(table, rows, found, row_bytes_p)
                                 : look_in_index(table, rows, found);
    if (status == LS_OK) {
        status = take_given_types(table, found);
    }
    for (unsigned i = 0; i < num && status == LS_OK; i++) {
        types[i] = settled_type(&found[i]);
    }
    ls_mem_free(found);
    return status;
}

ls_status_t ls_csv_types_find(const ls_csv_table_t *table, ls_csv_rows_t *rows, ls_data_type_t *types)
{
    return find(table, rows, NULL, types);
}

ls_status_t ls_csv_types_guess(const ls_csv_table_t *table, ls_csv_rows_t *rows, ls_data_type_t *types,
                               double *row_bytes_p)
{
    return find(table, rows, row_bytes_p, types);
}

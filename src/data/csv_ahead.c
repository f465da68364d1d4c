/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Words.  A span is what a rank has of all bytes of the data set, a part is what lies in one file of it.  A
 * line begins after a line feed that is not between quotes, or with the file.
 *
 *     file   a,b\n1,2\n3,4\n5,|6\n7,8\n9,10\n        2 ranks: | is the border of their parts
 *            rank 0: up to the row 5,6                rank 1: from 7,8 on
 *
 * A rank takes the rows that begin in its parts.  Whether the first byte of a part is between quotes is not
 * known: it assumes not, and takes the first line feed for the end of a line.  Then the ranks tell each other
 * where they began and ended.  If each begins where the one before ended, all began with a row, by induction
 * from the beginning of the file, where nothing needs to be assumed.  Otherwise, or if anything is wrong in
 * the text, nothing of it counts, and csv_index.c goes over the files once more, carefully.
 *
 * On the way each rank notes the places of some rows, which are the index.
 */
#include "data/csv_ahead.h"

#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "data/part.h"
#include "data/progress.h"

#define MOST_PLACES 512 /* in a span */
#define NOWHERE     UINT64_MAX
#define TEXT_BYTES \
    ((size_t)256 * 1024) /* of a column before the caller takes them: they are still in the cache */
#define PROGRESS_BYTES ((uint64_t)16 * 1024 * 1024)
#define MORE_ROWS(_n)  ((_n) + (_n) / 32 + 1024) /* than expected */

/* The rows of a rank that begin in bytes [from, to) of a file. */
typedef struct part {
    uint64_t from, to;
    uint64_t first, end; /* where the first line begins, and that after the last row; NOWHERE: it failed */
    uint64_t num_lines;  /* rows with the header */
} part_t;

/* Where a row begins. */
typedef struct place {
    uint64_t offset;
    uint32_t file, is_used;
    uint64_t lines_before; /* in the part */
} place_t;

struct ls_csv_ahead {
    ls_data_type_t   *types;  /* of all fields of the file */
    unsigned         *chosen; /* fields of the file */
    ls_data_field_t  *fields; /* as the caller sees them */
    ls_data_column_t *columns;
    unsigned          num_columns;
    uint64_t          room, done, taken; /* rows: that fit, converted, whose texts the caller has */
    void             *mine, *all;        /* messages: the parts of all files, then the places */
    size_t            message_bytes;
    place_t          *places; /* in `mine` */
    size_t            num_places, num_windows, windows_per_place;
    uint64_t          first, count; /* the result */
};

/* ---- making it ---------------------------------------------------------------------------------- */

void ls_csv_ahead_destroy(ls_csv_ahead_t *ahead)
{
    if (ahead == NULL) {
        return;
    }
    for (unsigned i = 0; i < ahead->num_columns && ahead->columns != NULL; i++) {
        if (ahead->fields[i].type == LS_DATA_BYTES) {
            ls_data_column_clear(&ahead->columns[i]);
        }
    }
    ls_mem_free(ahead->types);
    ls_mem_free(ahead->chosen);
    ls_mem_free(ahead->fields);
    ls_mem_free(ahead->columns);
    ls_mem_free(ahead->mine);
    ls_mem_free(ahead->all);
    ls_mem_free(ahead);
}

/* Are this rank's rows those of its bytes? */
static bool is_wanted(const ls_csv_table_t *table)
{
    const ls_data_part_t *part = &table->options->part;

    return table->options->ahead != NULL && ls_part_ranks(part) == part->size &&
           ls_csv_types_bytes(&table->index) > 0;
}

ls_status_t ls_csv_ahead_create(const ls_csv_table_t *table, ls_csv_ahead_t **ahead_p)
{
    const unsigned num =
        table->options->columns != NULL ? table->options->num_columns : table->head.num_fields;
    const size_t    parts_bytes = table->index.num_files * sizeof(part_t);
    ls_csv_ahead_t *ahead       = NULL;
    ls_status_t     status;

    *ahead_p = NULL;
    if (!is_wanted(table)) {
        return LS_OK;
    }
    status = ls_mem_alloc(sizeof(*ahead), "reading ahead", (void **)&ahead);
    if (status != LS_OK) {
        return status;
    }
    ahead->num_columns   = num;
    ahead->message_bytes = parts_bytes + MOST_PLACES * sizeof(place_t);
    const struct {
        size_t bytes;
        void **mem_p;
    } needed[] = {
        {table->head.num_fields * sizeof(*ahead->types), (void **)&ahead->types},
        {num * sizeof(*ahead->chosen), (void **)&ahead->chosen},
        {num * sizeof(*ahead->fields), (void **)&ahead->fields},
        {num * sizeof(*ahead->columns), (void **)&ahead->columns},
        {ahead->message_bytes, &ahead->mine},
        {ahead->message_bytes * ls_part_ranks(&table->options->part), &ahead->all},
    };

    for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]) && status == LS_OK; i++) {
        status = ls_mem_alloc(needed[i].bytes, "reading ahead", needed[i].mem_p);
    }
    if (status != LS_OK) {
        ls_csv_ahead_destroy(ahead);
        return status;
    }
    ahead->places            = (place_t *)((char *)ahead->mine + parts_bytes);
    ahead->windows_per_place = 1;
    *ahead_p                 = ahead;
    return LS_OK;
}

/* ---- the caller's memory ------------------------------------------------------------------------ */

static ls_status_t choose_columns(ls_csv_ahead_t *ahead, const ls_csv_table_t *table)
{
    for (unsigned i = 0; i < ahead->num_columns; i++) {
        const char *const *names = table->options->columns;
        const unsigned     field = names != NULL ? ls_csv_head_field(&table->head, names[i]) : i;

        if (field == table->head.num_fields) {
            return LS_ERR_INVALID; /* who opens the file says so */
        }
        ahead->chosen[i]        = field;
        ahead->fields[i]        = (ls_data_field_t){.name      = table->head.names[field],
                                                    .type      = ahead->types[field],
                                                    .row_bytes = ls_data_type_size(ahead->types[field])};
        ahead->columns[i].field = i;
    }
    return LS_OK;
}

static ls_status_t make_room(ls_csv_ahead_t *ahead, const ls_data_ahead_t *to, uint64_t rows)
{
    ahead->room = rows;
    return to->room(to->arg, ahead->fields, ahead->num_columns, rows, ahead->columns);
}

/* The caller takes the texts that it has not yet. */
static ls_status_t hand_over(ls_csv_ahead_t *ahead, const ls_data_ahead_t *to)
{
    const uint64_t first = ahead->taken;

    ahead->taken = ahead->done;
    if (first == ahead->done) {
        return LS_OK;
    }
    const ls_status_t status = to->texts(to->arg, first, ahead->done - first, ahead->columns);

    for (unsigned i = 0; i < ahead->num_columns; i++) {
        ahead->columns[i].num_rows = 0;
    }
    return status;
}

static ls_status_t convert(ls_csv_ahead_t *ahead, const ls_csv_table_t *table, const ls_csv_batch_t *batch)
{
    const ls_data_ahead_t *to      = table->options->ahead;
    ls_status_t            status  = LS_OK;
    bool                   is_full = false, has_texts = false;

    if (ahead->done + batch->num_rows > ahead->room) {
        status = make_room(ahead, to, MORE_ROWS((ahead->done + batch->num_rows) * 3 / 2));
    }
    for (unsigned i = 0; i < ahead->num_columns && status == LS_OK; i++) {
        ls_data_column_t *column = &ahead->columns[i];

        status = ls_csv_convert(batch, &table->missing, ahead->chosen[i], ahead->fields[i].name,
                                ahead->fields[i].type, column, ahead->done);
        if (status == LS_OK && ahead->fields[i].type == LS_DATA_BYTES) {
            has_texts = true;
            is_full |= column->offsets[column->num_rows] >= TEXT_BYTES;
        }
    }
    ahead->done += status == LS_OK ? batch->num_rows : 0;
    ahead->taken = has_texts ? ahead->taken : ahead->done;
    return status == LS_OK && is_full ? hand_over(ahead, to) : status;
}

/* ---- this rank's span --------------------------------------------------------------------------- */

/* When there are too many places, every other one is enough. */
static void note_place(ls_csv_ahead_t *ahead, unsigned file, uint64_t offset, uint64_t lines_before)
{
    if (ahead->num_windows++ % ahead->windows_per_place != 0) {
        return;
    }
    if (ahead->num_places == MOST_PLACES) {
        for (size_t i = 0; i < MOST_PLACES / 2; i++) {
            ahead->places[i] = ahead->places[2 * i];
        }
        memset(ahead->places + MOST_PLACES / 2, 0, MOST_PLACES / 2 * sizeof(place_t));
        ahead->num_places = MOST_PLACES / 2;
        ahead->windows_per_place *= 2;
    }
    ahead->places[ahead->num_places++] =
        (place_t){.offset = offset, .file = file, .is_used = 1, .lines_before = lines_before};
}

static ls_status_t read_part(ls_csv_ahead_t *ahead, const ls_csv_table_t *table, ls_csv_rows_t *rows,
                             unsigned file, part_t *part)
{
    const ls_csv_file_t *csv    = &table->index.files[file];
    ls_csv_batch_t       batch  = {.num_rows = 1};
    uint64_t             window = NOWHERE, reported = part->from;
    ls_status_t          status = ls_csv_rows_line(rows, file, part->from, part->to, &part->first);

    if (status != LS_OK) {
        return status;
    }
    ls_csv_rows_sweep(rows, file, part->first);
    if (part->first == csv->begin && table->index.num_headers > 0) {
        status = ls_csv_rows_sweep_next(rows, part->to, 1, &batch);
        window = rows->offset;
    }
    while (status == LS_OK && batch.num_rows > 0) {
        status = ls_csv_rows_sweep_next(rows, part->to, UINT64_MAX, &batch);
        if (status != LS_OK || batch.num_rows == 0) {
            break;
        }
        if (rows->offset != window) {
            window = rows->offset;
            note_place(ahead, file, window, batch.first_row);
        }
        status = convert(ahead, table, &batch);
        if (status == LS_OK && window - reported >= PROGRESS_BYTES) {
            reported = window;
            status   = ls_progress_report(table->options, csv->file.path, window - part->from,
                                          part->to - part->from);
        }
    }
    part->num_lines = rows->next_row;
    part->end       = rows->offset < csv->file.bytes ? rows->offset : csv->file.bytes;
    return status != LS_OK ? status : ls_file_unchanged(&csv->file);
}

/* What lies of file `file`, whose first byte is number `before` of all, in bytes [first, first + count). */
static part_t part_in(const ls_csv_file_t *csv, uint64_t before, uint64_t first, uint64_t count)
{
    const uint64_t bytes = csv->file.bytes;
    uint64_t       from  = first > before ? first - before : 0,
             to          = first + count > before ? first + count - before : 0;

    from = from < bytes ? from : bytes;
    to   = to < bytes ? to : bytes;
    return (part_t){.from = from > csv->begin ? from : csv->begin, .to = to > csv->begin ? to : csv->begin};
}

static ls_status_t read_span(ls_csv_ahead_t *ahead, const ls_csv_table_t *table, ls_csv_rows_t *rows)
{
    const ls_data_part_t *who   = &table->options->part;
    part_t               *parts = ahead->mine;
    uint64_t              first, count, before = 0;
    double                row_bytes;
    ls_status_t           status = ls_csv_types_guess(table, rows, ahead->types, &row_bytes);

    if (status == LS_OK) {
        status = choose_columns(ahead, table);
    }
    ls_data_block(ls_csv_types_bytes(&table->index), ls_part_ranks(who), ls_part_rank(who), &first, &count);
    if (status == LS_OK) {
        status = make_room(ahead, table->options->ahead, MORE_ROWS((uint64_t)((double)count / row_bytes)));
    }
    for (unsigned i = 0; i < table->index.num_files && status == LS_OK; i++) {
        const ls_csv_file_t *csv = &table->index.files[i];

        parts[i] = part_in(csv, before, first, count);
        before += csv->file.bytes;
        parts[i].first = parts[i].end = parts[i].to;
        if (parts[i].from < parts[i].to) {
            status = read_part(ahead, table, rows, i, &parts[i]);
        }
    }
    return status == LS_OK ? hand_over(ahead, table->options->ahead) : status;
}

/* ---- what all ranks know afterwards -------------------------------------------------------------- */

static const part_t *part_of(const ls_csv_ahead_t *ahead, unsigned rank, unsigned file)
{
    return (const part_t *)((const char *)ahead->all + rank * ahead->message_bytes) + file;
}

/* Does each part begin where the one before ended? */
static bool is_one_chain(const ls_csv_ahead_t *ahead, const ls_csv_index_t *index, unsigned ranks)
{
    for (unsigned file = 0; file < index->num_files; file++) {
        uint64_t at = index->files[file].begin;

        for (unsigned rank = 0; rank < ranks; rank++) {
            const part_t *part        = part_of(ahead, rank, file);
            const bool    is_expected = at < part->to;

            if (part->end == NOWHERE || (is_expected ? part->first != at : part->num_lines > 0)) {
                return false;
            }
            at = is_expected ? part->end : at;
        }
        if (at != index->files[file].file.bytes) {
            return false;
        }
    }
    return true;
}

/* The pieces of a part: where it begins, and its places. */
static void add_pieces(const ls_csv_ahead_t *ahead, unsigned rank, unsigned file, uint64_t lines,
                       ls_csv_index_t *index)
{
    const part_t  *part   = part_of(ahead, rank, file);
    const place_t *places = (const place_t *)part_of(ahead, rank, index->num_files);

    index->pieces[index->num_pieces++] =
        (ls_csv_piece_t){.rows_before = lines, .offset = part->first & INT64_MAX};
    for (size_t i = 0; i < MOST_PLACES; i++) {
        if (places[i].is_used && places[i].file == file && places[i].lines_before > 0) {
            index->pieces[index->num_pieces++] = (ls_csv_piece_t){
                .rows_before = lines + places[i].lines_before, .offset = places[i].offset & INT64_MAX};
        }
    }
}

static ls_status_t make_index(const ls_csv_ahead_t *ahead, unsigned ranks, ls_csv_index_t *index)
{
    const size_t most = (size_t)ranks * (MOST_PLACES + index->num_files);
    uint64_t     rows = 0;
    ls_status_t  status =
        ls_mem_alloc(most * sizeof(*index->pieces), "index of a text table", (void **)&index->pieces);

    if (status != LS_OK) {
        return status;
    }
    for (unsigned file = 0; file < index->num_files; file++) {
        ls_csv_file_t *csv   = &index->files[file];
        uint64_t       lines = 0;

        csv->first_piece = index->num_pieces;
        for (unsigned rank = 0; rank < ranks; rank++) {
            if (part_of(ahead, rank, file)->num_lines > 0) {
                add_pieces(ahead, rank, file, lines, index);
            }
            lines += part_of(ahead, rank, file)->num_lines;
        }
        csv->num_pieces = index->num_pieces - csv->first_piece;
        csv->num_lines  = lines;
        csv->first_row  = rows;
        rows += lines > index->num_headers ? lines - index->num_headers : 0;
    }
    index->num_rows    = rows;
    index->piece_bytes = LS_CSV_BUFFER_BYTES;
    return LS_OK;
}

/* The first row of the rank's span. */
static uint64_t first_row(const ls_csv_ahead_t *ahead, const ls_csv_index_t *index, unsigned rank)
{
    uint64_t row = 0;

    for (unsigned before = 0; before < rank; before++) {
        for (unsigned file = 0; file < index->num_files; file++) {
            const part_t *part = part_of(ahead, before, file);

            row += part->num_lines;
            row -= part->num_lines > 0 && part->first == index->files[file].begin ? index->num_headers : 0;
        }
    }
    return row;
}

ls_status_t ls_csv_ahead_read(ls_csv_ahead_t *ahead, ls_csv_table_t *table, ls_csv_rows_t *rows)
{
    const ls_data_part_t *who    = &table->options->part;
    const unsigned        ranks  = ls_part_ranks(who);
    part_t               *parts  = ahead->mine;
    ls_status_t           status = read_span(ahead, table, rows);

    if (status != LS_OK) {
        parts[0].end = NOWHERE;
    }
    if (status == LS_ERR_STOPPED && ranks == 1) {
        return status;
    }
    status = ls_part_allgather(who, ahead->mine, ahead->message_bytes, ahead->all);
    if (status != LS_OK || !is_one_chain(ahead, &table->index, ranks)) {
        return status;
    }
    status = make_index(ahead, ranks, &table->index);
    if (status == LS_OK) {
        ahead->first = first_row(ahead, &table->index, ls_part_rank(who));
        ahead->count = ahead->done;
    }
    return status;
}

uint64_t ls_csv_ahead_rows(const ls_csv_ahead_t *ahead, const ls_data_type_t *types, uint64_t *first_p)
{
    for (unsigned i = 0; i < ahead->num_columns && ahead->count > 0; i++) {
        if (types[ahead->chosen[i]] != ahead->fields[i].type) {
            return 0;
        }
    }
    *first_p = ahead->first;
    return ahead->count;
}

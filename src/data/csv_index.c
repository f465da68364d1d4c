/* SPDX-License-Identifier: Apache-2.0 */
#include "data/csv_index.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "data/part.h"
#include "data/progress.h"

/* Pieces are as short as an index of 2 MiB allows: what a row costs that is read alone is the length of a
 * piece. */
#define MIN_PIECE_BYTES  64 /* of a file with few rows, so that all ranks have some */
#define GOOD_PIECE_BYTES 2048
#define GOOD_PIECES      64
#define MAX_PIECES       131072

#define PROGRESS_BYTES ((uint64_t)16 * 1024 * 1024)

/* What a rank tells about a piece. */
typedef struct told {
    uint32_t rows[2];
    uint32_t is_odd;
} told_t;

/* What it found wrong, until the state in which the piece begins is known; places in the file. */
typedef struct wrong {
    uint64_t bad_quote[2];
} wrong_t;

typedef struct counting {
    ls_csv_index_t          *index;
    const ls_data_options_t *options;
    const ls_csv_scan_ops_t *scan;
    size_t                   first, num; /* this rank's pieces */
    told_t                  *told;       /* of these */
    wrong_t                 *wrong;
    char                    *buffer;
} counting_t;

/* ---- opening ------------------------------------------------------------------------------------ */

static ls_status_t look_at_mark(ls_csv_file_t *csv)
{
    unsigned char     head[3] = {0};
    const size_t      bytes   = csv->file.bytes < 3 ? csv->file.bytes : 3;
    const ls_status_t status  = ls_file_read(&csv->file, 0, bytes, head);

    if (status != LS_OK) {
        return status;
    }
    if ((head[0] == 0xff && head[1] == 0xfe) || (head[0] == 0xfe && head[1] == 0xff)) {
        return ls_file_error(csv->file.path, "", LS_FILE_NOWHERE, 0,
                             "the text is UTF-16; convert it to UTF-8 (iconv -f UTF-16 -t UTF-8)");
    }
    csv->begin = (bytes == 3 && memcmp(head, "\xef\xbb\xbf", 3) == 0) ? 3 : 0;
    return LS_OK;
}

ls_status_t ls_csv_index_open(const char *const *paths, unsigned num_paths, ls_csv_index_t *index)
{
    ls_status_t status =
        ls_mem_alloc(num_paths * sizeof(*index->files), "files of a text table", (void **)&index->files);

    for (unsigned i = 0; i < num_paths && status == LS_OK; i++) {
        status = ls_file_open(paths[i], &index->files[i].file);
        if (status == LS_OK) {
            index->num_files++;
            status = look_at_mark(&index->files[i]);
        }
    }
    return status;
}

void ls_csv_index_close(ls_csv_index_t *index)
{
    for (unsigned i = 0; i < index->num_files; i++) {
        ls_file_close(&index->files[i].file);
    }
    ls_mem_free(index->files);
    ls_mem_free(index->pieces);
    *index = (ls_csv_index_t){0};
}

/* ---- counting ----------------------------------------------------------------------------------- */

static uint64_t text_bytes(const ls_csv_file_t *csv)
{
    return csv->file.bytes - csv->begin;
}

static ls_status_t cut_into_pieces(ls_csv_index_t *index)
{
    uint64_t total = 0;

    for (unsigned i = 0; i < index->num_files; i++) {
        total += text_bytes(&index->files[i]);
    }
    index->piece_bytes = MIN_PIECE_BYTES;
    while ((index->piece_bytes < GOOD_PIECE_BYTES && total / index->piece_bytes >= GOOD_PIECES) ||
           total / index->piece_bytes >= MAX_PIECES) {
        index->piece_bytes *= 2;
    }
    for (unsigned i = 0; i < index->num_files; i++) {
        ls_csv_file_t *csv = &index->files[i];

        csv->first_piece = index->num_pieces;
        csv->num_pieces  = (size_t)((text_bytes(csv) + index->piece_bytes - 1) / index->piece_bytes);
        index->num_pieces += csv->num_pieces;
    }
    return ls_mem_alloc(index->num_pieces * sizeof(*index->pieces), "index of a text table",
                        (void **)&index->pieces);
}

/* What follows in the same piece: its own start is the state after what came before. */
static void add_count(const ls_csv_count_t *more, uint64_t offset, told_t *told, wrong_t *wrong)
{
    for (unsigned start = 0; start < 2; start++) {
        const unsigned now = start ^ told->is_odd;

        told->rows[start] += (uint32_t)more->rows[now];
        if (wrong->bad_quote[start] == LS_CSV_SCAN_NONE && more->bad_quote[now] != LS_CSV_SCAN_NONE) {
            wrong->bad_quote[start] = offset + more->bad_quote[now];
        }
    }
    told->is_odd ^= more->is_odd;
}

/* Two bytes before the data are kept in front of the buffer, to see blank lines and quotes at its edge. */
static ls_status_t load(const counting_t *counting, const ls_csv_file_t *csv, uint64_t offset,
                        size_t *length_p)
{
    char        *data   = counting->buffer + LS_CSV_SCAN_SLACK;
    const size_t before = offset - csv->begin < 2 ? (size_t)(offset - csv->begin) : 2;

    memcpy(data - 2, "\n\n", 2);
    const ls_status_t status = ls_file_read(&csv->file, offset - before, *length_p + before, data - before);

    if (status == LS_OK && offset + *length_p == csv->file.bytes && data[*length_p - 1] != '\n') {
        data[(*length_p)++] = '\n';
    }
    return status;
}

/* The pieces in the buffer, which holds `bytes` from `offset` on, and perhaps a line feed more. */
static ls_status_t count_loaded(const counting_t *counting, const ls_csv_file_t *csv, uint64_t offset,
                                size_t bytes, size_t length)
{
    const uint64_t piece_bytes = counting->index->piece_bytes;
    const char    *data        = counting->buffer + LS_CSV_SCAN_SLACK;
    size_t         step;

    for (size_t at = 0; at < bytes; at += step) {
        step              = bytes - at < piece_bytes ? bytes - at : (size_t)piece_bytes;
        const size_t more = at + step == bytes ? length - bytes : 0;
        const size_t number =
            csv->first_piece + (size_t)((offset + at - csv->begin) / piece_bytes) - counting->first;
        ls_csv_count_t count;

        counting->scan->count(&counting->index->marks, data + at - 2, data + at, step + more, &count);
        if (count.nul != LS_CSV_SCAN_NONE) {
            return ls_file_error(csv->file.path, "", LS_FILE_NOWHERE, offset + at + count.nul,
                                 "a zero byte: this is no text, or it is damaged");
        }
        add_count(&count, offset + at, &counting->told[number], &counting->wrong[number]);
    }
    return LS_OK;
}

static ls_status_t count_bytes(const counting_t *counting, const ls_csv_file_t *csv, uint64_t offset,
                               uint64_t end)
{
    const uint64_t begin  = offset;
    ls_status_t    status = LS_OK;

    while (offset < end && status == LS_OK) {
        const size_t bytes =
            end - offset < LS_CSV_BUFFER_BYTES ? (size_t)(end - offset) : LS_CSV_BUFFER_BYTES;
        size_t length = bytes;

        status = load(counting, csv, offset, &length);
        if (status == LS_OK) {
            status = count_loaded(counting, csv, offset, bytes, length);
        }
        offset += bytes;
        if (status == LS_OK && (offset == end || (offset - begin) % PROGRESS_BYTES == 0)) {
            status = ls_progress_report(counting->options, csv->file.path, offset - begin, end - begin);
        }
    }
    return status;
}

static ls_status_t count_mine(const counting_t *counting)
{
    const ls_csv_index_t *index  = counting->index;
    const size_t          last   = counting->first + counting->num;
    ls_status_t           status = LS_OK;

    for (size_t i = 0; i < counting->num; i++) {
        counting->wrong[i] = (wrong_t){{LS_CSV_SCAN_NONE, LS_CSV_SCAN_NONE}};
    }
    for (unsigned i = 0; i < index->num_files && status == LS_OK; i++) {
        const ls_csv_file_t *csv   = &index->files[i];
        const size_t         after = csv->first_piece + csv->num_pieces;
        const size_t         from  = csv->first_piece > counting->first ? csv->first_piece : counting->first;
        const size_t         to    = after < last ? after : last;

        if (from < to) {
            const uint64_t end = csv->begin + (to - csv->first_piece) * index->piece_bytes;

            status = count_bytes(counting, csv, csv->begin + (from - csv->first_piece) * index->piece_bytes,
                                 end < csv->file.bytes ? end : csv->file.bytes);
        }
    }
    return status;
}

/* ---- what all ranks know afterwards -------------------------------------------------------------- */

/* The last quote that opens in a file whose end is inside; from a piece that does not begin inside. */
static ls_status_t unclosed_quote(const ls_csv_index_t *index, const ls_csv_file_t *csv, char *buffer)
{
    size_t   piece  = csv->num_pieces - 1;
    uint64_t opened = 0;
    bool     inside = false;

    while (index->pieces[csv->first_piece + piece].is_inside) {
        piece--;
    }
    for (uint64_t offset = csv->begin + piece * index->piece_bytes; offset < csv->file.bytes;) {
        const uint64_t    left   = csv->file.bytes - offset;
        const size_t      length = left < LS_CSV_BUFFER_BYTES ? (size_t)left : LS_CSV_BUFFER_BYTES;
        const ls_status_t status = ls_file_read(&csv->file, offset, length, buffer);

        if (status != LS_OK) {
            return status;
        }
        for (size_t i = 0; i < length; i++) {
            if (buffer[i] == index->marks.quote) {
                inside = !inside;
                opened = inside ? offset + i : opened;
            }
        }
        offset += length;
    }
    return ls_file_error(csv->file.path, "row",
                         ls_csv_index_row(index, (unsigned)(csv - index->files), csv->num_lines), opened,
                         "the quote that opens here is never closed");
}

static ls_status_t settle(ls_csv_index_t *index, const told_t *all, char *buffer)
{
    uint64_t rows = 0;

    for (unsigned i = 0; i < index->num_files; i++) {
        ls_csv_file_t *csv       = &index->files[i];
        unsigned       is_inside = 0;
        uint64_t       lines     = 0;

        for (size_t piece = csv->first_piece; piece < csv->first_piece + csv->num_pieces; piece++) {
            index->pieces[piece] = (ls_csv_piece_t){
                .rows_before = lines,
                .offset      = (csv->begin + (piece - csv->first_piece) * index->piece_bytes) & INT64_MAX,
                .is_inside   = is_inside & 1,
            };
            lines += all[piece].rows[is_inside];
            is_inside ^= (unsigned)all[piece].is_odd;
        }
        csv->num_lines = lines;
        csv->first_row = rows;
        rows += lines > index->num_headers ? lines - index->num_headers : 0;
        if (is_inside) {
            return unclosed_quote(index, csv, buffer);
        }
    }
    index->num_rows = rows;
    return LS_OK;
}

static ls_status_t report_wrong(const counting_t *counting)
{
    const ls_csv_index_t *index = counting->index;
    const ls_csv_file_t  *csv   = index->files;

    for (size_t i = 0; i < counting->num; i++) {
        const ls_csv_piece_t *piece = &index->pieces[counting->first + i];
        const uint64_t        place = counting->wrong[i].bad_quote[piece->is_inside];

        while (counting->first + i >= csv->first_piece + csv->num_pieces) {
            csv++;
        }
        if (place != LS_CSV_SCAN_NONE) {
            return ls_file_error(csv->file.path, "", LS_FILE_NOWHERE, place,
                                 "at or just before this byte (after row %" PRIu64
                                 ") is a quote that is not around a whole "
                                 "field: a quote in a text is written twice, between quotes",
                                 ls_csv_index_row(index, (unsigned)(csv - index->files), piece->rows_before));
        }
    }
    return LS_OK;
}

/* Every rank sends the same number of pieces; those past its own are zeros. */
static ls_status_t exchange(const counting_t *counting, size_t most, told_t *gathered, told_t *all)
{
    const ls_data_part_t *part   = &counting->options->part;
    const size_t          ranks  = ls_part_ranks(part);
    const size_t          pieces = counting->index->num_pieces;
    const ls_status_t     status = ls_part_allgather(part, counting->told, most * sizeof(told_t), gathered);

    for (size_t rank = 0; rank < ranks && status == LS_OK; rank++) {
        const size_t first = pieces * rank / ranks;

        memcpy(all + first, gathered + rank * most, (pieces * (rank + 1) / ranks - first) * sizeof(told_t));
    }
    return status;
}

ls_status_t ls_csv_index_agree(const ls_data_part_t *part, const ls_csv_index_t *index, ls_status_t status)
{
    const unsigned ranks   = ls_part_ranks(part);
    uint64_t       mine[2] = {index->num_files, 0}, *all = NULL;

    if (status == LS_OK) {
        status = ls_mem_alloc(ranks * sizeof(mine), "sizes of a text table", (void **)&all);
    }
    for (unsigned i = 0; i < index->num_files; i++) { /* FNV-1a, by words */
        mine[1] = (mine[1] ^ text_bytes(&index->files[i])) * 0x100000001b3;
    }
    status = ls_part_agree(part, status);
    if (status == LS_OK) {
        status = ls_part_allgather(part, mine, sizeof(mine), all);
    }
    for (unsigned rank = 1; rank < ranks && status == LS_OK; rank++) {
        if (memcmp(all, all + 2 * rank, sizeof(mine)) != 0) {
            status = ls_file_error(
                index->files[0].file.path, "", LS_FILE_NOWHERE, LS_FILE_NOWHERE,
                "rank %u sees files of other sizes than rank 0: they are being written, or differ "
                "from machine to machine",
                rank);
        }
    }
    ls_mem_free(all);
    return status;
}

ls_status_t ls_csv_index_build(const ls_data_options_t *options, ls_csv_index_t *index)
{
    const size_t ranks    = ls_part_ranks(&options->part);
    const size_t rank     = ls_part_rank(&options->part);
    counting_t   counting = {.index = index, .options = options, .scan = ls_csv_scan_get()};
    told_t      *gathered = NULL, *all = NULL;
    ls_status_t  status = cut_into_pieces(index);
    const size_t most   = index->num_pieces / ranks + 1;

    counting.first = index->num_pieces * rank / ranks;
    counting.num   = index->num_pieces * (rank + 1) / ranks - counting.first;
    const struct {
        size_t bytes;
        void **mem_p;
    } needed[] = {
        {most * sizeof(told_t), (void **)&counting.told},
        {most * sizeof(wrong_t), (void **)&counting.wrong},
        {most * ranks * sizeof(told_t), (void **)&gathered},
        {index->num_pieces * sizeof(told_t), (void **)&all},
        {LS_CSV_BUFFER_BYTES + 2 * LS_CSV_SCAN_SLACK, (void **)&counting.buffer},
    };

    for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]) && status == LS_OK; i++) {
        status = ls_mem_alloc(needed[i].bytes, "counting the rows of a text table", needed[i].mem_p);
    }
    if (status == LS_OK) {
        status = count_mine(&counting);
    }
    status = ls_part_agree(&options->part, status);
    if (status == LS_OK) {
        status = exchange(&counting, most, gathered, all);
    }
    if (status == LS_OK) {
        status = settle(index, all, counting.buffer);
        if (status == LS_OK) {
            status = report_wrong(&counting);
        }
        status = ls_part_agree(&options->part, status);
    }
    for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++) {
        ls_mem_free(*needed[i].mem_p);
    }
    return status;
}

/* ---- finding ------------------------------------------------------------------------------------ */

uint64_t ls_csv_index_row(const ls_csv_index_t *index, unsigned file, uint64_t num_lines)
{
    const uint64_t headers = index->num_headers;

    return index->files[file].first_row + (num_lines > headers ? num_lines - headers : 0);
}

ls_csv_place_t ls_csv_index_find(const ls_csv_index_t *index, uint64_t row)
{
    unsigned low = 0, high = index->num_files - 1;

    while (low < high) { /* the last file whose first row is not after this one, and has rows */
        const unsigned middle = low + (high - low + 1) / 2;

        if (index->files[middle].first_row <= row) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    const ls_csv_file_t  *csv    = &index->files[low];
    const ls_csv_piece_t *pieces = index->pieces + csv->first_piece;
    const uint64_t        line   = row - csv->first_row + index->num_headers;
    size_t                first = 0, last = csv->num_pieces - 1;

    while (first < last) { /* the last piece that begins before the end of the row before */
        const size_t middle = first + (last - first + 1) / 2;

        if (pieces[middle].rows_before < line) {
            first = middle;
        } else {
            last = middle - 1;
        }
    }
    return (ls_csv_place_t){
        .file      = low,
        .offset    = pieces[first].offset,
        .is_inside = pieces[first].is_inside,
        .skip      = line - pieces[first].rows_before,
    };
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Words: a chain is a record, the one that begins where it ends, and so on.  The chain from byte 0 of a file
 * is true.
 *
 * Sharing.  The files' bytes are cut into equal spans, one for each rank:
 *
 *     file 0 |r--r---r-|-----r--|        file 1 |r-r--|--r---r|      3 ranks: | is the end of a file or span
 *             rank 0    rank 1                   rank 1 rank 2
 *
 * A rank takes each part of its span that begins a file from byte 0, and otherwise from the first place that
 * looks like a record, and follows the chain to the end of the part.  Data may look like a record too (a
 * TFRecord inside a TFRecord), so the ranks then compare: where the chain of one does not end where that of
 * the next begins, or a chain breaks, nothing of it counts and every rank follows the true chain from the
 * beginning.  What is shared is right by induction.
 */
#include "data/tfrecord_index.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "base/mem.h"
#include "data/crc.h"
#include "data/part.h"
#include "data/progress.h"

#define WINDOW_BYTES (1UL << 20)
#define LARGE_RECORD (16UL * 1024) /* from here on reading heads one by one beats reading everything */
#define REPORT_BYTES (256UL << 20)
#define NO_RECORD    UINT64_MAX

typedef struct window {
    const ls_file_t *file;
    uint64_t         offset;
    size_t           bytes;
    unsigned char   *memory;
} window_t;

/* A part of a file: the records that begin in [from, to). */
typedef struct span_part {
    unsigned file;
    uint64_t from, to;
    uint64_t first; /* where its chain begins; NO_RECORD: nothing begins here */
    uint64_t end;   /* where the chain ends: at or behind `to` */
    uint64_t count;
} span_part_t;

int ls_tfrecord_index_is_head(const unsigned char *head, uint64_t offset, uint64_t file_bytes,
                              uint64_t *length_p)
{
    const uint64_t left = file_bytes - offset;
    uint64_t       length;
    uint32_t       crc;

    memcpy(&length, head, 8);
    memcpy(&crc, head + 8, 4);
    if (left < LS_TFRECORD_HEAD + LS_TFRECORD_TAIL || length > left - LS_TFRECORD_HEAD - LS_TFRECORD_TAIL ||
        ls_crc_masked(ls_crc_32c(0, head, 8)) != crc) {
        return false;
    }
    *length_p = length;
    return true;
}

/* `bytes` at `offset` in the window; `hint` is how much to read at once. */
static ls_status_t look(window_t *window, uint64_t offset, size_t bytes, size_t hint,
                        const unsigned char **at_p)
{
    if (offset < window->offset || offset + bytes > window->offset + window->bytes) {
        const uint64_t left   = window->file->bytes - offset;
        const size_t   wanted = hint > bytes ? hint : bytes;
        ls_status_t    status;

        window->offset = offset;
        window->bytes  = left < wanted ? (size_t)left : wanted;
        status         = ls_file_read(window->file, offset, window->bytes, window->memory);
        if (status != LS_OK) {
            window->bytes = 0;
            return status;
        }
    }
    *at_p = window->memory + (offset - window->offset);
    return LS_OK;
}

static ls_status_t broken(const ls_file_t *file, uint64_t record, uint64_t offset, const unsigned char *head)
{
    const uint64_t left   = file->bytes - offset;
    uint64_t       length = 0;

    if (left < LS_TFRECORD_HEAD) {
        return ls_file_error(file->path, "record", record, offset,
                             "the file ends %" PRIu64 " bytes into the record's length", left);
    }
    memcpy(&length, head, 8);
    if (!ls_tfrecord_index_is_head(head, 0, UINT64_MAX, &length)) {
        return ls_file_error(file->path, "record", record, offset,
                             "the record's length has a wrong checksum%s",
                             offset == 0 ? "; this may not be TFRecord" : "");
    }
    return ls_file_error(file->path, "record", record, offset,
                         "the record has %" PRIu64 " bytes, of which the file holds %" PRIu64, length,
                         left - LS_TFRECORD_HEAD);
}

static ls_status_t add(ls_tfrecord_index_t *index, uint64_t offset)
{
    ls_status_t status = LS_OK;

    if ((index->count & (index->count - 1)) == 0) { /* full at each power of two */
        status =
            ls_mem_resize((void **)&index->offsets, index->count * sizeof(offset),
                          (index->count == 0 ? 1 : 2 * index->count) * sizeof(offset), "index of records");
    }
    if (status == LS_OK) {
        index->offsets[index->count++] = offset;
    }
    return status;
}

/* From offset part->first to the end of the part. */
static ls_status_t follow(const ls_file_t *file, span_part_t *part, window_t *window,
                          const ls_data_options_t *options, ls_tfrecord_index_t *index)
{
    uint64_t    offset = part->first, length = 0, reported = offset;
    ls_status_t status = LS_OK;

    while (status == LS_OK && offset < part->to) {
        const uint64_t       left = file->bytes - offset;
        const unsigned char *head = NULL;

        status = look(window, offset, left < LS_TFRECORD_HEAD ? (size_t)left : LS_TFRECORD_HEAD,
                      length < LARGE_RECORD ? WINDOW_BYTES : 0, &head);
        if (status == LS_OK &&
            (left < LS_TFRECORD_HEAD || !ls_tfrecord_index_is_head(head, offset, file->bytes, &length))) {
            status = broken(file, part->count, offset, head);
        }
        if (status == LS_OK) {
            status = add(index, offset);
            part->count++;
            offset += LS_TFRECORD_HEAD + length + LS_TFRECORD_TAIL;
        }
        if (status == LS_OK && offset - reported >= REPORT_BYTES) {
            reported = offset;
            status   = ls_progress_report(options, file->path, offset, file->bytes);
        }
    }
    part->end = offset;
    return status;
}

/* The first place in the part that looks like a record. */
static ls_status_t find_first(const ls_file_t *file, span_part_t *part, window_t *window)
{
    part->first = part->from == 0 ? 0 : NO_RECORD;
    for (uint64_t offset = part->from; part->first == NO_RECORD && offset < part->to; offset++) {
        const unsigned char *head = NULL;
        uint64_t             length;
        ls_status_t          status;

        if (file->bytes - offset < LS_TFRECORD_HEAD + LS_TFRECORD_TAIL) {
            break;
        }
        status = look(window, offset, LS_TFRECORD_HEAD, WINDOW_BYTES, &head);
        if (status != LS_OK) {
            return status;
        }
        if (ls_tfrecord_index_is_head(head, offset, file->bytes, &length)) {
            part->first = offset;
        }
    }
    return LS_OK;
}

/* ---- one rank does it all
 * ----------------------------------------------------------------------------------------- */

static ls_status_t index_alone(const ls_file_t *files, unsigned num_files, const ls_data_options_t *options,
                               window_t *window, ls_tfrecord_index_t *index)
{
    ls_status_t status = LS_OK;

    index->count = 0;
    for (unsigned i = 0; i < num_files && status == LS_OK; i++) {
        span_part_t part = {.file = i, .to = files[i].bytes};

        *window          = (window_t){.file = &files[i], .memory = window->memory};
        index->starts[i] = index->count;
        status           = follow(&files[i], &part, window, options, index);
    }
    index->starts[num_files] = index->count;
    return status;
}

/* ---- ranks share it
 * ----------------------------------------------------------------------------------------------- */

/* The part of file `file`, whose first byte is number `before` of all bytes, that lies in the span of `rank`.
 */
static span_part_t part_of(const ls_file_t *files, unsigned file, uint64_t before, uint64_t total,
                           unsigned ranks, unsigned rank)
{
    uint64_t first, count;

    ls_data_block(total, ranks, rank, &first, &count);

    const uint64_t from = first > before ? first - before : 0, end = first + count;
    const uint64_t to = end > before ? end - before : 0;

    return (span_part_t){.file  = file,
                         .from  = from < files[file].bytes ? from : files[file].bytes,
                         .to    = to < files[file].bytes ? to : files[file].bytes,
                         .first = NO_RECORD};
}

static uint64_t total_bytes(const ls_file_t *files, unsigned num_files)
{
    uint64_t total = 0;

    for (unsigned i = 0; i < num_files; i++) {
        total += files[i].bytes;
    }
    return total;
}

/* This rank's parts of all files; is_broken_p: the chain broke, which says nothing if it was not the true
 * one. */
static ls_status_t index_span(const ls_file_t *files, unsigned num_files, const ls_data_options_t *options,
                              window_t *window, ls_tfrecord_index_t *index, span_part_t *parts,
                              bool *is_broken_p)
{
    const uint64_t total  = total_bytes(files, num_files);
    uint64_t       before = 0;
    ls_status_t    status = LS_OK;

    for (unsigned i = 0; i < num_files && status == LS_OK; before += files[i++].bytes) {
        parts[i] =
            part_of(files, i, before, total, ls_part_ranks(&options->part), ls_part_rank(&options->part));
        *window = (window_t){.file = &files[i], .memory = window->memory};
        status  = find_first(&files[i], &parts[i], window);
        if (status == LS_OK && parts[i].first < parts[i].to) {
            status = follow(&files[i], &parts[i], window, options, index);
        }
    }
    *is_broken_p = status == LS_ERR_INVALID;
    return *is_broken_p ? LS_OK : status;
}

/* Do the ranks' chains of each file make one true chain?  all[rank * num_files + file]. */
static bool is_one_chain(const ls_file_t *files, unsigned num_files, const span_part_t *all, unsigned ranks)
{
    for (unsigned file = 0; file < num_files; file++) {
        uint64_t at = 0;

        for (unsigned rank = 0; rank < ranks; rank++) {
            const span_part_t *part        = &all[rank * num_files + file];
            const bool         is_expected = at < part->to;

            if (is_expected != (part->count > 0) || (is_expected && part->first != at)) {
                return false;
            }
            at = is_expected ? part->end : at;
        }
        if (at != files[file].bytes) {
            return false;
        }
    }
    return true;
}

static uint64_t count_of(unsigned num_files, const span_part_t *all, unsigned rank)
{
    uint64_t count = 0;

    for (unsigned file = 0; file < num_files; file++) {
        count += all[rank * num_files + file].count;
    }
    return count;
}

/* `gathered` has the offsets of all ranks, each with room for `most`.  Spans follow one another, so in the
 * order of the ranks the records are in the order of the files. */
static void merge(unsigned num_files, const span_part_t *all, unsigned ranks, uint64_t *gathered,
                  uint64_t most, ls_tfrecord_index_t *index)
{
    uint64_t at = 0;

    index->count = 0;
    for (unsigned file = 0; file < num_files; file++) {
        index->starts[file] = index->count;
        for (unsigned rank = 0; rank < ranks; rank++) {
            index->count += all[rank * num_files + file].count;
        }
    }
    index->starts[num_files] = index->count;
    for (unsigned rank = 0; rank < ranks; rank++) {
        const uint64_t count = count_of(num_files, all, rank);

        memmove(gathered + at, gathered + rank * most, count * sizeof(*gathered));
        at += count;
    }
    ls_mem_free(index->offsets);
    index->offsets = gathered;
}

static ls_status_t gather_offsets(unsigned num_files, const span_part_t *all,
                                  const ls_data_options_t *options, ls_tfrecord_index_t *index)
{
    const unsigned ranks = ls_part_ranks(&options->part);
    uint64_t       most = 0, *gathered = NULL;
    ls_status_t    status;

    for (unsigned rank = 0; rank < ranks; rank++) {
        const uint64_t count = count_of(num_files, all, rank);

        most = count > most ? count : most;
    }
    status = ls_mem_alloc(most * ranks * sizeof(*gathered), "records of all ranks", (void **)&gathered);
    if (status == LS_OK) { /* all send as much as the one that has most */
        status = ls_mem_resize((void **)&index->offsets, index->count * sizeof(*gathered),
                               most * sizeof(*gathered), "records of this rank");
    }
    status = ls_part_agree(&options->part, status);
    if (status == LS_OK) {
        status = ls_part_allgather(&options->part, index->offsets, most * sizeof(*gathered), gathered);
    }
    if (status == LS_OK) {
        merge(num_files, all, ranks, gathered, most, index);
    } else {
        ls_mem_free(gathered);
    }
    return status;
}

static ls_status_t index_together(const ls_file_t *files, unsigned num_files,
                                  const ls_data_options_t *options, window_t *window,
                                  ls_tfrecord_index_t *index)
{
    const unsigned ranks     = ls_part_ranks(&options->part);
    const size_t   bytes     = num_files * sizeof(span_part_t);
    span_part_t   *all       = NULL;
    bool           is_broken = false;
    ls_status_t    status    = ls_mem_alloc((ranks + 1) * bytes, "spans of all ranks", (void **)&all);
    span_part_t   *mine      = all + (size_t)ranks * num_files;

    if (status == LS_OK) {
        status = index_span(files, num_files, options, window, index, mine, &is_broken);
    }
    if (status == LS_OK && is_broken) {
        mine[0].first = mine[0].count = NO_RECORD; /* matches nothing */
    }
    status = ls_part_agree(&options->part, status);
    if (status == LS_OK) {
        status = ls_part_allgather(&options->part, mine, bytes, all);
    }
    if (status == LS_OK) {
        status = is_one_chain(files, num_files, all, ranks)
                     ? gather_offsets(num_files, all, options, index)
                     : index_alone(files, num_files, options, window, index);
    }
    ls_mem_free(all);
    return status;
}

/* ---- both
 * ---------------------------------------------------------------------------------------------------------
 */

ls_status_t ls_tfrecord_index_create(const ls_file_t *files, unsigned num_files,
                                     const ls_data_options_t *options, ls_tfrecord_index_t *index_p)
{
    ls_tfrecord_index_t index   = {0};
    window_t            window  = {0};
    uint64_t            largest = 0;
    ls_status_t         status =
        ls_mem_alloc((num_files + 1) * sizeof(*index.starts), "files", (void **)&index.starts);

    for (unsigned i = 0; i < num_files; i++) {
        largest = files[i].bytes > largest ? files[i].bytes : largest;
    }
    if (status == LS_OK) {
        status = ls_mem_alloc(largest < WINDOW_BYTES ? (size_t)largest : WINDOW_BYTES, "window of a file",
                              (void **)&window.memory);
    }
    if (ls_part_ranks(&options->part) == 1) {
        status = status == LS_OK ? index_alone(files, num_files, options, &window, &index) : status;
    } else {
        status = ls_part_agree(&options->part, status);
        status = status == LS_OK ? index_together(files, num_files, options, &window, &index) : status;
    }
    ls_mem_free(window.memory);
    if (status != LS_OK) {
        ls_tfrecord_index_clear(&index);
        return status;
    }
    *index_p = index;
    return LS_OK;
}

void ls_tfrecord_index_clear(ls_tfrecord_index_t *index)
{
    ls_mem_free(index->offsets);
    ls_mem_free(index->starts);
    *index = (ls_tfrecord_index_t){0};
}

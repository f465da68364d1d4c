/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CIFAR-10 and CIFAR-100 as they are handed out: pictures of 3 colours x 32 x 32 bytes.
 *   binary   records of 1 label (CIFAR-10) or a coarse and a fine one (CIFAR-100), then 3072 bytes
 *   Python   a pickle: array `data`, lists `labels`, or `coarse_labels` and `fine_labels`
 * Fields: data, label; or data, coarse_label, fine_label.
 */
#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "data/file.h"
#include "data/pickle.h"
#include "data/reader.h"

#define PICTURE_BYTES 3072
#define MAX_LABELS    2
#define BUFFER_ROWS   256

struct ls_reader {
    ls_file_t       file;
    unsigned        num_labels; /* 1: CIFAR-10, 2: CIFAR-100 */
    uint64_t        num_rows;
    uint64_t        data_offset; /* pickle */
    ls_pickle_t     pickle;
    bool            is_pickle;
    ls_data_field_t fields[1 + MAX_LABELS];
    ls_data_info_t  info;
};

static bool is_pickle(const unsigned char *bytes, size_t count)
{
    return count >= 3 && bytes[0] == 0x80 && bytes[1] >= 2 && bytes[1] <= 5 &&
           (bytes[2] == '}' || bytes[2] == 0x95);
}

static bool cifar_recognise(const ls_reader_head_t *head)
{
    const size_t length = strlen(head->name);
    const bool   is_bin = length > 4 && strcmp(head->name + length - 4, ".bin") == 0;

    return is_pickle(head->bytes, head->num_bytes) ||
           (is_bin &&
            (head->file_bytes % (1 + PICTURE_BYTES) == 0 || head->file_bytes % (2 + PICTURE_BYTES) == 0));
}

/* The highest label + 1, as the files define it. */
static unsigned num_classes(const struct ls_reader *reader, unsigned label)
{
    return reader->num_labels == 1 ? 10 : label == 0 ? 20 : 100;
}

static ls_status_t check_label(const struct ls_reader *reader, unsigned label, uint64_t row, uint64_t offset,
                               unsigned value)
{
    return value < num_classes(reader, label)
               ? LS_OK
               : ls_file_error(reader->file.path, "row", row, offset, "the label is %u, not one of 0 to %u",
                               value, num_classes(reader, label) - 1);
}

static ls_status_t open_binary(struct ls_reader *reader)
{
    const uint64_t bytes  = reader->file.bytes;
    unsigned char  label  = 0;
    ls_status_t    status = bytes > 0 ? ls_file_read(&reader->file, 0, 1, &label) : LS_OK;

    if (status != LS_OK) {
        return status;
    }
    if (bytes == 0 || (bytes % (1 + PICTURE_BYTES) != 0 && bytes % (2 + PICTURE_BYTES) != 0)) {
        return ls_file_error(
            reader->file.path, "row", bytes / (1 + PICTURE_BYTES), bytes,
            "the file's %" PRIu64
            " bytes are not whole records of 3073 (CIFAR-10) or 3074 (CIFAR-100); was it cut short?",
            bytes);
    }
    reader->num_labels = bytes % (1 + PICTURE_BYTES) == 0 && label < 10 ? 1 : 2;
    if (bytes % (reader->num_labels + PICTURE_BYTES) != 0) {
        return check_label(&(struct ls_reader){.file = reader->file, .num_labels = 1}, 0, 0, 0, label);
    }
    reader->num_rows = bytes / (reader->num_labels + PICTURE_BYTES);
    return LS_OK;
}

static const ls_pickle_list_t *labels_of(const struct ls_reader *reader, unsigned label)
{
    static const char *const keys[] = {"labels", "coarse_labels", "fine_labels"};

    return ls_pickle_find(&reader->pickle, keys[reader->num_labels == 1 ? 0 : 1 + label]);
}

static ls_status_t open_pickle(struct ls_reader *reader)
{
    const char *path   = reader->file.path;
    ls_status_t status = ls_pickle_read(&reader->file, &reader->pickle);

    if (status != LS_OK) {
        return status;
    }
    if (reader->pickle.data_offset == 0 || reader->pickle.columns != PICTURE_BYTES) {
        return ls_file_error(path, "", LS_FILE_NOWHERE, reader->pickle.data_offset,
                             "this pickle has no array 'data' with rows of 3072 bytes: it is not CIFAR");
    }
    reader->num_labels  = ls_pickle_find(&reader->pickle, "fine_labels") != NULL ? 2 : 1;
    reader->num_rows    = reader->pickle.rows;
    reader->data_offset = reader->pickle.data_offset;
    for (unsigned label = 0; label < reader->num_labels; label++) {
        const ls_pickle_list_t *list = labels_of(reader, label);

        if (list == NULL || list->count != reader->num_rows) {
            return ls_file_error(path, "row", list == NULL ? 0 : list->count, LS_FILE_NOWHERE,
                                 "there are %" PRIu64 " pictures, but not a list of so many labels",
                                 reader->num_rows);
        }
        for (uint64_t row = 0; row < list->count && status == LS_OK; row++) {
            status = check_label(reader, label, row, LS_FILE_NOWHERE, list->values[row]);
        }
    }
    return status;
}

static void describe(struct ls_reader *reader)
{
    static const char *const names[] = {"label", "coarse_label", "fine_label"};

    reader->fields[0] = (ls_data_field_t){.name      = "data",
                                          .type      = LS_DATA_UINT8,
                                          .num_dims  = 3,
                                          .shape     = {3, 32, 32},
                                          .row_bytes = PICTURE_BYTES,
                                          .num_rows  = reader->num_rows};
    for (unsigned label = 0; label < reader->num_labels; label++) {
        reader->fields[1 + label] = (ls_data_field_t){.name = names[reader->num_labels == 1 ? 0 : 1 + label],
                                                      .type = LS_DATA_UINT8,
                                                      .row_bytes = 1,
                                                      .num_rows  = reader->num_rows};
    }
    reader->info = (ls_data_info_t){
        .format = "cifar", .num_fields = 1 + reader->num_labels, .fields = reader->fields, .chunk_rows = 1};
}

static void cifar_close(ls_reader_h reader)
{
    ls_pickle_clear(&reader->pickle);
    ls_file_close(&reader->file);
    ls_mem_free(reader);
}

static ls_status_t cifar_open(const ls_reader_params_t *params, ls_reader_h *reader_p)
{
    struct ls_reader *reader  = NULL;
    unsigned char     head[3] = {0};
    ls_status_t       status  = ls_mem_alloc(sizeof(*reader), "reader of CIFAR", (void **)&reader);

    if (status != LS_OK) {
        return status;
    }
    status = ls_file_open(params->paths[0], &reader->file);
    if (status == LS_OK && reader->file.bytes >= sizeof(head)) {
        status = ls_file_read(&reader->file, 0, sizeof(head), head);
    }
    if (status == LS_OK) {
        reader->is_pickle = is_pickle(head, sizeof(head));
        status            = reader->is_pickle ? open_pickle(reader) : open_binary(reader);
    }
    if (status != LS_OK) {
        cifar_close(reader);
        return status;
    }
    describe(reader);
    *reader_p = reader;
    return LS_OK;
}

static const ls_data_info_t *cifar_info(ls_reader_h reader)
{
    return &reader->info;
}

static ls_status_t read_pickle(const struct ls_reader *reader, uint64_t first, uint64_t count,
                               ls_data_column_t *column)
{
    if (column->field == 0) {
        return ls_file_read(&reader->file, reader->data_offset + first * PICTURE_BYTES, count * PICTURE_BYTES,
                            column->data);
    }
    memcpy(column->data, labels_of(reader, column->field - 1)->values + first, count);
    return LS_OK;
}

/* Takes one column's bytes of `count` records out of the buffer; `done` rows are before them in the column.
 */
static ls_status_t split(const struct ls_reader *reader, const unsigned char *buffer, uint64_t first,
                         uint64_t done, uint64_t count, const ls_data_column_t *column)
{
    const size_t   record = reader->num_labels + PICTURE_BYTES;
    unsigned char *to     = column->data;
    ls_status_t    status = LS_OK;

    for (uint64_t i = 0; i < count && status == LS_OK; i++) {
        const unsigned char *from = buffer + i * record;

        if (column->field == 0) {
            memcpy(to + (done + i) * PICTURE_BYTES, from + reader->num_labels, PICTURE_BYTES);
        } else {
            to[done + i] = from[column->field - 1];
            status = check_label(reader, column->field - 1, first + done + i, (first + done + i) * record,
                                 to[done + i]);
        }
    }
    return status;
}

static ls_status_t read_binary(const struct ls_reader *reader, uint64_t first, uint64_t count,
                               ls_data_column_t *columns, unsigned num_columns)
{
    const size_t   record  = reader->num_labels + PICTURE_BYTES;
    const uint64_t at_once = count < BUFFER_ROWS ? count : BUFFER_ROWS;
    unsigned char *buffer  = NULL;
    ls_status_t    status  = ls_mem_alloc(at_once * record, "records of CIFAR", (void **)&buffer);

    for (uint64_t done = 0; done < count && status == LS_OK; done += at_once) {
        const uint64_t rows = count - done < at_once ? count - done : at_once;

        status = ls_file_read(&reader->file, (first + done) * record, rows * record, buffer);
        for (unsigned i = 0; i < num_columns && status == LS_OK; i++) {
            status = split(reader, buffer, first, done, rows, &columns[i]);
        }
    }
    ls_mem_free(buffer);
    return status;
}

static ls_status_t cifar_read(ls_reader_h reader, uint64_t first, uint64_t count, ls_data_column_t *columns,
                              unsigned num_columns)
{
    ls_status_t status = LS_OK;

    if (reader->is_pickle) {
        for (unsigned i = 0; i < num_columns && status == LS_OK; i++) {
            status = read_pickle(reader, first, count, &columns[i]);
        }
    } else {
        status = read_binary(reader, first, count, columns, num_columns);
    }
    return status == LS_OK ? ls_file_unchanged(&reader->file) : status;
}

const ls_reader_ops_t ls_reader_cifar = {
    .name        = "cifar",
    .title       = "CIFAR-10 and CIFAR-100, binary or Python",
    .is_parallel = true,
    .recognise   = cifar_recognise,
    .open        = cifar_open,
    .info        = cifar_info,
    .read        = cifar_read,
    .close       = cifar_close,
};

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the harnesses share: the input becomes a file in memory, which is opened and read in every way. Errors
 * are fine; sanitizers say what is not.  A harness is one file per parser: it only names the format.
 */
#ifndef LS_TESTS_FUZZ_READER_H
#define LS_TESTS_FUZZ_READER_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz/fuzz_ranks.h"
#include "lockstep_data.h"

#define FUZZ_MOST_BYTES (8UL << 20) /* of one read: an honest file of this size is read in portions */
#define FUZZ_MOST_READS 64

/* What a read gave, to compare a row that is given a place of its own with. */
static inline void *fuzz_place(void *arg, uint64_t row, size_t length)
{
    const ls_data_column_t *expected = arg;

    if (row >= expected->num_rows || expected->offsets[row + 1] - expected->offsets[row] != length) {
        abort();
    }
    return (char *)expected->place_arg + expected->offsets[row];
}

/* The same rows once more, each to a place of its own. */
static inline void fuzz_places(ls_data_h data, ls_data_column_t *expected, uint64_t first, uint64_t count)
{
    const size_t     bytes  = expected->num_rows > 0 ? expected->offsets[expected->num_rows] : 0;
    ls_data_column_t column = {.field = expected->field, .place = fuzz_place, .place_arg = expected};

    expected->place_arg = calloc(1, bytes + 1);
    if (ls_data_read(data, first, count, &column, 1) != LS_OK || column.num_rows != count ||
        memcmp(expected->place_arg, expected->data, bytes) != 0) {
        abort();
    }
    free(expected->place_arg);
}

/* Rows [first, first + count) of a field, every byte touched. */
static inline void fuzz_rows(ls_data_h data, unsigned field, uint64_t first, uint64_t count)
{
    const ls_data_field_t *about    = &ls_data_info(data)->fields[field];
    ls_data_column_t       column   = {.field = field};
    volatile unsigned char sum      = 0;
    const int              is_bytes = about->type == LS_DATA_BYTES;
    uint64_t               bytes    = count * about->row_bytes;

    column.data = is_bytes ? NULL : malloc(bytes + 1);
    if (ls_data_read(data, first, count, &column, 1) == LS_OK) {
        bytes = is_bytes ? (count > 0 ? column.offsets[count] : 0) : bytes;
        for (uint64_t i = 0; i < bytes; i++) {
            sum = (unsigned char)(sum + ((const unsigned char *)column.data)[i]);
        }
        if (is_bytes && count > 0) {
            fuzz_places(data, &column, first, count);
        }
    }
    if (is_bytes) {
        ls_data_column_clear(&column);
    } else {
        free(column.data);
    }
}

static inline void fuzz_field(ls_data_h data, unsigned field)
{
    const ls_data_field_t *about   = &ls_data_info(data)->fields[field];
    uint64_t               at_once = about->row_bytes > 0 ? FUZZ_MOST_BYTES / about->row_bytes : 16, row = 0;

    at_once = at_once > 1000 ? 1000 : at_once;
    for (unsigned reads = 0; at_once > 0 && row < about->num_rows && reads < FUZZ_MOST_READS;
         reads++, row += at_once) {
        fuzz_rows(data, field, row, about->num_rows - row < at_once ? about->num_rows - row : at_once);
    }
    if (at_once > 0) { /* back to the middle */
        fuzz_rows(data, field, about->num_rows / 2, about->num_rows > 0 ? 1 : 0);
    }
}

static inline int fuzz_reader(const char *format, const uint8_t *input, size_t size)
{
    const int fd = memfd_create("fuzz", MFD_CLOEXEC);
    char      path[64];

    if (fd < 0 || write(fd, input, size) != (ssize_t)size) {
        abort();
    }
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    for (unsigned ranks = 1; ranks <= 2; ranks++) {
        const ls_data_options_t options = {.format = format, .part = {.size = ranks}};
        ls_data_h               data;

        if (ls_data_open(path, &options, &data) == LS_OK) {
            for (unsigned field = 0; field < ls_data_info(data)->num_fields && field < 8; field++) {
                fuzz_field(data, field);
            }
            ls_data_close(data);
        }
    }
    fuzz_ranks(path, format);
    close(fd);
    return 0;
}

#endif

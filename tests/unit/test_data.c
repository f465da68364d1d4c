/* SPDX-License-Identifier: Apache-2.0 */
/* Readers where Python cannot reach: memory that runs out, parts, checksums with and without the processor's
 * help. */
#include <stdlib.h>
#include <sys/mman.h>

#include "base/mem.h"
#include "check.h"
#include "data/crc.h"
#include "data/part.h"
#include "lockstep_data.h"

#define FILE_ROOM 256

/* 100 bytes of the value 7 in an IDX file, deflated with a stored block. */
static const unsigned char gzip_idx[] = {0x1f, 0x8b, 8,   0, 0, 0, 0, 0, 0, 255, 1,  108,
                                         0,    147,  255, 0, 0, 8, 1, 0, 0, 0,   100};

typedef struct memory_file {
    int  fd;
    char path[64];
} memory_file_t;

static memory_file_t put_into_file(const void *bytes, size_t count)
{
    memory_file_t file = {.fd = memfd_create("data", MFD_CLOEXEC)};

    CHECK(write(file.fd, bytes, count) == (ssize_t)count);
    snprintf(file.path, sizeof(file.path), "/proc/self/fd/%d", file.fd);
    return file;
}

static size_t make_gzip_idx(unsigned char file[FILE_ROOM])
{
    unsigned char *at = file + sizeof(gzip_idx);
    uint32_t       crc;
    const uint32_t length = 108;

    memcpy(file, gzip_idx, sizeof(gzip_idx));
    memset(at, 7, 100);
    crc = ls_crc_32_plain(0, file + 15, length);
    memcpy(at + 100, &crc, 4);
    memcpy(at + 104, &length, 4);
    return sizeof(gzip_idx) + 108;
}

static size_t make_tfrecord(unsigned char file[FILE_ROOM])
{
    size_t used = 0;

    for (uint64_t length = 0; length < 5; length++) {
        uint32_t crc;

        memcpy(file + used, &length, 8);
        crc = ls_crc_masked(ls_crc_32c_plain(0, file + used, 8));
        memcpy(file + used + 8, &crc, 4);
        memset(file + used + 12, 'x', length);
        crc = ls_crc_masked(ls_crc_32c_plain(0, file + used + 12, length));
        memcpy(file + used + 12 + length, &crc, 4);
        used += 16 + length;
    }
    return used;
}

static size_t make_npy(unsigned char file[FILE_ROOM])
{
    static const char text[] = "{'descr': '|u1', 'fortran_order': False, 'shape': (100,), }";

    memcpy(file, "\x93NUMPY\1\0", 8);
    file[8] = (unsigned char)(sizeof(text) - 1);
    file[9] = 0;
    memcpy(file + 10, text, sizeof(text) - 1);
    memset(file + 10 + sizeof(text) - 1, 7, 100);
    return 10 + sizeof(text) - 1 + 100;
}

static ls_status_t open_and_read(const char *path, unsigned char *first_p)
{
    ls_data_column_t column = {0};
    unsigned char    rows[100];
    ls_data_h        data;
    ls_status_t      status = ls_data_open(path, NULL, &data);

    if (status != LS_OK) {
        return status;
    }
    const ls_data_field_t *field    = &ls_data_info(data)->fields[0];
    const int              is_bytes = field->type == LS_DATA_BYTES;

    column.data = is_bytes ? NULL : rows;
    status      = ls_data_read(data, 0, field->num_rows, &column, 1);
    *first_p    = status == LS_OK ? ((unsigned char *)column.data)[0] : 0;
    if (is_bytes) {
        ls_data_column_clear(&column);
    }
    ls_data_close(data);
    return status;
}

/* Every allocation fails once: an error each time, and nothing is left behind. */
static void fail_each_allocation(const unsigned char *bytes, size_t count, unsigned char expected)
{
    const memory_file_t file   = put_into_file(bytes, count);
    const size_t        before = ls_mem_live();
    unsigned char       first  = 0;
    size_t              n      = 1;

    for (;; n++) {
        ls_mem_fail_at(n);
        const ls_status_t status = open_and_read(file.path, &first);

        ls_mem_fail_at(0);
        CHECK_EQ_INT(ls_mem_live(), before);
        if (status == LS_OK) {
            break;
        }
        CHECK_EQ_INT(status, LS_ERR_NO_MEMORY);
        CHECK_STR(ls_last_error(), "no memory");
    }
    CHECK(n > 5);
    CHECK_EQ_INT(first, expected);
    close(file.fd);
}

static void test_memory_that_runs_out_is_an_error(void)
{
    unsigned char file[FILE_ROOM];

    fail_each_allocation(file, make_gzip_idx(file), 7);
    fail_each_allocation(file, make_tfrecord(file), 'x');
    fail_each_allocation(file, make_npy(file), 7);
}

static void test_checksums_agree_with_and_without_instructions(void)
{
    unsigned char bytes[1000];

    for (size_t i = 0; i < sizeof(bytes); i++) {
        bytes[i] = (unsigned char)(i * i + 3 * i);
    }
    for (size_t count = 0; count < sizeof(bytes) - 8; count++) {
        const unsigned char *from   = bytes + count % 8;
        const uint32_t       before = (uint32_t)count * 77;

        CHECK_EQ_INT(ls_crc_32(before, from, count), ls_crc_32_plain(before, from, count));
        CHECK_EQ_INT(ls_crc_32c(before, from, count), ls_crc_32c_plain(before, from, count));
    }
    CHECK_EQ_INT(ls_crc_32(0, "123456789", 9), 0xcbf43926);
    CHECK_EQ_INT(ls_crc_32c(0, "123456789", 9), 0xe3069283);
}

static void test_blocks_cover_all_rows_once(void)
{
    for (unsigned size = 1; size < 9; size++) {
        for (uint64_t rows = 0; rows < 30; rows++) {
            uint64_t next = 0, first, count;

            for (unsigned rank = 0; rank < size; rank++) {
                ls_data_block(rows, size, rank, &first, &count);
                CHECK_EQ_INT(first, next);
                CHECK_EQ_INT(count, rows / size + (rank < rows % size));
                next = first + count;
            }
            CHECK_EQ_INT(next, rows);
        }
    }
}

/* Rank 1 of 2 has failed; what rank 0 hears is in `arg`. */
static ls_status_t other_rank_failed(void *arg, const void *mine, size_t bytes, void *all)
{
    memcpy(all, mine, bytes);
    memcpy((char *)all + bytes, arg, bytes);
    return LS_OK;
}

static void test_the_error_of_one_rank_is_the_error_of_all(void)
{
    struct {
        int32_t status;
        char    message[1000];
    } other = {.status = LS_ERR_INVALID, .message = "train.csv: row 7, byte 90: a column is missing"};
    const ls_data_part_t part = {.rank = 0, .size = 2, .allgather = other_rank_failed, .arg = &other};

    CHECK_EQ_INT(ls_part_agree(&part, LS_OK), LS_ERR_INVALID);
    CHECK_STR(ls_last_error(), "train.csv: row 7, byte 90: a column is missing (found by rank 1)");
    other.status = LS_OK;
    CHECK_EQ_INT(ls_part_agree(&part, LS_OK), LS_OK);
}

static void test_wrong_arguments_are_errors(void)
{
    unsigned char           file[FILE_ROOM];
    const memory_file_t     memory     = put_into_file(file, make_npy(file));
    const ls_data_options_t wrong_part = {.part = {.rank = 2, .size = 2}};
    unsigned char           rows[100];
    ls_data_column_t        twice[2] = {{.data = rows}, {.data = rows}}, none = {.field = 9};
    ls_data_h               data;

    CHECK_EQ_INT(ls_data_open(memory.path, &wrong_part, &data), LS_ERR_INVALID);
    CHECK_STR(ls_last_error(), "rank 2 is not one of 2 ranks");
    CHECK_EQ_INT(ls_data_open(NULL, NULL, &data), LS_ERR_INVALID);
    CHECK_EQ_INT(ls_data_open_files(NULL, 0, NULL, &data), LS_ERR_INVALID);
    CHECK_EQ_INT(ls_data_open(memory.path, NULL, &data), LS_OK);
    CHECK_EQ_INT(ls_data_read(data, 0, 1, twice, 2), LS_ERR_INVALID);
    CHECK_STR(ls_last_error(), "asked for twice");
    CHECK_EQ_INT(ls_data_read(data, 0, 1, &none, 1), LS_ERR_INVALID);
    CHECK_EQ_INT(ls_data_read(data, 99, 2, twice, 1), LS_ERR_INVALID);
    CHECK_EQ_INT(ls_data_read(data, UINT64_MAX, 2, twice, 1), LS_ERR_INVALID);
    CHECK_EQ_INT(ls_data_read(data, 99, 1, twice, 1), LS_OK);
    ls_data_close(data);
    ls_data_close(NULL);
    close(memory.fd);
}

#define PLACES 3

typedef struct places {
    char     bytes[PLACES][16];
    size_t   lengths[PLACES];
    uint64_t num; /* that are given; no memory for more */
} places_t;

static void *give_place(void *arg, uint64_t row, size_t length)
{
    places_t *places = arg;

    if (row >= places->num) {
        return NULL;
    }
    places->lengths[row] = length;
    return places->bytes[row];
}

static void test_each_row_goes_to_the_place_given_for_it(void)
{
    static const char   text[] = "a,b\n1,x\n2,\"y \"\"z\"\"\"\n3,\n";
    const memory_file_t memory = put_into_file((const unsigned char *)text, sizeof(text) - 1);
    const uint64_t      rows[] = {1, 0, 2};
    places_t            places = {.num = PLACES};
    ls_data_column_t    column = {.field = 1, .place = give_place, .place_arg = &places};
    ls_data_h           data;

    CHECK_EQ_INT(ls_data_open(memory.path, NULL, &data), LS_OK);
    CHECK_EQ_INT(ls_data_read_at(data, rows, PLACES, &column, 1), LS_OK);
    CHECK_EQ_INT(column.num_rows, PLACES);
    CHECK(places.lengths[0] == 5 && memcmp(places.bytes[0], "y \"z\"", 5) == 0);
    CHECK(places.lengths[1] == 1 && places.bytes[1][0] == 'x');
    CHECK_EQ_INT(places.lengths[2], 0);
    places.num = 2;
    CHECK_EQ_INT(ls_data_read(data, 0, PLACES, &column, 1), LS_ERR_NO_MEMORY);
    CHECK_STR(ls_last_error(), "no memory for a row of 0 bytes");
    ls_data_close(data);
    close(memory.fd);
}

int main(void)
{
    RUN(test_each_row_goes_to_the_place_given_for_it);
    RUN(test_memory_that_runs_out_is_an_error);
    RUN(test_checksums_agree_with_and_without_instructions);
    RUN(test_blocks_cover_all_rows_once);
    RUN(test_the_error_of_one_rank_is_the_error_of_all);
    RUN(test_wrong_arguments_are_errors);
    return check_report();
}

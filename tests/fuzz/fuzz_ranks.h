/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several ranks, which are threads, open the same file together and exchange what they find, as ranks of a
 * job do. All of them fail, or all see the rows that a rank sees that opens the file by itself.
 */
#ifndef LS_TESTS_FUZZ_RANKS_H
#define LS_TESTS_FUZZ_RANKS_H

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "lockstep_data.h"

#define FUZZ_RANKS       3
#define FUZZ_MOST_FIELDS 8

typedef struct fuzz_job {
    const char       *path, *format;
    pthread_barrier_t barrier;
    const void       *sent[FUZZ_RANKS];
    size_t            bytes[FUZZ_RANKS];
} fuzz_job_t;

/* A column as it comes ahead; texts lie one after another. */
typedef struct fuzz_came {
    char     *memory;
    size_t    bytes;
    uint64_t *ends;
} fuzz_came_t;

typedef struct fuzz_rank {
    fuzz_job_t  *job;
    unsigned     number;
    ls_data_h    data; /* NULL: it could not be opened */
    fuzz_came_t *came; /* one for each column; NULL: nothing was given ahead */
    unsigned     num_came;
} fuzz_rank_t;

static inline ls_status_t fuzz_room(void *arg, const ls_data_field_t *fields, unsigned num_fields,
                                    uint64_t rows, ls_data_column_t *columns)
{
    fuzz_rank_t *rank = arg;

    if (rank->came == NULL) {
        rank->came     = calloc(num_fields, sizeof(*rank->came));
        rank->num_came = num_fields;
    }
    for (unsigned i = 0; i < num_fields; i++) {
        if (fields[i].type == LS_DATA_BYTES) {
            rank->came[i].ends = realloc(rank->came[i].ends, (rows + 1) * sizeof(uint64_t));
        } else {
            columns[i].data = rank->came[i].memory =
                realloc(rank->came[i].memory, rows * fields[i].row_bytes + 1);
        }
    }
    return LS_OK;
}

static inline ls_status_t fuzz_texts(void *arg, uint64_t first, uint64_t count, ls_data_column_t *columns)
{
    const fuzz_rank_t *rank = arg;

    for (unsigned i = 0; i < rank->num_came; i++) {
        fuzz_came_t *came = &rank->came[i];

        if (came->ends == NULL) {
            continue;
        }
        if (columns[i].num_rows != count) {
            abort();
        }
        came->memory = realloc(came->memory, came->bytes + columns[i].offsets[count] + 1);
        memcpy(came->memory + came->bytes, columns[i].data, columns[i].offsets[count]);
        came->ends[0] = 0;
        for (uint64_t row = 0; row < count; row++) {
            came->ends[first + row + 1] = came->bytes + columns[i].offsets[row + 1];
        }
        came->bytes += columns[i].offsets[count];
    }
    return LS_OK;
}

static inline void fuzz_forget(fuzz_rank_t *rank)
{
    for (unsigned i = 0; i < rank->num_came; i++) {
        free(rank->came[i].memory);
        free(rank->came[i].ends);
    }
    free(rank->came);
}

/* A rank that does not come leaves the others waiting, which the fuzzer's time limit finds. */
static inline ls_status_t fuzz_allgather(void *arg, const void *mine, size_t bytes, void *all)
{
    const fuzz_rank_t *rank = arg;
    fuzz_job_t        *job  = rank->job;

    job->sent[rank->number]  = mine;
    job->bytes[rank->number] = bytes;
    pthread_barrier_wait(&job->barrier);
    for (unsigned i = 0; i < FUZZ_RANKS; i++) {
        if (job->bytes[i] != bytes) {
            abort();
        }
        memcpy((char *)all + i * bytes, job->sent[i], bytes);
    }
    pthread_barrier_wait(&job->barrier);
    return LS_OK;
}

static inline void *fuzz_open_as_rank(void *arg)
{
    fuzz_rank_t            *rank    = arg;
    const ls_data_ahead_t   ahead   = {.room = fuzz_room, .texts = fuzz_texts, .arg = rank};
    const ls_data_options_t options = {
        .format = rank->job->format,
        .ahead  = &ahead,
        .part   = {.rank = rank->number, .size = FUZZ_RANKS, .allgather = fuzz_allgather, .arg = rank},
    };

    if (ls_data_open(rank->job->path, &options, &rank->data) != LS_OK) {
        rank->data = NULL;
    }
    return NULL;
}

/* Both have these rows of the field, and the same in them; or neither can be read. */
static inline void fuzz_same_rows(ls_data_h alone, ls_data_h together, unsigned field, uint64_t first,
                                  uint64_t count)
{
    const ls_data_field_t *about    = &ls_data_info(alone)->fields[field];
    const int              is_bytes = about->type == LS_DATA_BYTES;
    ls_data_column_t       columns[2];
    ls_status_t            status[2];

    for (unsigned i = 0; i < 2; i++) {
        columns[i] = (ls_data_column_t){.field = field,
                                        .data  = is_bytes ? NULL : malloc(count * about->row_bytes + 1)};
        status[i]  = ls_data_read(i == 0 ? alone : together, first, count, &columns[i], 1);
    }
    if ((status[0] == LS_OK) != (status[1] == LS_OK)) {
        abort();
    }
    if (status[0] == LS_OK && count > 0) {
        const size_t offsets = is_bytes ? (count + 1) * sizeof(uint64_t) : 0;

        if ((is_bytes && memcmp(columns[0].offsets, columns[1].offsets, offsets) != 0) ||
            memcmp(columns[0].data, columns[1].data,
                   is_bytes ? columns[0].offsets[count] : count * about->row_bytes) != 0) {
            abort();
        }
    }
    for (unsigned i = 0; i < 2; i++) {
        if (is_bytes) {
            ls_data_column_clear(&columns[i]);
        } else {
            free(columns[i].data);
        }
    }
}

/* What came ahead is what is there. */
static inline void fuzz_same_ahead(ls_data_h alone, const fuzz_rank_t *rank, unsigned field)
{
    const ls_data_field_t *about    = &ls_data_info(alone)->fields[field];
    const fuzz_came_t     *came     = &rank->came[field];
    const int              is_bytes = about->type == LS_DATA_BYTES;
    uint64_t               first;
    const uint64_t         count  = ls_data_ahead_rows(rank->data, &first);
    ls_data_column_t       column = {.field = field,
                                     .data  = is_bytes ? NULL : malloc(count * about->row_bytes + 1)};

    if (count > 0 && (ls_data_read(alone, first, count, &column, 1) != LS_OK ||
                      (is_bytes && memcmp(came->ends, column.offsets, (count + 1) * sizeof(uint64_t)) != 0) ||
                      memcmp(came->memory, column.data,
                             is_bytes ? column.offsets[count] : count * about->row_bytes) != 0)) {
        abort();
    }
    if (is_bytes) {
        ls_data_column_clear(&column);
    } else {
        free(column.data);
    }
}

static inline void fuzz_compare(ls_data_h alone, const fuzz_rank_t *rank, uint64_t most_rows)
{
    const ls_data_info_t *one = ls_data_info(alone), *other = ls_data_info(rank->data);

    if (one->num_fields != other->num_fields) {
        abort();
    }
    for (unsigned i = 0; i < one->num_fields && i < FUZZ_MOST_FIELDS; i++) {
        const ls_data_field_t *field = &one->fields[i];
        uint64_t               first, count;

        if (field->type != other->fields[i].type || field->num_rows != other->fields[i].num_rows ||
            field->row_bytes != other->fields[i].row_bytes) {
            abort();
        }
        ls_data_block(field->num_rows, FUZZ_RANKS, rank->number, &first, &count);
        if (count <= most_rows && count * field->row_bytes <= (8UL << 20)) {
            fuzz_same_rows(alone, rank->data, i, first, count);
            if (rank->came != NULL) {
                fuzz_same_ahead(alone, rank, i);
            }
        }
    }
}

static inline void fuzz_ranks(const char *path, const char *format)
{
    const ls_data_options_t options           = {.format = format, .part = {.size = FUZZ_RANKS}};
    fuzz_job_t              job               = {.path = path, .format = format};
    fuzz_rank_t             ranks[FUZZ_RANKS] = {0};
    pthread_t               threads[FUZZ_RANKS];
    ls_data_h               alone = NULL;

    if (ls_data_open(path, &options, &alone) != LS_OK) {
        alone = NULL;
    }
    pthread_barrier_init(&job.barrier, NULL, FUZZ_RANKS);
    for (unsigned i = 0; i < FUZZ_RANKS; i++) {
        ranks[i] = (fuzz_rank_t){.job = &job, .number = i};
        pthread_create(&threads[i], NULL, fuzz_open_as_rank, &ranks[i]);
    }
    for (unsigned i = 0; i < FUZZ_RANKS; i++) {
        pthread_join(threads[i], NULL);
    }
    for (unsigned i = 0; i < FUZZ_RANKS; i++) {
        if ((alone == NULL) != (ranks[i].data == NULL)) {
            abort();
        }
        if (alone != NULL) {
            fuzz_compare(alone, &ranks[i], 100000);
            ls_data_close(ranks[i].data);
        }
        fuzz_forget(&ranks[i]);
    }
    ls_data_close(alone);
    pthread_barrier_destroy(&job.barrier);
}

#endif

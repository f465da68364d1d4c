/* SPDX-License-Identifier: Apache-2.0 */
/* The public functions: one data set of one file or several. */
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "data/data_fields.h"
#include "data/formats.h"
#include "data/options.h"
#include "data/part.h"
#include "data/paths.h"

struct ls_data {
    const ls_reader_ops_t *ops;
    ls_data_options_t      options;
    ls_paths_t             paths;
    ls_reader_h           *readers; /* one, or one per path */
    unsigned               num_readers;
    uint64_t              *starts; /* first row of each reader, and the end */
    ls_data_fields_t       fields; /* what the caller sees */
    pthread_mutex_t        lock;   /* for readers that are not parallel */
};

const char *ls_data_type_name(ls_data_type_t type)
{
    static const char *const names[] = {
#define TYPE_NAME(_type, _name, _size) _name,
        LS_DATA_TYPE_LIST(TYPE_NAME)
#undef TYPE_NAME
    };

    return type >= 0 && type < LS_DATA_TYPE_COUNT ? names[type] : "?";
}

size_t ls_data_type_size(ls_data_type_t type)
{
    static const size_t sizes[] = {
#define TYPE_SIZE(_type, _name, _size) _size,
        LS_DATA_TYPE_LIST(TYPE_SIZE)
#undef TYPE_SIZE
    };

    return type >= 0 && type < LS_DATA_TYPE_COUNT ? sizes[type] : 0;
}

void ls_data_block(uint64_t num_rows, unsigned size, unsigned rank, uint64_t *first_p, uint64_t *count_p)
{
    const uint64_t each = num_rows / size, more = num_rows % size;

    *first_p = rank * each + (rank < more ? rank : more);
    *count_p = each + (rank < more ? 1 : 0);
}

/* ---- open
 * ---------------------------------------------------------------------------------------------------------
 */

static ls_status_t find_files(struct ls_data *data, const char *const *paths, unsigned num_paths)
{
    ls_status_t status = num_paths > 0 ? LS_OK : ls_error_set(LS_ERR_INVALID, "no file is named");

    for (unsigned i = 0; i < num_paths && status == LS_OK; i++) {
        status = paths[i] != NULL ? ls_paths_add(&data->paths, paths[i])
                                  : ls_error_set(LS_ERR_INVALID, "path %u is NULL", i);
    }
    return status == LS_OK ? ls_formats_find(data->paths.names[0], data->options.format, &data->ops) : status;
}

static ls_status_t open_readers(struct ls_data *data)
{
    const unsigned count  = data->ops->takes_many ? 1 : data->paths.count;
    ls_status_t    status = ls_mem_alloc(count * sizeof(*data->readers), "readers", (void **)&data->readers);

    while (status == LS_OK && data->num_readers < count) {
        const ls_reader_params_t params = {
            .paths     = (const char *const *)data->paths.names + data->num_readers,
            .num_paths = data->ops->takes_many ? data->paths.count : 1,
            .options   = &data->options,
        };

        status = data->ops->open(&params, &data->readers[data->num_readers]);
        if (status == LS_OK) {
            data->num_readers++;
        }
    }
    return status;
}

static ls_status_t join_readers(struct ls_data *data)
{
    const ls_data_info_t *first = data->ops->info(data->readers[0]);
    ls_status_t status = ls_mem_alloc((data->num_readers + 1) * sizeof(*data->starts), "rows of each file",
                                      (void **)&data->starts);

    for (unsigned i = 0; i < data->num_readers && status == LS_OK; i++) {
        const ls_data_info_t *info = data->ops->info(data->readers[i]);

        if (data->num_readers > 1) {
            status = ls_data_fields_agree(first, info, data->paths.names[0], data->paths.names[i]);
        }
        data->starts[i + 1] = data->starts[i] + (info->num_fields > 0 ? info->fields[0].num_rows : 0);
    }
    if (status == LS_OK) {
        status = ls_data_fields_choose(first, &data->options, data->paths.names[0], &data->fields);
    }
    if (status == LS_OK && data->num_readers > 1) {
        ls_data_fields_set_rows(&data->fields, data->starts[data->num_readers]);
    }
    return status == LS_OK
               ? ls_data_fields_enough(&data->fields, data->options.part.size, data->paths.names[0])
               : status;
}

static ls_status_t open_all(struct ls_data *data, const char *const *paths, unsigned num_paths)
{
    ls_status_t status = ls_part_agree(&data->options.part, find_files(data, paths, num_paths));

    if (status != LS_OK) {
        return status;
    }
    status = open_readers(data);
    if (status == LS_OK) {
        status = join_readers(data);
    }
    return ls_part_agree(&data->options.part, status);
}

ls_status_t ls_data_open_files(const char *const *paths, unsigned num_paths, const ls_data_options_t *options,
                               ls_data_h *data_p)
{
    struct ls_data *data   = NULL;
    ls_status_t     status = ls_mem_alloc(sizeof(*data), "data set", (void **)&data);

    if (status != LS_OK) {
        return status;
    }
    pthread_mutex_init(&data->lock, NULL);
    status = ls_options_copy(options, &data->options);
    if (status == LS_OK) {
        status = open_all(data, paths, num_paths);
    }
    if (status != LS_OK) {
        ls_data_close(data);
        return status;
    }
    *data_p = data;
    return LS_OK;
}

ls_status_t ls_data_open(const char *path, const ls_data_options_t *options, ls_data_h *data_p)
{
    return ls_data_open_files(&path, 1, options, data_p);
}

void ls_data_close(ls_data_h data)
{
    if (data == NULL) {
        return;
    }
    for (unsigned i = 0; i < data->num_readers; i++) {
        data->ops->close(data->readers[i]);
    }
    ls_mem_free(data->readers);
    ls_mem_free(data->starts);
    ls_data_fields_clear(&data->fields);
    ls_paths_clear(&data->paths);
    ls_options_clear(&data->options);
    pthread_mutex_destroy(&data->lock);
    ls_mem_free(data);
}

const ls_data_info_t *ls_data_info(ls_data_h data)
{
    return &data->fields.info;
}

uint64_t ls_data_ahead_rows(ls_data_h data, uint64_t *first_p)
{
    *first_p = 0;
    return data->ops->ahead != NULL && data->num_readers == 1 ? data->ops->ahead(data->readers[0], first_p)
                                                              : 0;
}

/* ---- read
 * ---------------------------------------------------------------------------------------------------------
 */

static ls_status_t check_columns(struct ls_data *data, const ls_data_column_t *columns, unsigned num_columns)
{
    for (unsigned i = 0; i < num_columns; i++) {
        if (columns[i].field >= data->fields.info.num_fields) {
            return ls_error_set(LS_ERR_INVALID, "%s: there is no field %u, only %u", data->paths.names[0],
                                columns[i].field, data->fields.info.num_fields);
        }
        for (unsigned j = 0; j < i; j++) {
            if (columns[j].field == columns[i].field) {
                return ls_error_set(LS_ERR_INVALID, "%s: field %u is asked for twice", data->paths.names[0],
                                    columns[i].field);
            }
        }
    }
    return LS_OK;
}

static ls_status_t check_rows(struct ls_data *data, uint64_t first, uint64_t count,
                              const ls_data_column_t *columns, unsigned num_columns)
{
    for (unsigned i = 0; i < num_columns; i++) {
        const ls_data_field_t *field = &data->fields.info.fields[columns[i].field];

        if (first > field->num_rows || count > field->num_rows - first) {
            return ls_error_set(LS_ERR_INVALID,
                                "%s: rows %" PRIu64 " to %" PRIu64 " are asked for, field '%s' has %" PRIu64,
                                data->paths.names[0], first, first + count, field->name, field->num_rows);
        }
    }
    return LS_OK;
}

/* The reader that holds a row: the last one that begins at or before it. */
static unsigned reader_of(const struct ls_data *data, uint64_t row)
{
    unsigned low = 0, high = data->num_readers;

    while (high - low > 1) {
        const unsigned middle = low + (high - low) / 2;

        if (data->starts[middle] <= row) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

/* Rows that have been checked, of columns in the reader's numbers; data pointers move on. */
static ls_status_t read_run(struct ls_data *data, uint64_t first, uint64_t count, ls_data_column_t *columns,
                            unsigned num_columns)
{
    ls_status_t status = LS_OK;

    do {
        const unsigned reader = reader_of(data, first);
        const uint64_t here   = data->num_readers > 1 && data->starts[reader + 1] - first < count
                                    ? data->starts[reader + 1] - first
                                    : count;

        if (!data->ops->is_parallel) {
            pthread_mutex_lock(&data->lock);
        }
        status =
            data->ops->read(data->readers[reader], first - data->starts[reader], here, columns, num_columns);
        if (!data->ops->is_parallel) {
            pthread_mutex_unlock(&data->lock);
        }
        for (unsigned i = 0; i < num_columns; i++) {
            const uint64_t row_bytes = data->fields.all[columns[i].field].row_bytes;

            if (row_bytes > 0) {
                columns[i].data = (char *)columns[i].data + here * row_bytes;
            }
        }
        first += here;
        count -= here;
    } while (status == LS_OK && count > 0);
    return status;
}

/* Copies of the columns with the reader's field numbers; `begin` or, back again, `end`. */
static ls_status_t begin(struct ls_data *data, const ls_data_column_t *columns, unsigned num_columns,
                         ls_data_column_t **own_p)
{
    ls_data_column_t *own    = NULL;
    ls_status_t       status = check_columns(data, columns, num_columns);

    if (status == LS_OK) {
        status = ls_mem_alloc(num_columns * sizeof(*own), "columns", (void **)&own);
    }
    if (status != LS_OK) {
        return status;
    }
    memcpy(own, columns, num_columns * sizeof(*own));
    for (unsigned i = 0; i < num_columns; i++) {
        own[i].field    = data->fields.chosen[columns[i].field];
        own[i].num_rows = 0;
    }
    *own_p = own;
    return LS_OK;
}

static void end(struct ls_data *data, ls_data_column_t *own, ls_data_column_t *columns, unsigned num_columns)
{
    for (unsigned i = 0; i < num_columns; i++) {
        if (data->fields.all[own[i].field].type == LS_DATA_BYTES) {
            const unsigned field = columns[i].field;

            columns[i]       = own[i];
            columns[i].field = field;
        }
    }
    ls_mem_free(own);
}

ls_status_t ls_data_read(ls_data_h data, uint64_t first, uint64_t count, ls_data_column_t *columns,
                         unsigned num_columns)
{
    ls_data_column_t *own    = NULL;
    ls_status_t       status = begin(data, columns, num_columns, &own);

    if (status != LS_OK) {
        return status;
    }
    status = check_rows(data, first, count, columns, num_columns);
    if (status == LS_OK && count > 0) {
        status = read_run(data, first, count, own, num_columns);
    }
    end(data, own, columns, num_columns);
    return status;
}

ls_status_t ls_data_read_at(ls_data_h data, const uint64_t *rows, uint64_t count, ls_data_column_t *columns,
                            unsigned num_columns)
{
    ls_data_column_t *own    = NULL;
    ls_status_t       status = begin(data, columns, num_columns, &own);
    uint64_t          run;

    if (status != LS_OK) {
        return status;
    }
    for (uint64_t i = 0; i < count && status == LS_OK; i += run) {
        for (run = 1; i + run < count && rows[i + run] == rows[i] + run; run++) {
        }
        status = check_rows(data, rows[i], run, columns, num_columns);
        if (status == LS_OK) {
            status = read_run(data, rows[i], run, own, num_columns);
        }
    }
    end(data, own, columns, num_columns);
    return status;
}

ls_status_t ls_data_map(ls_data_h data, unsigned field, const void **rows_p)
{
    const ls_data_column_t column = {.field = field};
    const ls_status_t      status = check_columns(data, &column, 1);

    if (status != LS_OK) {
        return status;
    }
    if (data->ops->map == NULL || data->num_readers > 1) {
        return ls_error_set(LS_ERR_UNSUPPORTED,
                            "%s: only a single file of a plain format can be mapped, not %s",
                            data->paths.names[0], data->ops->title);
    }
    return data->ops->map(data->readers[0], data->fields.chosen[field], rows_p);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "data/column.h"

#include "base/error.h"
#include "base/mem.h"

/* Twice as much each time, so that many rows cost few copies. */
static ls_status_t grow(void **memory_p, size_t *room_p, size_t needed)
{
    if (needed <= *room_p) {
        return LS_OK;
    }
    const size_t      room   = needed < *room_p * 2 ? *room_p * 2 : needed;
    const ls_status_t status = ls_mem_resize(memory_p, *room_p, room, "rows of different length");

    if (status == LS_OK) {
        *room_p = room;
    }
    return status;
}

ls_status_t ls_column_reserve(ls_data_column_t *column, uint64_t rows, uint64_t bytes)
{
    if (column->place != NULL) {
        return LS_OK;
    }
    const size_t used   = column->num_rows > 0 ? column->offsets[column->num_rows] : 0;
    ls_status_t  status = grow((void **)&column->offsets, &column->offsets_room,
                               (column->num_rows + rows + 1) * sizeof(uint64_t));

    /* one more, so that there is memory also for rows without bytes */
    return status == LS_OK ? grow(&column->data, &column->data_room, used + bytes + 1) : status;
}

static ls_status_t append_elsewhere(ls_data_column_t *column, size_t length, void **room_p)
{
    void *const room = column->place(column->place_arg, column->num_rows, length);

    if (room == NULL) {
        return ls_error_set(LS_ERR_NO_MEMORY, "no memory for a row of %zu bytes", length);
    }
    column->num_rows++;
    *room_p = room;
    return LS_OK;
}

ls_status_t ls_column_append(ls_data_column_t *column, size_t length, void **room_p)
{
    if (column->place != NULL) {
        return append_elsewhere(column, length, room_p);
    }
    const ls_status_t status = ls_column_reserve(column, 1, length);

    if (status != LS_OK) {
        return status;
    }
    const size_t used = column->num_rows > 0 ? column->offsets[column->num_rows] : 0;

    column->offsets[0]                  = 0;
    column->offsets[++column->num_rows] = used + length;
    *room_p                             = (char *)column->data + used;
    return LS_OK;
}

void ls_data_column_clear(ls_data_column_t *column)
{
    ls_mem_free(column->data);
    ls_mem_free(column->offsets);
    *column =
        (ls_data_column_t){.field = column->field, .place = column->place, .place_arg = column->place_arg};
}

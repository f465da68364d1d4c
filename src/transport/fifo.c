/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/fifo.h"

#include <string.h>

#include "base/mem.h"

#define FIRST_ROOM 16

static char *item_at(const ls_fifo_t *fifo, size_t index)
{
    return fifo->items + ((fifo->first + index) & (fifo->room - 1)) * fifo->item_bytes;
}

ls_status_t ls_fifo_reserve(ls_fifo_t *fifo, const char *tag)
{
    const size_t room = (fifo->room == 0) ? FIRST_ROOM : 2 * fifo->room;
    ls_status_t  status;
    void        *larger;

    if (fifo->count < fifo->room) {
        return LS_OK;
    }
    status = ls_mem_alloc(room * fifo->item_bytes, tag, &larger);
    if (status != LS_OK) {
        return status;
    }
    for (size_t i = 0; i < fifo->count; i++) {
        memcpy((char *)larger + i * fifo->item_bytes, item_at(fifo, i), fifo->item_bytes);
    }
    ls_mem_free(fifo->items);
    fifo->items = larger;
    fifo->room  = room;
    fifo->first = 0;
    return LS_OK;
}

void *ls_fifo_push(ls_fifo_t *fifo)
{
    return item_at(fifo, fifo->count++);
}

void *ls_fifo_peek(const ls_fifo_t *fifo)
{
    return (fifo->count == 0) ? NULL : item_at(fifo, 0);
}

void ls_fifo_pop(ls_fifo_t *fifo)
{
    fifo->first = (fifo->first + 1) & (fifo->room - 1);
    fifo->count--;
}

void ls_fifo_destroy(ls_fifo_t *fifo)
{
    ls_mem_free(fifo->items);
    *fifo = (ls_fifo_t){.item_bytes = fifo->item_bytes};
}

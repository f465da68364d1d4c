/* SPDX-License-Identifier: Apache-2.0 */
/* A growable first-in, first-out row of equal items; allocates only when it is longer than ever before. */
#ifndef LS_TRANSPORT_FIFO_H
#define LS_TRANSPORT_FIFO_H

#include <stddef.h>

#include "lockstep.h"

typedef struct ls_fifo {
    size_t item_bytes; /* set by the owner; the rest zero-initialised: empty */
    char  *items;
    size_t room; /* a power of two, or 0 */
    size_t first, count;
} ls_fifo_t;

/* Make sure that the next push has room. */
ls_status_t ls_fifo_reserve(ls_fifo_t *fifo, const char *tag);

/* The new last item, to be filled; after a successful reserve. */
void *ls_fifo_push(ls_fifo_t *fifo);

/* The oldest item, or NULL; valid until the next push. */
void *ls_fifo_peek(const ls_fifo_t *fifo);
void  ls_fifo_pop(ls_fifo_t *fifo);
void  ls_fifo_destroy(ls_fifo_t *fifo);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pool of stages.  A stage is got, filled and sent; it is free again when its receivers have counted
 * `pending` down to 0, which the pool sees when it next looks.  The pool never waits: it grows.
 */
#ifndef LS_TRANSPORT_STAGE_H
#define LS_TRANSPORT_STAGE_H

#include "base/mem.h"
#include "transport/mailbox.h"
#include "transport/transport.h"

/* The head sits in a cache line of its own right before the data. */
#define LS_STAGE_HEAD_BYTES LS_CACHE_LINE

static inline ls_stage_head_t *ls_stage_head_of(void *data)
{
    return (ls_stage_head_t *)(void *)((char *)data - LS_STAGE_HEAD_BYTES);
}

typedef struct ls_stage_pool *ls_stage_pool_h;

/* mailbox NULL: stages are heap memory.  Destroy before the mailbox, when no stage is needed any more. */
ls_status_t ls_stage_pool_create(ls_mailbox_h mailbox, ls_stage_pool_h *pool_p);
void        ls_stage_pool_destroy(ls_stage_pool_h pool);

ls_status_t ls_stage_get(ls_stage_pool_h pool, size_t bytes, ls_stage_t **stage_p);
void        ls_stage_put(ls_stage_pool_h pool, ls_stage_t *stage); /* unsent */

/* The stage's `pending` is set: watch it. */
void ls_stage_sent(ls_stage_pool_h pool, ls_stage_t *stage);

/* Bytes of stages that were sent and are not back. */
size_t ls_stage_bytes_out(ls_stage_pool_h pool);

/* Memory the pool has taken so far, in bytes, and stages made of it. */
void ls_stage_pool_size(ls_stage_pool_h pool, size_t *bytes_p, size_t *num_stages_p);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request: what a caller handed in, from the call to `done`.
 * Made in the caller's thread, then owned by the engine.
 */
#ifndef LS_ENGINE_REQUEST_H
#define LS_ENGINE_REQUEST_H

#include "base/queue.h"
#include "schedule/schedule.h"

typedef enum ls_request_kind {
    LS_REQUEST_COLLECTIVE,
    LS_REQUEST_NOTHING, /* ends at once: a group without tensors */
    LS_REQUEST_JOIN,
    LS_REQUEST_STOP,
    LS_REQUEST_DUMP
} ls_request_kind_t;

/* Requests that end together. */
typedef struct ls_request_group {
    unsigned    num_open; /* owner: the engine */
    ls_status_t status;
    char       *message; /* of the first failure, or NULL */
    ls_done_fn  done;
    void       *arg;
} ls_request_group_t;

typedef struct ls_request {
    ls_queue_link_t     link; /* first member */
    ls_request_kind_t   kind;
    ls_schedule_item_t  item;
    const void         *input;
    void               *output;
    double              weight;
    ls_context_h        watcher; /* is told of NaN in the input, see unfinite.h; NULL: nobody */
    ls_output_fn        output_fn;
    uint64_t           *send_counts; /* alltoall */
    ls_done_fn          done;
    void               *arg;
    ls_request_group_t *group; /* NULL: on its own */
    int                 fd;    /* dump */
    int32_t            *widened; /* see widen.h; NULL for almost all */
    void               *narrow;
    uint64_t            narrow_count;
    char                name[]; /* item.name points here */
} ls_request_t;

static inline ls_request_t *ls_request_of_item(ls_schedule_item_t *item)
{
    return (ls_request_t *)((char *)item - offsetof(ls_request_t, item));
}

ls_status_t ls_request_create(ls_request_kind_t kind, const char *name, ls_request_t **request_p);

/* Check the arguments of one tensor and fill the request; LS_ERR_INVALID names the tensor. */
ls_status_t ls_request_set_tensor(ls_request_t *request, const ls_tensor_t *tensor, ls_coll_t coll);
ls_status_t ls_request_set_reduce(ls_request_t *request, const ls_reduce_t *reduce);

/* Call `done` (for a group: when it is the last) and free. */
void ls_request_finish(ls_request_t *request, ls_status_t status, const char *message);
void ls_request_destroy(ls_request_t *request); /* without calling anything */

#endif

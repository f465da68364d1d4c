/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many threads push, one at a time takes all: the place where the callers' threads and the engine
 * meet.  Lock-free; the links live in what is queued.
 */
#ifndef LS_BASE_QUEUE_H
#define LS_BASE_QUEUE_H

#include <stdatomic.h>
#include <stddef.h>

typedef struct ls_queue_link {
    struct ls_queue_link *next;
} ls_queue_link_t;

typedef struct ls_queue {
    _Atomic(ls_queue_link_t *) newest;
} ls_queue_t; /* zero-initialised: empty */

static inline void ls_queue_push(ls_queue_t *queue, ls_queue_link_t *link)
{
    link->next = atomic_load_explicit(&queue->newest, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&queue->newest, &link->next, link,
                                                  memory_order_release, memory_order_relaxed)) {
    }
}

/* Everything pushed so far, oldest first, as a list ended by NULL. */
static inline ls_queue_link_t *ls_queue_take_all(ls_queue_t *queue)
{
    ls_queue_link_t *oldest = NULL;
    ls_queue_link_t *link;

    if (atomic_load_explicit(&queue->newest, memory_order_relaxed) == NULL) {
        return NULL;
    }
    link = atomic_exchange_explicit(&queue->newest, NULL, memory_order_acquire);
    while (link != NULL) {
        ls_queue_link_t *next = link->next;

        link->next = oldest;
        oldest     = link;
        link       = next;
    }
    return oldest;
}

static inline int ls_queue_is_empty(ls_queue_t *queue)
{
    return atomic_load(&queue->newest) == NULL;
}

#endif

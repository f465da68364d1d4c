/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A segment: a stretch of memory that other ranks of the node can map.
 * Anonymous (memfd), so that no name is left behind, and with its room claimed at creation, so that a full
 * machine is an error here and not a SIGBUS when the memory is touched.
 */
#ifndef LS_TRANSPORT_SEGMENT_H
#define LS_TRANSPORT_SEGMENT_H

#include <stddef.h>
#include <stdint.h>

#include "lockstep.h"

typedef enum ls_segment_kind {
    LS_SEGMENT_NONE,     /* zero-initialised: nothing to destroy */
    LS_SEGMENT_SHARED,   /* memfd, created here; fd stays open for the peers */
    LS_SEGMENT_OPENED,   /* a peer's memfd, mapped */
    LS_SEGMENT_HEAP,     /* ranks are threads: plain memory */
    LS_SEGMENT_BORROWED, /* the same, of another rank */
    LS_SEGMENT_KIND_COUNT
} ls_segment_kind_t;

typedef struct ls_segment {
    ls_segment_kind_t kind;
    int               fd; /* LS_SEGMENT_SHARED; else -1 */
    void             *base;
    size_t            bytes;
} ls_segment_t;

/* Zeroed memory of exactly `bytes`, aligned to a cache line at least. */
ls_status_t ls_segment_create_shared(size_t bytes, ls_segment_t *segment_p);
ls_status_t ls_segment_create_heap(size_t bytes, ls_segment_t *segment_p);

/* Map what process `pid` has open as `fd`; it must be a file of exactly `bytes`. */
ls_status_t ls_segment_open(int64_t pid, int64_t fd, size_t bytes, ls_segment_t *segment_p);

/* Look at another rank's heap segment; destroy then leaves the memory alone. */
void ls_segment_borrow(void *base, size_t bytes, ls_segment_t *segment_p);

void ls_segment_destroy(ls_segment_t *segment);

#endif

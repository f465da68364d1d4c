/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The trace: what the engine did when, one file per rank in Chrome's trace format (chrome://tracing,
 * Perfetto).  Times are of the monotonic clock, so the files of one host line up.  Engine thread only.
 */
#ifndef LS_ENGINE_TRACE_H
#define LS_ENGINE_TRACE_H

#include <stdint.h>

#include "lockstep.h"

typedef struct ls_trace *ls_trace_h;

/* `directory` must exist or be creatable; the file is rank-<n>.json in it. */
ls_status_t ls_trace_create(const char *directory, unsigned rank, const char *host, ls_trace_h *trace_p);
void        ls_trace_destroy(ls_trace_h trace); /* finishes the file; NULL is allowed */

/* A span on one of the rows "request" (handed in to done), "bucket" (begun to done), "engine" (sleeping). */
typedef struct ls_trace_span {
    const char *row;
    const char *name;
    uint64_t    begin_ns, end_ns;
    uint64_t    bytes;
    const char *detail; /* may be NULL */
} ls_trace_span_t;

void ls_trace_add(ls_trace_h trace, const ls_trace_span_t *span); /* NULL trace: nothing */

#endif

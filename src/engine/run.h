/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A run: one collective over one bucket, executing a plan chunk by chunk.
 *
 * Up to LS_RUN_WINDOW chunks are under way at once; each is a pass through the plan that goes on until
 * it needs a message that has not come.  So while one chunk waits for a peer the next one is packed,
 * and all of it stays in cache.
 *
 *     chunk 0   send  .  reduce+send  .  store
 *     chunk 1         send  .  reduce+send  .  store
 *     chunk 2                send  ...
 *
 * Where a rank sends what it has reduced back to the one rank whose value it received, the result is written over the
 * message and given back.  The lines of a stage then wander to and fro between two caches, with never a copy in both:
 * 64 KiB there and back take 3 us, with a stage for each way 6 to 13 (two cores of one die of an EPYC).
 *
 * Engine thread only; never blocks.
 */
#ifndef LS_ENGINE_RUN_H
#define LS_ENGINE_RUN_H

#include "algo/algo.h"
#include "base/fault.h"
#include "engine/geometry.h"
#include "engine/writes.h"
#include "fuse/bucket.h"
#include "transport/net.h"

/* At most 8: the MPI transport tells chunks apart by their number modulo 8. */
#define LS_RUN_WINDOW 4

/* Chunk numbers of the exchange of weights and lengths that precedes some runs. */
#define LS_RUN_META_CHUNK 0x800000U

/*
 * How much may be staged at once, over all runs: as much as stays in the caches.  The oldest work is served
 * first and without limit, so ranks that work in the same order never wait for each other's budget.  Ranks
 * may work in different orders, though: when nothing moves, is_generous lets one more pass begin.
 */
typedef struct ls_budget {
    uint64_t limit, used; /* bytes */
    bool     is_free;     /* the run that now asks is the oldest */
    bool     is_generous; /* cleared by the pass that makes use of it */
    bool     is_short;    /* a pass was refused in this turn */
    uint64_t overdrawn_ns; /* when a pass that awaits nothing last began although too much was unread */
    bool     was_right;   /* a pass begun by generosity has ended: the others do work in another order */
} ls_budget_t;

/* What the runs of an engine share. */
typedef struct ls_run_shared {
    ls_net_h    net;
    ls_budget_t budget;
    ls_writes_t pack_writes, reduce_writes; /* they differ: see writes.h */
    ls_fault_t  fault; /* the engine's too */
} ls_run_shared_t;

/* One chunk on its way through the plan. */
typedef struct ls_pass {
    bool          is_active;
    uint32_t      chunk;
    uint32_t      step;         /* next to execute */
    ls_message_t *messages;     /* by position among the step's peers; data NULL: not here */
    uint32_t     *contributors; /* per block: how many ranks' values are in it */
    uint64_t      bytes;        /* taken from the budget */
    bool          is_generous;  /* begun beyond the budget */
    ls_stage_t   *packed;       /* the next SEND's data, already written by the REDUCE before it */
    ls_message_t  answered;     /* the same, written over a message that came; data NULL: none */
} ls_pass_t;

typedef struct ls_run {
    ls_run_shared_t *shared;
    const ls_plan_t *plan;
    const ls_algo_t *algo;
    uint32_t         id, iteration, first_chunk;
    bool             is_send_only; /* the plan awaits nothing, as a broadcast's root */
    uint32_t         contribution; /* 1, or 0 when this rank gives nothing */
    ls_geometry_t    geometry;
    ls_bucket_t      bucket;
    uint32_t         next_chunk, num_finished;
    ls_pass_t        passes[LS_RUN_WINDOW];
    const void     **received; /* room for num_ranks pointers */
    uint64_t         ns_copy, ns_reduce; /* added to by progress, taken by the owner */
} ls_run_t;

/* Room for passes of this plan; geometry and bucket are the caller's to fill before start. */
ls_status_t ls_run_init(ls_run_t *run, ls_run_shared_t *shared, const ls_algo_t *algo, const ls_plan_t *plan);
void        ls_run_clear(ls_run_t *run);

void ls_run_start(ls_run_t *run, uint32_t id, uint32_t iteration, uint32_t first_chunk);

/* Advance.  LS_OK: complete; LS_IN_PROGRESS: more to come; else failed.  *moved_p is set if anything was done. */
ls_status_t ls_run_progress(ls_run_t *run, bool *moved_p);

/* Give back what open passes hold, when the job is lost. */
void ls_run_abandon(ls_run_t *run);

/* Ranks whose messages the open passes wait for: calls `visit` for each, with repetitions. */
void ls_run_visit_awaited(const ls_run_t *run, void (*visit)(void *arg, uint32_t rank), void *arg);

#endif

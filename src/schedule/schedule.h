/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The schedule: what is reduced together, and when every rank knows that it may be.
 *
 * First time.  A rank that is handed a name the ranks have not agreed on reports it (name and
 * signature) to the coordinator, rank 0.  When all ranks have reported a name alike, the coordinator
 * tells everyone to run it; several that became ready together are cut into buckets.
 * From then on.  When a name comes for the second time, everything run since its first time is adopted:
 * the buckets get lasting ids, and a bucket runs as soon as all of its tensors are handed in on this
 * rank, without any message.  Only tensors that were open at the same time share a bucket.  Buckets are independent of each other, so the order in which tensors
 * become ready may differ between ranks and steps.
 * When it changes.  A name with another signature, or a bucket that stays partly filled for longer than
 * the patience, makes the coordinator freeze the bucket, ask every rank how often it has started it, and
 * - if all agree - give it up: its tensors are then agreed anew.  If a rank has already started it, the
 * others must fill it too: it is left alone, or given up when they have caught up.
 * When ranks disagree for good.  Different signatures fail the name at once on every rank that gives it,
 * with a message that shows each side; a name that some ranks do not give fails after the stall time.
 * On a rank that does not hold the name then, the next item of that name fails with the same message, so
 * that the ranks stay level.  Where some ranks have begun a bucket another cannot fill, the job is broken.
 * When a rank stops.  It says so, and what it still holds.  A name that needs a rank which has stopped fails a
 * moment later on every rank that gives it; buckets are given up, and where some have begun one that it will never fill
 * the job is broken.
 * Join.  Buckets are given up, and names are run when all ranks that have not joined gave them.
 *
 * This module does no I/O and keeps no time: it is driven by submit, receive and tick, and answers
 * through the table of functions.  All by who has the engine's turn.
 */
#ifndef LS_SCHEDULE_SCHEDULE_H
#define LS_SCHEDULE_SCHEDULE_H

#include "algo/algo.h"
#include "lockstep.h"

#define LS_SIGNATURE_MAX_DIMS 16
#define LS_SCHEDULE_NAME_ROOM 1024

/* Ids: 0 is never used; negotiated runs take 1 .. 2047 in turn, adopted buckets 2048 .. 4095. */
#define LS_SCHEDULE_FIRST_ADOPTED 2048
#define LS_SCHEDULE_NUM_IDS       4096

/* What all ranks must agree on.  count and shape[0] are free for allgather, and count for alltoall
 * (shape[0] too): ranks give different amounts there. */
typedef struct ls_signature {
    ls_coll_t  coll;
    ls_dtype_t dtype;
    ls_op_t    op;
    uint32_t   root;
    double     prescale, postscale;
    uint64_t   count;
    uint32_t   num_dims;
    int64_t    shape[LS_SIGNATURE_MAX_DIMS];
} ls_signature_t;

/* "allreduce mean float32 [3, 4]", for messages. */
void ls_signature_print(const ls_signature_t *signature, char *text, size_t room);
bool ls_signature_equal(const ls_signature_t *a, const ls_signature_t *b);

/* One tensor handed in.  The engine embeds it in its request; `name` stays valid until run or fail. */
typedef struct ls_schedule_item {
    const char              *name;
    ls_signature_t           signature;
    uint64_t                 submitted_ns;
    uint64_t                 after; /* the schedule's: newest epoch of which a run was finished before */
    struct ls_schedule_item *next;  /* the schedule's, while it holds the item */
} ls_schedule_item_t;

/* Run a bucket now.  Slots are in the agreed order; item is NULL where this rank has joined and gives
 * nothing.  Same id, iteration and slots on every rank. */
typedef struct ls_schedule_slot {
    const char          *name;
    ls_signature_t       signature; /* the agreed one; count is the own item's where counts are free, 0 without item */
    ls_schedule_item_t  *item;
} ls_schedule_slot_t;

typedef struct ls_schedule_run {
    uint32_t                  id;
    uint32_t                  iteration;
    bool                      is_replay; /* from the agreed schedule, without negotiation */
    uint64_t                  epoch;     /* for ls_schedule_finished */
    uint32_t                  num_slots;
    const ls_schedule_slot_t *slots;     /* valid during the call */
} ls_schedule_run_t;

typedef struct ls_schedule_ops {
    void (*send)(void *arg, uint32_t to, const void *data, size_t size);
    void (*run)(void *arg, const ls_schedule_run_t *run);
    void (*fail)(void *arg, ls_schedule_item_t *item, ls_status_t status, const char *message);
    void (*joined)(void *arg); /* every rank has joined */
    /* The ranks cannot go on: one cannot take part in a bucket that others have already begun, or there is
     * no memory.  Everything held was failed, as by abort(); the engine should fail what it runs. At most
     * once; may be NULL. */
    void (*broken)(void *arg, ls_status_t status, const char *message);
    /* An adopted bucket was given up: its id may get another.  May be NULL. */
    void (*retired)(void *arg, uint32_t id);
    /* "rank 3 (process 4711 on node07)", for messages; NULL: "rank 3". */
    void (*describe)(void *arg, uint32_t rank, char *text, size_t room);
} ls_schedule_ops_t;

typedef struct ls_schedule_params {
    uint32_t                 rank, num_ranks;
    size_t                   fusion_bytes;
    uint64_t                 patience_ns;
    uint64_t                 stall_warn_ns, stall_abort_ns;
    const ls_schedule_ops_t *ops;
    void                    *arg;
} ls_schedule_params_t;

typedef struct ls_schedule *ls_schedule_h;

ls_status_t ls_schedule_create(const ls_schedule_params_t *params, ls_schedule_h *schedule_p);
void        ls_schedule_destroy(ls_schedule_h schedule); /* items still held are forgotten, not failed */

/* Take an item; every item ends in exactly one run or fail, possibly during the call. */
void ls_schedule_submit(ls_schedule_h schedule, ls_schedule_item_t *item, uint64_t now_ns);
void ls_schedule_join(ls_schedule_h schedule, uint64_t now_ns);

/* This rank is about to stop: it hands in nothing more. */
void ls_schedule_leave(ls_schedule_h schedule, uint64_t now_ns);

/* A run is complete, its items are about to be called back.  Tensors that are handed in only after others
 * were complete may depend on them, and are not put into one bucket with them. */
void ls_schedule_finished(ls_schedule_h schedule, uint64_t epoch);

/* A control message from rank `from`.  LS_ERR_INTERNAL if it is malformed: nothing was changed. */
ls_status_t ls_schedule_receive(ls_schedule_h schedule, uint32_t from, const void *data, size_t size,
                                uint64_t now_ns);

/* Look at the clock, and send what the submits and receives since the last call gave to say: call it after
 * each burst of them.  Returns when it wants to be called next (UINT64_MAX: not before something comes). */
uint64_t ls_schedule_tick(ls_schedule_h schedule, uint64_t now_ns);

/*
 * The engine has waited long for other ranks inside the adopted run `id`: find out who has not begun it.
 * They are named in a warning, and the job is broken if they do not give their tensors within the stall
 * time.  For a run that all have begun nothing happens.  Only the engine can see this case: a rank that
 * gives nothing at all of a bucket has nothing that waits.
 */
void ls_schedule_doubt(ls_schedule_h schedule, uint32_t id, uint64_t now_ns);

/* The job is lost: fail every item held, and every one submitted from now on. */
void ls_schedule_abort(ls_schedule_h schedule, ls_status_t status, const char *message);

/* No item is held (waiting for other ranks or other tensors). */
bool ls_schedule_is_idle(ls_schedule_h schedule);

/* Items came that are not agreed on: the next tick asks the other ranks. */
bool ls_schedule_has_reports(ls_schedule_h schedule);

/* Buckets adopted and given up so far. */
uint64_t ls_schedule_changes(ls_schedule_h schedule);

/* Live buckets, what waits, for whom. */
void ls_schedule_dump(ls_schedule_h schedule, uint64_t now_ns, int fd);

#endif

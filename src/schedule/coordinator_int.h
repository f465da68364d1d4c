/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The coordinator, seen from inside: tallies (tally.c) count who reported a name, agreed buckets are
 * adopted (agreed.c) and given up (retire.c), ranks that stop are in leave.c, coordinator.c holds it together.
 */
#ifndef LS_SCHEDULE_COORDINATOR_INT_H
#define LS_SCHEDULE_COORDINATOR_INT_H

#include "schedule/coordinator.h"
#include "schedule/history.h"

#define LS_COORDINATOR_NUM_ADOPTED (LS_SCHEDULE_NUM_IDS - LS_SCHEDULE_FIRST_ADOPTED)

/* When to speak about something that waits, and when to end it. */
typedef struct ls_stall {
    uint64_t since_ns, next_warn_ns, interval_ns;
} ls_stall_t;

/* A name that some ranks have reported. */
typedef struct ls_tally {
    ls_signature_t   signature;
    uint64_t         after;    /* newest of all ranks */
    bool            *reported; /* per rank */
    uint32_t         num_reported;
    bool             is_ready;
    ls_stall_t       stall;
    struct ls_tally *older, *newer;
    struct ls_tally *next_ready;
    char             name[];
} ls_tally_t;

typedef enum ls_agreed_state {
    LS_AGREED_LIVE,
    LS_AGREED_FREEZING,    /* some ranks have not told how far they are */
    LS_AGREED_CATCHING_UP, /* some ranks are behind */
    LS_AGREED_STATE_COUNT
} ls_agreed_state_t;

/* Why a bucket is frozen that nobody wants to give up. */
typedef enum ls_agreed_check {
    LS_AGREED_NO_CHECK,
    LS_AGREED_DOUBT, /* a rank waits for others inside a run */
    LS_AGREED_SWEEP, /* ids have run out: what was not used since the last sweep goes */
    LS_AGREED_CHECK_COUNT
} ls_agreed_check_t;

/* A rank has a tensor that does not fit: it is stuck at its iteration until the bucket is given up. */
typedef struct ls_complaint {
    uint32_t             rank;
    uint32_t             slot;
    ls_signature_t       signature;
    struct ls_complaint *next;
} ls_complaint_t;

typedef struct ls_agreed {
    uint32_t          id;
    uint64_t          adopted_seq; /* of the broadcast that adopted it */
    uint64_t          patience_ns;
    uint32_t          num_names;
    char            **names;
    ls_signature_t   *signatures;
    ls_agreed_state_t state;
    ls_agreed_check_t check;
    uint32_t          swept_at;    /* iteration at the last sweep, or at the start */
    uint64_t          round;       /* of the last freeze */
    uint32_t         *counts;      /* per rank, as answered */
    uint32_t         *empty_slots; /* per rank, as answered */
    bool             *is_open;     /* per rank: has not answered, or is behind */
    uint32_t          num_open;
    uint32_t          target;
    bool              is_final;     /* given up when all have caught up */
    bool              is_unwanted;  /* asked to give up while some were behind */
    bool              has_missing;
    bool             *is_missing; /* per name, on the rank that asked to give up */
    ls_stall_t        stall;
    ls_complaint_t   *complaints;
} ls_agreed_t;

struct ls_coordinator {
    const ls_schedule_params_t *params;
    uint64_t                    now_ns;
    uint64_t                    seq;      /* broadcasts sent */
    uint64_t                   *epoch_of; /* per rank: broadcasts it is known to have processed */
    bool                        is_broken;
    ls_blob_t                   blob;

    ls_table_t  tallies; /* name -> ls_tally_t */
    ls_tally_t *oldest, *newest;
    ls_tally_t *first_ready, *last_ready;
    /* Name -> broadcast that ended it although not all ranks had reported it: their reports that were on
     * the way are void.  Two generations; the old one goes when all ranks have seen its last broadcast. */
    ls_table_t settled[2];
    uint64_t   settled_last[2];

    ls_history_t history;
    ls_table_t   adopted; /* name -> ls_agreed_t */
    uint32_t     num_agreed;
    uint32_t     next_adopted; /* where to look for a free id */
    ls_agreed_t *agreed[LS_COORDINATOR_NUM_ADOPTED];
    uint32_t     next_iteration[LS_COORDINATOR_NUM_ADOPTED]; /* an id never repeats an iteration */
    uint32_t     next_negotiated, negotiated_wraps;

    bool    *joined, *drained; /* per rank */
    uint32_t num_joined, num_drained;

    bool       *left;       /* per rank: it stops, and gives nothing more but its leftovers */
    ls_table_t *leftovers;  /* per rank: name -> any */
    uint32_t    num_left;
    uint64_t    leave_ns;   /* when the first one said so */
    bool        has_retired_for_leave;

    /* The buckets of the message being written. */
    ls_message_name_t   *names;
    ls_message_bucket_t *buckets;
    size_t               names_room, buckets_room;
};

/* Send to all ranks; c->seq is then the number of this broadcast. */
ls_status_t ls_coordinator_broadcast(ls_coordinator_t *c, const ls_message_t *message);
/* End the job on all ranks. */
ls_status_t ls_coordinator_break(ls_coordinator_t *c, ls_status_t status, const char *text);

/* "rank 3 (process 4711 on node07)", as far as the engine knows. */
void ls_coordinator_describe(const ls_coordinator_t *c, uint32_t rank, char *text, size_t room);

/* Put a name into the last bucket of the message if it fits there, else into a new one. */
ls_status_t ls_coordinator_pack(ls_coordinator_t *c, const ls_message_name_t *name, ls_message_t *message);

/* ---- stall.c */
void ls_stall_begin(const ls_coordinator_t *c, ls_stall_t *stall_p);
/* Is it time to warn (again)? */
bool     ls_stall_must_warn(const ls_coordinator_t *c, ls_stall_t *stall);
bool     ls_stall_is_over(const ls_coordinator_t *c, const ls_stall_t *stall);
uint64_t ls_stall_next(const ls_coordinator_t *c, const ls_stall_t *stall);

/* ---- tally.c */
ls_status_t ls_tally_report(ls_coordinator_t *c, uint32_t from, uint64_t epoch, const ls_message_name_t *name);
void        ls_tally_drop(ls_coordinator_t *c, ls_tally_t *tally); /* not one that is ready */
/* A rank has joined: what waited for it alone is ready. */
void        ls_tally_rank_joined(ls_coordinator_t *c);
ls_status_t ls_tally_answer_ready(ls_coordinator_t *c);
ls_status_t ls_tally_check_stalls(ls_coordinator_t *c, uint64_t *next_p);
void        ls_tally_destroy_all(ls_coordinator_t *c);

/* Ranks have left: what others wait for and they will never give fails. */
ls_status_t ls_tally_fail_left(ls_coordinator_t *c);

/* ---- leave.c */
ls_status_t ls_leave_create(ls_coordinator_t *c);
void        ls_leave_destroy(ls_coordinator_t *c);
ls_status_t ls_leave_hear(ls_coordinator_t *c, uint32_t from, const ls_message_t *message);
/* Has the rank left without giving this name, for good? */
bool        ls_leave_lacks(const ls_coordinator_t *c, uint32_t rank, const char *name);
/* "rank 1 (process 4711 on node07) has stopped and gives no more tensors" */
void        ls_leave_print(const ls_coordinator_t *c, uint32_t rank, char *text, size_t room);
/* Fail what needs ranks that have left, unless all are about to leave. */
ls_status_t ls_leave_tick(ls_coordinator_t *c, uint64_t *next_p);

/* ---- agreed.c */
/* Adopt what the history holds from position `first` on; without ids for all of it, make some free for later. */
ls_status_t   ls_agreed_adopt(ls_coordinator_t *c, size_t first);
ls_agreed_t **ls_agreed_place(ls_coordinator_t *c, uint32_t id); /* where the bucket of this id is, or NULL */
void          ls_agreed_remove(ls_coordinator_t *c, ls_agreed_t *agreed); /* all ranks are at agreed->target */
void          ls_agreed_destroy_all(ls_coordinator_t *c);

/* ---- retire.c */
/* GIVE_UP, FROZEN, REACHED. */
ls_status_t ls_retire_receive(ls_coordinator_t *c, uint32_t from, const ls_message_t *message);
/* Ranks begin to join: give up everything. */
ls_status_t ls_retire_all(ls_coordinator_t *c);
/* Ids have run out: give up what is not used. */
ls_status_t ls_retire_sweep(ls_coordinator_t *c);
ls_status_t ls_retire_check_stalls(ls_coordinator_t *c, uint64_t *next_p);

#endif

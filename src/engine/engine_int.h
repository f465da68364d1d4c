/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine from inside.  Who has the turn lock does everything: a thread of its own, or, where that sleeps, one that
 * hands in something small (guest.c).  Otherwise the callers' threads meet it only in `inbox` and the bell.
 *
 *   caller ---- inbox ----> schedule ----> work (weights, then the run) ----> done
 *                              ^   |         ^   |
 *                       control|   v         |   v data
 *                             ---------- net ----------
 */
#ifndef LS_ENGINE_ENGINE_INT_H
#define LS_ENGINE_ENGINE_INT_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/config.h"
#include "base/flight.h"
#include "base/queue.h"
#include "engine/flight_file.h"
#include "engine/request.h"
#include "engine/trace.h"
#include "engine/watch.h"
#include "engine/work.h"
#include "schedule/schedule.h"
#include "transport/net.h"

#define LS_ENGINE_MESSAGE_ROOM 4096

/* First byte of every control message. */
typedef enum ls_control_kind {
    LS_CONTROL_SCHEDULE, /* for the schedule */
    LS_CONTROL_ABORT,    /* the job is lost: status and message follow */
    LS_CONTROL_BYE,      /* to rank 0: this rank wants to stop */
    LS_CONTROL_BYE_ALL   /* from rank 0: every rank wants to stop */
} ls_control_kind_t;

/* Counters are written by who has the turn and read by any thread. */
typedef struct ls_engine_counters {
#define LS_ENGINE_COUNTER(_name, _help) _Atomic uint64_t _name;
    LS_COUNTER_LIST(LS_ENGINE_COUNTER)
#undef LS_ENGINE_COUNTER
} ls_engine_counters_t;

/* Only who has the turn adds, so load and store will do. */
#define LS_COUNT(_ctx, _name, _more)                                                                           \
    atomic_store_explicit(&(_ctx)->counters._name,                                                             \
                          atomic_load_explicit(&(_ctx)->counters._name, memory_order_relaxed) + (uint64_t)(_more), \
                          memory_order_relaxed)

/* How the engine thread waits; see waiting.c. */
typedef struct ls_waiting {
    uint64_t quiet_since_ns;   /* 0: something moved */
    uint64_t flown_ns;         /* quiet_since_ns of the wait that was last recorded */
    uint64_t crowded_until_ns; /* others want this core */
    uint64_t generous_ns;      /* quiet time after which one more pass may begin */
    uint64_t poll_ns;          /* current pause between looks at MPI */
    uint32_t bell_key;
    ls_bell_state_t armed; /* as what the bell knows that this thread is about to sleep; awake: it is not */
    uint64_t wakes_ns; /* when a sleep that nobody ends does */
    uint64_t open_since_ns, given_ns; /* first and last request of those that are open; 0: none is */
    uint64_t unhidden_ns; /* from the last request to its end, unless more of its step follow */
    uint64_t cycle;       /* of agreed buckets: a new one begins where one runs again */
} ls_waiting_t;

struct ls_context {
    /* set before the thread starts, constant afterwards */
    ls_config_t       config;
    ls_start_params_t params;
    bool              is_local;
    pthread_t         thread;
    ls_request_t     *stop; /* made beforehand: a rank without memory must be able to stop */

    /* start-up hand-shake, lock: start_lock */
    pthread_mutex_t start_lock;
    pthread_cond_t  start_cond;
    bool            is_started;
    ls_status_t     start_status;
    char            start_message[LS_ENGINE_MESSAGE_ROOM];

    /* The turn: held by the engine thread except where it sleeps or yields, or else by a guest.  The outermost of our locks:
     * callbacks run under it, so nobody but the engine's thread waits for it. */
    pthread_mutex_t turn_lock;

    /* any thread */
    ls_queue_t           inbox;
    ls_engine_counters_t counters;
    _Atomic bool         wants_dump; /* set by a signal */
    _Atomic bool         is_closed;  /* takes no more requests: a callback that is told of the end may try */
    _Atomic uint32_t     num_giving; /* threads inside ls_engine_give(): the bell must stay */
    ls_bell_t           *bell;       /* constant once started */
    ls_watch_h           watch;      /* constant once started; NULL: the only rank, or ranks are threads */
    ls_flight_ring_t    *flight;     /* the same; written by who has the turn */
    _Atomic uint64_t     script_step; /* what ls_step() said; 0: nothing */
    _Atomic bool         expects_unfinite; /* ls_expect_unfinite() */
    _Atomic unsigned     num_unfinite;     /* gradients that were not finite */

    /* lock: turn_lock */
    bool               takes_guests; /* between start and end, in a job without MPI */
    ls_net_h           net;
    ls_net_place_t     place; /* constant once started: read by any thread */
    ls_schedule_h      schedule;
    ls_choice_table_t *choices;
    ls_work_pool_t     works;
    ls_trace_h         trace;
    ls_waiting_t       waiting;
    uint64_t           now_ns;
    uint64_t           next_tick_ns, next_health_ns;
    bool               needs_tick;
    ls_status_t        abort_status; /* noted, to be carried out; LS_OK: none */
    char               abort_message[LS_ENGINE_MESSAGE_ROOM];
    bool               is_verdict; /* the abort is the watch's: every rank hears it from its own */
    uint32_t           lost_rank;  /* with is_verdict */
    ls_flight_ring_t  *own_flight; /* without a watch */
    bool               is_lost; /* aborted: everything fails with lost_status */
    ls_status_t        lost_status;
    char               lost_message[LS_ENGINE_MESSAGE_ROOM];
    ls_request_t      *join_request, *stop_request;
    uint32_t           num_byes; /* rank 0 */
    bool               has_told_all; /* that all have said good-bye */
    bool               is_finished;

    /* registry.c, lock: its own */
    struct ls_context *next_live;
};

/* engine.c */
void *ls_engine_main(void *ctx);

/* Has this thread the engine's turn, and so is in a callback? */
bool ls_engine_is_here(ls_context_h ctx);

/* Hand a chain of requests, ended by NULL, to the engine.  Any thread. */
void ls_engine_give(ls_context_h ctx, ls_queue_link_t *chain);

/* The parts of a turn.  lock: turn_lock */
void ls_engine_take_requests(ls_context_h ctx, bool *moved_p);
void ls_engine_take_messages(ls_context_h ctx, bool *moved_p); /* control messages stay */
void ls_engine_progress(ls_context_h ctx, bool *moved_p);

/* guest.c: take the turn, if it is free and that is wise.  True: nothing is left to wake the engine for. */
bool ls_guest_take_turn(ls_context_h ctx);
bool ls_guest_is_here(ls_context_h ctx);

/* control.c */
void ls_control_send_schedule(ls_context_h ctx, uint32_t to, const void *data, size_t size);
void ls_control_receive_all(ls_context_h ctx, bool *moved_p);
void ls_control_say_bye(ls_context_h ctx);

/* The job is lost: noted now, because this may be called from inside the schedule, and carried out at the
 * end of the turn: fail all that is open and all that comes, tell the other ranks, log once. */
void ls_engine_abort(ls_context_h ctx, ls_status_t status, const char *message);
void ls_control_carry_out_abort(ls_context_h ctx);

/* Everything open, and everything that still comes, ends with this status. */
void ls_control_fail_all(ls_context_h ctx, ls_status_t status, const char *message);

/* Write an event into the flight recorder. */
#define LS_FLY(_ctx, _kind, _id, _value, _name) \
    ls_flight_add((_ctx)->flight, (_kind), (_ctx)->now_ns, (_id), (int64_t)(_value), (_name))

/* health.c: lost ranks, stalled runs */
void ls_health_check(ls_context_h ctx);

/* waiting.c: called after each turn of the loop */
void ls_waiting_after_turn(ls_context_h ctx, bool moved);
void ls_waiting_note_given(ls_context_h ctx);
void ls_waiting_note_run(ls_context_h ctx, ls_work_t *work);
void ls_waiting_count_open(ls_context_h ctx);
ls_bell_state_t ls_waiting_state(ls_context_h ctx); /* in which to sleep now */
void ls_waiting_reset(ls_context_h ctx); /* work was finished: the ranks are in step */

/* dump.c */
void ls_dump_write(ls_context_h ctx, int fd);

/* registry.c: live contexts of the process, for exit and signals */
void ls_registry_add(ls_context_h ctx);
void ls_registry_remove(ls_context_h ctx);
void ls_registry_spread_signal(void); /* every live context wants a dump, if the signal came */

#endif

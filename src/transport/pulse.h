/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pulse: who lives.  Independent of MPI and of the engine: a thread of its own (engine/watch.c) calls tick().
 *
 *   node A                                        node B
 *   rank 0 (leader)  rank 1  rank 2               rank 3 (leader)  rank 4
 *      `------ board ---'------'  <-- datagrams -->  `--- board ---'
 *
 * Ranks of a node see each other on a board in shared memory; where there is none, a rank is a node of its own.
 * Leaders tell two leaders after them, in a circle, that they live.  Whoever finds a rank lost writes a sentence, the
 * verdict, on its board and sends it to all leaders, who write it on theirs: every rank has the same one.
 *
 * Lost is: a process that has ended or said that it goes, and a rank that has not been heard for the limit although
 * it was heard before.  One that never was heard over the network is not watched, and a warning says so.  A process
 * that was itself away (stopped, suspended) accuses nobody until it has listened anew.
 */
#ifndef LS_TRANSPORT_PULSE_H
#define LS_TRANSPORT_PULSE_H

#include "base/config.h"
#include "base/flight.h"
#include "base/siphash.h"
#include "transport/pulse_board.h"
#include "transport/pulse_link.h"
#include "transport/segment.h"

#define LS_PULSE_HOST_ROOM 64

/* What the ranks tell each other at the start. */
typedef struct ls_pulse_member {
    int64_t            pid;
    uint64_t           started; /* see peer_process.h */
    uint32_t           leader;  /* smallest rank of its board */
    uint32_t           slot;    /* on the board */
    ls_pulse_address_t address; /* of a leader of a job with several boards */
    char               host[LS_PULSE_HOST_ROOM];
} ls_pulse_member_t;

typedef struct ls_pulse_params {
    uint32_t                 rank, num_ranks;
    uint64_t                 limit_ns;
    const ls_pulse_member_t *members; /* by rank; copied */
    uint8_t                  key[LS_SIPHASH_KEY_BYTES];
    uint64_t                 job;     /* a number for names, the same on all ranks */
    ls_segment_t             segment; /* holds the board; the pulse's once it is created */
    int                      fd;      /* a leader's socket, as the segment; -1: none */
} ls_pulse_params_t;

typedef struct ls_pulse *ls_pulse_h;

ls_status_t ls_pulse_create(const ls_pulse_params_t *params, ls_pulse_h *pulse_p);
void        ls_pulse_destroy(ls_pulse_h pulse);

/* ---- the thread that ticks ---------------------------------------------------------------------- */

/* Beat, listen, look.  Returns how long the caller should wait before the next time, unless fd has something. */
uint64_t ls_pulse_tick(ls_pulse_h pulse, uint64_t now_ns);
int      ls_pulse_fd(ls_pulse_h pulse); /* -1: none */

/* False: all is well.  `text` has LS_PULSE_TEXT_ROOM. */
bool ls_pulse_verdict(ls_pulse_h pulse, uint32_t *rank_p, char *text);

/* Orderly: from now on nobody misses this rank. */
void ls_pulse_leave(ls_pulse_h pulse);

/* ---- any thread ---------------------------------------------------------------------------------- */

/* Somebody else has found out that a rank is lost, or the whole job: the next tick spreads it. */
void ls_pulse_accuse(ls_pulse_h pulse, uint32_t rank, const char *text);

/* This process goes without stopping.  For exit handlers. */
void ls_pulse_mark_gone(ls_pulse_h pulse, const char *reason);

uint64_t ls_pulse_job(ls_pulse_h pulse);

/* "rank 3 (process 4711 on node07)" */
void ls_pulse_describe(ls_pulse_h pulse, uint32_t rank, char *text, size_t room);

/* The recorder of a rank of this board; NULL: not of this board.  Written by who has the turn of that rank's engine. */
ls_flight_ring_t *ls_pulse_flight(ls_pulse_h pulse, uint32_t rank);

/* Smallest rank of this board. */
uint32_t ls_pulse_leader(ls_pulse_h pulse);

/* True once per board: who asks first sums up for all. */
bool ls_pulse_claim_summary(ls_pulse_h pulse);

/* Is the verdict this rank's own finding? */
bool ls_pulse_has_accused(ls_pulse_h pulse);

/* The lowest rank of this board other than `lost` that has not gone. */
bool ls_pulse_is_first_survivor(ls_pulse_h pulse, uint32_t lost);

#endif

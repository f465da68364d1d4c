/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The board: memory that the ranks of a node share so that they see each other live.
 *
 *   head with the verdict | slot of local rank 0 | slot of local rank 1 | ...
 *
 * A slot has one writer, its rank: the beats count up as long as the process runs, the flight recorder tells what
 * it did.  The verdict is written once, by whoever first finds a rank lost; all ranks of the node then read the
 * same sentence.  What others have written is taken for what it is: checked for length, never followed.
 */
#ifndef LS_TRANSPORT_PULSE_BOARD_H
#define LS_TRANSPORT_PULSE_BOARD_H

#include "base/flight.h"
#include "base/mem.h"
#include "lockstep.h"

#define LS_PULSE_REASON_ROOM 256
#define LS_PULSE_TEXT_ROOM   1024

typedef enum ls_pulse_state {
    LS_PULSE_RUNNING,
    LS_PULSE_LEAVING, /* its reason is being written */
    LS_PULSE_GONE,    /* it went without stopping; its reason is readable */
    LS_PULSE_LEFT,    /* orderly */
    LS_PULSE_STATE_COUNT
} ls_pulse_state_t;

typedef struct ls_pulse_slot {
    _Alignas(LS_CACHE_LINE) _Atomic uint64_t beats;
    _Atomic uint32_t state;
    char             reason[LS_PULSE_REASON_ROOM];
    _Alignas(LS_CACHE_LINE) ls_flight_ring_t flight;
} ls_pulse_slot_t;

typedef struct ls_pulse_board {
    uint64_t         magic;
    uint32_t         num_slots;
    _Atomic uint32_t verdict_state; /* none, being written, there */
    _Atomic uint32_t num_summaries; /* ranks that wanted to write one */
    uint32_t         verdict_rank;
    char             verdict[LS_PULSE_TEXT_ROOM];
    ls_pulse_slot_t  slots[];
} ls_pulse_board_t;

size_t ls_pulse_board_bytes(uint32_t num_slots);

/* Zeroed memory of that size becomes a board. */
void ls_pulse_board_init(ls_pulse_board_t *board, uint32_t num_slots);

/* Is this memory, mapped from another process, a board of that many slots? */
bool ls_pulse_board_is_valid(const ls_pulse_board_t *board, uint32_t num_slots);

/* True if this was the first. */
bool ls_pulse_board_accuse(ls_pulse_board_t *board, uint32_t rank, const char *text);

/* False: nobody is accused.  `text` has LS_PULSE_TEXT_ROOM. */
bool ls_pulse_board_verdict(const ls_pulse_board_t *board, uint32_t *rank_p, char *text);

/* The slot's own rank goes without stopping; only what an exit handler may call.  True if it was running. */
bool ls_pulse_board_mark_gone(ls_pulse_slot_t *slot, const char *reason);

#endif

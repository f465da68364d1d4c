/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plan: what one rank sends, receives and reduces in one collective.
 *
 * Words.  The data is cut into blocks, numbered 0 .. num_blocks-1; how long a block is the plan does
 * not know (engine/geometry.h does), so one plan serves every size, and a large collective runs the
 * same plan once per chunk.  A step works on a range of blocks.  Steps of a plan run in order.
 * The k-th message that rank a sends to rank b in a plan is the k-th that b expects from a: that is
 * how messages find each other, and ls_plan_check_all() proves it for all ranks of an algorithm.
 *
 *   SEND    the blocks, as they are now, to every rank in `peers` (staged once, read by all)
 *   REDUCE  one message from each rank in `peers`; blocks := the values of all of them and the own
 *           one, combined in rank order, so that the result does not depend on who computes it
 *   STORE   one message from the one rank in `peers`; blocks := message
 *   COPY    blocks of the input become blocks of the output (no message)
 *
 * A SEND, REDUCE or STORE without blocks carries a token: it only orders things.
 * The value of a block is the rank's input until a REDUCE, STORE or COPY has written it.
 */
#ifndef LS_ALGO_PLAN_H
#define LS_ALGO_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "lockstep.h"

typedef enum ls_step_kind {
    LS_STEP_SEND,
    LS_STEP_REDUCE,
    LS_STEP_STORE,
    LS_STEP_COPY,
    LS_STEP_KIND_COUNT
} ls_step_kind_t;

typedef struct ls_step {
    ls_step_kind_t kind;
    uint32_t       block;      /* first block */
    uint32_t       num_blocks; /* 0: a token */
    uint32_t       num_peers;
    uint32_t       first_peer; /* index into plan->peers and plan->messages */
    bool           from_input; /* SEND, REDUCE: the own value is still the input; set by ls_plan_seal */
    bool           is_final;   /* REDUCE: gives the result, all ranks' values are in; by ls_plan_seal */
} ls_step_t;

typedef struct ls_plan {
    uint32_t   rank;
    uint32_t   num_ranks;
    uint32_t   num_blocks;
    uint32_t   result_block, num_result_blocks; /* the other blocks only pass through this rank */
    uint32_t   num_steps;
    ls_step_t *steps;
    uint32_t  *peers;    /* ascending inside a step */
    uint32_t  *messages; /* beside each peer: number of this message between the two, from 0 */
    uint32_t   num_peers;
    uint32_t   steps_room, peers_room; /* allocated */
    uint32_t  *sent, *received;        /* per rank: messages so far; NULL once sealed */
    bool       is_sealed;
} ls_plan_t;

ls_status_t ls_plan_create(uint32_t rank, uint32_t num_ranks, uint32_t num_blocks, ls_plan_t **plan_p);
void        ls_plan_destroy(ls_plan_t *plan);

/* Builders.  A block range of a SEND or REDUCE must be in one state (all input or all written). */
ls_status_t ls_plan_add_send(ls_plan_t *plan, uint32_t block, uint32_t num_blocks,
                             const uint32_t *peers, uint32_t num_peers);
ls_status_t ls_plan_add_reduce(ls_plan_t *plan, uint32_t block, uint32_t num_blocks,
                               const uint32_t *peers, uint32_t num_peers);
ls_status_t ls_plan_add_store(ls_plan_t *plan, uint32_t block, uint32_t num_blocks, uint32_t peer);
ls_status_t ls_plan_add_copy(ls_plan_t *plan, uint32_t block, uint32_t num_blocks);

/* Which blocks are this rank's result: all, unless this is called (reduce_scatter: its own one). */
void ls_plan_set_result(ls_plan_t *plan, uint32_t block, uint32_t num_blocks);

/* Send one range, receive another: the step of rings and exchanges.  reduce: REDUCE, else STORE. */
typedef struct ls_exchange {
    uint32_t send_to, send_block, num_send_blocks;
    uint32_t recv_from, recv_block, num_recv_blocks;
    bool     reduce;
} ls_exchange_t;

ls_status_t ls_plan_add_exchange(ls_plan_t *plan, const ls_exchange_t *exchange);

/*
 * Fill from_input and is_final; no step may be added afterwards.  A REDUCE is final when its blocks are
 * in the result and this rank does not write them again: in a ring every rank reduces every block but
 * one, and only the block that is not stored later is complete.  LS_ERR_INTERNAL if a range leaves the
 * plan or mixes states, a peer is out of range, the own rank, or not ascending, or a COPY comes after
 * another write of its blocks (in place it could not bring the input back).
 */
ls_status_t ls_plan_seal(ls_plan_t *plan);

/* One line per step, for people and golden tests: "send 0..1 to 1 2", "reduce 1 from 0 (final)",
 * "store 2 from 3", "copy 0", "send token to 1". */
void ls_plan_print(const ls_plan_t *plan, int fd);

/*
 * Proof for one algorithm and size: plans[r] is rank r's.  Checks that messages match in number and
 * in blocks, that no rank waits for ever (by running them), that no value is counted twice, and that a
 * REDUCE is marked final exactly when all ranks' values are in.
 * LS_ERR_INTERNAL with a message that names rank and step.
 */
ls_status_t ls_plan_check_all(ls_plan_t *const *plans, uint32_t num_ranks);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transports: how a message gets from one rank to another.
 *
 * A message is bytes with a key; the receiver asks for "the message with this key from that rank".
 * Keys, not arrival order, match messages, so ranks may start buckets in any order.  All functions
 * are called by who has the engine's turn (where MPI is: by its thread), and none of them blocks.
 *
 *   sender                                     receiver
 *   stage = ls_net_stage(bytes)                 ls_net_expect(peer, key, bytes)
 *   fill stage->data                            ls_net_match(peer, key) -> pointer to the bytes
 *   ls_net_send(stage, keys, peers)             reduce or copy from it
 *                                               ls_net_release()  -> the stage is free again
 *
 * Staged bytes are read where the sender put them: inside a node the receiver gets a pointer into
 * the sender's shared memory, and one stage serves any number of receivers.  A receiver who is alone with a message
 * may write its reply over it and give it back: to answer.  The stage is free when the sender has released the answer.
 */
#ifndef LS_TRANSPORT_TRANSPORT_H
#define LS_TRANSPORT_TRANSPORT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lockstep.h"

/* ---- keys ----------------------------------------------------------------------------------- */

/* bucket id | iteration | chunk | message.  Bucket ids of live buckets are distinct. */
#define LS_KEY_ID_BITS        12
#define LS_KEY_ITERATION_BITS 12
#define LS_KEY_CHUNK_BITS     24
#define LS_KEY_MESSAGE_BITS   16

typedef uint64_t ls_key_t;

static inline ls_key_t ls_key_make(uint32_t id, uint32_t iteration, uint32_t chunk, uint32_t message)
{
    return ((uint64_t)(id & 0xFFFU) << 52) | ((uint64_t)(iteration & 0xFFFU) << 40) |
           ((uint64_t)(chunk & 0xFFFFFFU) << 16) | (uint64_t)(message & 0xFFFFU);
}

static inline uint32_t ls_key_id(ls_key_t key)
{
    return (uint32_t)(key >> 52);
}

static inline uint32_t ls_key_chunk(ls_key_t key)
{
    return (uint32_t)(key >> 16) & 0xFFFFFFU;
}

static inline uint32_t ls_key_message(ls_key_t key)
{
    return (uint32_t)key & 0xFFFFU;
}

/* ---- stages --------------------------------------------------------------------------------- */

/* Room after a stage's data in which a transport may put its own words. */
#define LS_STAGE_TRAILER 16

/*
 * Memory from which bytes are sent.  `pending` counts the receivers that have not released it; the
 * owner reuses the stage when it is 0.  Lives in memory that the node's ranks share.
 */
typedef struct ls_stage_head {
    _Atomic uint32_t pending;
    bool             is_warm; /* owner: came back as an answer, and so lies in the owner's cache */
} ls_stage_head_t;

typedef struct ls_stage {
    void            *data; /* cache-line aligned, `room` bytes and LS_STAGE_TRAILER more */
    size_t           room;
    ls_stage_head_t *head;
    uint32_t         segment; /* where other ranks of the node find it */
    uint64_t         offset;
    struct ls_stage *next_free; /* owner's list */
} ls_stage_t;

/* ---- messages ------------------------------------------------------------------------------- */

typedef struct ls_message {
    void       *data; /* to be read; written only by a receiver who may answer */
    size_t      bytes;
    uint32_t    from;
    uint32_t    contributors; /* how many ranks' values are in it; the sender's word */
    void       *token;        /* the transport's */
    uint32_t    segment;      /* shared memory: where it is in the sender's */
    uint64_t    offset;
} ls_message_t;

typedef struct ls_send {
    ls_stage_t *stage; /* its pending count already includes this send */
    size_t      bytes;
    uint32_t    peer;
    ls_key_t    key;
    uint32_t    contributors;
    bool        is_control; /* key is ignored; delivered by poll_control in order per sender */
} ls_send_t;

/* One kind of connection.  mailbox.c: shared memory; mpi_transport.c: MPI. */
typedef struct ls_transport_ops {
    const char *name;
    /* Takes the message; may keep it queued until there is room.  Never LS_IN_PROGRESS. */
    ls_status_t (*send)(void *self, const ls_send_t *send);
    /* A message of exactly `bytes` will be asked for.  NULL: not needed. */
    ls_status_t (*expect)(void *self, uint32_t peer, ls_key_t key, size_t bytes);
    /* True and *message_p filled if the message is there. */
    bool (*match)(void *self, uint32_t peer, ls_key_t key, ls_message_t *message_p);
    void (*release)(void *self, ls_message_t *message);
    /* May the message's bytes be written over and given back?  Both NULL: never. */
    bool (*can_answer)(void *self, const ls_message_t *message);
    /* Give it back; instead of release. */
    ls_status_t (*answer)(void *self, const ls_message_t *message, ls_key_t key, uint32_t contributors);
    bool (*poll_control)(void *self, ls_message_t *message_p);
    /* Move things along; *moved_p is set (never cleared) when something happened. */
    ls_status_t (*progress)(void *self, bool *moved_p);
    /* True while something can only advance by calling progress() (nobody rings the bell). */
    bool (*needs_polling)(void *self);
    void (*destroy)(void *self);
} ls_transport_ops_t;

#endif

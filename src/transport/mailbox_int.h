/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The mailbox's memory, shared and private.
 *
 *   first segment of a rank:  head | directory | ring from local rank 0 | ring from 1 | ... | stages
 *   later segments:           stages
 *
 * A ring entry is one cache line.  The writer fills it and then stores its sequence number (its place in
 * the stream, counted from 1); the reader looks at the entry it expects next, so no counter goes back and
 * forth.  How far the reader is stands in a line of its own, which the writer reads when the ring seems full.
 */
#ifndef LS_TRANSPORT_MAILBOX_INT_H
#define LS_TRANSPORT_MAILBOX_INT_H

#include "base/mem.h"
#include "transport/fifo.h"
#include "transport/letter.h"
#include "transport/mailbox.h"
#include "transport/segment.h"

#define LS_MAILBOX_MAGIC        0x584F424B434F4C32ULL
#ifndef LS_MAILBOX_RING_ENTRIES /* the sanitizers' builds have few: a full ring is rare otherwise */
#define LS_MAILBOX_RING_ENTRIES 256 /* a power of two */
#endif
#define LS_MAILBOX_MAX_SEGMENTS 1024
#define LS_MAILBOX_REASON_ROOM  256
#define LS_MAILBOX_HOST_ROOM    256
#define LS_MAILBOX_NOT_LOCAL    UINT32_MAX
#define LS_MAILBOX_OWN_SEGMENT  UINT32_MAX /* of an answer, which is not to be answered */

/* ---- shared --------------------------------------------------------------------------------- */

typedef enum ls_mailbox_kind {
    LS_MAILBOX_DATA,
    LS_MAILBOX_CONTROL,
    LS_MAILBOX_ANSWER, /* data, in a stage of the one who receives it */
    LS_MAILBOX_KIND_COUNT
} ls_mailbox_kind_t;

/* What a message is and where its bytes are. */
typedef struct ls_mailbox_note {
    ls_key_t key;
    uint64_t offset;
    uint64_t bytes;
    uint32_t segment;
    uint32_t contributors;
    uint32_t kind; /* ls_mailbox_kind_t */
} ls_mailbox_note_t;

typedef struct ls_mailbox_entry {
    _Alignas(LS_CACHE_LINE) _Atomic uint64_t sequence;
    ls_mailbox_note_t note;
} ls_mailbox_entry_t;

typedef struct ls_mailbox_ring {
    _Alignas(LS_CACHE_LINE) _Atomic uint64_t consumed; /* writer: the reader of the entries */
    ls_mailbox_entry_t entries[LS_MAILBOX_RING_ENTRIES];
} ls_mailbox_ring_t;

typedef enum ls_mailbox_state {
    LS_MAILBOX_RUNNING,
    LS_MAILBOX_LEAVING, /* its reason is being written */
    LS_MAILBOX_GONE,    /* its reason is readable */
    LS_MAILBOX_STOPPED, /* orderly */
    LS_MAILBOX_STATE_COUNT
} ls_mailbox_state_t;

typedef struct ls_mailbox_head {
    uint64_t magic;
    uint64_t bytes; /* of the first segment */
    int64_t  pid;
    uint32_t rank, local_size;
    _Alignas(LS_CACHE_LINE) ls_bell_t bell;
    _Alignas(LS_CACHE_LINE) _Atomic uint32_t state;
    _Atomic uint32_t users; /* is_local: mailboxes that use this memory; the last one frees it */
    char             reason[LS_MAILBOX_REASON_ROOM];
    /* By segment number; an address is written before the first descriptor that names it. */
    _Alignas(LS_CACHE_LINE) ls_mailbox_address_t directory[LS_MAILBOX_MAX_SEGMENTS];
    ls_mailbox_ring_t rings[]; /* by the sender's local rank */
} ls_mailbox_head_t;

/* ---- private -------------------------------------------------------------------------------- */

typedef struct ls_mailbox_peer {
    uint32_t           rank;
    ls_mailbox_head_t *head; /* in its first segment; NULL: not connected */
    ls_mailbox_ring_t *out;  /* in its memory, for us */
    ls_mailbox_ring_t *in;   /* in ours, for it */
    uint64_t           sent, known_consumed;
    uint64_t           received;
    ls_fifo_t          waiting;  /* ls_mailbox_note_t: the ring was full */
    ls_segment_t      *segments; /* by number; NONE: not mapped yet */
    uint32_t           segments_room;
    int64_t            pid;
} ls_mailbox_peer_t;

/* owner: who has the engine's turn, but for find_lost and mark_gone, which only read what connect has set. */
struct ls_mailbox {
    ls_config_t        config; /* a copy */
    uint32_t           rank, local_rank, local_size;
    bool               is_local;
    ls_mailbox_head_t *head;
    size_t             stages_offset; /* in the first segment */
    ls_segment_t       segments[LS_MAILBOX_MAX_SEGMENTS];
    uint32_t           num_segments;
    ls_mailbox_peer_t *peers;    /* by local rank; the own one is not connected */
    uint32_t          *index_of; /* job rank -> local rank; ranks_room of them */
    uint32_t           ranks_room;
    ls_letter_table_t  letters;
    ls_fifo_t          control;    /* ls_letter_t */
    bool               has_unseen; /* match() took in messages that progress() has not reported */
    char               host[LS_MAILBOX_HOST_ROOM];
};

/* True if LOCKSTEP_FAULT asks this rank to fail at this point. */
bool ls_mailbox_has_fault(const ls_config_t *config, const char *point, uint32_t rank);

/* Map a segment of a peer unless it is mapped already; it has been checked to hold the address announced. */
ls_status_t ls_mailbox_map(ls_mailbox_h mailbox, ls_mailbox_peer_t *peer, uint32_t segment);

/* mailbox_ring.c: the operations behind ls_mailbox_ops. */
ls_status_t ls_mailbox_send(void *self, const ls_send_t *send);
bool        ls_mailbox_match(void *self, uint32_t rank, ls_key_t key, ls_message_t *message_p);
void        ls_mailbox_release(void *self, ls_message_t *message);
bool        ls_mailbox_can_answer(void *self, const ls_message_t *message);
ls_status_t ls_mailbox_answer(void *self, const ls_message_t *message, ls_key_t key, uint32_t contributors);
bool        ls_mailbox_poll_control(void *self, ls_message_t *message_p);
ls_status_t ls_mailbox_progress(void *self, bool *moved_p);
bool        ls_mailbox_needs_polling(void *self);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Control messages.  One struct holds any of them; which fields a kind has is a row of a table in
 * messages.c, used by the writer and the reader alike.
 *
 * Ranks tell the coordinator (each with `epoch`: how many broadcasts the sender had processed):
 *   REPORT    names            these were handed in here
 *   GIVE_UP   id, flag, names  flag 1: a tensor came with another signature (that one name);
 *                              flag 0: the bucket stays partly filled (the names that are missing);
 *                              no names: only see whether all ranks have begun it
 *   FROZEN    id, round, iteration, slot  answer to FREEZE: next iteration, first empty slot
 *   REACHED   id, round        answer to RESUME: caught up
 *   JOIN      flag             this rank has joined; flag 1: and nothing is left of what it gave before
 *   LEAVE     names            this rank stops: it gives nothing more but these, which it still holds; said again
 *                              when they become fewer
 * The coordinator tells all ranks, in one order (the broadcasts):
 *   RESPONSE  buckets          run these, in this order
 *   ADOPT     buckets          from now on these run by themselves
 *   ERROR     status, names[0], text      this name has failed
 *   FREEZE    id, round        do not start it; tell how far you are
 *   RESUME    id, round, iteration, flag  start it again, those behind `iteration` tell when they are
 *                              there; flag 1: and nobody passes it
 *   RETIRE    id               it is no more
 *   JOINED                     every rank has joined
 *   BROKEN    status, text     the job cannot go on
 */
#ifndef LS_SCHEDULE_MESSAGES_H
#define LS_SCHEDULE_MESSAGES_H

#include "base/blob.h"
#include "schedule/schedule.h"

#define LS_MESSAGES_TEXT_ROOM 3072

typedef enum ls_message_kind {
    LS_MESSAGE_REPORT,
    LS_MESSAGE_GIVE_UP,
    LS_MESSAGE_FROZEN,
    LS_MESSAGE_REACHED,
    LS_MESSAGE_JOIN,
    LS_MESSAGE_LEAVE,
    LS_MESSAGE_RESPONSE,
    LS_MESSAGE_ADOPT,
    LS_MESSAGE_ERROR,
    LS_MESSAGE_FREEZE,
    LS_MESSAGE_RESUME,
    LS_MESSAGE_RETIRE,
    LS_MESSAGE_JOINED,
    LS_MESSAGE_BROKEN,
    LS_MESSAGE_COUNT
} ls_message_kind_t;

typedef struct ls_message_name {
    const char    *name;
    ls_signature_t signature;
    uint64_t       after;  /* REPORT: newest epoch of which a run was finished when it was handed in */
    uint64_t       number; /* not sent: epoch in which it was negotiated */
} ls_message_name_t;

typedef struct ls_message_bucket {
    uint32_t id;
    uint32_t iteration;
    uint64_t patience_ns; /* ADOPT */
    uint32_t first_name;  /* index into names */
    uint32_t num_names;
} ls_message_bucket_t;

typedef struct ls_message {
    ls_message_kind_t    kind;
    uint64_t             epoch;
    uint64_t             round;
    uint32_t             id;
    uint32_t             iteration;
    uint32_t             slot;
    uint32_t             flag;
    ls_status_t          status;
    uint32_t             num_names;
    uint32_t             num_buckets;
    ls_message_name_t   *names;
    ls_message_bucket_t *buckets;
    const char          *text;
    void                *mem; /* what decode allocated: names, buckets and all strings */
} ls_message_t;

bool ls_messages_is_broadcast(ls_message_kind_t kind);

/* Appends; a failure stays in the blob's status. */
void ls_messages_encode(const ls_message_t *message, ls_blob_t *blob);

/* LS_ERR_INTERNAL if the bytes are not exactly one message, LS_ERR_NO_MEMORY. */
ls_status_t ls_messages_decode(const void *data, size_t size, ls_message_t *message_p);
void        ls_messages_destroy(ls_message_t *message);

#endif

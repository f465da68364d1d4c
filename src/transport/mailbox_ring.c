/* SPDX-License-Identifier: Apache-2.0 */
/* The messages of a mailbox: into the peers' rings, out of the own ones. */
#include "base/error.h"
#include "transport/mailbox_int.h"
#include "transport/stage.h"

static ls_mailbox_peer_t *peer_of(ls_mailbox_h mailbox, uint32_t rank)
{
    const uint32_t index = (rank < mailbox->ranks_room) ? mailbox->index_of[rank] : LS_MAILBOX_NOT_LOCAL;

    if (index == LS_MAILBOX_NOT_LOCAL || mailbox->peers[index].head == NULL) {
        return NULL;
    }
    return &mailbox->peers[index];
}

/* ---- send ----------------------------------------------------------------------------------- */

/* False if the ring is full. */
static bool ring_put(ls_mailbox_peer_t *peer, const ls_mailbox_note_t *note)
{
    ls_mailbox_entry_t *entry = &peer->out->entries[peer->sent & (LS_MAILBOX_RING_ENTRIES - 1)];

    if (peer->sent - peer->known_consumed >= LS_MAILBOX_RING_ENTRIES) {
        peer->known_consumed = atomic_load_explicit(&peer->out->consumed, memory_order_acquire);
        if (peer->sent - peer->known_consumed >= LS_MAILBOX_RING_ENTRIES) {
            return false;
        }
    }
    entry->note = *note;
    atomic_store_explicit(&entry->sequence, ++peer->sent, memory_order_release);
    return true;
}

static ls_status_t publish(ls_mailbox_h mailbox, uint32_t rank, const ls_mailbox_note_t *note)
{
    ls_mailbox_peer_t *peer = peer_of(mailbox, rank);
    ls_status_t        status;

    if (peer == NULL) {
        return ls_error_set(LS_ERR_INTERNAL, "rank %u has no mailbox for rank %u", mailbox->rank, rank);
    }
    /* What waits goes first: control messages keep their order. */
    if (peer->waiting.count == 0 && ring_put(peer, note)) {
        return LS_OK;
    }
    status = ls_fifo_reserve(&peer->waiting, "waiting sends");
    if (status == LS_OK) {
        *(ls_mailbox_note_t *)ls_fifo_push(&peer->waiting) = *note;
    }
    return status;
}

ls_status_t ls_mailbox_publish(ls_mailbox_h mailbox, const ls_send_t *send)
{
    return publish(mailbox, send->peer,
                   &(ls_mailbox_note_t){
                       .key          = send->key,
                       .offset       = send->stage->offset,
                       .bytes        = send->bytes,
                       .segment      = send->stage->segment,
                       .contributors = send->contributors,
                       .kind         = send->is_control ? LS_MAILBOX_CONTROL : LS_MAILBOX_DATA,
                   });
}

/* Data is of use only to a rank that has begun its bucket.  A control message begins something, and where the ring is full
 * one may stand behind data. */
void ls_mailbox_ring(ls_mailbox_h mailbox, uint32_t rank, bool is_control)
{
    ls_mailbox_peer_t *peer = &mailbox->peers[mailbox->index_of[rank]];

    if (is_control || peer->waiting.count > 0) {
        ls_bell_ring(&peer->head->bell);
    } else {
        ls_bell_ring_softly(&peer->head->bell);
    }
}

ls_status_t ls_mailbox_send(void *self, const ls_send_t *send)
{
    const ls_status_t status = ls_mailbox_publish(self, send);

    if (status == LS_OK) {
        ls_mailbox_ring(self, send->peer, send->is_control);
    }
    return status;
}

/* Acquire: the other readers' last look at the bytes comes before what is written over them. */
bool ls_mailbox_can_answer(void *self, const ls_message_t *message)
{
    const ls_stage_head_t *head = message->token;

    (void)self;
    return message->segment != LS_MAILBOX_OWN_SEGMENT &&
           atomic_load_explicit(&head->pending, memory_order_acquire) == 1;
}

/* The stage stays counted: it is free when its owner, who now reads it, releases it. */
ls_status_t ls_mailbox_answer(void *self, const ls_message_t *message, ls_key_t key, uint32_t contributors)
{
    const ls_status_t status = publish(self, message->from,
                                       &(ls_mailbox_note_t){
                                           .key          = key,
                                           .offset       = message->offset,
                                           .bytes        = message->bytes,
                                           .segment      = message->segment,
                                           .contributors = contributors,
                                           .kind         = LS_MAILBOX_ANSWER,
                                       });

    if (status == LS_OK) {
        ls_mailbox_ring(self, message->from, false);
    }
    return status;
}

static void send_waiting(ls_mailbox_peer_t *peer, bool *moved_p)
{
    const ls_mailbox_note_t *note;
    bool                     any = false;

    while ((note = ls_fifo_peek(&peer->waiting)) != NULL && ring_put(peer, note)) {
        ls_fifo_pop(&peer->waiting);
        any = true;
    }
    if (any) {
        ls_bell_ring(&peer->head->bell);
        *moved_p = true;
    }
}

/* ---- receive -------------------------------------------------------------------------------- */

/* The segment in which a message's bytes are: the sender's, or, of an answer, the own one. */
static ls_status_t find_segment(ls_mailbox_h mailbox, ls_mailbox_peer_t *peer, const ls_mailbox_note_t *note,
                                const ls_segment_t **segment_p)
{
    ls_status_t status = LS_OK;

    if (note->kind >= LS_MAILBOX_KIND_COUNT) {
        return ls_error_set(LS_ERR_INTERNAL, "rank %u sent a message of kind %u, which is unknown", peer->rank, note->kind);
    }
    if (note->kind == LS_MAILBOX_ANSWER) {
        if (note->segment >= mailbox->num_segments) {
            return ls_error_set(LS_ERR_INTERNAL, "rank %u answered in segment %u of rank %u, which has %u", peer->rank,
                                note->segment, mailbox->rank, mailbox->num_segments);
        }
        *segment_p = &mailbox->segments[note->segment];
        return LS_OK;
    }
    if (note->segment >= peer->segments_room || peer->segments[note->segment].kind == LS_SEGMENT_NONE) {
        status = ls_mailbox_map(mailbox, peer, note->segment);
    }
    *segment_p = &peer->segments[note->segment];
    return status;
}

/* What comes back must have been sent, to that rank alone. */
static ls_status_t take_answer(const ls_mailbox_peer_t *peer, ls_letter_t *letter)
{
    if (atomic_load_explicit(&letter->head->pending, memory_order_relaxed) != 1) {
        return ls_error_set(LS_ERR_INTERNAL, "rank %u answered at %llu of segment %u, where nothing was sent to it alone",
                            peer->rank, (unsigned long long)letter->offset, letter->segment);
    }
    letter->head->is_warm = true;
    letter->segment       = LS_MAILBOX_OWN_SEGMENT;
    return LS_OK;
}

/* Where the bytes are, with everything the sender wrote checked against what is mapped. */
static ls_status_t find_bytes(ls_mailbox_h mailbox, ls_mailbox_peer_t *peer, const ls_mailbox_note_t *note,
                              ls_letter_t *letter_p)
{
    const uint64_t      offset  = note->offset, bytes = note->bytes;
    const uint64_t      first   = (note->segment == 0) ? mailbox->stages_offset : 0;
    const ls_segment_t *segment = NULL;
    const ls_status_t   status  = find_segment(mailbox, peer, note, &segment);
    char               *data;

    if (status != LS_OK) {
        return status;
    }
    if (offset < first + LS_STAGE_HEAD_BYTES || offset % LS_CACHE_LINE != 0 || offset > segment->bytes ||
        bytes > segment->bytes - offset) {
        return ls_error_set(LS_ERR_INTERNAL, "rank %u sent %llu bytes at %llu of segment %u, which has %zu", peer->rank,
                            (unsigned long long)bytes, (unsigned long long)offset, note->segment, segment->bytes);
    }
    data      = (char *)segment->base + offset;
    *letter_p = (ls_letter_t){
        .key  = note->key, .from = peer->rank, .contributors = note->contributors,
        .data = data,      .bytes = bytes,     .head = ls_stage_head_of(data),
        .segment = note->segment, .offset = offset,
    };
    return (note->kind == LS_MAILBOX_ANSWER) ? take_answer(peer, letter_p) : LS_OK;
}

/* The next entry, if it is there. */
static ls_mailbox_entry_t *next_entry(ls_mailbox_peer_t *peer)
{
    ls_mailbox_entry_t *entry = &peer->in->entries[peer->received & (LS_MAILBOX_RING_ENTRIES - 1)];

    return atomic_load_explicit(&entry->sequence, memory_order_acquire) == peer->received + 1 ? entry : NULL;
}

/*
 * Take in what the peer has sent, until the message with key *wanted is met (NULL: all).  Room is made
 * before an entry is taken, so that one which fails stays where it is, and fails again in progress().
 */
static ls_status_t drain(ls_mailbox_h mailbox, ls_mailbox_peer_t *peer, const ls_key_t *wanted,
                         ls_letter_t *found_p, bool *moved_p)
{
    const uint64_t      before = peer->received;
    ls_status_t         status = LS_OK;
    ls_mailbox_entry_t *entry;

    while (found_p->head == NULL && (entry = next_entry(peer)) != NULL) {
        ls_letter_t letter;

        status = find_bytes(mailbox, peer, &entry->note, &letter);
        if (status != LS_OK) {
            break;
        }
        if (entry->note.kind == LS_MAILBOX_CONTROL) {
            status = ls_fifo_reserve(&mailbox->control, "control messages");
            if (status != LS_OK) {
                break;
            }
            *(ls_letter_t *)ls_fifo_push(&mailbox->control) = letter;
            *moved_p                                        = true;
        } else if (wanted != NULL && letter.key == *wanted) {
            *found_p = letter;
        } else {
            status = ls_letter_reserve(&mailbox->letters);
            if (status != LS_OK) {
                break;
            }
            ls_letter_put(&mailbox->letters, &letter);
            *moved_p = true;
        }
        peer->received++;
    }
    if (peer->received != before) {
        atomic_store_explicit(&peer->in->consumed, peer->received, memory_order_release);
    }
    return status;
}

static void fill_message(const ls_letter_t *letter, ls_message_t *message_p)
{
    *message_p = (ls_message_t){
        .data = letter->data, .bytes = letter->bytes, .from = letter->from,
        .contributors = letter->contributors, .token = letter->head, .segment = letter->segment, .offset = letter->offset,
    };
}

bool ls_mailbox_match(void *self, uint32_t rank, ls_key_t key, ls_message_t *message_p)
{
    ls_mailbox_h       mailbox = self;
    ls_mailbox_peer_t *peer    = peer_of(mailbox, rank);
    ls_letter_t        letter  = {0};

    if (peer == NULL) {
        return false;
    }
    if (!ls_letter_take(&mailbox->letters, rank, key, &letter)) {
        /* Other messages taken in on the way may be what somebody else waits for: progress() says so. */
        (void)drain(mailbox, peer, &key, &letter, &mailbox->has_unseen);
    }
    if (letter.head == NULL) {
        return false;
    }
    fill_message(&letter, message_p);
    return true;
}

void ls_mailbox_release(void *self, ls_message_t *message)
{
    ls_stage_head_t *head = message->token;

    (void)self;
    /* The last reader is alone with the count: no locked instruction.  Acquire, so that the owner, who
     * sees this 0, has also seen the other readers go. */
    if (atomic_load_explicit(&head->pending, memory_order_acquire) == 1) {
        atomic_store_explicit(&head->pending, 0, memory_order_release);
    } else {
        atomic_fetch_sub_explicit(&head->pending, 1, memory_order_release);
    }
}

bool ls_mailbox_has_control(ls_mailbox_h mailbox)
{
    return mailbox->control.count > 0;
}

bool ls_mailbox_poll_control(void *self, ls_message_t *message_p)
{
    ls_mailbox_h       mailbox = self;
    const ls_letter_t *letter  = ls_fifo_peek(&mailbox->control);

    if (letter == NULL) {
        return false;
    }
    fill_message(letter, message_p);
    ls_fifo_pop(&mailbox->control);
    return true;
}

ls_status_t ls_mailbox_progress(void *self, bool *moved_p)
{
    ls_mailbox_h mailbox = self;
    ls_letter_t  none    = {0};

    if (mailbox->has_unseen) {
        mailbox->has_unseen = false;
        *moved_p            = true;
    }
    for (uint32_t i = 0; i < mailbox->local_size; i++) {
        ls_mailbox_peer_t *peer = &mailbox->peers[i];

        if (peer->head != NULL) {
            ls_status_t status;

            if (peer->waiting.count > 0) {
                send_waiting(peer, moved_p);
            }
            status = drain(mailbox, peer, NULL, &none, moved_p);
            if (status != LS_OK) {
                return status;
            }
        }
    }
    return LS_OK;
}

/* A full ring empties without a bell. */
bool ls_mailbox_needs_polling(void *self)
{
    ls_mailbox_h mailbox = self;

    for (uint32_t i = 0; i < mailbox->local_size; i++) {
        if (mailbox->peers[i].waiting.count > 0) {
            return true;
        }
    }
    return false;
}

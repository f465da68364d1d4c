/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What leaders of nodes tell each other in datagrams: that they live, that they leave, that a rank is lost.
 *
 * A datagram ends with a hash over all before it, keyed by the job's secret (siphash.h), and carries a number that
 * its sender never uses twice: what a stranger sends, changes or repeats is dropped.  Nothing is secret in it.
 */
#ifndef LS_TRANSPORT_PULSE_MESSAGE_H
#define LS_TRANSPORT_PULSE_MESSAGE_H

#include "base/siphash.h"
#include "transport/pulse_board.h"

typedef enum ls_pulse_kind {
    LS_PULSE_BEAT,    /* text: the last tensor, age: since then */
    LS_PULSE_VERDICT, /* rank is lost, text says why */
    LS_PULSE_BYE,     /* leaves in order */
    LS_PULSE_KIND_COUNT
} ls_pulse_kind_t;

typedef struct ls_pulse_message {
    ls_pulse_kind_t kind;
    uint32_t        from;
    uint32_t        rank;
    uint64_t        number;
    uint64_t        step;
    uint64_t        age_ns;
    char            text[LS_PULSE_TEXT_ROOM];
} ls_pulse_message_t;

/* magic, kind, from, rank, number, step, age, length of the text; behind the text the hash */
#define LS_PULSE_HEAD_BYTES    (4 + 1 + 4 + 4 + 8 + 8 + 8 + 2)
#define LS_PULSE_TAG_BYTES     8
#define LS_PULSE_MESSAGE_BYTES (LS_PULSE_HEAD_BYTES + LS_PULSE_TEXT_ROOM + LS_PULSE_TAG_BYTES)

/* Returns the size. */
size_t ls_pulse_message_encode(const ls_pulse_message_t *message, const uint8_t key[LS_SIPHASH_KEY_BYTES],
                               uint8_t data[LS_PULSE_MESSAGE_BYTES]);

/* False if it is not exactly one message of a member of a job of that many ranks. */
bool ls_pulse_message_decode(const uint8_t *data, size_t size, const uint8_t key[LS_SIPHASH_KEY_BYTES],
                             uint32_t num_ranks, ls_pulse_message_t *message_p);

#endif

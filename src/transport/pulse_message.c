/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/pulse_message.h"

#include <string.h>

#define MAGIC 0x3150534CU /* "LSP1" */

static void put(uint8_t **at, uint64_t value, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++) {
        *(*at)++ = (uint8_t)(value >> (8 * i));
    }
}

static uint64_t get(const uint8_t **at, unsigned bytes)
{
    uint64_t value = 0;

    for (unsigned i = 0; i < bytes; i++) {
        value |= (uint64_t)*(*at)++ << (8 * i);
    }
    return value;
}

size_t ls_pulse_message_encode(const ls_pulse_message_t *message, const uint8_t key[LS_SIPHASH_KEY_BYTES],
                               uint8_t data[LS_PULSE_MESSAGE_BYTES])
{
    const size_t length = strnlen(message->text, LS_PULSE_TEXT_ROOM - 1);
    uint8_t     *at     = data;

    put(&at, MAGIC, 4);
    put(&at, (uint64_t)message->kind, 1);
    put(&at, message->from, 4);
    put(&at, message->rank, 4);
    put(&at, message->number, 8);
    put(&at, message->step, 8);
    put(&at, message->age_ns, 8);
    put(&at, length, 2);
    memcpy(at, message->text, length);
    at += length;
    put(&at, ls_siphash(key, data, (size_t)(at - data)), LS_PULSE_TAG_BYTES);
    return (size_t)(at - data);
}

/* What a person may see on a terminal: other bytes could steer it. */
static void take_text(const uint8_t *from, size_t length, char *to)
{
    for (size_t i = 0; i < length; i++) {
        to[i] = (from[i] < 0x20 || from[i] == 0x7F) ? '?' : (char)from[i];
    }
    to[length] = '\0';
}

bool ls_pulse_message_decode(const uint8_t *data, size_t size, const uint8_t key[LS_SIPHASH_KEY_BYTES],
                             uint32_t num_ranks, ls_pulse_message_t *message_p)
{
    const uint8_t     *at = data;
    const uint8_t     *tag;
    ls_pulse_message_t message;
    uint64_t           kind;
    size_t             length;

    if (size < LS_PULSE_HEAD_BYTES + LS_PULSE_TAG_BYTES || size > LS_PULSE_MESSAGE_BYTES) {
        return false;
    }
    tag = data + size - LS_PULSE_TAG_BYTES;
    if (ls_siphash(key, data, size - LS_PULSE_TAG_BYTES) != get(&tag, LS_PULSE_TAG_BYTES) || get(&at, 4) != MAGIC) {
        return false;
    }
    kind           = get(&at, 1);
    message.kind   = (ls_pulse_kind_t)kind;
    message.from   = (uint32_t)get(&at, 4);
    message.rank   = (uint32_t)get(&at, 4);
    message.number = get(&at, 8);
    message.step   = get(&at, 8);
    message.age_ns = get(&at, 8);
    length         = (size_t)get(&at, 2);
    if (kind >= LS_PULSE_KIND_COUNT || message.from >= num_ranks || message.rank >= num_ranks ||
        length >= LS_PULSE_TEXT_ROOM || length != size - LS_PULSE_HEAD_BYTES - LS_PULSE_TAG_BYTES) {
        return false;
    }
    take_text(at, length, message.text);
    *message_p = message;
    return true;
}

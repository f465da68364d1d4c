/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libFuzzer: datagrams of the heartbeat.  The bytes as they are must be refused or understood; with a right hash put
 * behind them they come from a member, and what is understood must come out of encode() again.
 */
#include <stdlib.h>
#include <string.h>

#include "transport/pulse_message.h"

#define NUM_RANKS 5

static const uint8_t key[LS_SIPHASH_KEY_BYTES] = {1, 2, 3};

static void check_message(const ls_pulse_message_t *message)
{
    uint8_t            data[LS_PULSE_MESSAGE_BYTES];
    ls_pulse_message_t again;
    const size_t       size = ls_pulse_message_encode(message, key, data);

    if (message->from >= NUM_RANKS || message->rank >= NUM_RANKS || strlen(message->text) >= LS_PULSE_TEXT_ROOM ||
        !ls_pulse_message_decode(data, size, key, NUM_RANKS, &again) || again.number != message->number ||
        strcmp(again.text, message->text) != 0) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t            signed_data[LS_PULSE_MESSAGE_BYTES];
    ls_pulse_message_t message;
    uint64_t           tag;

    if (ls_pulse_message_decode(data, size, key, NUM_RANKS, &message)) {
        check_message(&message);
    }
    if (size <= sizeof(signed_data) - sizeof(tag)) {
        memcpy(signed_data, data, size);
        tag = ls_siphash(key, data, size);
        for (unsigned i = 0; i < sizeof(tag); i++) {
            signed_data[size + i] = (uint8_t)(tag >> (8 * i));
        }
        if (ls_pulse_message_decode(signed_data, size + sizeof(tag), key, NUM_RANKS, &message)) {
            check_message(&message);
        }
    }
    return 0;
}

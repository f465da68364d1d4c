/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/pulse_board.h"

#include <string.h>

#define MAGIC 0x4452414F424B4C32ULL

enum { VERDICT_NONE, VERDICT_IN_WRITING, VERDICT_THERE };

size_t ls_pulse_board_bytes(uint32_t num_slots)
{
    return sizeof(ls_pulse_board_t) + num_slots * sizeof(ls_pulse_slot_t);
}

void ls_pulse_board_init(ls_pulse_board_t *board, uint32_t num_slots)
{
    board->num_slots = num_slots;
    board->magic     = MAGIC;
}

bool ls_pulse_board_is_valid(const ls_pulse_board_t *board, uint32_t num_slots)
{
    return board->magic == MAGIC && board->num_slots == num_slots;
}

/* Always terminated. */
static void copy_text(char *to, const char *from, size_t room)
{
    size_t size = 0;

    while (size < room - 1 && from[size] != '\0') {
        to[size] = from[size];
        size++;
    }
    to[size] = '\0';
}

bool ls_pulse_board_accuse(ls_pulse_board_t *board, uint32_t rank, const char *text)
{
    uint32_t none = VERDICT_NONE;

    if (!atomic_compare_exchange_strong(&board->verdict_state, &none, VERDICT_IN_WRITING)) {
        return false;
    }
    board->verdict_rank = rank;
    copy_text(board->verdict, text, sizeof(board->verdict));
    atomic_store_explicit(&board->verdict_state, VERDICT_THERE, memory_order_release);
    return true;
}

bool ls_pulse_board_verdict(const ls_pulse_board_t *board, uint32_t *rank_p, char *text)
{
    if (atomic_load_explicit(&board->verdict_state, memory_order_acquire) != VERDICT_THERE) {
        return false;
    }
    *rank_p = board->verdict_rank;
    copy_text(text, board->verdict, LS_PULSE_TEXT_ROOM);
    return true;
}

bool ls_pulse_board_mark_gone(ls_pulse_slot_t *slot, const char *reason)
{
    uint32_t running = LS_PULSE_RUNNING;

    /* The first reason counts. */
    if (!atomic_compare_exchange_strong(&slot->state, &running, LS_PULSE_LEAVING)) {
        return false;
    }
    copy_text(slot->reason, reason, sizeof(slot->reason));
    atomic_store_explicit(&slot->state, LS_PULSE_GONE, memory_order_release);
    return true;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libFuzzer: control messages of the schedule.  The input is a list of (rank, length, bytes), received by a schedule that
 * holds a few tensors and, as rank 0, by its coordinator.  Nothing may crash, leak, or end an item twice.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "schedule/messages.h"
#include "schedule/schedule.h"

#define NUM_RANKS 3
#define NUM_ITEMS 6

static ls_schedule_item_t items[NUM_ITEMS];
static bool               has_ended[NUM_ITEMS];

static void end_item(const ls_schedule_item_t *item)
{
    const size_t at = (size_t)(item - items);

    if (at >= NUM_ITEMS || has_ended[at]) {
        abort();
    }
    has_ended[at] = true;
}

static void on_send(void *arg, uint32_t to, const void *data, size_t size)
{
    ls_message_t message;

    (void)arg;
    (void)to;
    if (ls_messages_decode(data, size, &message) != LS_OK) {
        abort(); /* what it says must be understood */
    }
    ls_messages_destroy(&message);
}

static void on_run(void *arg, const ls_schedule_run_t *run)
{
    (void)arg;
    for (uint32_t i = 0; i < run->num_slots; i++) {
        if (run->slots[i].item != NULL) {
            end_item(run->slots[i].item);
        }
    }
}

static void on_fail(void *arg, ls_schedule_item_t *item, ls_status_t status, const char *message)
{
    (void)arg;
    (void)status;
    (void)message;
    end_item(item);
}

static void on_joined(void *arg)
{
    (void)arg;
}

static const ls_schedule_ops_t ops = {.send = on_send, .run = on_run, .fail = on_fail, .joined = on_joined};

static void give(ls_schedule_h schedule, unsigned at, uint64_t now)
{
    static const char *const names[NUM_ITEMS] = {"a", "b", "c", "a", "b", "w"};

    items[at] = (ls_schedule_item_t){.name      = names[at],
                                     .signature = {.coll = LS_COLL_ALLREDUCE, .dtype = LS_FLOAT32, .op = LS_SUM,
                                                   .prescale = 1, .postscale = 1, .count = 4, .num_dims = 1, .shape = {4}}};
    ls_schedule_submit(schedule, &items[at], now);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const size_t               live   = ls_mem_live();
    const ls_schedule_params_t params = {.rank = size > 0 && data[0] % 2 == 1 ? 1 : 0, .num_ranks = NUM_RANKS,
                                         .fusion_bytes = 64, .patience_ns = 100, .stall_warn_ns = 1ULL << 60,
                                         .stall_abort_ns = 1ULL << 61, .ops = &ops};
    ls_schedule_h              schedule;
    uint64_t                   now = 1;
    unsigned                   num_given = 0;

    ls_log_set_level(LS_LOG_ERROR);
    memset(has_ended, 0, sizeof(has_ended));
    if (ls_schedule_create(&params, &schedule) != LS_OK) {
        return 0;
    }
    for (size_t at = 1; at + 3 <= size; now++) {
        const size_t length = data[at + 1] | ((size_t)data[at + 2] << 8);
        const size_t left   = size - at - 3;

        if (num_given < NUM_ITEMS && data[at] % 8 == 7) {
            give(schedule, num_given++, now);
        }
        (void)ls_schedule_receive(schedule, data[at] % (NUM_RANKS + 1), data + at + 3, length < left ? length : left, now);
        (void)ls_schedule_tick(schedule, now);
        at += 3 + (length < left ? length : left);
    }
    ls_schedule_abort(schedule, LS_ERR_STOPPED, "over");
    for (unsigned i = 0; i < num_given; i++) {
        if (!has_ended[i]) {
            abort();
        }
    }
    ls_schedule_destroy(schedule);
    if (ls_mem_live() != live) {
        abort();
    }
    return 0;
}

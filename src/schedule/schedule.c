/* SPDX-License-Identifier: Apache-2.0 */
/* The rank's side: takes items, reports names, passes messages on to where they are understood. */
#include "schedule/schedule.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/mem.h"
#include "schedule/adopted.h"

ls_status_t ls_schedule_create(const ls_schedule_params_t *params, ls_schedule_h *schedule_p)
{
    void         *mem;
    ls_schedule_h schedule;
    ls_status_t   status = ls_mem_alloc(sizeof(*schedule), "schedule", &mem);

    if (status != LS_OK) {
        return status;
    }
    schedule         = mem;
    schedule->params = *params;
    if (params->rank == 0) {
        status = ls_coordinator_create(&schedule->params, &schedule->coordinator);
    }
    if (status != LS_OK) {
        ls_mem_free(mem);
        return status;
    }
    *schedule_p = schedule;
    return LS_OK;
}

void ls_schedule_destroy(ls_schedule_h schedule)
{
    if (schedule == NULL) {
        return;
    }
    ls_adopted_destroy_all(schedule);
    ls_waiting_destroy(&schedule->waiting);
    ls_coordinator_destroy(schedule->coordinator);
    ls_blob_destroy(&schedule->blob);
    ls_mem_free(schedule->slots);
    ls_mem_free(schedule);
}

void ls_schedule_send(ls_schedule_h schedule, ls_message_t *message)
{
    if (schedule->lost != LS_OK) {
        return;
    }
    message->epoch = schedule->epoch;
    ls_blob_clear(&schedule->blob);
    ls_messages_encode(message, &schedule->blob);
    if (schedule->blob.status != LS_OK) {
        ls_schedule_break(schedule, schedule->blob.status, "no memory for a control message");
        return;
    }
    schedule->params.ops->send(schedule->params.arg, 0, schedule->blob.data, schedule->blob.size);
}

void ls_schedule_break(ls_schedule_h schedule, ls_status_t status, const char *text)
{
    if (schedule->lost != LS_OK) {
        return;
    }
    ls_schedule_abort(schedule, status, text);
    if (schedule->params.ops->broken != NULL) {
        schedule->params.ops->broken(schedule->params.arg, status, schedule->lost_text);
    }
}

/* ---- items in ------------------------------------------------------------------------------------ */

static void fail(ls_schedule_h schedule, ls_schedule_item_t *item, ls_status_t status, const char *text)
{
    schedule->params.ops->fail(schedule->params.arg, item, status, text);
}

/* For when all have joined. */
static void hold(ls_schedule_h schedule, ls_schedule_item_t *item)
{
    item->next = NULL;
    if (schedule->held_first == NULL) {
        schedule->held_first = item;
    } else {
        schedule->held_last->next = item;
    }
    schedule->held_last = item;
    schedule->num_held++;
}

static void fail_doomed(ls_schedule_h schedule, ls_waiting_t *waiting, ls_schedule_item_t *item)
{
    fail(schedule, item, waiting->doom, waiting->doom_text);
    ls_waiting_undoom(waiting, 1);
    ls_waiting_release(&schedule->waiting, waiting);
}

static void take(ls_schedule_h schedule, ls_schedule_item_t *item)
{
    ls_waiting_t     *waiting;
    const ls_status_t status = ls_waiting_get(&schedule->waiting, item->name, &waiting);

    if (status != LS_OK) {
        fail(schedule, item, status, ls_last_error());
        ls_schedule_break(schedule, status, "no memory for a name");
        return;
    }
    if (waiting->num_doomed > 0) {
        fail_doomed(schedule, waiting, item);
        return;
    }
    ls_waiting_push(&schedule->waiting, waiting, item);
    if (waiting->first != item) {
        return; /* its turn comes when those before it have run */
    }
    if (waiting->adopted == NULL) {
        ls_waiting_list_for_report(&schedule->waiting, waiting);
        return;
    }
    ls_adopted_fill(schedule, waiting->adopted, waiting->slot);
    ls_adopted_run(schedule, waiting->adopted);
}

void ls_schedule_submit(ls_schedule_h schedule, ls_schedule_item_t *item, uint64_t now_ns)
{
    schedule->now_ns = now_ns;
    item->after      = schedule->finished;
    if (schedule->lost != LS_OK) {
        fail(schedule, item, schedule->lost, schedule->lost_text);
    } else if (strlen(item->name) >= LS_SCHEDULE_NAME_ROOM ||
               item->signature.num_dims > LS_SIGNATURE_MAX_DIMS) {
        fail(schedule, item, LS_ERR_INVALID, "the name is too long or the shape has too many dimensions");
    } else if (schedule->is_joined) {
        hold(schedule, item);
    } else {
        take(schedule, item);
    }
}

void ls_schedule_finished(ls_schedule_h schedule, uint64_t epoch)
{
    schedule->finished = (epoch > schedule->finished) ? epoch : schedule->finished;
}

/* ---- reports out --------------------------------------------------------------------------------- */

/* One message for all names that came since the last one. */
static ls_status_t flush_reports(ls_schedule_h schedule)
{
    ls_message_t  message = {.kind = LS_MESSAGE_REPORT};
    uint32_t      room    = 0;
    ls_waiting_t *waiting;
    ls_status_t   status = LS_OK;

    while (status == LS_OK && (waiting = ls_waiting_next_to_report(&schedule->waiting)) != NULL) {
        if (message.num_names == room) {
            const uint32_t more = (room == 0) ? 16 : 2 * room;

            status = ls_mem_resize(&message.mem, room * sizeof(*message.names), more * sizeof(*message.names),
                                   "report");
            room   = more;
        }
        if (status == LS_OK) {
            message.names                      = message.mem;
            message.names[message.num_names++] = (ls_message_name_t){
                .name = waiting->name, .signature = waiting->first->signature, .after = waiting->first->after};
            waiting->is_reported = true;
        }
    }
    if (status == LS_OK && message.num_names > 0) {
        ls_schedule_send(schedule, &message);
    }
    ls_messages_destroy(&message);
    return status;
}

static void send_join(ls_schedule_h schedule)
{
    ls_message_t message = {.kind = LS_MESSAGE_JOIN, .flag = (schedule->waiting.num_items == 0) ? 1 : 0};

    schedule->is_drained = message.flag != 0;
    ls_schedule_send(schedule, &message);
}

static size_t num_items(const struct ls_schedule *schedule)
{
    return schedule->waiting.num_items + schedule->num_held;
}

/* Each name once per item; what is held for after a join too. */
static ls_status_t send_leave(ls_schedule_h schedule)
{
    ls_message_t      message = {.kind = LS_MESSAGE_LEAVE};
    size_t            cursor  = 0;
    ls_table_entry_t *entry;
    const ls_status_t status =
        ls_mem_alloc((num_items(schedule) + 1) * sizeof(*message.names), "what is left", &message.mem);

    if (status != LS_OK) {
        return status;
    }
    message.names = message.mem;
    while ((entry = ls_table_next(&schedule->waiting.names, &cursor)) != NULL) {
        const ls_waiting_t *waiting = entry->value;

        for (const ls_schedule_item_t *item = waiting->first; item != NULL; item = item->next) {
            message.names[message.num_names++] = (ls_message_name_t){.name = item->name, .signature = item->signature};
        }
    }
    for (const ls_schedule_item_t *item = schedule->held_first; item != NULL; item = item->next) {
        message.names[message.num_names++] = (ls_message_name_t){.name = item->name, .signature = item->signature};
    }
    schedule->num_left = message.num_names;
    ls_schedule_send(schedule, &message);
    ls_messages_destroy(&message);
    return LS_OK;
}

static ls_status_t flush(ls_schedule_h schedule)
{
    ls_status_t status = flush_reports(schedule);

    if (status == LS_OK && schedule->is_leaving && num_items(schedule) != schedule->num_left) {
        status = send_leave(schedule);
    }

    if (status == LS_OK && schedule->is_joined && !schedule->is_drained && schedule->waiting.num_items == 0) {
        send_join(schedule);
    }
    return status;
}

void ls_schedule_join(ls_schedule_h schedule, uint64_t now_ns)
{
    ls_status_t status;

    if (schedule->lost != LS_OK || schedule->is_joined) {
        return;
    }
    schedule->now_ns = now_ns;
    status           = flush_reports(schedule); /* what was given before counts as given */
    if (status != LS_OK) {
        ls_schedule_break(schedule, status, "no memory to join");
        return;
    }
    schedule->is_joined = true;
    ls_waiting_undoom_all(&schedule->waiting);
    send_join(schedule);
    for (uint32_t i = 0; i < schedule->num_live; i++) {
        ls_adopted_run(schedule, schedule->live[i]);
    }
}

void ls_schedule_leave(ls_schedule_h schedule, uint64_t now_ns)
{
    ls_status_t status;

    if (schedule->lost != LS_OK || schedule->is_leaving) {
        return;
    }
    schedule->now_ns     = now_ns;
    schedule->is_leaving = true;
    status               = flush_reports(schedule); /* what was given before counts as given */
    if (status == LS_OK) {
        status = send_leave(schedule);
    }
    if (status != LS_OK) {
        ls_schedule_break(schedule, status, "no memory to leave");
    }
}

void ls_schedule_doubt(ls_schedule_h schedule, uint32_t id, uint64_t now_ns)
{
    ls_message_t message = {.kind = LS_MESSAGE_GIVE_UP, .id = id};

    schedule->now_ns = now_ns;
    if (ls_adopted_find(schedule, id) != NULL) {
        ls_schedule_send(schedule, &message);
    }
}

/* ---- messages, time ------------------------------------------------------------------------------ */

static ls_status_t pass_on(ls_schedule_h schedule, uint32_t from, const ls_message_t *message)
{
    if (ls_messages_is_broadcast(message->kind) && from == 0) {
        return ls_answers_apply(schedule, message);
    }
    if (!ls_messages_is_broadcast(message->kind) && schedule->coordinator != NULL &&
        from < schedule->params.num_ranks) {
        return ls_coordinator_receive(schedule->coordinator, from, message, schedule->now_ns);
    }
    return ls_error_set(LS_ERR_INTERNAL, "rank %u may not send rank %u a control message of kind %u", from,
                        schedule->params.rank, (unsigned)message->kind);
}

ls_status_t ls_schedule_receive(ls_schedule_h schedule, uint32_t from, const void *data, size_t size,
                                uint64_t now_ns)
{
    ls_message_t message;
    ls_status_t  status;

    if (schedule->lost != LS_OK) {
        return LS_OK;
    }
    schedule->now_ns = now_ns;
    status           = ls_messages_decode(data, size, &message);
    if (status == LS_OK) {
        status = pass_on(schedule, from, &message);
        ls_messages_destroy(&message);
    }
    if (status != LS_OK && status != LS_ERR_INTERNAL) {
        ls_schedule_break(schedule, status, ls_last_error());
    }
    return status;
}

uint64_t ls_schedule_tick(ls_schedule_h schedule, uint64_t now_ns)
{
    uint64_t    next = UINT64_MAX, next_adopted;
    ls_status_t status;

    if (schedule->lost != LS_OK) {
        return UINT64_MAX;
    }
    schedule->now_ns = now_ns;
    status           = flush(schedule);
    if (status == LS_OK && schedule->coordinator != NULL) {
        status = ls_coordinator_tick(schedule->coordinator, now_ns, &next);
    }
    if (status != LS_OK) {
        ls_schedule_break(schedule, status, ls_last_error());
        return UINT64_MAX;
    }
    next_adopted = ls_adopted_tick(schedule);
    return (next_adopted < next) ? next_adopted : next;
}

/* ---- ends ---------------------------------------------------------------------------------------- */

void ls_schedule_abort(ls_schedule_h schedule, ls_status_t status, const char *message)
{
    size_t              cursor = 0;
    ls_table_entry_t   *entry;
    ls_schedule_item_t *item;

    if (schedule->lost != LS_OK) {
        return;
    }
    schedule->lost = status;
    snprintf(schedule->lost_text, sizeof(schedule->lost_text), "%s", message);
    while ((entry = ls_table_next(&schedule->waiting.names, &cursor)) != NULL) {
        while ((item = ls_waiting_pop(&schedule->waiting, entry->value)) != NULL) {
            fail(schedule, item, status, schedule->lost_text);
        }
    }
    while ((item = schedule->held_first) != NULL) {
        schedule->held_first = item->next;
        fail(schedule, item, status, schedule->lost_text);
    }
    schedule->num_held = 0;
}

bool ls_schedule_is_idle(ls_schedule_h schedule)
{
    return num_items(schedule) == 0;
}

bool ls_schedule_has_reports(ls_schedule_h schedule)
{
    return schedule->waiting.first_listed != NULL;
}

uint64_t ls_schedule_changes(ls_schedule_h schedule)
{
    return schedule->num_changes;
}

static void dump_names(ls_schedule_h schedule, uint64_t now_ns, int fd)
{
    size_t            cursor = 0;
    ls_table_entry_t *entry;
    char              text[256];

    while ((entry = ls_table_next(&schedule->waiting.names, &cursor)) != NULL) {
        const ls_waiting_t *waiting = entry->value;

        if (waiting->first != NULL) {
            ls_signature_print(&waiting->first->signature, text, sizeof(text));
            dprintf(fd, "  '%s' (%s) waits %.3f s, %s\n", waiting->name, text,
                    (double)(now_ns - waiting->first->submitted_ns) / (double)LS_NS_PER_S,
                    waiting->adopted != NULL ? "in a bucket"
                                             : (waiting->is_reported ? "reported" : "not reported yet"));
        }
    }
}

void ls_schedule_dump(ls_schedule_h schedule, uint64_t now_ns, int fd)
{
    dprintf(fd, "schedule of rank %u: %u buckets, %zu tensors wait%s%s\n", schedule->params.rank,
            schedule->num_live, num_items(schedule), schedule->is_joined ? ", joined" : schedule->is_leaving ? ", leaving" : "", schedule->lost != LS_OK ? ", lost" : "");
    ls_adopted_dump(schedule, fd);
    dump_names(schedule, now_ns, fd);
    if (schedule->coordinator != NULL) {
        ls_coordinator_dump(schedule->coordinator, now_ns, fd);
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What a rank does with what the coordinator says to all. */
#include <stdio.h>

#include "base/error.h"
#include "base/mem.h"
#include "schedule/adopted.h"
#include "schedule/signature.h"

/* ---- does it make sense here?  Nothing is changed before this is known. -------------------------- */

/* A rank that has joined may lack the item, or have one that it has not reported. */
static bool can_run(const struct ls_schedule *schedule, const ls_message_name_t *name, const ls_waiting_t *waiting)
{
    if (waiting == NULL || waiting->first == NULL) {
        return schedule->is_joined;
    }
    if (waiting->adopted != NULL || waiting->is_marked) {
        return false;
    }
    return schedule->is_joined ||
           (waiting->is_reported && ls_signature_equal(&name->signature, &waiting->first->signature));
}

static bool can_adopt(const ls_waiting_t *waiting)
{
    return waiting == NULL || (waiting->adopted == NULL && !waiting->is_marked);
}

static bool check_names(ls_schedule_h schedule, const ls_message_t *message)
{
    const bool is_response = message->kind == LS_MESSAGE_RESPONSE;
    bool       is_good     = true;
    uint32_t   num_checked = 0;

    while (is_good && num_checked < message->num_names) {
        const ls_message_name_t *name    = &message->names[num_checked++];
        ls_waiting_t            *waiting = ls_waiting_find(&schedule->waiting, name->name);

        is_good = is_response ? can_run(schedule, name, waiting) : can_adopt(waiting);
        if (waiting != NULL) {
            waiting->is_marked = true;
        }
    }
    for (uint32_t i = 0; i < num_checked; i++) {
        ls_waiting_t *waiting = ls_waiting_find(&schedule->waiting, message->names[i].name);

        if (waiting != NULL) {
            waiting->is_marked = false;
        }
    }
    return is_good;
}

static bool check_adopt(ls_schedule_h schedule, const ls_message_t *message)
{
    bool is_taken[LS_SCHEDULE_NUM_ADOPTED] = {false};

    for (uint32_t i = 0; i < message->num_buckets; i++) {
        const uint32_t id = message->buckets[i].id;

        if (ls_adopted_find(schedule, id) != NULL || is_taken[id - LS_SCHEDULE_FIRST_ADOPTED]) {
            return false;
        }
        is_taken[id - LS_SCHEDULE_FIRST_ADOPTED] = true;
    }
    return check_names(schedule, message);
}

static bool check_error(ls_schedule_h schedule, const ls_message_t *message)
{
    const ls_waiting_t *waiting = ls_waiting_find(&schedule->waiting, message->names[0].name);

    return waiting == NULL || waiting->adopted == NULL;
}

static bool check_live(ls_schedule_h schedule, const ls_message_t *message)
{
    return ls_adopted_find(schedule, message->id) != NULL;
}

static bool check_joined(ls_schedule_h schedule, const ls_message_t *message)
{
    (void)message;
    return schedule->is_joined;
}

/* ---- doing it ------------------------------------------------------------------------------------ */

static ls_status_t need_slots(ls_schedule_h schedule, size_t num_slots)
{
    void       *mem = NULL;
    ls_status_t status;

    if (num_slots <= schedule->slots_room) {
        return LS_OK;
    }
    status = ls_mem_alloc(2 * num_slots * sizeof(*schedule->slots), "slots", &mem);
    if (status == LS_OK) {
        ls_mem_free(schedule->slots);
        schedule->slots      = mem;
        schedule->slots_room = 2 * num_slots;
    }
    return status;
}

/* The own item for a slot; NULL where this rank has joined and has none that fits. */
static ls_schedule_item_t *take_item(ls_schedule_h schedule, const ls_message_name_t *name)
{
    ls_waiting_t       *waiting = ls_waiting_find(&schedule->waiting, name->name);
    ls_schedule_item_t *item    = (waiting == NULL) ? NULL : ls_waiting_pop(&schedule->waiting, waiting);
    char                here[256], agreed[256];
    char                text[LS_MESSAGES_TEXT_ROOM];

    if (item == NULL || ls_signature_equal(&name->signature, &item->signature)) {
        return item;
    }
    ls_signature_print(&item->signature, here, sizeof(here));
    ls_signature_print(&name->signature, agreed, sizeof(agreed));
    snprintf(text, sizeof(text), "tensor '%s': ranks disagree: rank %u has %s; the ranks that have not joined have %s",
             name->name, schedule->params.rank, here, agreed);
    schedule->params.ops->fail(schedule->params.arg, item, LS_ERR_MISMATCH, text);
    return NULL;
}

/* The name has lost its first item: the next one is reported, or the record goes. */
static void go_on(ls_schedule_h schedule, const char *name)
{
    ls_waiting_t *waiting = ls_waiting_find(&schedule->waiting, name);

    if (waiting != NULL) {
        ls_waiting_list_for_report(&schedule->waiting, waiting);
        ls_waiting_release(&schedule->waiting, waiting);
    }
}

static ls_status_t run_bucket(ls_schedule_h schedule, const ls_message_t *message, const ls_message_bucket_t *bucket)
{
    const ls_message_name_t *names  = &message->names[bucket->first_name];
    const ls_status_t        status = need_slots(schedule, bucket->num_names);
    ls_schedule_run_t        run    = {
                  .id = bucket->id, .iteration = bucket->iteration, .epoch = schedule->epoch,
                  .num_slots = bucket->num_names};

    if (status != LS_OK) {
        return status;
    }
    run.slots = schedule->slots;
    for (uint32_t i = 0; i < bucket->num_names; i++) {
        ls_schedule_slot_t *slot = &schedule->slots[i];

        *slot = (ls_schedule_slot_t){.name = names[i].name, .signature = names[i].signature};
        slot->item = take_item(schedule, &names[i]);
        ls_signature_fill_count(slot->item, &slot->signature);
    }
    schedule->params.ops->run(schedule->params.arg, &run);
    for (uint32_t i = 0; i < bucket->num_names; i++) {
        go_on(schedule, names[i].name);
    }
    return LS_OK;
}

static ls_status_t apply_response(ls_schedule_h schedule, const ls_message_t *message)
{
    ls_status_t status = LS_OK;

    for (uint32_t i = 0; i < message->num_buckets && status == LS_OK; i++) {
        status = run_bucket(schedule, message, &message->buckets[i]);
    }
    return status;
}

static ls_status_t apply_adopt(ls_schedule_h schedule, const ls_message_t *message)
{
    ls_status_t status = LS_OK;

    for (uint32_t i = 0; i < message->num_buckets && status == LS_OK; i++) {
        const ls_message_bucket_t *bucket = &message->buckets[i];

        status = ls_adopted_create(schedule, bucket, &message->names[bucket->first_name]);
    }
    for (uint32_t i = 0; i < message->num_buckets && status == LS_OK; i++) {
        ls_adopted_run(schedule, ls_adopted_find(schedule, message->buckets[i].id));
    }
    return status;
}

static ls_status_t apply_error(ls_schedule_h schedule, const ls_message_t *message)
{
    const char         *name    = message->names[0].name;
    ls_waiting_t       *waiting = ls_waiting_find(&schedule->waiting, name);
    ls_schedule_item_t *item    = (waiting == NULL) ? NULL : ls_waiting_pop(&schedule->waiting, waiting);
    ls_status_t         status;

    if (item != NULL) {
        schedule->params.ops->fail(schedule->params.arg, item, message->status, message->text);
        go_on(schedule, name);
        return LS_OK;
    }
    if (schedule->is_joined) {
        return LS_OK; /* it will not give this one */
    }
    status = ls_waiting_get(&schedule->waiting, name, &waiting);
    if (status == LS_OK) {
        status = ls_waiting_doom(waiting, message->status, message->text);
        ls_waiting_release(&schedule->waiting, waiting);
    }
    return status;
}

static ls_status_t apply_freeze(ls_schedule_h schedule, const ls_message_t *message)
{
    ls_adopted_freeze(schedule, ls_adopted_find(schedule, message->id), message->round);
    return LS_OK;
}

static ls_status_t apply_resume(ls_schedule_h schedule, const ls_message_t *message)
{
    ls_adopted_resume(schedule, ls_adopted_find(schedule, message->id), message);
    return LS_OK;
}

static ls_status_t apply_retire(ls_schedule_h schedule, const ls_message_t *message)
{
    ls_adopted_retire(schedule, ls_adopted_find(schedule, message->id));
    return LS_OK;
}

static ls_status_t apply_joined(ls_schedule_h schedule, const ls_message_t *message)
{
    ls_schedule_item_t *held = schedule->held_first;

    (void)message;
    schedule->is_joined  = false;
    schedule->is_drained = false;
    schedule->held_first = NULL;
    schedule->num_held   = 0;
    schedule->params.ops->joined(schedule->params.arg);
    while (held != NULL) {
        ls_schedule_item_t *next = held->next;

        ls_schedule_submit(schedule, held, schedule->now_ns);
        held = next;
    }
    return LS_OK;
}

static ls_status_t apply_broken(ls_schedule_h schedule, const ls_message_t *message)
{
    ls_schedule_break(schedule, message->status, message->text);
    return LS_OK;
}

static const struct {
    bool (*check)(ls_schedule_h schedule, const ls_message_t *message); /* NULL: always fine */
    ls_status_t (*apply)(ls_schedule_h schedule, const ls_message_t *message);
} answers[LS_MESSAGE_COUNT] = {
    [LS_MESSAGE_RESPONSE] = {.check = check_names, .apply = apply_response},
    [LS_MESSAGE_ADOPT]    = {.check = check_adopt, .apply = apply_adopt},
    [LS_MESSAGE_ERROR]    = {.check = check_error, .apply = apply_error},
    [LS_MESSAGE_FREEZE]   = {.check = check_live, .apply = apply_freeze},
    [LS_MESSAGE_RESUME]   = {.check = check_live, .apply = apply_resume},
    [LS_MESSAGE_RETIRE]   = {.check = check_live, .apply = apply_retire},
    [LS_MESSAGE_JOINED]   = {.check = check_joined, .apply = apply_joined},
    [LS_MESSAGE_BROKEN]   = {.apply = apply_broken},
};

ls_status_t ls_answers_apply(ls_schedule_h schedule, const ls_message_t *message)
{
    if (answers[message->kind].check != NULL && !answers[message->kind].check(schedule, message)) {
        return ls_error_set(LS_ERR_INTERNAL, "a control message of kind %u does not fit what this rank holds",
                            (unsigned)message->kind);
    }
    schedule->epoch++; /* first: what is said in answer must show that this was seen */
    return answers[message->kind].apply(schedule, message);
}

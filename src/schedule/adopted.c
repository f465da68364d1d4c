/* SPDX-License-Identifier: Apache-2.0 */
#include "schedule/adopted.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/mem.h"
#include "schedule/signature.h"

#define USUAL_FILLS      8 /* patience is at least that many times the longest fill seen */
#define LONGEST_PATIENCE (60 * LS_NS_PER_S)

ls_adopted_t *ls_adopted_find(ls_schedule_h schedule, uint32_t id)
{
    if (id < LS_SCHEDULE_FIRST_ADOPTED || id >= LS_SCHEDULE_NUM_IDS) {
        return NULL;
    }
    return schedule->by_id[id - LS_SCHEDULE_FIRST_ADOPTED];
}

static void destroy(ls_adopted_t *adopted)
{
    ls_mem_free(adopted->waiting);
    ls_mem_free(adopted->slots);
    ls_mem_free(adopted);
}

static ls_status_t allocate(const ls_message_bucket_t *bucket, ls_adopted_t **adopted_p)
{
    ls_adopted_t *adopted;
    void         *mem, *waiting, *slots;
    ls_status_t   status = ls_mem_alloc(sizeof(*adopted), "adopted bucket", &mem);

    if (status != LS_OK) {
        return status;
    }
    status = ls_mem_alloc(bucket->num_names * sizeof(*adopted->waiting), "adopted bucket", &waiting);
    if (status != LS_OK) {
        goto err_free_adopted;
    }
    status = ls_mem_alloc(bucket->num_names * sizeof(*adopted->slots), "adopted bucket", &slots);
    if (status != LS_OK) {
        goto err_free_waiting;
    }
    adopted  = mem;
    *adopted = (ls_adopted_t){
        .id        = bucket->id,        .iteration   = bucket->iteration,
        .num_slots = bucket->num_names, .patience_ns = bucket->patience_ns,
        .limit     = LS_SCHEDULE_NO_LIMIT,
        .waiting   = waiting,           .slots       = slots,
    };
    *adopted_p = adopted;
    return LS_OK;

err_free_waiting:
    ls_mem_free(waiting);
err_free_adopted:
    ls_mem_free(mem);
    return status;
}

static void unlink_slots(ls_schedule_h schedule, ls_adopted_t *adopted, uint32_t num_slots)
{
    for (uint32_t i = 0; i < num_slots; i++) {
        adopted->waiting[i]->adopted = NULL;
        ls_waiting_list_for_report(&schedule->waiting, adopted->waiting[i]);
        ls_waiting_release(&schedule->waiting, adopted->waiting[i]);
    }
}

ls_status_t ls_adopted_create(ls_schedule_h schedule, const ls_message_bucket_t *bucket,
                              const ls_message_name_t *names)
{
    ls_adopted_t *adopted;
    ls_status_t   status = allocate(bucket, &adopted);

    if (status != LS_OK) {
        return status;
    }
    for (uint32_t i = 0; i < bucket->num_names; i++) {
        status = ls_waiting_get(&schedule->waiting, names[i].name, &adopted->waiting[i]);
        if (status != LS_OK) {
            unlink_slots(schedule, adopted, i);
            destroy(adopted);
            return status;
        }
        adopted->waiting[i]->adopted     = adopted;
        adopted->waiting[i]->slot        = i;
        adopted->waiting[i]->is_reported = false; /* such a report is ignored by the coordinator */
        adopted->slots[i].name           = adopted->waiting[i]->name;
        adopted->slots[i].signature      = names[i].signature;
    }
    adopted->at                                              = schedule->num_live;
    schedule->live[schedule->num_live++]                     = adopted;
    schedule->by_id[adopted->id - LS_SCHEDULE_FIRST_ADOPTED] = adopted;
    schedule->num_changes++;
    for (uint32_t i = 0; i < bucket->num_names; i++) {
        ls_adopted_fill(schedule, adopted, i);
    }
    return LS_OK;
}

void ls_adopted_retire(ls_schedule_h schedule, ls_adopted_t *adopted)
{
    ls_adopted_t *moved = schedule->live[--schedule->num_live];

    schedule->live[adopted->at]                              = moved;
    moved->at                                                = adopted->at;
    schedule->by_id[adopted->id - LS_SCHEDULE_FIRST_ADOPTED] = NULL;
    schedule->num_changes++;
    if (schedule->params.ops->retired != NULL) {
        schedule->params.ops->retired(schedule->params.arg, adopted->id);
    }
    unlink_slots(schedule, adopted, adopted->num_slots);
    destroy(adopted);
}

void ls_adopted_destroy_all(ls_schedule_h schedule)
{
    for (uint32_t i = 0; i < schedule->num_live; i++) {
        destroy(schedule->live[i]);
    }
    schedule->num_live = 0;
}

/* A slot whose first item does not fit can never be filled: the bucket must go. */
static void complain(ls_schedule_h schedule, ls_adopted_t *adopted, const ls_schedule_item_t *item)
{
    ls_message_name_t name    = {.name = item->name, .signature = item->signature};
    ls_message_t      message = {
             .kind = LS_MESSAGE_GIVE_UP, .id = adopted->id, .flag = 1, .num_names = 1, .names = &name};

    ls_schedule_send(schedule, &message);
}

void ls_adopted_fill(ls_schedule_h schedule, ls_adopted_t *adopted, uint32_t slot)
{
    const ls_schedule_item_t *item = adopted->waiting[slot]->first;

    if (item == NULL) {
        return;
    }
    if (!ls_signature_equal(&adopted->slots[slot].signature, &item->signature)) {
        complain(schedule, adopted, item);
        return;
    }
    if (adopted->num_filled++ == 0) {
        adopted->first_fill_ns = schedule->now_ns;
    }
}

static bool may_start(const struct ls_schedule *schedule, const ls_adopted_t *adopted)
{
    if (schedule->lost != LS_OK || adopted->is_frozen || adopted->iteration >= adopted->limit) {
        return false;
    }
    /* What the others have begun is completed with nothing by one who gives no more. */
    return adopted->num_filled == adopted->num_slots || (schedule->is_joined && adopted->is_catching_up);
}

static void start(ls_schedule_h schedule, ls_adopted_t *adopted)
{
    const bool              is_full = adopted->num_filled == adopted->num_slots;
    const ls_schedule_run_t run     = {
            .id        = adopted->id,
            .iteration = adopted->iteration,
            .is_replay = true,
            .num_slots = adopted->num_slots,
            .slots     = adopted->slots,
    };

    for (uint32_t i = 0; i < adopted->num_slots; i++) {
        ls_waiting_t       *waiting = adopted->waiting[i];
        ls_schedule_slot_t *slot    = &adopted->slots[i];
        const bool          fits =
            is_full ||
            (waiting->first != NULL && ls_signature_equal(&slot->signature, &waiting->first->signature));

        slot->item = fits ? ls_waiting_pop(&schedule->waiting, waiting) : NULL;
        ls_signature_fill_count(slot->item, &slot->signature);
    }
    if (is_full && !adopted->has_given_up && schedule->now_ns - adopted->first_fill_ns > adopted->longest_fill_ns) {
        adopted->longest_fill_ns = schedule->now_ns - adopted->first_fill_ns;
    }
    adopted->has_given_up = false;
    adopted->num_filled   = 0;
    adopted->iteration++;
    schedule->params.ops->run(schedule->params.arg, &run);
}

static void tell_if_reached(ls_schedule_h schedule, ls_adopted_t *adopted)
{
    ls_message_t message = {.kind = LS_MESSAGE_REACHED, .id = adopted->id, .round = adopted->round};

    if (adopted->is_catching_up && adopted->iteration == adopted->target) {
        adopted->is_catching_up = false;
        ls_schedule_send(schedule, &message);
    }
}

void ls_adopted_run(ls_schedule_h schedule, ls_adopted_t *adopted)
{
    while (may_start(schedule, adopted)) {
        start(schedule, adopted);
        /* Before the next items are looked at: one that does not fit is no obstacle to what is reached. */
        tell_if_reached(schedule, adopted);
        for (uint32_t i = 0; i < adopted->num_slots; i++) {
            ls_adopted_fill(schedule, adopted, i);
        }
    }
}

static uint32_t first_empty_slot(const ls_adopted_t *adopted)
{
    uint32_t slot = 0;

    while (slot < adopted->num_slots && adopted->waiting[slot]->first != NULL) {
        slot++;
    }
    return slot;
}

void ls_adopted_freeze(ls_schedule_h schedule, ls_adopted_t *adopted, uint64_t round)
{
    ls_message_t message = {.kind      = LS_MESSAGE_FROZEN,
                            .id        = adopted->id,
                            .round     = round,
                            .iteration = adopted->iteration,
                            .slot      = first_empty_slot(adopted)};

    adopted->is_frozen      = true;
    adopted->is_catching_up = false;
    ls_schedule_send(schedule, &message);
}

void ls_adopted_resume(ls_schedule_h schedule, ls_adopted_t *adopted, const ls_message_t *message)
{
    if (adopted->has_given_up) {
        adopted->patience_ns = (adopted->patience_ns > LONGEST_PATIENCE / 2) ? LONGEST_PATIENCE
                                                                             : 2 * adopted->patience_ns;
    }
    adopted->is_frozen      = false;
    adopted->has_given_up   = false;
    adopted->limit          = (message->flag != 0) ? message->iteration : LS_SCHEDULE_NO_LIMIT;
    adopted->is_catching_up = adopted->iteration < message->iteration;
    adopted->target         = message->iteration;
    adopted->round          = message->round;
    adopted->first_fill_ns  = schedule->now_ns;
    ls_adopted_run(schedule, adopted);
}

static uint64_t deadline(const ls_adopted_t *adopted)
{
    uint64_t usual = USUAL_FILLS * adopted->longest_fill_ns;

    usual = (usual > LONGEST_PATIENCE) ? LONGEST_PATIENCE : usual;
    return adopted->first_fill_ns + (usual > adopted->patience_ns ? usual : adopted->patience_ns);
}

/* The names that are missing go along: they will not be put together with the others again. */
static void give_up(ls_schedule_h schedule, ls_adopted_t *adopted)
{
    ls_message_t message = {.kind = LS_MESSAGE_GIVE_UP, .id = adopted->id};
    ls_status_t  status =
        ls_mem_alloc(adopted->num_slots * sizeof(*message.names), "missing names", &message.mem);

    if (status != LS_OK) {
        ls_schedule_break(schedule, status, "no memory to give up a bucket");
        return;
    }
    message.names = message.mem;
    for (uint32_t i = 0; i < adopted->num_slots; i++) {
        if (adopted->waiting[i]->first == NULL) {
            message.names[message.num_names++] = (ls_message_name_t){
                .name = adopted->slots[i].name, .signature = adopted->slots[i].signature};
        }
    }
    adopted->has_given_up = true;
    ls_schedule_send(schedule, &message);
    ls_messages_destroy(&message);
}

uint64_t ls_adopted_tick(ls_schedule_h schedule)
{
    uint64_t next = UINT64_MAX;

    for (uint32_t i = 0; i < schedule->num_live && schedule->lost == LS_OK; i++) {
        ls_adopted_t *adopted = schedule->live[i];

        if (adopted->num_filled == 0 || adopted->num_filled == adopted->num_slots || adopted->is_frozen ||
            adopted->has_given_up) {
            continue;
        }
        if (deadline(adopted) <= schedule->now_ns) {
            give_up(schedule, adopted);
        } else if (deadline(adopted) < next) {
            next = deadline(adopted);
        }
    }
    return next;
}

void ls_adopted_dump(ls_schedule_h schedule, int fd)
{
    for (uint32_t i = 0; i < schedule->num_live; i++) {
        const ls_adopted_t *adopted = schedule->live[i];

        dprintf(fd, "  bucket %" PRIu32 " iteration %" PRIu32 ": %" PRIu32 " of %" PRIu32 " filled%s%s\n",
                adopted->id, adopted->iteration, adopted->num_filled, adopted->num_slots,
                adopted->is_frozen ? ", frozen" : "", adopted->is_catching_up ? ", catching up" : "");
        for (uint32_t j = 0; j < adopted->num_slots && adopted->num_filled > 0; j++) {
            if (adopted->waiting[j]->first == NULL) {
                dprintf(fd, "    lacks %s\n", adopted->slots[j].name);
            }
        }
    }
}

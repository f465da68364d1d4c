/* SPDX-License-Identifier: Apache-2.0 */
#include "schedule/coordinator.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/mem.h"
#include "schedule/coordinator_int.h"
#include "schedule/ranks.h"
#include "schedule/signature.h"

#define RANKS_ROOM 512

ls_status_t ls_coordinator_create(const ls_schedule_params_t *params, ls_coordinator_t **coordinator_p)
{
    ls_coordinator_t *c;
    void             *mem, *epochs, *flags;
    ls_status_t       status = ls_mem_alloc(sizeof(*c), "coordinator", &mem);

    if (status != LS_OK) {
        return status;
    }
    status = ls_mem_alloc(params->num_ranks * sizeof(*c->epoch_of), "coordinator", &epochs);
    if (status != LS_OK) {
        goto err_free_coordinator;
    }
    status = ls_mem_alloc(2 * params->num_ranks * sizeof(*c->joined), "coordinator", &flags);
    if (status != LS_OK) {
        goto err_free_epochs;
    }
    c                  = mem;
    c->params          = params;
    c->epoch_of        = epochs;
    c->joined          = flags;
    c->drained         = c->joined + params->num_ranks;
    c->next_negotiated = 1;
    status             = ls_leave_create(c);
    if (status != LS_OK) {
        goto err_free_flags;
    }
    *coordinator_p = c;
    return LS_OK;

err_free_flags:
    ls_mem_free(flags);
err_free_epochs:
    ls_mem_free(epochs);
err_free_coordinator:
    ls_mem_free(mem);
    return status;
}

void ls_coordinator_destroy(ls_coordinator_t *coordinator)
{
    if (coordinator == NULL) {
        return;
    }
    ls_leave_destroy(coordinator);
    ls_tally_destroy_all(coordinator);
    ls_agreed_destroy_all(coordinator);
    ls_history_destroy(&coordinator->history);
    ls_blob_destroy(&coordinator->blob);
    ls_mem_free(coordinator->names);
    ls_mem_free(coordinator->buckets);
    ls_mem_free(coordinator->epoch_of);
    ls_mem_free(coordinator->joined);
    ls_mem_free(coordinator);
}

/* ---- speaking ------------------------------------------------------------------------------------ */

ls_status_t ls_coordinator_broadcast(ls_coordinator_t *c, const ls_message_t *message)
{
    ls_blob_clear(&c->blob);
    ls_messages_encode(message, &c->blob);
    if (c->blob.status != LS_OK) {
        return c->blob.status;
    }
    c->seq++;
    for (uint32_t rank = 0; rank < c->params->num_ranks; rank++) {
        c->params->ops->send(c->params->arg, rank, c->blob.data, c->blob.size);
    }
    return LS_OK;
}

ls_status_t ls_coordinator_break(ls_coordinator_t *c, ls_status_t status, const char *text)
{
    const ls_message_t message = {.kind = LS_MESSAGE_BROKEN, .status = status, .text = text};

    c->is_broken = true;
    return ls_coordinator_broadcast(c, &message);
}

void ls_coordinator_describe(const ls_coordinator_t *c, uint32_t rank, char *text, size_t room)
{
    snprintf(text, room, "rank %" PRIu32, rank);
    if (c->params->ops->describe != NULL) {
        c->params->ops->describe(c->params->arg, rank, text, room);
    }
}

static ls_status_t need(void **mem_p, size_t size, size_t *room_p, size_t count)
{
    const size_t more   = (*room_p == 0) ? 64 : 2 * *room_p;
    ls_status_t  status = LS_OK;

    if (count > *room_p) {
        status  = ls_mem_resize(mem_p, *room_p * size, more * size, "buckets to send");
        *room_p = (status == LS_OK) ? more : *room_p;
    }
    return status;
}

static uint64_t bucket_bytes(const ls_coordinator_t *c, const ls_message_bucket_t *bucket)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < bucket->num_names; i++) {
        bytes += ls_signature_bytes(&c->names[bucket->first_name + i].signature);
    }
    return bytes;
}

static uint64_t party_of(const ls_coordinator_t *c, const char *name)
{
    const ls_lesson_t *lesson = ls_history_lesson(&c->history, name);

    return (lesson == NULL) ? 0 : lesson->party;
}

/* Only what is adopted must be of one party: what is ready now can run together. */
static bool fits(const ls_coordinator_t *c, const ls_message_t *message, const ls_message_name_t *name)
{
    const ls_message_bucket_t *bucket = &c->buckets[message->num_buckets - 1];
    const ls_message_name_t *first = &c->names[bucket->first_name];
    const uint64_t           bytes = ls_signature_bytes(&name->signature);
    const uint64_t           used  = bucket_bytes(c, bucket);

    return ls_signature_can_fuse(&first->signature, &name->signature) && used <= c->params->fusion_bytes &&
           bytes <= c->params->fusion_bytes - used &&
           (message->kind != LS_MESSAGE_ADOPT ||
            (name->after < first->number && party_of(c, first->name) == party_of(c, name->name)));
}

ls_status_t ls_coordinator_pack(ls_coordinator_t *c, const ls_message_name_t *name, ls_message_t *message)
{
    void       *names = c->names, *buckets = c->buckets;
    ls_status_t status = need(&names, sizeof(*c->names), &c->names_room, message->num_names + 1U);

    c->names = names;
    if (status == LS_OK) {
        status     = need(&buckets, sizeof(*c->buckets), &c->buckets_room, message->num_buckets + 1U);
        c->buckets = buckets;
    }
    if (status != LS_OK) {
        return status;
    }
    message->names   = c->names;
    message->buckets = c->buckets;
    if (message->num_buckets == 0 || !fits(c, message, name)) {
        c->buckets[message->num_buckets++] = (ls_message_bucket_t){.first_name = message->num_names};
    }
    c->buckets[message->num_buckets - 1].num_names++;
    c->names[message->num_names++] = *name;
    return LS_OK;
}

/* ---- hearing ------------------------------------------------------------------------------------- */

static ls_status_t hear_reports(ls_coordinator_t *c, uint32_t from, const ls_message_t *message)
{
    ls_status_t status = LS_OK;

    for (uint32_t i = 0; i < message->num_names && status == LS_OK; i++) {
        status = ls_tally_report(c, from, message->epoch, &message->names[i]);
    }
    return status;
}

static ls_status_t hear_join(ls_coordinator_t *c, uint32_t from, bool is_drained)
{
    ls_status_t status = LS_OK;

    if (!c->joined[from]) {
        c->joined[from] = true;
        if (c->num_joined++ == 0) {
            status = ls_retire_all(c);
        }
        ls_tally_rank_joined(c);
    }
    if (is_drained && !c->drained[from]) {
        c->drained[from] = true;
        c->num_drained++;
    }
    return status;
}

ls_status_t ls_coordinator_receive(ls_coordinator_t *coordinator, uint32_t from, const ls_message_t *message,
                                   uint64_t now_ns)
{
    ls_coordinator_t *c = coordinator;

    if (message->epoch > c->seq) {
        return ls_error_set(LS_ERR_INTERNAL, "rank %u has seen broadcast %" PRIu64 ", %" PRIu64 " were sent", from,
                            message->epoch, c->seq);
    }
    if (c->is_broken) {
        return LS_OK;
    }
    c->now_ns         = now_ns;
    c->epoch_of[from] = (message->epoch > c->epoch_of[from]) ? message->epoch : c->epoch_of[from];
    switch (message->kind) {
    case LS_MESSAGE_REPORT:
        return hear_reports(c, from, message);
    case LS_MESSAGE_JOIN:
        return hear_join(c, from, message->flag != 0);
    case LS_MESSAGE_LEAVE:
        return ls_leave_hear(c, from, message);
    default:
        return ls_retire_receive(c, from, message);
    }
}

/* ---- time ---------------------------------------------------------------------------------------- */

/* Nothing of what was given before the joins may be left over for the time after. */
static ls_status_t end_join(ls_coordinator_t *c)
{
    const ls_message_t message = {.kind = LS_MESSAGE_JOINED};

    if (c->num_joined < c->params->num_ranks || c->num_drained < c->params->num_ranks || c->oldest != NULL ||
        c->num_agreed > 0) {
        return LS_OK;
    }
    c->num_joined  = 0;
    c->num_drained = 0;
    for (uint32_t rank = 0; rank < c->params->num_ranks; rank++) {
        c->joined[rank]  = false;
        c->drained[rank] = false;
    }
    return ls_coordinator_broadcast(c, &message);
}

ls_status_t ls_coordinator_tick(ls_coordinator_t *coordinator, uint64_t now_ns, uint64_t *next_p)
{
    ls_coordinator_t *c    = coordinator;
    uint64_t          next = UINT64_MAX;
    ls_status_t       status;

    if (c->is_broken) {
        *next_p = next;
        return LS_OK;
    }
    c->now_ns = now_ns;
    status    = ls_tally_answer_ready(c);
    if (status == LS_OK) {
        status = end_join(c);
    }
    if (status == LS_OK) {
        status = ls_leave_tick(c, &next);
    }
    if (status == LS_OK) {
        status = ls_tally_check_stalls(c, &next);
    }
    if (status == LS_OK) {
        status = ls_retire_check_stalls(c, &next);
    }
    *next_p = next;
    return status;
}

void ls_coordinator_dump(const ls_coordinator_t *coordinator, uint64_t now_ns, int fd)
{
    const uint32_t num_ranks = coordinator->params->num_ranks;
    char           ranks[RANKS_ROOM];

    dprintf(fd, "coordinator: %" PRIu64 " broadcasts, %" PRIu32 " buckets adopted, %zu names in history\n",
            coordinator->seq, coordinator->num_agreed, coordinator->history.num_live);
    if (coordinator->num_joined > 0) {
        ls_ranks_print(coordinator->joined, true, NULL, num_ranks, ranks, sizeof(ranks));
        dprintf(fd, "  joined: %s\n", ranks);
    }
    if (coordinator->num_left > 0) {
        ls_ranks_print(coordinator->left, true, NULL, num_ranks, ranks, sizeof(ranks));
        dprintf(fd, "  stopped: %s\n", ranks);
    }
    for (const ls_tally_t *tally = coordinator->oldest; tally != NULL; tally = tally->newer) {
        ls_ranks_print(tally->reported, false, coordinator->joined, num_ranks, ranks, sizeof(ranks));
        dprintf(fd, "  '%s' waits %.3f s for %s\n", tally->name,
                (double)(now_ns - tally->stall.since_ns) / (double)LS_NS_PER_S, ranks);
    }
}

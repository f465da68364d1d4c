/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How an adopted bucket is given up.
 *
 *   LIVE --give up--> FREEZING --all at the same iteration--------------------------> gone
 *    ^                   |  `----some behind----> CATCHING_UP --all there, final----> gone
 *    `--------------------------------------------------'  all there, not final
 *
 * Final is a bucket that cannot go on: a tensor has changed, or ranks have joined or left.  One that only was
 * slow to fill while others had begun it goes on, and so does one that was frozen only to be looked at.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/mem.h"
#include "schedule/coordinator_int.h"
#include "schedule/ranks.h"

#define RANKS_ROOM     512
#define SIGNATURE_ROOM 512
#define NO_SLOT        UINT32_MAX

/* ---- giving up ----------------------------------------------------------------------------------- */

static ls_status_t freeze(ls_coordinator_t *c, ls_agreed_t *agreed, ls_agreed_check_t check)
{
    const ls_message_t message = {.kind = LS_MESSAGE_FREEZE, .id = agreed->id, .round = c->seq + 1};

    agreed->state       = LS_AGREED_FREEZING;
    agreed->check       = check;
    agreed->round       = message.round;
    agreed->num_open    = c->params->num_ranks;
    agreed->is_unwanted = false;
    memset(agreed->is_open, true, c->params->num_ranks * sizeof(*agreed->is_open));
    return ls_coordinator_broadcast(c, &message);
}

static bool is_complained_of(const ls_agreed_t *agreed, uint32_t slot)
{
    const ls_complaint_t *complaint = agreed->complaints;

    while (complaint != NULL && complaint->slot != slot) {
        complaint = complaint->next;
    }
    return complaint != NULL;
}

static ls_status_t learn(ls_coordinator_t *c, const ls_agreed_t *agreed)
{
    ls_status_t status = LS_OK;

    if (agreed->complaints == NULL && agreed->has_missing && c->num_joined == 0) {
        return ls_history_learn_parting(&c->history, agreed->names, agreed->is_missing, agreed->num_names,
                                        agreed->patience_ns);
    }
    for (uint32_t i = 0; i < agreed->num_names && status == LS_OK; i++) {
        if (is_complained_of(agreed, i)) {
            status = ls_history_learn_change(&c->history, agreed->names[i]);
        }
    }
    return status;
}

static ls_status_t retire(ls_coordinator_t *c, ls_agreed_t *agreed)
{
    const ls_message_t message = {.kind = LS_MESSAGE_RETIRE, .id = agreed->id};
    ls_status_t        status  = ls_coordinator_broadcast(c, &message);

    if (status == LS_OK) {
        status = learn(c, agreed);
    }
    ls_debug("gave up bucket %" PRIu32 " of %" PRIu32 " tensors", agreed->id, agreed->num_names);
    ls_agreed_remove(c, agreed);
    return status;
}

/* A rank cannot fill what others have begun: they wait for it inside the reduction, only the end helps. */
static ls_status_t break_mismatch(ls_coordinator_t *c, const ls_agreed_t *agreed, const ls_complaint_t *complaint)
{
    char text[LS_MESSAGES_TEXT_ROOM], have[SIGNATURE_ROOM], differs[SIGNATURE_ROOM];

    ls_signature_print(&agreed->signatures[complaint->slot], have, sizeof(have));
    ls_signature_print(&complaint->signature, differs, sizeof(differs));
    snprintf(text, sizeof(text),
             "tensor '%s': ranks disagree: rank %" PRIu32 " has %s; other ranks have %s, as before, and have begun",
             agreed->names[complaint->slot], complaint->rank, differs, have);
    return ls_coordinator_break(c, LS_ERR_MISMATCH, text);
}

static ls_status_t resume(ls_coordinator_t *c, ls_agreed_t *agreed)
{
    ls_message_t message = {.kind = LS_MESSAGE_RESUME, .id = agreed->id, .round = agreed->round};

    for (const ls_complaint_t *complaint = agreed->complaints; complaint != NULL; complaint = complaint->next) {
        if (agreed->is_open[complaint->rank]) {
            return break_mismatch(c, agreed, complaint);
        }
    }
    agreed->state       = LS_AGREED_CATCHING_UP;
    agreed->is_final    = agreed->complaints != NULL || c->num_joined > 0 || c->num_left > 0;
    agreed->has_missing = false;
    message.iteration   = agreed->target;
    message.flag        = agreed->is_final ? 1 : 0;
    ls_stall_begin(c, &agreed->stall);
    if (agreed->check == LS_AGREED_DOUBT) {
        agreed->stall.next_warn_ns = c->now_ns; /* a rank has waited long enough */
    }
    return ls_coordinator_broadcast(c, &message);
}

/* Only looked at, nobody is behind: as if nothing had been. */
static ls_status_t go_on(ls_coordinator_t *c, ls_agreed_t *agreed)
{
    const ls_message_t message = {
        .kind = LS_MESSAGE_RESUME, .id = agreed->id, .round = agreed->round, .iteration = agreed->target};

    agreed->state    = LS_AGREED_LIVE;
    agreed->swept_at = (agreed->check == LS_AGREED_SWEEP) ? agreed->target : agreed->swept_at;
    return ls_coordinator_broadcast(c, &message);
}

static bool must_go(const ls_coordinator_t *c, const ls_agreed_t *agreed)
{
    return agreed->check == LS_AGREED_NO_CHECK || agreed->complaints != NULL || c->num_joined > 0 || c->num_left > 0 ||
           (agreed->check == LS_AGREED_SWEEP && agreed->swept_at == agreed->target);
}

/* All have told how far they are. */
static ls_status_t decide(ls_coordinator_t *c, ls_agreed_t *agreed)
{
    agreed->target = 0;
    for (uint32_t rank = 0; rank < c->params->num_ranks; rank++) {
        agreed->target = (agreed->counts[rank] > agreed->target) ? agreed->counts[rank] : agreed->target;
    }
    for (uint32_t rank = 0; rank < c->params->num_ranks; rank++) {
        agreed->is_open[rank] = agreed->counts[rank] < agreed->target;
        agreed->num_open += agreed->is_open[rank] ? 1 : 0;
    }
    if (agreed->num_open > 0) {
        return resume(c, agreed);
    }
    return must_go(c, agreed) ? retire(c, agreed) : go_on(c, agreed);
}

static bool can_be_frozen(const ls_agreed_t *agreed)
{
    return agreed->state == LS_AGREED_LIVE || (agreed->state == LS_AGREED_CATCHING_UP && !agreed->is_final);
}

ls_status_t ls_retire_all(ls_coordinator_t *c)
{
    ls_status_t status = LS_OK;

    for (uint32_t i = 0; i < LS_COORDINATOR_NUM_ADOPTED && status == LS_OK; i++) {
        if (c->agreed[i] != NULL && can_be_frozen(c->agreed[i])) {
            status = freeze(c, c->agreed[i], LS_AGREED_NO_CHECK);
        }
    }
    return status;
}

/* A bucket is used at least once when it is adopted, so that it takes two sweeps to find it unused. */
ls_status_t ls_retire_sweep(ls_coordinator_t *c)
{
    ls_status_t status = LS_OK;

    for (uint32_t i = 0; i < LS_COORDINATOR_NUM_ADOPTED && status == LS_OK; i++) {
        if (c->agreed[i] != NULL && c->agreed[i]->state == LS_AGREED_LIVE) {
            status = freeze(c, c->agreed[i], LS_AGREED_SWEEP);
        }
    }
    return status;
}

/* ---- hearing ------------------------------------------------------------------------------------- */

static ls_status_t nonsense(uint32_t from, const ls_message_t *message)
{
    return ls_error_set(LS_ERR_INTERNAL, "rank %" PRIu32 " sent a message of kind %u about bucket %" PRIu32
                        " that does not fit its state", from, (unsigned)message->kind, message->id);
}

static uint32_t slot_of(const ls_agreed_t *agreed, const char *name)
{
    for (uint32_t i = 0; i < agreed->num_names; i++) {
        if (strcmp(agreed->names[i], name) == 0) {
            return i;
        }
    }
    return NO_SLOT;
}

static ls_status_t hear_complaint(ls_coordinator_t *c, ls_agreed_t *agreed, uint32_t from,
                                  const ls_message_name_t *name)
{
    ls_complaint_t *complaint;
    void           *mem;
    ls_status_t     status = ls_mem_alloc(sizeof(*complaint), "complaint", &mem);

    if (status != LS_OK) {
        return status;
    }
    complaint            = mem;
    *complaint           = (ls_complaint_t){.rank      = from,
                                            .slot      = slot_of(agreed, name->name),
                                            .signature = name->signature,
                                            .next      = agreed->complaints};
    agreed->complaints   = complaint;
    if (agreed->state == LS_AGREED_CATCHING_UP && agreed->is_open[from]) {
        return break_mismatch(c, agreed, complaint);
    }
    return can_be_frozen(agreed) ? freeze(c, agreed, LS_AGREED_NO_CHECK) : LS_OK;
}

/* A rank that is behind is waited for anyway; when it has caught up, it waits for nothing any more. */
static ls_status_t hear_impatience(ls_coordinator_t *c, ls_agreed_t *agreed, uint32_t from,
                                   const ls_message_t *message)
{
    if (!can_be_frozen(agreed) || (agreed->state == LS_AGREED_CATCHING_UP && agreed->is_open[from])) {
        return LS_OK;
    }
    if (message->num_names == 0) {
        return (agreed->state == LS_AGREED_LIVE) ? freeze(c, agreed, LS_AGREED_DOUBT) : LS_OK;
    }
    agreed->has_missing = true;
    memset(agreed->is_missing, false, agreed->num_names * sizeof(*agreed->is_missing));
    for (uint32_t i = 0; i < message->num_names; i++) {
        agreed->is_missing[slot_of(agreed, message->names[i].name)] = true;
    }
    if (agreed->state == LS_AGREED_CATCHING_UP) {
        agreed->is_unwanted = true;
        return LS_OK;
    }
    return freeze(c, agreed, LS_AGREED_NO_CHECK);
}

static ls_status_t hear_give_up(ls_coordinator_t *c, ls_agreed_t *agreed, uint32_t from, const ls_message_t *message)
{
    for (uint32_t i = 0; i < message->num_names; i++) {
        if (slot_of(agreed, message->names[i].name) == NO_SLOT) {
            return nonsense(from, message);
        }
    }
    return (message->flag != 0) ? hear_complaint(c, agreed, from, &message->names[0])
                                : hear_impatience(c, agreed, from, message);
}

static ls_status_t hear_frozen(ls_coordinator_t *c, ls_agreed_t *agreed, uint32_t from, const ls_message_t *message)
{
    if (agreed->state != LS_AGREED_FREEZING || message->round != agreed->round || !agreed->is_open[from] ||
        message->slot > agreed->num_names) {
        return nonsense(from, message);
    }
    agreed->is_open[from]     = false;
    agreed->counts[from]      = message->iteration;
    agreed->empty_slots[from] = message->slot;
    return (--agreed->num_open == 0) ? decide(c, agreed) : LS_OK;
}

static ls_status_t hear_reached(ls_coordinator_t *c, ls_agreed_t *agreed, uint32_t from, const ls_message_t *message)
{
    if (agreed->state != LS_AGREED_CATCHING_UP || message->round != agreed->round || !agreed->is_open[from]) {
        return LS_OK; /* crossed another freeze */
    }
    agreed->is_open[from] = false;
    if (--agreed->num_open > 0) {
        return LS_OK;
    }
    if (agreed->is_final) {
        return retire(c, agreed);
    }
    agreed->state = LS_AGREED_LIVE;
    return agreed->is_unwanted ? freeze(c, agreed, LS_AGREED_NO_CHECK) : LS_OK;
}

ls_status_t ls_retire_receive(ls_coordinator_t *c, uint32_t from, const ls_message_t *message)
{
    ls_agreed_t *agreed = *ls_agreed_place(c, message->id);

    if (agreed == NULL || message->epoch < agreed->adopted_seq) {
        return LS_OK; /* crossed the end of the bucket that had this id */
    }
    switch (message->kind) {
    case LS_MESSAGE_GIVE_UP:
        return hear_give_up(c, agreed, from, message);
    case LS_MESSAGE_FROZEN:
        return hear_frozen(c, agreed, from, message);
    default:
        return hear_reached(c, agreed, from, message);
    }
}

/* ---- stalls -------------------------------------------------------------------------------------- */

static void print_behind(const ls_coordinator_t *c, const ls_agreed_t *agreed, char *text, size_t room)
{
    char     ranks[RANKS_ROOM];
    uint32_t rank = 0, slot;

    ls_ranks_print(agreed->is_open, true, NULL, c->params->num_ranks, ranks, sizeof(ranks));
    while (rank + 1 < c->params->num_ranks && !agreed->is_open[rank]) {
        rank++;
    }
    slot = (agreed->empty_slots[rank] < agreed->num_names) ? agreed->empty_slots[rank] : 0;
    snprintf(text, room, "tensor '%s'%s: other ranks have begun to reduce it, %s did not give it", agreed->names[slot],
             agreed->num_names > 1 ? " and its bucket" : "", ranks);
}

static void warn_behind(const ls_coordinator_t *c, const ls_agreed_t *agreed)
{
    /* Who doubts has waited that long before. */
    const uint64_t before_ns = (agreed->check == LS_AGREED_DOUBT) ? c->params->stall_warn_ns : 0;
    char           text[LS_MESSAGES_TEXT_ROOM], late[RANKS_ROOM];
    uint32_t       rank = 0;

    while (rank + 1 < c->params->num_ranks && !agreed->is_open[rank]) {
        rank++;
    }
    print_behind(c, agreed, text, sizeof(text));
    ls_coordinator_describe(c, rank, late, sizeof(late));
    ls_warn("%s for %.1f s; the first that is late: %s", text,
            (double)(c->now_ns - agreed->stall.since_ns + before_ns) / (double)LS_NS_PER_S, late);
}

/* Is a rank behind that has left, and will never fill this slot? */
static bool find_left(const ls_coordinator_t *c, const ls_agreed_t *agreed, uint32_t *rank_p, uint32_t *slot_p)
{
    for (uint32_t rank = 0; rank < c->params->num_ranks; rank++) {
        for (uint32_t slot = 0; agreed->is_open[rank] && slot < agreed->num_names; slot++) {
            if (ls_leave_lacks(c, rank, agreed->names[slot])) {
                *rank_p = rank;
                *slot_p = slot;
                return true;
            }
        }
    }
    return false;
}

static ls_status_t break_left(ls_coordinator_t *c, const ls_agreed_t *agreed, uint32_t rank, uint32_t slot)
{
    char text[LS_MESSAGES_TEXT_ROOM], who[RANKS_ROOM];

    ls_leave_print(c, rank, who, sizeof(who));
    snprintf(text, sizeof(text),
             "tensor '%s'%s: other ranks have begun to reduce it, but %s; all ranks must take the same steps",
             agreed->names[slot], agreed->num_names > 1 ? " and its bucket" : "", who);
    return ls_coordinator_break(c, LS_ERR_RANK_LOST, text);
}

static ls_status_t check_stall(ls_coordinator_t *c, ls_agreed_t *agreed, uint64_t *next_p)
{
    char     text[LS_MESSAGES_TEXT_ROOM - 64], whole[LS_MESSAGES_TEXT_ROOM];
    uint32_t rank, slot;

    if (c->num_left > 0 && find_left(c, agreed, &rank, &slot)) {
        return break_left(c, agreed, rank, slot);
    }
    if (ls_stall_is_over(c, &agreed->stall)) {
        print_behind(c, agreed, text, sizeof(text));
        snprintf(whole, sizeof(whole), "%s within %.1f s", text,
                 (double)(c->now_ns - agreed->stall.since_ns) / (double)LS_NS_PER_S);
        return ls_coordinator_break(c, LS_ERR_STALL, whole);
    }
    if (ls_stall_must_warn(c, &agreed->stall)) {
        warn_behind(c, agreed);
    }
    if (ls_stall_next(c, &agreed->stall) < *next_p) {
        *next_p = ls_stall_next(c, &agreed->stall);
    }
    return LS_OK;
}

ls_status_t ls_retire_check_stalls(ls_coordinator_t *c, uint64_t *next_p)
{
    ls_status_t status = LS_OK;

    for (uint32_t i = 0, seen = 0; seen < c->num_agreed && status == LS_OK && !c->is_broken; i++) {
        if (c->agreed[i] != NULL) {
            seen++;
            if (c->agreed[i]->state == LS_AGREED_CATCHING_UP) {
                status = check_stall(c, c->agreed[i], next_p);
            }
        }
    }
    return status;
}

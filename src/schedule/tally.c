/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tallies: who has reported a name.  A name that all ranks have reported alike (those that have joined
 * need not) is ready, and answered with what else became ready since the last tick.
 *
 * A name may end although a rank has not reported it: two others disagree, time is up, or that rank has
 * joined.  The rank's report may then be on the way, for an item that the broadcast ends as well; it is
 * told from a new one by its epoch.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "schedule/coordinator_int.h"
#include "schedule/ranks.h"

#define RANKS_ROOM     512
#define SIGNATURE_ROOM 512

/* ---- making and dropping ------------------------------------------------------------------------- */

static ls_status_t create(ls_coordinator_t *c, const ls_message_name_t *name, ls_tally_t **tally_p)
{
    const size_t length = strlen(name->name) + 1;
    ls_tally_t  *tally;
    void        *mem, *reported;
    ls_status_t  status = ls_mem_alloc(sizeof(*tally) + length, "tally", &mem);

    if (status != LS_OK) {
        return status;
    }
    status = ls_mem_alloc(c->params->num_ranks * sizeof(*tally->reported), "tally", &reported);
    if (status != LS_OK) {
        goto err_free_tally;
    }
    status = ls_table_put(&c->tallies, name->name, mem);
    if (status != LS_OK) {
        goto err_free_reported;
    }
    tally            = mem;
    tally->signature = name->signature;
    tally->reported  = reported;
    tally->older     = c->newest;
    memcpy(tally->name, name->name, length);
    ls_stall_begin(c, &tally->stall);
    *(c->newest == NULL ? &c->oldest : &c->newest->newer) = tally;
    c->newest                                             = tally;
    *tally_p                                              = tally;
    return LS_OK;

err_free_reported:
    ls_mem_free(reported);
err_free_tally:
    ls_mem_free(mem);
    return status;
}

void ls_tally_drop(ls_coordinator_t *c, ls_tally_t *tally)
{
    *(tally->older == NULL ? &c->oldest : &tally->older->newer) = tally->newer;
    *(tally->newer == NULL ? &c->newest : &tally->newer->older) = tally->older;
    ls_table_remove(&c->tallies, tally->name);
    ls_mem_free(tally->reported);
    ls_mem_free(tally);
}

void ls_tally_destroy_all(ls_coordinator_t *c)
{
    while (c->oldest != NULL) {
        ls_tally_drop(c, c->oldest);
    }
    for (int i = 0; i < 2; i++) {
        ls_table_destroy(&c->settled[i]);
    }
    ls_table_destroy(&c->tallies);
}

/* ---- names that ended before all ranks reported them --------------------------------------------- */

static bool is_seen_by_all(const ls_coordinator_t *c, uint64_t seq)
{
    for (uint32_t rank = 0; rank < c->params->num_ranks; rank++) {
        if (c->epoch_of[rank] < seq) {
            return false;
        }
    }
    return true;
}

static ls_status_t settle(ls_coordinator_t *c, const char *name)
{
    if (is_seen_by_all(c, c->settled_last[1])) {
        ls_table_destroy(&c->settled[1]);
        c->settled[1]      = c->settled[0];
        c->settled_last[1] = c->settled_last[0];
        c->settled[0]      = (ls_table_t){0};
    }
    c->settled_last[0] = c->seq;
    return ls_table_put(&c->settled[0], name, (void *)(uintptr_t)c->seq);
}

static bool is_void(const ls_coordinator_t *c, const char *name, uint64_t epoch)
{
    const ls_agreed_t *agreed = ls_table_get(&c->adopted, name);

    if (agreed != NULL) {
        return true; /* crossed the adoption: the rank will fill the slot with it */
    }
    return epoch < (uint64_t)(uintptr_t)ls_table_get(&c->settled[0], name) ||
           epoch < (uint64_t)(uintptr_t)ls_table_get(&c->settled[1], name);
}

static ls_status_t fail_name(ls_coordinator_t *c, ls_tally_t *tally, ls_status_t status, const char *text)
{
    ls_message_name_t  name    = {.name = tally->name, .signature = tally->signature};
    const ls_message_t message = {
        .kind = LS_MESSAGE_ERROR, .status = status, .num_names = 1, .names = &name, .text = text};
    ls_status_t sent = ls_coordinator_broadcast(c, &message);

    if (sent == LS_OK) {
        sent = settle(c, tally->name);
    }
    ls_tally_drop(c, tally);
    return sent;
}

/* ---- reports ------------------------------------------------------------------------------------- */

static void check_ready(ls_coordinator_t *c, ls_tally_t *tally)
{
    if (tally->is_ready || tally->num_reported + c->num_joined < c->params->num_ranks) {
        return;
    }
    for (uint32_t rank = 0; rank < c->params->num_ranks; rank++) {
        if (!tally->reported[rank] && !c->joined[rank]) {
            return;
        }
    }
    tally->is_ready                                                  = true;
    *(c->first_ready == NULL ? &c->first_ready : &c->last_ready->next_ready) = tally;
    c->last_ready                                                    = tally;
}

/* Does somebody who has not left wait for a rank that has, and will never give it? */
static bool needs_left(const ls_coordinator_t *c, const ls_tally_t *tally, uint32_t *rank_p)
{
    bool is_awaited = false, is_lacking = false;

    for (uint32_t rank = 0; rank < c->params->num_ranks && !tally->is_ready; rank++) {
        if (tally->reported[rank]) {
            is_awaited = is_awaited || !c->left[rank];
        } else if (!is_lacking && !c->joined[rank] && ls_leave_lacks(c, rank, tally->name)) {
            is_lacking = true;
            *rank_p    = rank;
        }
    }
    return is_awaited && is_lacking;
}

static ls_status_t fail_if_left(ls_coordinator_t *c, ls_tally_t *tally)
{
    char     text[LS_MESSAGES_TEXT_ROOM], gave[RANKS_ROOM], who[RANKS_ROOM];
    uint32_t rank = 0;

    if (!needs_left(c, tally, &rank)) {
        return LS_OK;
    }
    ls_ranks_print(tally->reported, true, NULL, c->params->num_ranks, gave, sizeof(gave));
    ls_leave_print(c, rank, who, sizeof(who));
    snprintf(text, sizeof(text), "tensor '%s': %s gave it, but %s; all ranks must take the same steps", tally->name,
             gave, who);
    return fail_name(c, tally, LS_ERR_RANK_LOST, text);
}

ls_status_t ls_tally_fail_left(ls_coordinator_t *c)
{
    ls_status_t status = LS_OK;
    ls_tally_t *newer;

    for (ls_tally_t *tally = c->oldest; tally != NULL && status == LS_OK; tally = newer) {
        newer  = tally->newer;
        status = fail_if_left(c, tally);
    }
    return status;
}

static ls_status_t fail_mismatch(ls_coordinator_t *c, ls_tally_t *tally, uint32_t from,
                                 const ls_signature_t *signature)
{
    char           text[LS_MESSAGES_TEXT_ROOM], ranks[RANKS_ROOM], have[SIGNATURE_ROOM], differs[SIGNATURE_ROOM];
    const uint32_t num = ls_ranks_print(tally->reported, true, NULL, c->params->num_ranks, ranks, sizeof(ranks));

    ls_signature_print(&tally->signature, have, sizeof(have));
    ls_signature_print(signature, differs, sizeof(differs));
    snprintf(text, sizeof(text), "tensor '%s': ranks disagree: %s %s %s; rank %" PRIu32 " has %s", tally->name,
             ranks, num == 1 ? "has" : "have", have, from, differs);
    return fail_name(c, tally, LS_ERR_MISMATCH, text);
}

ls_status_t ls_tally_report(ls_coordinator_t *c, uint32_t from, uint64_t epoch, const ls_message_name_t *name)
{
    ls_tally_t *tally = ls_table_get(&c->tallies, name->name);
    ls_status_t status;

    if (is_void(c, name->name, epoch)) {
        return LS_OK;
    }
    if (tally == NULL) {
        status = create(c, name, &tally);
        if (status != LS_OK) {
            return status;
        }
    } else if (tally->reported[from] || (tally->is_ready && !ls_signature_equal(&tally->signature, &name->signature))) {
        return LS_OK; /* ready without this rank, which has joined: the answer will tell it */
    } else if (!ls_signature_equal(&tally->signature, &name->signature)) {
        return fail_mismatch(c, tally, from, &name->signature);
    }
    tally->reported[from] = true;
    tally->num_reported++;
    tally->after = (name->after > tally->after) ? name->after : tally->after;
    check_ready(c, tally);
    return LS_OK;
}

void ls_tally_rank_joined(ls_coordinator_t *c)
{
    for (ls_tally_t *tally = c->oldest; tally != NULL; tally = tally->newer) {
        check_ready(c, tally);
    }
}

/* ---- answers ------------------------------------------------------------------------------------- */

static bool lacks_root(const ls_coordinator_t *c, const ls_tally_t *tally)
{
    const uint32_t root = tally->signature.root;

    return tally->signature.coll == LS_COLL_BROADCAST && root < c->params->num_ranks && c->joined[root] &&
           !tally->reported[root];
}

static ls_status_t fail_rootless(ls_coordinator_t *c, ls_tally_t *tally)
{
    char text[LS_MESSAGES_TEXT_ROOM];

    snprintf(text, sizeof(text),
             "tensor '%s': rank %" PRIu32 ", the root of this broadcast, has joined and gives nothing", tally->name,
             tally->signature.root);
    return fail_name(c, tally, LS_ERR_INVALID, text);
}

/* From where on the history is to be adopted: the earliest first time of what is now ready again. */
static size_t first_repeated(ls_coordinator_t *c)
{
    size_t first = SIZE_MAX;

    for (ls_tally_t *tally = c->first_ready; tally != NULL; tally = tally->next_ready) {
        const size_t at = ls_history_match(&c->history, tally->name, &tally->signature);

        first = (at < first) ? at : first;
    }
    return first;
}

static void number_buckets(ls_coordinator_t *c, const ls_message_t *message)
{
    for (uint32_t i = 0; i < message->num_buckets; i++) {
        c->buckets[i].id        = c->next_negotiated;
        c->buckets[i].iteration = c->negotiated_wraps;
        if (++c->next_negotiated == LS_SCHEDULE_FIRST_ADOPTED) {
            c->next_negotiated = 1;
            c->negotiated_wraps++;
        }
    }
}

/* What was answered: into the history, and void if a report of it is still to come. */
static ls_status_t close_answered(ls_coordinator_t *c, ls_tally_t *tally)
{
    ls_status_t status = ls_history_add(
        &c->history,
        &(ls_history_name_t){.name = tally->name, .signature = tally->signature, .number = c->seq, .after = tally->after});

    if (status == LS_OK && tally->num_reported < c->params->num_ranks) {
        status = settle(c, tally->name);
    }
    ls_tally_drop(c, tally);
    return status;
}

/* Take the ready list apart: what cannot be run fails, what was adopted runs there, the rest is left. */
static ls_status_t sift_ready(ls_coordinator_t *c)
{
    ls_tally_t **link   = &c->first_ready;
    ls_status_t  status = LS_OK;

    c->last_ready = NULL;
    while (*link != NULL && status == LS_OK) {
        ls_tally_t *tally = *link;

        if (lacks_root(c, tally)) {
            *link  = tally->next_ready;
            status = fail_rootless(c, tally);
        } else if (ls_table_get(&c->adopted, tally->name) != NULL) {
            *link = tally->next_ready;
            ls_tally_drop(c, tally);
        } else {
            c->last_ready = tally;
            link          = &tally->next_ready;
        }
    }
    return status;
}

ls_status_t ls_tally_answer_ready(ls_coordinator_t *c)
{
    ls_message_t message = {.kind = LS_MESSAGE_RESPONSE};
    const size_t first   = (c->num_joined == 0 && c->num_left == 0) ? first_repeated(c) : SIZE_MAX;
    ls_status_t  status  = (first == SIZE_MAX) ? LS_OK : ls_agreed_adopt(c, first);

    if (status == LS_OK) {
        status = sift_ready(c);
    }
    for (ls_tally_t *tally = c->first_ready; tally != NULL && status == LS_OK; tally = tally->next_ready) {
        const ls_message_name_t name = {.name = tally->name, .signature = tally->signature};

        status = ls_coordinator_pack(c, &name, &message);
    }
    if (status == LS_OK && message.num_buckets > 0) {
        number_buckets(c, &message);
        status = ls_coordinator_broadcast(c, &message);
    }
    while (c->first_ready != NULL && status == LS_OK) {
        ls_tally_t *tally = c->first_ready;

        c->first_ready = tally->next_ready;
        status         = close_answered(c, tally);
    }
    return status;
}

/* ---- stalls -------------------------------------------------------------------------------------- */

/* "ranks 0, 2 gave it, rank 1 did not": ranks that have joined are not missed. */
static void print_sides(const ls_coordinator_t *c, const ls_tally_t *tally, char *text, size_t room)
{
    char gave[RANKS_ROOM], missing[RANKS_ROOM];

    ls_ranks_print(tally->reported, true, NULL, c->params->num_ranks, gave, sizeof(gave));
    ls_ranks_print(tally->reported, false, c->joined, c->params->num_ranks, missing, sizeof(missing));
    snprintf(text, room, "%s gave it, %s did not", gave, missing);
}

static double seconds_waited(const ls_coordinator_t *c, const ls_tally_t *tally)
{
    return (double)(c->now_ns - tally->stall.since_ns) / (double)LS_NS_PER_S;
}

static ls_status_t fail_stalled(ls_coordinator_t *c, ls_tally_t *tally)
{
    char text[LS_MESSAGES_TEXT_ROOM], sides[2 * RANKS_ROOM + 32];

    print_sides(c, tally, sides, sizeof(sides));
    snprintf(text, sizeof(text), "tensor '%s': %s within %.1f s", tally->name, sides, seconds_waited(c, tally));
    return fail_name(c, tally, LS_ERR_STALL, text);
}

static void warn_stalled(const ls_coordinator_t *c, const ls_tally_t *tally)
{
    char     sides[2 * RANKS_ROOM + 32], late[RANKS_ROOM];
    uint32_t rank = 0;

    while (rank + 1 < c->params->num_ranks && (tally->reported[rank] || c->joined[rank])) {
        rank++;
    }
    print_sides(c, tally, sides, sizeof(sides));
    ls_coordinator_describe(c, rank, late, sizeof(late));
    ls_warn("tensor '%s' waits %.1f s: %s; the first that is late: %s", tally->name, seconds_waited(c, tally), sides, late);
}

ls_status_t ls_tally_check_stalls(ls_coordinator_t *c, uint64_t *next_p)
{
    ls_tally_t *tally = c->oldest;
    ls_tally_t *newer;
    ls_status_t status = LS_OK;

    for (; tally != NULL && status == LS_OK; tally = newer) {
        newer = tally->newer;
        if (tally->is_ready) {
            continue;
        }
        if (ls_stall_is_over(c, &tally->stall)) {
            status = fail_stalled(c, tally);
            continue;
        }
        if (ls_stall_must_warn(c, &tally->stall)) {
            warn_stalled(c, tally);
        }
        if (ls_stall_next(c, &tally->stall) < *next_p) {
            *next_p = ls_stall_next(c, &tally->stall);
        }
    }
    return status;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Adopted buckets as the coordinator sees them: it does not see them run, only begin and end. */
#include <inttypes.h>

#include "base/log.h"
#include "base/mem.h"
#include "schedule/coordinator_int.h"

/* ---- making and freeing -------------------------------------------------------------------------- */

static void destroy(ls_agreed_t *agreed)
{
    ls_complaint_t *complaint;

    while ((complaint = agreed->complaints) != NULL) {
        agreed->complaints = complaint->next;
        ls_mem_free(complaint);
    }
    for (uint32_t i = 0; i < agreed->num_names && agreed->names != NULL; i++) {
        ls_mem_free(agreed->names[i]);
    }
    ls_mem_free(agreed->names);
    ls_mem_free(agreed->signatures);
    ls_mem_free(agreed->is_missing);
    ls_mem_free(agreed->counts);
    ls_mem_free(agreed->empty_slots);
    ls_mem_free(agreed->is_open);
    ls_mem_free(agreed);
}

/* NULL, and *status_p, on failure; does nothing after a failure. */
static void *allocate(size_t size, ls_status_t *status_p)
{
    void *mem = NULL;

    if (*status_p == LS_OK) {
        *status_p = ls_mem_alloc(size, "agreed bucket", &mem);
    }
    return mem;
}

static ls_status_t allocate_arrays(ls_agreed_t *agreed, uint32_t num_names, uint32_t num_ranks)
{
    ls_status_t status = LS_OK;

    agreed->names       = allocate(num_names * sizeof(*agreed->names), &status);
    agreed->signatures  = allocate(num_names * sizeof(*agreed->signatures), &status);
    agreed->is_missing  = allocate(num_names * sizeof(*agreed->is_missing), &status);
    agreed->counts      = allocate(num_ranks * sizeof(*agreed->counts), &status);
    agreed->empty_slots = allocate(num_ranks * sizeof(*agreed->empty_slots), &status);
    agreed->is_open     = allocate(num_ranks * sizeof(*agreed->is_open), &status);
    return status;
}

static ls_status_t create(ls_coordinator_t *c, const ls_message_bucket_t *bucket, ls_agreed_t **agreed_p)
{
    ls_agreed_t *agreed;
    void        *mem;
    ls_status_t  status = ls_mem_alloc(sizeof(*agreed), "agreed bucket", &mem);

    if (status != LS_OK) {
        return status;
    }
    agreed              = mem;
    agreed->id          = bucket->id;
    agreed->patience_ns = bucket->patience_ns;
    agreed->swept_at    = bucket->iteration;
    status              = allocate_arrays(agreed, bucket->num_names, c->params->num_ranks);
    for (uint32_t i = 0; i < bucket->num_names && status == LS_OK; i++) {
        const ls_message_name_t *name = &c->names[bucket->first_name + i];

        agreed->signatures[i] = name->signature;
        status                = ls_mem_strdup(name->name, "agreed bucket", &agreed->names[i]);
        agreed->num_names     = i + 1;
    }
    if (status != LS_OK) {
        destroy(agreed);
        return status;
    }
    *agreed_p = agreed;
    return LS_OK;
}

ls_agreed_t **ls_agreed_place(ls_coordinator_t *c, uint32_t id)
{
    return &c->agreed[id - LS_SCHEDULE_FIRST_ADOPTED];
}

void ls_agreed_destroy_all(ls_coordinator_t *c)
{
    for (uint32_t i = 0; i < LS_COORDINATOR_NUM_ADOPTED; i++) {
        if (c->agreed[i] != NULL) {
            destroy(c->agreed[i]);
        }
    }
    ls_table_destroy(&c->adopted);
}

/* ---- adopting ------------------------------------------------------------------------------------ */

static bool may_be_adopted(const ls_coordinator_t *c, const ls_history_name_t *name)
{
    const ls_tally_t *tally;

    if (name->name == NULL || !ls_history_is_steady(&c->history, name->name)) {
        return false;
    }
    tally = ls_table_get(&c->tallies, name->name);
    return tally == NULL || ls_signature_equal(&tally->signature, &name->signature);
}

/* Ids are taken in turn, so that one is used again as late as possible. */
static void number_bucket(ls_coordinator_t *c, ls_message_bucket_t *bucket)
{
    while (c->agreed[c->next_adopted] != NULL) {
        c->next_adopted = (c->next_adopted + 1) % LS_COORDINATOR_NUM_ADOPTED;
    }
    bucket->id          = LS_SCHEDULE_FIRST_ADOPTED + c->next_adopted;
    bucket->iteration   = c->next_iteration[c->next_adopted];
    bucket->patience_ns = c->params->patience_ns;
    for (uint32_t i = 0; i < bucket->num_names; i++) {
        const ls_lesson_t *lesson = ls_history_lesson(&c->history, c->names[bucket->first_name + i].name);

        if (lesson != NULL && lesson->patience_ns > bucket->patience_ns) {
            bucket->patience_ns = lesson->patience_ns;
        }
    }
}

static ls_status_t register_bucket(ls_coordinator_t *c, ls_message_bucket_t *bucket)
{
    ls_agreed_t *agreed;
    ls_status_t  status;

    number_bucket(c, bucket);
    status = create(c, bucket, &agreed);
    if (status != LS_OK) {
        return status;
    }
    agreed->adopted_seq   = c->seq + 1; /* the broadcast that follows */
    *ls_agreed_place(c, agreed->id) = agreed;
    c->next_adopted       = (c->next_adopted + 1) % LS_COORDINATOR_NUM_ADOPTED;
    c->num_agreed++;
    for (uint32_t i = 0; i < agreed->num_names && status == LS_OK; i++) {
        status = ls_table_put(&c->adopted, agreed->names[i], agreed);
    }
    return status;
}

/* They are neither history nor waiting for ranks any more.  Ready ones are still in the list of those. */
static void clear_names(ls_coordinator_t *c, const ls_message_bucket_t *buckets, uint32_t num_buckets)
{
    for (uint32_t i = 0; i < num_buckets; i++) {
        const ls_agreed_t *agreed = *ls_agreed_place(c, buckets[i].id);

        for (uint32_t j = 0; j < agreed->num_names; j++) {
            ls_tally_t *tally = ls_table_get(&c->tallies, agreed->names[j]);

            ls_history_remove(&c->history, agreed->names[j]);
            if (tally != NULL && !tally->is_ready) {
                ls_tally_drop(c, tally);
            }
        }
    }
}

ls_status_t ls_agreed_adopt(ls_coordinator_t *c, size_t first)
{
    ls_message_t message = {.kind = LS_MESSAGE_ADOPT};
    ls_status_t  status  = LS_OK;

    for (size_t i = first; i < c->history.size && status == LS_OK; i++) {
        const ls_message_name_t name = {.name      = c->history.names[i].name,
                                        .signature = c->history.names[i].signature,
                                        .number    = c->history.names[i].number,
                                        .after     = c->history.names[i].after};

        if (may_be_adopted(c, &c->history.names[i])) {
            status = ls_coordinator_pack(c, &name, &message);
        }
    }
    if (status != LS_OK) {
        return status;
    }
    if (message.num_buckets > LS_COORDINATOR_NUM_ADOPTED - c->num_agreed) {
        return ls_retire_sweep(c);
    }
    for (uint32_t i = 0; i < message.num_buckets && status == LS_OK; i++) {
        status = register_bucket(c, &c->buckets[i]);
    }
    if (status == LS_OK) {
        status = ls_coordinator_broadcast(c, &message);
    }
    if (status == LS_OK) {
        ls_debug("adopted %" PRIu32 " tensors in %" PRIu32 " buckets", message.num_names, message.num_buckets);
        clear_names(c, message.buckets, message.num_buckets);
    }
    return status;
}

void ls_agreed_remove(ls_coordinator_t *c, ls_agreed_t *agreed)
{
    for (uint32_t i = 0; i < agreed->num_names; i++) {
        ls_table_remove(&c->adopted, agreed->names[i]);
    }
    c->next_iteration[agreed->id - LS_SCHEDULE_FIRST_ADOPTED] = agreed->target;
    *ls_agreed_place(c, agreed->id)                           = NULL;
    c->num_agreed--;
    destroy(agreed);
}

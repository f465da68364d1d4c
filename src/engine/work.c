/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/work.h"

#include <string.h>

#include "base/mem.h"

/* Data of all passes under way at once.  Half of it is in this rank's stages, which should stay in its
 * second-level cache. */
#define STAGED_AT_ONCE (2 * LS_MIB)

ls_status_t ls_work_pool_init(ls_work_pool_t *pool, const ls_config_t *config, ls_net_h net,
                              const ls_choice_table_t *choices)
{
    ls_status_t status;
    void       *idle, *scratch;

    *pool  = (ls_work_pool_t){.config = config, .place = ls_net_place(net), .choices = choices};
    status = ls_mem_alloc(LS_SCHEDULE_NUM_IDS * sizeof(*pool->idle), "idle work", &idle);
    if (status != LS_OK) {
        return status;
    }
    status = ls_mem_alloc(LS_BUCKET_SCRATCH, "scratch", &scratch);
    if (status != LS_OK) {
        ls_mem_free(idle);
        return status;
    }
    pool->shared  = (ls_run_shared_t){.net           = net,
                                      .budget        = {.limit = STAGED_AT_ONCE},
                                      .pack_writes   = LS_WRITES_PACK,
                                      .reduce_writes = LS_WRITES_REDUCE};
    pool->idle    = idle;
    pool->scratch = scratch;
    return LS_OK;
}

static void free_temporary(ls_work_t *work)
{
    for (uint32_t slot = 0; slot < work->num_slots; slot++) {
        ls_mem_free(work->temporary[slot]);
        work->temporary[slot] = NULL;
    }
}

static void work_destroy(ls_work_t *work)
{
    if (work == NULL) {
        return;
    }
    if (work->has_run) {
        ls_run_clear(&work->run);
    }
    if (work->has_meta) {
        ls_run_clear(&work->meta);
    }
    if (work->temporary != NULL) {
        free_temporary(work);
    }
    ls_mem_free(work->meta_words);
    ls_mem_free(work->temporary);
    ls_mem_free(work->parts);
    ls_mem_free(work->requests);
    ls_mem_free(work);
}

void ls_work_pool_clear(ls_work_pool_t *pool)
{
    while (pool->active != NULL) {
        ls_work_t *work = pool->active;

        pool->active = work->next;
        work_destroy(work);
    }
    for (uint32_t id = 0; pool->idle != NULL && id < LS_SCHEDULE_NUM_IDS; id++) {
        work_destroy(pool->idle[id]);
    }
    for (uint32_t i = 0; i < pool->num_plans; i++) {
        ls_plan_destroy(pool->plans[i].plan);
    }
    ls_mem_free(pool->plans);
    ls_mem_free(pool->idle);
    ls_mem_free(pool->scratch);
    *pool = (ls_work_pool_t){0};
}

ls_status_t ls_work_get_plan(ls_work_pool_t *pool, const ls_algo_t *algo, uint32_t root, const ls_plan_t **plan_p)
{
    const ls_algo_request_t request = {
        .coll = algo->coll, .rank = pool->place->rank, .root = root, .topology = &pool->place->topology};
    ls_status_t status;
    ls_plan_t  *plan;

    for (uint32_t i = 0; i < pool->num_plans; i++) {
        if (pool->plans[i].algo == algo && pool->plans[i].root == root) {
            *plan_p = pool->plans[i].plan;
            return LS_OK;
        }
    }
    if (pool->num_plans == pool->plans_room) {
        const uint32_t room = 2 * pool->plans_room + 8;
        void          *mem  = pool->plans;

        status = ls_mem_resize(&mem, pool->num_plans * sizeof(*pool->plans), room * sizeof(*pool->plans), "plans");
        if (status != LS_OK) {
            return status;
        }
        pool->plans      = mem;
        pool->plans_room = room;
    }
    status = ls_algo_plan(algo, &request, &plan);
    if (status == LS_OK) {
        pool->plans[pool->num_plans++] = (ls_plan_entry_t){.algo = algo, .root = root, .plan = plan};
        *plan_p                        = plan;
    }
    return status;
}

static ls_status_t work_create(uint32_t num_slots, ls_work_t **work_p)
{
    ls_work_t  *work = NULL;
    ls_status_t status;
    void       *mem;

    if ((status = ls_mem_alloc(sizeof(*work), "work", &mem)) != LS_OK) {
        return status;
    }
    work = mem;
    if ((status = ls_mem_alloc(num_slots * sizeof(*work->requests), "work requests", &mem)) != LS_OK) {
        goto err_destroy_work;
    }
    work->requests = mem;
    if ((status = ls_mem_alloc(num_slots * sizeof(*work->parts), "work parts", &mem)) != LS_OK) {
        goto err_destroy_work;
    }
    work->parts = mem;
    if ((status = ls_mem_alloc(num_slots * sizeof(*work->temporary), "work outputs", &mem)) != LS_OK) {
        goto err_destroy_work;
    }
    work->temporary = mem;
    work->num_slots = num_slots;
    *work_p         = work;
    return LS_OK;

err_destroy_work:
    work_destroy(work);
    return status;
}

/* Could the kept work of this id serve the run?  An id may have got another bucket since. */
static bool fits(const ls_work_t *work, const ls_schedule_run_t *run)
{
    if (work->num_slots != run->num_slots || !ls_signature_equal(&work->signature, &run->slots[0].signature)) {
        return false;
    }
    for (uint32_t slot = 0; slot < run->num_slots; slot++) {
        if (work->parts[slot].count != run->slots[slot].signature.count) {
            return false;
        }
    }
    return true;
}

static ls_status_t take_work(ls_work_pool_t *pool, const ls_schedule_run_t *run, ls_work_t **work_p)
{
    ls_work_t *work = pool->idle[run->id];

    pool->idle[run->id] = NULL;
    if (work != NULL && !fits(work, run)) {
        work_destroy(work);
        work = NULL;
    }
    if (work == NULL) {
        return work_create(run->num_slots, work_p);
    }
    *work_p = work;
    return LS_OK;
}

static void set_slots(ls_work_t *work, const ls_schedule_run_t *run)
{
    uint64_t start = 0;

    for (uint32_t slot = 0; slot < run->num_slots; slot++) {
        const ls_signature_t *signature = &run->slots[slot].signature;
        ls_request_t         *request =
            (run->slots[slot].item == NULL) ? NULL : ls_request_of_item(run->slots[slot].item);

        work->requests[slot] = request;
        work->parts[slot]    = (ls_part_t){
               .input    = (request == NULL) ? NULL : request->input,
               .output   = (request == NULL) ? NULL : request->output,
               .start    = start,
               .count    = signature->count,
               .prescale = signature->prescale,
               .gives    = request != NULL,
               .is_watched = request != NULL && request->watcher != NULL,
        };
        start += signature->count;
    }
}

static void append_active(ls_work_pool_t *pool, ls_work_t *work)
{
    ls_work_t **end = &pool->active;

    while (*end != NULL) {
        end = &(*end)->next;
    }
    work->next = NULL;
    *end       = work;
}

ls_status_t ls_work_begin(ls_work_pool_t *pool, const ls_schedule_run_t *run, uint64_t now_ns, ls_work_t **work_p)
{
    ls_work_t  *work   = NULL;
    ls_status_t status = take_work(pool, run, &work);

    if (status != LS_OK) {
        return status;
    }
    work->id         = run->id;
    work->iteration  = run->iteration;
    work->epoch      = run->epoch;
    work->is_replay  = run->is_replay;
    work->signature  = run->slots[0].signature;
    work->status     = LS_OK;
    work->begin_ns   = now_ns;
    work->moved_ns   = now_ns;
    work->warned_ns  = 0;
    work->is_in_meta = false;
    set_slots(work, run);
    if (ls_work_needs_meta(work)) {
        work->is_in_meta = true;
        status           = ls_work_prepare_meta(pool, work);
    } else {
        status = ls_work_prepare_data(pool, work);
    }
    if (status != LS_OK) {
        work_destroy(work);
        return status;
    }
    append_active(pool, work);
    pool->num_begun++;
    *work_p = work;
    return LS_OK;
}

ls_status_t ls_work_progress(ls_work_pool_t *pool, ls_work_t *work, bool *moved_p)
{
    ls_status_t status;

    if (work->is_in_meta) {
        status = ls_run_progress(&work->meta, moved_p);
        if (status != LS_OK) {
            return status;
        }
        work->is_in_meta = false;
        status           = ls_work_prepare_data(pool, work);
        if (status != LS_OK) {
            return status;
        }
    }
    status = ls_run_progress(&work->run, moved_p);
    if (status == LS_OK) {
        ls_work_finish_data(pool, work);
    }
    return status;
}

void ls_work_end(ls_work_pool_t *pool, ls_work_t *work)
{
    ls_work_t **link = &pool->active;

    while (*link != work) {
        link = &(*link)->next;
    }
    *link = work->next;
    free_temporary(work);
    if (work->id >= LS_SCHEDULE_FIRST_ADOPTED && !work->is_retired && pool->idle[work->id] == NULL) {
        pool->idle[work->id] = work;
    } else {
        work_destroy(work); /* nothing comes after it, or the same bucket was under way twice */
    }
}

void ls_work_forget(ls_work_pool_t *pool, uint32_t id)
{
    work_destroy(pool->idle[id]);
    pool->idle[id] = NULL;
    for (ls_work_t *work = pool->active; work != NULL; work = work->next) {
        work->is_retired = work->is_retired || work->id == id;
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "algo/plan.h"

#include <stdio.h>

#include "base/error.h"
#include "base/mem.h"

#define FIRST_ROOM 8 /* steps or peers of a small plan */

ls_status_t ls_plan_create(uint32_t rank, uint32_t num_ranks, uint32_t num_blocks, ls_plan_t **plan_p)
{
    ls_plan_t  *plan;
    void       *mem;
    ls_status_t status = ls_mem_alloc(sizeof(*plan), "plan", &mem);

    if (status != LS_OK) {
        return status;
    }
    plan                    = mem;
    plan->rank              = rank;
    plan->num_ranks         = num_ranks;
    plan->num_blocks        = num_blocks;
    plan->num_result_blocks = num_blocks;

    status = ls_mem_alloc(num_ranks * sizeof(uint32_t), "plan counts", &mem);
    if (status != LS_OK) {
        goto err_destroy_plan;
    }
    plan->sent = mem;
    status     = ls_mem_alloc(num_ranks * sizeof(uint32_t), "plan counts", &mem);
    if (status != LS_OK) {
        goto err_destroy_plan;
    }
    plan->received = mem;
    *plan_p        = plan;
    return LS_OK;

err_destroy_plan:
    ls_plan_destroy(plan);
    return status;
}

void ls_plan_destroy(ls_plan_t *plan)
{
    if (plan == NULL) {
        return;
    }
    ls_mem_free(plan->steps);
    ls_mem_free(plan->peers);
    ls_mem_free(plan->messages);
    ls_mem_free(plan->sent);
    ls_mem_free(plan->received);
    ls_mem_free(plan);
}

static ls_status_t grow_u32(uint32_t **list, uint32_t used, uint32_t room)
{
    void             *mem    = *list;
    const ls_status_t status = ls_mem_resize(&mem, used * sizeof(uint32_t), room * sizeof(uint32_t),
                                             "plan peers");

    *list = mem;
    return status;
}

/* Room for one step with `num_peers` peers. */
static ls_status_t plan_reserve(ls_plan_t *plan, uint32_t num_peers)
{
    ls_status_t status = LS_OK;

    if (plan->num_steps == plan->steps_room) {
        const uint32_t room = plan->steps_room == 0 ? FIRST_ROOM : 2 * plan->steps_room;
        void          *mem  = plan->steps;

        status = ls_mem_resize(&mem, plan->num_steps * sizeof(ls_step_t), room * sizeof(ls_step_t),
                               "plan steps");
        if (status != LS_OK) {
            return status;
        }
        plan->steps      = mem;
        plan->steps_room = room;
    }
    if (plan->num_peers + num_peers > plan->peers_room) {
        const uint32_t room = 2 * (plan->num_peers + num_peers) + FIRST_ROOM;

        status = grow_u32(&plan->peers, plan->num_peers, room);
        if (status == LS_OK) {
            status = grow_u32(&plan->messages, plan->num_peers, room);
        }
        if (status == LS_OK) {
            plan->peers_room = room;
        }
    }
    return status;
}

static ls_status_t plan_add(ls_plan_t *plan, const ls_step_t *step, const uint32_t *peers)
{
    uint32_t   *counts = step->kind == LS_STEP_SEND ? plan->sent : plan->received;
    ls_status_t status;

    if (plan->is_sealed) {
        return ls_error_set(LS_ERR_INTERNAL, "plan of rank %u: a step is added after sealing", plan->rank);
    }
    status = plan_reserve(plan, step->num_peers);
    if (status != LS_OK) {
        return status;
    }
    plan->steps[plan->num_steps]            = *step;
    plan->steps[plan->num_steps].first_peer = plan->num_peers;
    plan->num_steps++;
    for (uint32_t i = 0; i < step->num_peers; i++, plan->num_peers++) {
        plan->peers[plan->num_peers] = peers[i];
        /* A peer that does not exist is reported by ls_plan_seal. */
        plan->messages[plan->num_peers] = peers[i] < plan->num_ranks ? counts[peers[i]]++ : 0;
    }
    return LS_OK;
}

ls_status_t ls_plan_add_send(ls_plan_t *plan, uint32_t block, uint32_t num_blocks,
                             const uint32_t *peers, uint32_t num_peers)
{
    const ls_step_t step = {
        .kind = LS_STEP_SEND, .block = block, .num_blocks = num_blocks, .num_peers = num_peers};

    return plan_add(plan, &step, peers);
}

ls_status_t ls_plan_add_reduce(ls_plan_t *plan, uint32_t block, uint32_t num_blocks,
                               const uint32_t *peers, uint32_t num_peers)
{
    const ls_step_t step = {
        .kind = LS_STEP_REDUCE, .block = block, .num_blocks = num_blocks, .num_peers = num_peers};

    return plan_add(plan, &step, peers);
}

ls_status_t ls_plan_add_store(ls_plan_t *plan, uint32_t block, uint32_t num_blocks, uint32_t peer)
{
    const ls_step_t step = {
        .kind = LS_STEP_STORE, .block = block, .num_blocks = num_blocks, .num_peers = 1};

    return plan_add(plan, &step, &peer);
}

ls_status_t ls_plan_add_copy(ls_plan_t *plan, uint32_t block, uint32_t num_blocks)
{
    const ls_step_t step = {.kind = LS_STEP_COPY, .block = block, .num_blocks = num_blocks};

    return plan_add(plan, &step, NULL);
}

void ls_plan_set_result(ls_plan_t *plan, uint32_t block, uint32_t num_blocks)
{
    plan->result_block      = block;
    plan->num_result_blocks = num_blocks;
}

ls_status_t ls_plan_add_exchange(ls_plan_t *plan, const ls_exchange_t *exchange)
{
    const ls_status_t status = ls_plan_add_send(plan, exchange->send_block, exchange->num_send_blocks,
                                                &exchange->send_to, 1);

    if (status != LS_OK) {
        return status;
    }
    return exchange->reduce ? ls_plan_add_reduce(plan, exchange->recv_block, exchange->num_recv_blocks,
                                                 &exchange->recv_from, 1)
                            : ls_plan_add_store(plan, exchange->recv_block, exchange->num_recv_blocks,
                                                exchange->recv_from);
}

void ls_plan_print(const ls_plan_t *plan, int fd)
{
    static const char *const words[LS_STEP_KIND_COUNT][2] = {
        [LS_STEP_SEND]   = {"send", " to"},
        [LS_STEP_REDUCE] = {"reduce", " from"},
        [LS_STEP_STORE]  = {"store", " from"},
        [LS_STEP_COPY]   = {"copy", ""},
    };

    for (uint32_t s = 0; s < plan->num_steps; s++) {
        const ls_step_t *step = &plan->steps[s];

        if (step->num_blocks == 0) {
            dprintf(fd, "%s token%s", words[step->kind][0], words[step->kind][1]);
        } else if (step->num_blocks == 1) {
            dprintf(fd, "%s %u%s", words[step->kind][0], step->block, words[step->kind][1]);
        } else {
            dprintf(fd, "%s %u..%u%s", words[step->kind][0], step->block,
                    step->block + step->num_blocks - 1, words[step->kind][1]);
        }
        for (uint32_t i = 0; i < step->num_peers; i++) {
            dprintf(fd, " %u", plan->peers[step->first_peer + i]);
        }
        dprintf(fd, "%s\n", step->is_final ? " (final)" : "");
    }
}

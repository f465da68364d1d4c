/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sealing: what a step can know only from the steps before and after it.
 * Forward, each block is input until something writes it: from_input.  Backward, a REDUCE that nothing
 * overwrites gives the result: is_final.
 */
#include <string.h>

#include "algo/plan.h"
#include "base/error.h"
#include "base/mem.h"

static ls_status_t step_error(const ls_plan_t *plan, uint32_t step, const char *what)
{
    return ls_error_set(LS_ERR_INTERNAL, "plan of rank %u, step %u: %s", plan->rank, step, what);
}

static ls_status_t check_peers(const ls_plan_t *plan, uint32_t s)
{
    const ls_step_t *step  = &plan->steps[s];
    const uint32_t  *peers = plan->peers; /* NULL while no step has any */

    for (uint32_t i = step->first_peer; i < step->first_peer + step->num_peers; i++) {
        if (peers[i] >= plan->num_ranks) {
            return step_error(plan, s, "a peer is out of range");
        }
        if (peers[i] == plan->rank) {
            return step_error(plan, s, "the rank is its own peer");
        }
        if (i > step->first_peer && peers[i] <= peers[i - 1]) {
            return step_error(plan, s, "peers are not ascending");
        }
    }
    if (step->num_peers == 0 && step->kind != LS_STEP_COPY) {
        return step_error(plan, s, "there is no peer");
    }
    return LS_OK;
}

static ls_status_t check_blocks(const ls_plan_t *plan, uint32_t s)
{
    const ls_step_t *step = &plan->steps[s];

    if (step->block > plan->num_blocks || step->num_blocks > plan->num_blocks - step->block) {
        return step_error(plan, s, "blocks are out of range");
    }
    if (step->num_blocks == 0 && step->kind == LS_STEP_COPY) {
        return step_error(plan, s, "a copy without blocks");
    }
    return LS_OK;
}

/* marks[b] is 1 once block b is written. */
static ls_status_t seal_forward(ls_plan_t *plan, uint8_t *marks)
{
    for (uint32_t s = 0; s < plan->num_steps; s++) {
        ls_step_t  *step   = &plan->steps[s];
        uint8_t    *range  = marks + step->block;
        ls_status_t status = check_peers(plan, s);

        if (status == LS_OK) {
            status = check_blocks(plan, s);
        }
        if (status != LS_OK) {
            return status;
        }
        if (step->num_blocks == 0) {
            continue;
        }
        if (step->kind == LS_STEP_COPY && memchr(range, 1, step->num_blocks) != NULL) {
            return step_error(plan, s, "a copy of blocks that were written before");
        }
        if (step->kind == LS_STEP_SEND || step->kind == LS_STEP_REDUCE) {
            const int other = (range[0] == 0);

            step->from_input = (range[0] == 0);
            if (memchr(range, other, step->num_blocks) != NULL) {
                return step_error(plan, s, "the range mixes input and written blocks");
            }
        }
        if (step->kind != LS_STEP_SEND) {
            memset(range, 1, step->num_blocks);
        }
    }
    return LS_OK;
}

static bool in_result(const ls_plan_t *plan, uint32_t block)
{
    return block >= plan->result_block && block - plan->result_block < plan->num_result_blocks;
}

/* marks[b] is 1 when block b is written by a later step. */
static ls_status_t seal_backward(ls_plan_t *plan, uint8_t *marks)
{
    for (uint32_t s = plan->num_steps; s-- > 0;) {
        ls_step_t *step      = &plan->steps[s];
        uint32_t   num_final = 0;

        if (step->kind == LS_STEP_SEND || step->num_blocks == 0) {
            continue;
        }
        for (uint32_t b = step->block; b < step->block + step->num_blocks; b++) {
            num_final += (marks[b] == 0 && in_result(plan, b));
        }
        memset(marks + step->block, 1, step->num_blocks);
        if (step->kind != LS_STEP_REDUCE) {
            continue;
        }
        if (num_final != 0 && num_final != step->num_blocks) {
            return step_error(plan, s, "the range mixes results and intermediate values");
        }
        step->is_final = (num_final != 0);
    }
    return LS_OK;
}

ls_status_t ls_plan_seal(ls_plan_t *plan)
{
    void       *marks;
    ls_status_t status = ls_mem_alloc(plan->num_blocks, "plan marks", &marks);

    if (status != LS_OK) {
        return status;
    }
    status = seal_forward(plan, marks);
    if (status == LS_OK) {
        memset(marks, 0, plan->num_blocks);
        status = seal_backward(plan, marks);
    }
    ls_mem_free(marks);
    if (status != LS_OK) {
        return status;
    }
    ls_mem_free(plan->sent);
    ls_mem_free(plan->received);
    plan->sent      = NULL;
    plan->received  = NULL;
    plan->is_sealed = true;
    return LS_OK;
}

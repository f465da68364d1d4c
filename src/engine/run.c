/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/run.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/mem.h"
#include "engine/run_int.h"

#define OVERDRAFT_EVERY_NS (10 * LS_NS_PER_MS)

static bool needs_messages(const ls_step_t *step)
{
    return step->kind == LS_STEP_REDUCE || step->kind == LS_STEP_STORE;
}

static bool is_send_only(const ls_plan_t *plan)
{
    for (uint32_t i = 0; i < plan->num_steps; i++) {
        if (needs_messages(&plan->steps[i])) {
            return false;
        }
    }
    return true;
}

ls_status_t ls_run_init(ls_run_t *run, ls_run_shared_t *shared, const ls_algo_t *algo, const ls_plan_t *plan)
{
    const size_t num_messages = plan->num_ranks * sizeof(ls_message_t);
    const size_t num_counters = (plan->num_blocks + 1) * sizeof(uint32_t);
    ls_status_t  status;
    void        *mem;

    *run   = (ls_run_t){.shared = shared, .algo = algo, .plan = plan, .is_send_only = is_send_only(plan)};
    status = ls_mem_alloc((plan->num_ranks + 1) * sizeof(*run->received), "run sources", &mem);
    if (status != LS_OK) {
        return status;
    }
    run->received = mem;
    for (unsigned i = 0; i < LS_RUN_WINDOW; i++) {
        status = ls_mem_alloc(num_messages + num_counters, "run pass", &mem);
        if (status != LS_OK) {
            ls_run_clear(run);
            return status;
        }
        run->passes[i].messages     = mem;
        run->passes[i].contributors = (uint32_t *)((char *)mem + num_messages);
    }
    return LS_OK;
}

void ls_run_clear(ls_run_t *run)
{
    for (unsigned i = 0; i < LS_RUN_WINDOW; i++) {
        ls_mem_free(run->passes[i].messages);
    }
    ls_mem_free((void *)run->received);
    ls_geometry_clear(&run->geometry);
    *run = (ls_run_t){0};
}

void ls_run_start(ls_run_t *run, uint32_t id, uint32_t iteration, uint32_t first_chunk)
{
    run->id           = id;
    run->iteration    = iteration;
    run->first_chunk  = first_chunk;
    run->next_chunk   = 0;
    run->num_finished = 0;
}

static uint64_t step_count(const ls_run_t *run, const ls_pass_t *pass, const ls_step_t *step)
{
    return ls_geometry_count(&run->geometry, pass->chunk, step->block, step->num_blocks);
}

/* Both sides of a message know that it would be empty, and leave it out.  Tokens always go. */
static bool is_skipped(const ls_step_t *step, uint64_t count)
{
    return count == 0 && step->num_blocks > 0;
}

/* Announce all messages of a pass, in plan order, for transports that need to know beforehand. */
static ls_status_t expect_all(ls_run_t *run, const ls_pass_t *pass)
{
    ls_status_t status = LS_OK;

    for (uint32_t i = 0; i < run->plan->num_steps && status == LS_OK; i++) {
        const ls_step_t *step  = &run->plan->steps[i];
        const uint64_t   count = step_count(run, pass, step);

        if (!needs_messages(step) || is_skipped(step, count)) {
            continue;
        }
        for (uint32_t p = step->first_peer; p < step->first_peer + step->num_peers && status == LS_OK; p++) {
            status = ls_net_expect(run->shared->net, run->plan->peers[p], ls_run_key(run, pass) | run->plan->messages[p],
                                   ls_bucket_wire_bytes(&run->bucket, count));
        }
    }
    return status;
}

/* Passes that await nothing end at once, and would run ahead of those who read without any limit.  One may begin
 * all the same now and then, in case the readers wait for just that one. */
static bool runs_ahead(ls_run_t *run)
{
    ls_budget_t *budget = &run->shared->budget;

    if (!ls_net_is_overdrawn(run->shared->net)) {
        return false;
    }
    if (ls_clock_ns() - budget->overdrawn_ns < OVERDRAFT_EVERY_NS) {
        return true;
    }
    budget->overdrawn_ns = ls_clock_ns();
    return false;
}

/* May one more pass begin?  If so, it is charged. */
static bool take_budget(ls_run_t *run, ls_pass_t *pass)
{
    const uint64_t bytes = ls_bucket_wire_bytes(
        &run->bucket, ls_geometry_count(&run->geometry, run->next_chunk, 0, run->geometry.num_blocks));

    pass->is_generous = false;
    const bool is_over = !run->shared->budget.is_free && run->shared->budget.used + bytes > run->shared->budget.limit;

    if (run->is_send_only && runs_ahead(run)) {
        run->shared->budget.is_short = true;
        return false;
    }
    if (is_over) {
        if (!run->shared->budget.is_generous) {
            run->shared->budget.is_short = true;
            return false;
        }
        run->shared->budget.is_generous = false;
        pass->is_generous               = true;
    }
    run->shared->budget.used += bytes;
    pass->bytes = bytes;
    return true;
}

static void pass_end(ls_run_t *run, ls_pass_t *pass)
{
    run->shared->budget.used -= pass->bytes;
    run->shared->budget.was_right |= pass->is_generous;
    pass->is_active = false;
}

static ls_status_t pass_start(ls_run_t *run, ls_pass_t *pass)
{
    pass->is_active = true;
    pass->chunk     = run->next_chunk++;
    pass->step      = 0;
    pass->packed    = NULL;
    pass->answered  = (ls_message_t){0};
    for (uint32_t block = 0; block < run->plan->num_blocks; block++) {
        pass->contributors[block] = run->contribution;
    }
    return ls_net_has_remote(run->shared->net) ? expect_all(run, pass) : LS_OK;
}

/* All messages of a step, or LS_IN_PROGRESS. */
static ls_status_t gather_messages(ls_run_t *run, ls_pass_t *pass, const ls_step_t *step, size_t bytes,
                                   bool *moved_p)
{
    for (uint32_t i = 0; i < step->num_peers; i++) {
        const uint32_t peer    = run->plan->peers[step->first_peer + i];
        ls_message_t  *message = &pass->messages[i];

        if (message->data != NULL) {
            continue;
        }
        if (!ls_net_match(run->shared->net, peer, ls_run_key(run, pass) | run->plan->messages[step->first_peer + i],
                          message)) {
            return LS_IN_PROGRESS;
        }
        *moved_p = true;
        if (message->bytes != bytes) {
            return ls_error_set(LS_ERR_INTERNAL, "rank %u sent %zu bytes of bucket %u where %zu were agreed", peer,
                                message->bytes, run->id, bytes);
        }
    }
    return LS_OK;
}

/* Go on until a message is missing.  LS_OK: the pass is through. */
static ls_status_t pass_progress(ls_run_t *run, ls_pass_t *pass, bool *moved_p)
{
    while (pass->step < run->plan->num_steps) {
        const ls_step_t *step   = &run->plan->steps[pass->step];
        const uint64_t   count  = step_count(run, pass, step);
        ls_status_t      status = LS_OK;

        if (!is_skipped(step, count)) {
            if (needs_messages(step)) {
                status = gather_messages(run, pass, step, ls_bucket_wire_bytes(&run->bucket, count), moved_p);
                if (status == LS_OK && ls_fault_at(&run->shared->fault, LS_FAULT_RECEIVE) == LS_FAULT_DROP) {
                    ls_run_release(run, pass, step->num_peers);
                    status = LS_IN_PROGRESS; /* they will be waited for */
                }
            }
            if (status == LS_OK) {
                status = ls_run_step(run, pass, step, count);
            }
            if (status != LS_OK) {
                return status;
            }
        }
        *moved_p = true;
        pass->step++;
    }
    return LS_OK;
}

ls_status_t ls_run_progress(ls_run_t *run, bool *moved_p)
{
    const uint32_t num_chunks = run->geometry.num_chunks;

    /* Oldest first: it is the one whose peers are most likely to have answered. */
    for (uint32_t chunk = run->num_finished; chunk < num_chunks && chunk < run->num_finished + LS_RUN_WINDOW;
         chunk++) {
        ls_pass_t  *pass = &run->passes[chunk % LS_RUN_WINDOW];
        ls_status_t status;

        if (chunk == run->next_chunk) {
            if (!take_budget(run, pass)) {
                break;
            }
            status = pass_start(run, pass);
            if (status != LS_OK) {
                return status;
            }
        }
        if (!pass->is_active) {
            continue;
        }
        status = pass_progress(run, pass, moved_p);
        if (status == LS_OK) {
            pass_end(run, pass);
        } else if (status != LS_IN_PROGRESS) {
            return status;
        }
    }
    while (run->num_finished < run->next_chunk && !run->passes[run->num_finished % LS_RUN_WINDOW].is_active) {
        run->num_finished++;
    }
    return (run->num_finished == num_chunks) ? LS_OK : LS_IN_PROGRESS;
}

void ls_run_abandon(ls_run_t *run)
{
    for (unsigned i = 0; i < LS_RUN_WINDOW; i++) {
        ls_pass_t *pass = &run->passes[i];

        if (pass->is_active) {
            ls_run_release(run, pass, run->plan->num_ranks);
            if (pass->packed != NULL) {
                ls_net_unstage(run->shared->net, pass->packed);
            }
            if (pass->answered.data != NULL) {
                ls_net_release(run->shared->net, &pass->answered);
            }
            pass->packed   = NULL;
            pass->answered = (ls_message_t){0};
            pass_end(run, pass);
        }
    }
}

void ls_run_visit_awaited(const ls_run_t *run, void (*visit)(void *arg, uint32_t rank), void *arg)
{
    for (unsigned i = 0; i < LS_RUN_WINDOW; i++) {
        const ls_pass_t *pass = &run->passes[i];
        const ls_step_t *step = &run->plan->steps[pass->step];

        if (!pass->is_active || !needs_messages(step)) {
            continue;
        }
        for (uint32_t p = 0; p < step->num_peers; p++) {
            if (pass->messages[p].data == NULL) {
                visit(arg, run->plan->peers[step->first_peer + p]);
            }
        }
    }
}

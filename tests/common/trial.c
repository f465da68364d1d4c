/* SPDX-License-Identifier: Apache-2.0 */
#include "trial.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GUARD_BYTES 64
#define GUARD       0xA5
#define LINE_BYTES  64
/* Results with more elements are checked in turns. */
#define SHARE_FROM  512

uint64_t trial_part(const oracle_case_t *what, unsigned from, unsigned to)
{
    const uint64_t chance = oracle_mix(oracle_mix(what->seed, from + 1), to);

    return chance % 4 == 0 ? 0 : (chance >> 8) % (what->count + 1);
}

static uint64_t gives(const trial_t *trial, unsigned rank)
{
    const oracle_case_t *what = &trial->plan.what;
    uint64_t             count = 0;

    switch (trial->plan.kind) {
    case TRIAL_ALLGATHER:
        return (what->absent >> rank & 1) != 0 ? 0 : trial_part(what, rank, 0);
    case TRIAL_ALLTOALL:
        for (unsigned to = 0; to < what->num_ranks; to++) {
            count += trial_part(what, rank, to);
        }
        return count;
    default:
        return what->count;
    }
}

/* Where rank `from`'s part for `to` begins in its input. */
static uint64_t part_offset(const oracle_case_t *what, unsigned from, unsigned to)
{
    uint64_t offset = 0;

    for (unsigned before = 0; before < to; before++) {
        offset += trial_part(what, from, before);
    }
    return offset;
}

/* ---- buffers -------------------------------------------------------------------------------- */

/* Room that starts anywhere in a cache line; what lies behind it must stay as it is. */
static void *make_room(const trial_t *trial, uint64_t count, bool has_guard, unsigned char **room_p)
{
    const size_t size = oracle_size(trial->plan.what.dtype);
    const size_t shift = size * (size_t)(trial->plan.what.seed % (LINE_BYTES / size));
    const size_t bytes = shift + count * size + (has_guard ? GUARD_BYTES : 0);

    *room_p = job_alloc(bytes);
    memset(*room_p, GUARD, bytes);
    return *room_p + shift;
}

static bool is_guard_whole(const trial_t *trial)
{
    const unsigned char *guard =
        (const unsigned char *)trial->output + trial->output_count * oracle_size(trial->plan.what.dtype);

    for (unsigned i = 0; i < GUARD_BYTES; i++) {
        if (guard[i] != GUARD) {
            return false;
        }
    }
    return true;
}

static bool is_gather(const trial_t *trial)
{
    return trial->plan.kind == TRIAL_ALLGATHER || trial->plan.kind == TRIAL_ALLTOALL;
}

void trial_begin(trial_t *trial, job_t *job, const trial_plan_t *plan)
{
    const size_t size = oracle_size(plan->what.dtype);

    *trial = (trial_t){.job = job, .plan = *plan};
    trial->plan.what.num_ranks = job->size;
    trial->plan.what.wire = plan->kind == TRIAL_ALLREDUCE ? job->wire : LS_FLOAT32;
    trial->input_count = gives(trial, job->rank);
    trial->output_count = plan->kind == TRIAL_REDUCE_SCATTER
                              ? ls_block_count(plan->what.count, job->size, job->rank)
                              : plan->what.count;
    trial->input = make_room(trial, trial->input_count, plan->in_place, &trial->input_room);
    if (plan->in_place) {
        trial->output = trial->input;
    } else if (!is_gather(trial)) {
        trial->output = make_room(trial, trial->output_count, true, &trial->output_room);
    }
    /* The others' input of a broadcast is not read: it keeps the poison. */
    if (plan->kind != TRIAL_BROADCAST || plan->root == job->rank) {
        oracle_fill_from(&trial->plan.what, job->rank, 0, trial->input_count, trial->input);
    }
    if (plan->kind == TRIAL_ALLTOALL) {
        trial->send_counts = job_alloc(job->size * sizeof(uint64_t));
        for (unsigned to = 0; to < job->size; to++) {
            trial->send_counts[to] = trial_part(&trial->plan.what, job->rank, to);
        }
    }
    trial->input_hash = oracle_hash(0, trial->input, trial->input_count * size);
}

/* ---- handing in ----------------------------------------------------------------------------- */

static void *gather_room(void *arg, const uint64_t *counts, unsigned num_ranks)
{
    trial_t             *trial = (trial_t *)((char *)arg - offsetof(trial_t, request));
    const oracle_case_t *what = &trial->plan.what;

    trial->output_count = 0;
    for (unsigned from = 0; from < num_ranks; from++) {
        const uint64_t expected = trial->plan.kind == TRIAL_ALLTOALL
                                      ? trial_part(what, from, trial->job->rank)
                                      : gives(trial, from);

        JOB_CHECK(trial->job, counts[from] == expected, "%s: %llu elements announced from rank %u, not %llu",
                  trial->plan.name, (unsigned long long)counts[from], from, (unsigned long long)expected);
        trial->output_count += counts[from];
    }
    trial->output = make_room(trial, trial->output_count, true, &trial->output_room);
    return trial->output;
}

ls_tensor_t trial_tensor(const trial_t *trial)
{
    return (ls_tensor_t){.name = trial->plan.name,   .dtype = trial->plan.what.dtype,
                         .input = trial->input,      .output = trial->output,
                         .count = trial->input_count};
}

ls_reduce_t trial_reduce(const trial_t *trial)
{
    const oracle_case_t *what = &trial->plan.what;

    return (ls_reduce_t){.op = what->op, .weight = what->weights[trial->job->rank],
                         .prescale = what->prescale, .postscale = what->postscale};
}

void trial_submit(trial_t *trial, job_batch_t *batch)
{
    const ls_tensor_t  tensor = trial_tensor(trial);
    const ls_reduce_t  reduce = trial_reduce(trial);
    const ls_context_h ctx = trial->job->ctx;
    job_request_t     *request = &trial->request;
    ls_status_t        status = LS_ERR_INVALID;

    job_request_open(request, batch);
    switch (trial->plan.kind) {
    case TRIAL_ALLREDUCE:
        status = ls_allreduce_async(ctx, &tensor, &reduce, job_request_done, request);
        break;
    case TRIAL_BROADCAST:
        status = ls_broadcast_async(ctx, &tensor, trial->plan.root, job_request_done, request);
        break;
    case TRIAL_ALLGATHER:
        status = ls_allgather_async(ctx, &tensor, gather_room, job_request_done, request);
        break;
    case TRIAL_REDUCE_SCATTER:
        status = ls_reduce_scatter_async(ctx, &tensor, &reduce, job_request_done, request);
        break;
    case TRIAL_ALLTOALL:
        status = ls_alltoall_async(ctx, &tensor, trial->send_counts, gather_room, job_request_done, request);
        break;
    case TRIAL_KIND_COUNT:
        break;
    }
    if (status != LS_OK) {
        job_request_refused(request, status);
    }
}

/* ---- checking ------------------------------------------------------------------------------- */

static bool check_gathered(const trial_t *trial, char *text, size_t room)
{
    const oracle_case_t *what = &trial->plan.what;
    const unsigned       me = trial->job->rank;
    const unsigned char *at = trial->output;
    bool                 is_right = true;

    for (unsigned from = 0; from < what->num_ranks && is_right; from++) {
        const bool     is_gather_all = trial->plan.kind == TRIAL_ALLGATHER;
        const uint64_t first = is_gather_all ? 0 : part_offset(what, from, me);
        const uint64_t count = is_gather_all ? gives(trial, from) : trial_part(what, from, me);

        is_right = oracle_check_moved(what, from, first, count, at, text, room);
        at += count * oracle_size(what->dtype);
    }
    return is_right;
}

static bool check_values(const trial_t *trial, char *text, size_t room)
{
    const oracle_case_t *what = &trial->plan.what;
    oracle_range_t       range = {.count = trial->output_count};

    switch (trial->plan.kind) {
    case TRIAL_BROADCAST:
        return oracle_check_moved(what, trial->plan.root, 0, what->count, trial->output, text, room);
    case TRIAL_ALLGATHER:
    case TRIAL_ALLTOALL:
        return check_gathered(trial, text, room);
    case TRIAL_REDUCE_SCATTER:
        for (unsigned before = 0; before < trial->job->rank; before++) {
            range.first += ls_block_count(what->count, what->num_ranks, before);
        }
        return oracle_check_reduced(what, &range, trial->output, text, room);
    default:
        if (what->count > SHARE_FROM && !trial->plan.is_whole) {
            range.stride = trial->job->size;
            range.phase = trial->job->rank;
        }
        return oracle_check_reduced(what, &range, trial->output, text, room);
    }
}

static void trial_check(trial_t *trial)
{
    static const char *const kinds[] = {
        [TRIAL_ALLREDUCE] = "allreduce", [TRIAL_BROADCAST] = "broadcast", [TRIAL_ALLGATHER] = "allgather",
        [TRIAL_REDUCE_SCATTER] = "reduce_scatter", [TRIAL_ALLTOALL] = "alltoall",
    };
    const trial_plan_t  *plan = &trial->plan;
    const job_request_t *request = &trial->request;
    const size_t         size = oracle_size(plan->what.dtype);
    char                 text[256] = "";

    if (request->status != LS_OK) {
        job_fail(trial->job, __FILE__, __LINE__, "%s: %s: %s", plan->name, ls_status_str(request->status),
                 request->message);
        return;
    }
    JOB_CHECK(trial->job, request->num_done == 1, "%s: done ran %u times", plan->name, request->num_done);
    if (!check_values(trial, text, sizeof(text))) {
        job_fail(trial->job, __FILE__, __LINE__, "%s: %s %s %s of %llu: %s", plan->name, kinds[plan->kind],
                 oracle_op_name(plan->what.op), oracle_dtype_name(plan->what.dtype),
                 (unsigned long long)plan->what.count, text);
    }
    JOB_CHECK(trial->job, is_guard_whole(trial), "%s: written past the end of the output", plan->name);
    JOB_CHECK(trial->job,
              plan->in_place || trial->input_hash == oracle_hash(0, trial->input, trial->input_count * size),
              "%s: the input was changed", plan->name);
    if (plan->kind == TRIAL_REDUCE_SCATTER || plan->kind == TRIAL_ALLTOALL) {
        job_add_own(trial->job, trial->output, trial->output_count * size);
    } else {
        job_add_common(trial->job, trial->output, trial->output_count * size);
    }
}

void trial_end(trial_t *trial)
{
    trial_check(trial);
    free(trial->input_room);
    free(trial->output_room);
    free(trial->send_counts);
}

void trial_run_all(job_t *job, const trial_plan_t *plans, unsigned num_plans)
{
    trial_t    *trials = job_alloc(num_plans * sizeof(*trials));
    job_batch_t batch;

    job_batch_init(&batch);
    for (unsigned i = 0; i < num_plans; i++) {
        trial_begin(&trials[i], job, &plans[i]);
    }
    for (unsigned i = 0; i < num_plans; i++) {
        trial_submit(&trials[i], &batch);
    }
    job_batch_wait(&batch);
    for (unsigned i = 0; i < num_plans; i++) {
        trial_end(&trials[i]);
    }
    job_batch_destroy(&batch);
    free(trials);
}

void trial_run(job_t *job, const trial_plan_t *plan)
{
    trial_run_all(job, plan, 1);
}

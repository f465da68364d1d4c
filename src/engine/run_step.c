/* SPDX-License-Identifier: Apache-2.0 */
/* One step of a pass: pack and send, reduce, store, copy. */
#include "base/clock.h"
#include "engine/run_int.h"

/* Work on less than this is not timed: the clock would cost more than the work. */
#define TIMED_BYTES (64 * LS_KIB)

void ls_run_release(ls_run_t *run, ls_pass_t *pass, uint32_t num_peers)
{
    for (uint32_t i = 0; i < num_peers; i++) {
        if (pass->messages[i].data != NULL) {
            ls_net_release(run->shared->net, &pass->messages[i]);
            pass->messages[i].data = NULL;
        }
    }
}

/* The block's part of this chunk, elements [from, from + count) of it, into the stage. */
static void pack_part(ls_run_t *run, const ls_step_t *step, const ls_range_t *range, uint64_t from, uint64_t count,
                      bool stream, void *to)
{
    ls_bucket_pack(&run->bucket, step->from_input, (step->from_input ? range->input_at : range->output_at) + from,
                   count, stream, to);
}

/* Half of it through the caches, half past them: see writes.h. */
static void pack_as_trial(ls_run_t *run, const ls_step_t *step, const ls_range_t *range, char *to)
{
    const uint64_t half  = range->count / 2;
    const uint64_t begin = ls_clock_ns();
    uint64_t       middle;

    pack_part(run, step, range, 0, half, false, to);
    middle = ls_clock_ns();
    pack_part(run, step, range, half, range->count - half, true, to + ls_bucket_wire_bytes(&run->bucket, half));
    ls_writes_learn(&run->shared->pack_writes, middle - begin, ls_clock_ns() - middle);
}

static void pack_blocks(ls_run_t *run, const ls_pass_t *pass, const ls_step_t *step, char *to)
{
    for (uint32_t block = step->block; block < step->block + step->num_blocks; block++) {
        const ls_range_t range = ls_geometry_range(&run->geometry, pass->chunk, block);
        const size_t     bytes = ls_bucket_wire_bytes(&run->bucket, range.count);

        if (ls_writes_wants_trial(&run->shared->pack_writes, bytes)) {
            pack_as_trial(run, step, &range, to);
        } else {
            pack_part(run, step, &range, 0, range.count, run->shared->pack_writes.is_streaming, to);
        }
        to += bytes;
    }
}

static void corrupt(void *data, size_t bytes)
{
    if (bytes > 0) {
        ((uint8_t *)data)[bytes - 1] ^= 0x80; /* the sign of the last number */
    }
}

static ls_status_t send_answer(ls_run_t *run, ls_pass_t *pass, const ls_step_t *step, ls_fault_action_t fault)
{
    const ls_key_t key    = ls_run_key(run, pass) | run->plan->messages[step->first_peer];
    ls_status_t    status = LS_OK;

    if (fault == LS_FAULT_CORRUPT) {
        corrupt(pass->answered.data, pass->answered.bytes);
    }
    if (fault == LS_FAULT_DROP) {
        ls_net_release(run->shared->net, &pass->answered);
    } else {
        status = ls_net_answer(run->shared->net, &pass->answered, key, pass->contributors[step->block]);
    }
    if (status == LS_OK) {
        pass->answered = (ls_message_t){0};
    }
    return status;
}

static ls_status_t do_send(ls_run_t *run, ls_pass_t *pass, const ls_step_t *step, uint64_t count)
{
    const ls_fault_action_t fault = ls_fault_at(&run->shared->fault, LS_FAULT_SEND);
    const size_t   bytes        = ls_bucket_wire_bytes(&run->bucket, count);
    const uint32_t contributors = (step->num_blocks > 0) ? pass->contributors[step->block] : 0;
    ls_stage_t    *stage        = pass->packed;

    if (pass->answered.data != NULL) {
        return send_answer(run, pass, step, fault);
    }
    pass->packed = NULL;
    if (stage == NULL) {
        const ls_status_t status = ls_net_stage(run->shared->net, bytes, &stage);

        if (status != LS_OK) {
            return status;
        }
        pack_blocks(run, pass, step, stage->data);
    }
    if (fault == LS_FAULT_DROP) {
        ls_net_unstage(run->shared->net, stage);
        return LS_OK;
    }
    if (fault == LS_FAULT_CORRUPT) {
        corrupt(stage->data, bytes);
    }
    return ls_net_send(run->shared->net, stage, bytes, ls_run_key(run, pass), contributors,
                       &run->plan->peers[step->first_peer], &run->plan->messages[step->first_peer],
                       step->num_peers);
}

static bool is_sent_next(const ls_run_t *run, const ls_pass_t *pass, const ls_step_t *step)
{
    const ls_step_t *next = step + 1;

    return pass->step + 1 < run->plan->num_steps && next->kind == LS_STEP_SEND && next->block == step->block &&
           next->num_blocks == step->num_blocks;
}

/* Does the next step, a SEND, go only to the one rank from which this one has received? */
static bool is_answer(const ls_run_t *run, const ls_pass_t *pass, const ls_step_t *step)
{
    const ls_step_t *next = step + 1;

    return step->num_peers == 1 && next->num_peers == 1 &&
           run->plan->peers[step->first_peer] == run->plan->peers[next->first_peer] &&
           ls_net_can_answer(run->shared->net, &pass->messages[0]);
}

/* If the very next step sends what this one computes, let the reduction write that too. */
static ls_status_t prepare_next(ls_run_t *run, ls_pass_t *pass, const ls_step_t *step, size_t bytes)
{
    if (step->num_blocks == 0 || !is_sent_next(run, pass, step)) {
        return LS_OK;
    }
    if (is_answer(run, pass, step)) {
        pass->answered = pass->messages[0];
        return LS_OK;
    }
    return ls_net_stage(run->shared->net, bytes, &pass->packed);
}

/* Where the next SEND's data goes, `at` bytes into it; NULL: nowhere. */
static void *next_data(const ls_pass_t *pass, size_t at)
{
    char *data = (pass->packed != NULL) ? pass->packed->data : pass->answered.data;

    return (data == NULL) ? NULL : data + at;
}

/* Elements [from, from + count) of the block's part of this chunk, which begins `offset` bytes into the messages. */
static void reduce_part(ls_run_t *run, ls_pass_t *pass, const ls_step_t *step, uint32_t block, size_t offset,
                        uint64_t from, uint64_t count, bool stream)
{
    const ls_range_t range     = ls_geometry_range(&run->geometry, pass->chunk, block);
    const size_t     at        = offset + ls_bucket_wire_bytes(&run->bucket, from);
    uint32_t         own_index = 0;

    for (uint32_t i = 0; i < step->num_peers; i++) {
        run->received[i] = (const char *)pass->messages[i].data + at;
        own_index += (run->plan->peers[step->first_peer + i] < run->plan->rank) ? 1 : 0;
    }
    ls_bucket_reduce(&run->bucket, &(ls_bucket_reduce_t){
                                       .from_input    = step->from_input,
                                       .is_final      = step->is_final,
                                       .own_at        = range.input_at + from,
                                       .at            = range.output_at + from,
                                       .count         = count,
                                       .own_index     = own_index,
                                       .num_received  = step->num_peers,
                                       .received      = run->received,
                                       .contributors  = pass->contributors[block],
                                       .packed        = next_data(pass, at),
                                       .stream_packed = stream,
                                   });
}

static void reduce_as_trial(ls_run_t *run, ls_pass_t *pass, const ls_step_t *step, uint32_t block, size_t offset,
                            uint64_t count)
{
    const uint64_t half  = count / 2;
    const uint64_t begin = ls_clock_ns();
    uint64_t       middle;

    reduce_part(run, pass, step, block, offset, 0, half, false);
    middle = ls_clock_ns();
    reduce_part(run, pass, step, block, offset, half, count - half, true);
    ls_writes_learn(&run->shared->reduce_writes, middle - begin, ls_clock_ns() - middle);
}

static void reduce_block(ls_run_t *run, ls_pass_t *pass, const ls_step_t *step, uint32_t block, size_t offset)
{
    ls_writes_t   *writes = &run->shared->reduce_writes;
    const uint64_t count  = ls_geometry_range(&run->geometry, pass->chunk, block).count;

    for (uint32_t i = 0; i < step->num_peers; i++) {
        pass->contributors[block] += pass->messages[i].contributors;
    }
    if (pass->packed != NULL && ls_writes_wants_trial(writes, ls_bucket_wire_bytes(&run->bucket, count))) {
        reduce_as_trial(run, pass, step, block, offset, count);
    } else {
        reduce_part(run, pass, step, block, offset, 0, count, writes->is_streaming);
    }
}

static ls_status_t do_reduce(ls_run_t *run, ls_pass_t *pass, const ls_step_t *step, size_t bytes)
{
    const ls_status_t status = prepare_next(run, pass, step, bytes);
    size_t            offset = 0;

    for (uint32_t block = step->block; block < step->block + step->num_blocks && status == LS_OK; block++) {
        reduce_block(run, pass, step, block, offset);
        offset += ls_bucket_wire_bytes(&run->bucket, ls_geometry_range(&run->geometry, pass->chunk, block).count);
    }
    if (pass->answered.data != NULL) {
        pass->messages[0].data = NULL; /* goes back with the answer */
    }
    ls_run_release(run, pass, step->num_peers);
    return status;
}

static void do_store(ls_run_t *run, ls_pass_t *pass, const ls_step_t *step)
{
    const char *data = pass->messages[0].data;

    for (uint32_t block = step->block; block < step->block + step->num_blocks; block++) {
        const ls_range_t range = ls_geometry_range(&run->geometry, pass->chunk, block);

        ls_bucket_store(&run->bucket, range.output_at, range.count, data);
        data += ls_bucket_wire_bytes(&run->bucket, range.count);
        pass->contributors[block] = pass->messages[0].contributors;
    }
    ls_run_release(run, pass, 1);
}

static void do_copy(ls_run_t *run, ls_pass_t *pass, const ls_step_t *step)
{
    for (uint32_t block = step->block; block < step->block + step->num_blocks; block++) {
        const ls_range_t range = ls_geometry_range(&run->geometry, pass->chunk, block);

        ls_bucket_copy(&run->bucket, range.input_at, range.output_at, range.count, run->contribution);
    }
}

ls_status_t ls_run_step(ls_run_t *run, ls_pass_t *pass, const ls_step_t *step, uint64_t count)
{
    const size_t   bytes = ls_bucket_wire_bytes(&run->bucket, count);
    const bool     timed = bytes >= TIMED_BYTES;
    const uint64_t begin = timed ? ls_clock_ns() : 0;
    ls_status_t    status = LS_OK;

    switch (step->kind) {
    case LS_STEP_SEND:
        status = do_send(run, pass, step, count);
        break;
    case LS_STEP_REDUCE:
        (void)ls_fault_at(&run->shared->fault, LS_FAULT_REDUCE);
        status = do_reduce(run, pass, step, bytes);
        break;
    case LS_STEP_STORE:
        do_store(run, pass, step);
        break;
    case LS_STEP_COPY:
        do_copy(run, pass, step);
        break;
    case LS_STEP_KIND_COUNT:
        break;
    }
    if (timed) {
        *(step->kind == LS_STEP_REDUCE ? &run->ns_reduce : &run->ns_copy) += ls_clock_ns() - begin;
    }
    return status;
}

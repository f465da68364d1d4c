/* SPDX-License-Identifier: Apache-2.0 */
/* From a bucket and what the ranks told each other to a run: algorithm, blocks, where they lie. */
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "device/dtype.h"
#include "engine/unfinite.h"
#include "engine/widen.h"
#include "engine/work.h"

/* Above this a result will have left the caches before anybody reads it. */
#define LARGE_BYTES (8 * LS_MIB)

/* Word `word` of rank `rank`. */
static uint64_t meta_word(const ls_work_t *work, uint32_t rank, uint32_t word)
{
    return work->meta_words[((size_t)rank + 1) * work->num_meta_words + word];
}

static double meta_weight(const ls_work_t *work, uint32_t rank, uint32_t slot)
{
    const uint64_t bits = meta_word(work, rank, slot);
    double         weight;

    memcpy(&weight, &bits, sizeof(weight));
    return weight;
}

/* Each rank's share of the whole weight is applied before the sum: nothing can overflow that way, and an
 * input of weight 0 is not read at all, so what is in it (NaN, say) does not matter. */
static void apply_weights(ls_work_t *work, uint32_t rank, uint32_t num_ranks)
{
    for (uint32_t slot = 0; slot < work->num_slots; slot++) {
        const double own   = meta_weight(work, rank, slot);
        double       whole = 0;

        for (uint32_t other = 0; other < num_ranks; other++) {
            whole += meta_weight(work, other, slot);
        }
        work->parts[slot].prescale = (whole > 0) ? work->signature.prescale * (own / whole) : 0;
        work->parts[slot].gives    = own > 0;
    }
}

static ls_dtype_t wire_type(const ls_config_t *config, const ls_signature_t *signature)
{
    const bool is_sum = (signature->op == LS_SUM || signature->op == LS_MEAN || signature->op == LS_WEIGHTED_MEAN);

    if (config->wire == LS_WIRE_NONE || signature->coll != LS_COLL_ALLREDUCE || signature->dtype != LS_FLOAT32 ||
        !is_sum) {
        return ls_widen_dtype(signature);
    }
    return (config->wire == LS_WIRE_BFLOAT16) ? LS_BFLOAT16 : LS_FLOAT16;
}

static void tell_unfinite(void *arg, uint32_t slot, uint64_t at, bool is_nan)
{
    const ls_work_t *work = arg;

    ls_unfinite_say(work->requests[slot], at, is_nan);
}

static void set_bucket(const ls_work_pool_t *pool, ls_work_t *work)
{
    const ls_signature_t *signature = &work->signature;
    const bool            is_mean   = (signature->op == LS_MEAN || signature->op == LS_WEIGHTED_MEAN);
    const ls_part_t      *last      = &work->parts[work->num_slots - 1];

    work->run.bucket = (ls_bucket_t){
        .dtype     = ls_widen_dtype(signature),
        .wire      = wire_type(pool->config, signature),
        .op        = is_mean ? LS_SUM : signature->op,
        .is_mean   = signature->op == LS_MEAN,
        .postscale = signature->postscale,
        .num_parts = work->num_slots,
        .parts     = work->parts,
        .count     = last->start + last->count,
        .scratch   = pool->scratch,
        .found     = tell_unfinite,
        .found_arg = work,
    };
    work->run.contribution = 1;
    for (uint32_t slot = 0; slot < work->num_slots; slot++) {
        if (work->requests[slot] == NULL) {
            work->run.contribution = 0;
        }
    }
}

/* Elements that the whole collective is about: what the choice of algorithm looks at.  The same on all ranks. */
static uint64_t total_count(const ls_work_t *work, uint32_t num_ranks)
{
    uint64_t total = 0;

    if (work->signature.coll != LS_COLL_ALLGATHER && work->signature.coll != LS_COLL_ALLTOALL) {
        const ls_part_t *last = &work->parts[work->num_slots - 1];

        return last->start + last->count;
    }
    for (uint32_t rank = 0; rank < num_ranks; rank++) {
        for (uint32_t word = 0; word < work->num_meta_words; word++) {
            total += meta_word(work, rank, word);
        }
    }
    return total;
}

/* Room for an output that no caller provides. */
static ls_status_t use_temporary(ls_work_t *work, uint32_t slot, uint64_t count)
{
    const size_t      size   = ls_dtype_size(ls_widen_dtype(&work->signature));
    const ls_status_t status = ls_mem_alloc((size_t)count * size, "output", &work->temporary[slot]);

    if (status == LS_OK) {
        work->parts[slot].output = work->temporary[slot];
    }
    return status;
}

/* All-reduce and broadcast: the same place in input and output. */
static ls_status_t place_same(ls_work_t *work)
{
    ls_status_t status = LS_OK;

    for (uint32_t slot = 0; slot < work->num_slots && status == LS_OK; slot++) {
        if (work->requests[slot] == NULL) {
            status = use_temporary(work, slot, work->parts[slot].count);
        }
    }
    if (status == LS_OK) {
        ls_geometry_set_even(&work->run.geometry, work->run.bucket.count);
    }
    return status;
}

static bool writes_only(const ls_plan_t *plan, uint32_t block)
{
    for (uint32_t i = 0; i < plan->num_steps; i++) {
        const ls_step_t *step = &plan->steps[i];

        if (step->kind != LS_STEP_SEND && (step->block != block || step->num_blocks != 1)) {
            return false;
        }
    }
    return true;
}

/* Reduce-scatter: the output has room for the own block only; an algorithm that needs more works elsewhere. */
static ls_status_t place_scatter(ls_work_t *work, uint32_t rank, uint32_t num_ranks)
{
    ls_geometry_t *geometry = &work->run.geometry;
    const bool     is_short = writes_only(work->run.plan, rank) && work->requests[0] != NULL;
    uint64_t       at       = 0;

    for (uint32_t block = 0; block < num_ranks; block++) {
        geometry->counts[block]    = ls_block_count(work->signature.count, num_ranks, block);
        geometry->input_at[block]  = at;
        geometry->output_at[block] = is_short ? 0 : at;
        at += geometry->counts[block];
    }
    return is_short ? LS_OK : use_temporary(work, 0, work->signature.count);
}

/* The caller's room for `counts` elements of each rank, or our own if it has none to give: this rank must
 * take part all the same, or the others would wait. */
static ls_status_t ask_for_output(ls_work_t *work, const uint64_t *counts, uint32_t num_ranks, uint64_t total)
{
    ls_request_t *request = work->requests[0];

    work->parts[0].output = NULL;
    if (request != NULL) {
        work->parts[0].output = request->output_fn(request->arg, counts, num_ranks);
        if (work->parts[0].output == NULL && total > 0) {
            work->status = LS_ERR_NO_MEMORY;
        }
    }
    return (work->parts[0].output == NULL) ? use_temporary(work, 0, total) : LS_OK;
}

static ls_status_t place_gathered(ls_work_t *work, uint32_t num_ranks)
{
    ls_geometry_t *geometry = &work->run.geometry;
    uint64_t       at       = 0;

    for (uint32_t rank = 0; rank < num_ranks; rank++) {
        geometry->counts[rank]    = meta_word(work, rank, 0);
        geometry->input_at[rank]  = 0;
        geometry->output_at[rank] = at;
        at += geometry->counts[rank];
    }
    return ask_for_output(work, geometry->counts, num_ranks, at);
}

/* Block s*n+d is what s gives to d; only the own row and column concern this rank. */
static ls_status_t place_exchanged(ls_work_t *work, uint32_t rank, uint32_t num_ranks)
{
    ls_geometry_t *geometry = &work->run.geometry;
    uint64_t       input_at = 0, output_at = 0;
    uint64_t      *counts;
    ls_status_t    status;
    void          *mem;

    memset(geometry->counts, 0, geometry->num_blocks * sizeof(*geometry->counts));
    status = ls_mem_alloc(num_ranks * sizeof(*counts), "alltoall counts", &mem);
    if (status != LS_OK) {
        return status;
    }
    counts = mem;
    for (uint32_t other = 0; other < num_ranks; other++) {
        const uint32_t given = rank * num_ranks + other, taken = other * num_ranks + rank;

        counts[other]              = meta_word(work, other, rank);
        geometry->counts[given]    = meta_word(work, rank, other);
        geometry->counts[taken]    = counts[other];
        geometry->input_at[given]  = input_at;
        geometry->output_at[taken] = output_at;
        input_at += geometry->counts[given];
        output_at += geometry->counts[taken];
    }
    status = ask_for_output(work, counts, num_ranks, output_at);
    ls_mem_free(counts);
    return status;
}

static ls_status_t place_blocks(ls_work_t *work, uint32_t rank, uint32_t num_ranks)
{
    switch (work->signature.coll) {
    case LS_COLL_ALLREDUCE:
    case LS_COLL_BROADCAST:
        return place_same(work);
    case LS_COLL_REDUCE_SCATTER:
        return place_scatter(work, rank, num_ranks);
    case LS_COLL_ALLGATHER:
        return place_gathered(work, num_ranks);
    case LS_COLL_ALLTOALL:
        return place_exchanged(work, rank, num_ranks);
    case LS_COLL_BARRIER:
        return LS_OK;
    case LS_COLL_COUNT:
        break;
    }
    return ls_error_set(LS_ERR_INTERNAL, "no such collective: %d", (int)work->signature.coll);
}

/* The run of this algorithm, kept from last time where it fits. */
static ls_status_t take_run(ls_work_pool_t *pool, ls_work_t *work, const ls_algo_t *algo)
{
    const ls_plan_t *plan;
    ls_status_t      status = ls_work_get_plan(pool, algo, work->signature.root, &plan);

    if (status != LS_OK || (work->has_run && work->run.plan == plan)) {
        return status;
    }
    if (work->has_run) {
        ls_run_clear(&work->run);
        work->has_run = false;
    }
    status = ls_run_init(&work->run, &pool->shared, algo, plan);
    if (status != LS_OK) {
        return status;
    }
    work->has_run = true;
    return ls_geometry_init(&work->run.geometry, plan->num_blocks);
}

/* How many ranks have given is counted for a bucket, not for each tensor.  A rank that joins having given only
 * a part of a bucket that others have begun would make a mean wrong: better none. */
static ls_status_t check_mean(const ls_work_t *work)
{
    const ls_request_t *given     = NULL;
    uint32_t            num_given = 0;

    for (uint32_t slot = 0; slot < work->num_slots; slot++) {
        if (work->requests[slot] != NULL) {
            given = work->requests[slot];
            num_given++;
        }
    }
    if (work->signature.op != LS_MEAN || num_given == 0 || num_given == work->num_slots) {
        return LS_OK;
    }
    return ls_error_set(LS_ERR_UNSUPPORTED,
                        "tensor '%s': this rank joined having given %u of the %u tensors of a bucket that others have "
                        "begun; their mean cannot be told (give all of a step or nothing before joining)",
                        given->name, num_given, work->num_slots);
}

ls_status_t ls_work_prepare_data(ls_work_pool_t *pool, ls_work_t *work)
{
    const uint32_t          rank      = pool->place->rank;
    const uint32_t          num_ranks = pool->place->topology.num_ranks;
    const ls_signature_t   *signature = &work->signature;
    const ls_algo_request_t request   = {
          .coll = signature->coll, .rank = rank, .root = signature->root, .topology = &pool->place->topology};
    const size_t       wire_size = ls_dtype_size(wire_type(pool->config, signature));
    const ls_choice_t *choice;
    uint64_t           blocks_per_chunk;
    ls_status_t        status;

    work->num_bytes = total_count(work, num_ranks) * wire_size;
    choice          = ls_choice_find(pool->choices, &request, work->num_bytes);
    status          = check_mean(work);
    if (status == LS_OK) {
        status = take_run(pool, work, choice->algo);
    }
    if (status != LS_OK) {
        return status;
    }
    if (signature->op == LS_WEIGHTED_MEAN) {
        apply_weights(work, rank, num_ranks);
    }
    set_bucket(pool, work);
    work->run.bucket.is_large = work->num_bytes >= LARGE_BYTES;
    status                    = place_blocks(work, rank, num_ranks);
    if (status != LS_OK) {
        return status;
    }
    blocks_per_chunk = (signature->coll == LS_COLL_ALLTOALL) ? num_ranks : work->run.geometry.num_blocks;
    blocks_per_chunk = (blocks_per_chunk == 0) ? 1 : blocks_per_chunk;
    ls_geometry_set_chunks(&work->run.geometry, choice->chunk_bytes / wire_size / blocks_per_chunk,
                           signature->coll != LS_COLL_ALLTOALL);
    ls_run_start(&work->run, work->id, work->iteration, 0);
    return LS_OK;
}

void ls_work_finish_data(const ls_work_pool_t *pool, ls_work_t *work)
{
    const uint32_t rank = pool->place->rank;
    const size_t   size = ls_dtype_size(ls_widen_dtype(&work->signature));

    if (work->signature.coll == LS_COLL_REDUCE_SCATTER && work->temporary[0] != NULL && work->requests[0] != NULL) {
        memcpy(work->requests[0]->output,
               (const char *)work->temporary[0] + work->run.geometry.output_at[rank] * size,
               work->run.geometry.counts[rank] * size);
    }
}

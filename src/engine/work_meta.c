/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What ranks must tell each other before some collectives: weights (one per tensor) of a weighted mean,
 * the length of an all-gather's part, the n lengths of an all-to-all.  All are 8-byte words, gathered from
 * all ranks in rank order.
 */
#include <string.h>

#include "base/mem.h"
#include "engine/work.h"

static bool is_weighted(const ls_work_t *work)
{
    return work->signature.op == LS_WEIGHTED_MEAN;
}

bool ls_work_needs_meta(const ls_work_t *work)
{
    return is_weighted(work) || work->signature.coll == LS_COLL_ALLGATHER || work->signature.coll == LS_COLL_ALLTOALL;
}

static uint32_t count_words(const ls_work_t *work, uint32_t num_ranks)
{
    if (is_weighted(work)) {
        return work->num_slots;
    }
    return (work->signature.coll == LS_COLL_ALLTOALL) ? num_ranks : 1;
}

static void fill_own_words(ls_work_t *work)
{
    for (uint32_t word = 0; word < work->num_meta_words; word++) {
        const ls_request_t *request = work->requests[is_weighted(work) ? word : 0];

        work->meta_words[word] = 0; /* also the bits of a weight of 0.0 */
        if (request == NULL) {
            continue;
        }
        if (is_weighted(work)) {
            memcpy(&work->meta_words[word], &request->weight, sizeof(request->weight));
        } else {
            work->meta_words[word] = (request->send_counts != NULL) ? request->send_counts[word] : work->signature.count;
        }
    }
}

static ls_status_t set_up_run(ls_work_pool_t *pool, ls_work_t *work)
{
    const uint32_t          num_ranks = pool->place->topology.num_ranks;
    const ls_algo_request_t request   = {
          .coll = LS_COLL_ALLGATHER, .rank = pool->place->rank, .topology = &pool->place->topology};
    const uint64_t     bytes  = (uint64_t)work->num_meta_words * num_ranks * sizeof(uint64_t);
    const ls_choice_t *choice = ls_choice_find(pool->choices, &request, bytes);
    const ls_plan_t   *plan;
    ls_status_t        status = ls_work_get_plan(pool, choice->algo, 0, &plan);

    if (status != LS_OK || (status = ls_run_init(&work->meta, &pool->shared, choice->algo, plan)) != LS_OK) {
        return status;
    }
    work->has_meta = true;
    status         = ls_geometry_init(&work->meta.geometry, num_ranks);
    if (status != LS_OK) {
        return status;
    }
    for (uint32_t rank = 0; rank < num_ranks; rank++) {
        work->meta.geometry.counts[rank]    = work->num_meta_words;
        work->meta.geometry.output_at[rank] = (uint64_t)rank * work->num_meta_words;
    }
    ls_geometry_set_chunks(&work->meta.geometry, work->num_meta_words, true);
    return LS_OK;
}

ls_status_t ls_work_prepare_meta(ls_work_pool_t *pool, ls_work_t *work)
{
    const uint32_t num_ranks = pool->place->topology.num_ranks;
    ls_status_t    status;
    void          *mem;

    if (!work->has_meta) {
        work->num_meta_words = count_words(work, num_ranks);
        status = ls_mem_alloc(((size_t)num_ranks + 1) * work->num_meta_words * sizeof(uint64_t),
                              "meta words", &mem);
        if (status != LS_OK) {
            return status;
        }
        work->meta_words = mem;
        status           = set_up_run(pool, work);
        if (status != LS_OK) {
            return status;
        }
    }
    fill_own_words(work);
    work->meta_part   = (ls_part_t){.input  = work->meta_words,
                                    .output = work->meta_words + work->num_meta_words,
                                    .count  = work->num_meta_words,
                                    .prescale = 1.0,
                                    .gives  = true};
    work->meta.bucket = (ls_bucket_t){.dtype = LS_INT64, .wire = LS_INT64, .op = LS_SUM, .postscale = 1.0,
                                      .num_parts = 1, .parts = &work->meta_part, .count = work->num_meta_words};
    work->meta.contribution = 1;
    ls_run_start(&work->meta, work->id, work->iteration, LS_RUN_META_CHUNK);
    return LS_OK;
}

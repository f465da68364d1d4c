/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Halving and doubling all-reduce: reduce-scatter by halving, all-gather by doubling.
 *
 * Words: the data is p blocks, p the power of two that the ranks are folded to (fold.h).  n = 4, rank 1:
 *
 *     distance 1   send 0..1 to 0 | reduce 2..3 from 0             keeps the upper half
 *     distance 2   send 3 to 3 | reduce 2 from 3 (final)           keeps the lower half of that
 *     distance 2   send 2 to 3 | store 3 from 3
 *     distance 1   send 2..3 to 0 | store 0..1 from 0
 *
 * Steps: 1. for distance 1, 2, 4 ...: give half of what is left, reduce the other half; a place with the
 * bit of that distance set keeps the upper half; 2. the same exchanges backward, storing.
 * The nearest ranks, often of the same node, exchange the largest halves.
 * Cost: a*2log2(n) + b*2S(n-1)/n + c*S(n-1)/n; folding adds a*2 + b*2S + c*S.
 * Chosen: middle sizes on many nodes of unequal size.
 * Same bits: each block is finished by one place and then spread.
 * Limits: none; p blocks.
 */
#include "algo/algo_int.h"
#include "algo/fold.h"

static uint32_t halving_doubling_num_blocks(const ls_algo_request_t *request)
{
    return ls_fold_size(request->topology->num_ranks);
}

/* `kept` is where the own half of the exchange at this distance begins, `given` the partner's. */
static ls_status_t add_exchange(const ls_fold_t *fold, uint32_t distance, uint32_t given, uint32_t kept,
                                bool reduce, ls_plan_t *plan)
{
    const uint32_t      partner  = ls_fold_rank(fold, fold->place ^ distance);
    const uint32_t      half     = fold->size / (2 * distance);
    const ls_exchange_t exchange = {
        .send_to         = partner,
        .send_block      = reduce ? given : kept,
        .num_send_blocks = half,
        .recv_from       = partner,
        .recv_block      = reduce ? kept : given,
        .num_recv_blocks = half,
        .reduce          = reduce,
    };

    return ls_plan_add_exchange(plan, &exchange);
}

static ls_status_t add_passes(const ls_fold_t *fold, ls_plan_t *plan)
{
    ls_status_t status = LS_OK;
    uint32_t    start  = 0; /* of what is left */

    for (uint32_t distance = 1; distance < fold->size && status == LS_OK; distance *= 2) {
        const uint32_t half = fold->size / (2 * distance);
        const uint32_t kept = (fold->place & distance) != 0 ? start + half : start;

        status = add_exchange(fold, distance, 2 * start + half - kept, kept, true, plan);
        start  = kept;
    }
    for (uint32_t distance = fold->size / 2; distance > 0 && status == LS_OK; distance /= 2) {
        const uint32_t half  = fold->size / (2 * distance);
        const uint32_t kept  = start;
        const uint32_t given = (fold->place & distance) != 0 ? start - half : start + half;

        status = add_exchange(fold, distance, given, kept, false, plan);
        start  = given < kept ? given : kept;
    }
    return status;
}

static ls_status_t halving_doubling_plan(const ls_algo_request_t *request, ls_plan_t *plan)
{
    const ls_fold_t fold = ls_fold_make(request->rank, plan->num_ranks);
    ls_status_t     status;

    if (plan->num_ranks == 1) {
        return ls_plan_add_copy(plan, 0, 1);
    }
    status = ls_fold_begin(&fold, plan);
    if (status == LS_OK && !fold.is_folded) {
        status = add_passes(&fold, plan);
    }
    return status == LS_OK ? ls_fold_end(&fold, plan) : status;
}

const ls_algo_t ls_algo_allreduce_halving_doubling = {
    .coll       = LS_COLL_ALLREDUCE,
    .name       = "halving_doubling",
    .help       = "halves exchanged at distance 1, 2, 4 ... and back",
    .num_blocks = halving_doubling_num_blocks,
    .supports   = ls_algo_supports_all,
    .plan       = halving_doubling_plan,
};

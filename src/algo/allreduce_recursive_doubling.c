/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recursive doubling all-reduce: with each exchange twice as many values are in.
 *
 * Words: the data is one block; ranks that are no power of two are folded (fold.h).  n = 4:
 *
 *     0 <-> 1   2 <-> 3     then     0 <-> 2   1 <-> 3
 *
 *     rank 1: send 0 to 0 | reduce 0 from 0 | send 0 to 3 | reduce 0 from 3 (final)
 *
 * Steps: for distance 1, 2, 4 ...: exchange the whole value with the place at that distance, reduce.
 * Cost: a*log2(n) + b*S*log2(n) + c*S*log2(n); folding adds a*2 + b*2S + c*S.
 * Chosen: small data between nodes.
 * Same bits: both partners compute "lower place op higher place" of the same two values, and by induction
 * all places of a group of 2, 4, 8 ... hold the same bits; folded ranks are sent the result.
 * Limits: none.
 */
#include "algo/algo_int.h"
#include "algo/fold.h"

static ls_status_t add_exchanges(const ls_fold_t *fold, ls_plan_t *plan)
{
    ls_status_t status = LS_OK;

    for (uint32_t distance = 1; distance < fold->size && status == LS_OK; distance *= 2) {
        const uint32_t      partner  = ls_fold_rank(fold, fold->place ^ distance);
        const ls_exchange_t exchange = {.send_to         = partner,
                                        .num_send_blocks = 1,
                                        .recv_from       = partner,
                                        .num_recv_blocks = 1,
                                        .reduce          = true};

        status = ls_plan_add_exchange(plan, &exchange);
    }
    return status;
}

static ls_status_t recursive_doubling_plan(const ls_algo_request_t *request, ls_plan_t *plan)
{
    const ls_fold_t fold = ls_fold_make(request->rank, plan->num_ranks);
    ls_status_t     status;

    if (plan->num_ranks == 1) {
        return ls_plan_add_copy(plan, 0, 1);
    }
    status = ls_fold_begin(&fold, plan);
    if (status == LS_OK && !fold.is_folded) {
        status = add_exchanges(&fold, plan);
    }
    return status == LS_OK ? ls_fold_end(&fold, plan) : status;
}

const ls_algo_t ls_algo_allreduce_recursive_doubling = {
    .coll       = LS_COLL_ALLREDUCE,
    .name       = "recursive_doubling",
    .help       = "whole values exchanged at distance 1, 2, 4 ...",
    .num_blocks = ls_algo_one_block,
    .supports   = ls_algo_supports_all,
    .plan       = recursive_doubling_plan,
};

/* SPDX-License-Identifier: Apache-2.0 */
#include "algo/fold.h"

uint32_t ls_fold_size(uint32_t num_ranks)
{
    uint32_t size = 1;

    while (size <= num_ranks / 2) {
        size *= 2;
    }
    return size;
}

ls_fold_t ls_fold_make(uint32_t rank, uint32_t num_ranks)
{
    const uint32_t size  = ls_fold_size(num_ranks);
    const uint32_t extra = num_ranks - size;

    if (rank >= 2 * extra) {
        return (ls_fold_t){.size = size, .extra = extra, .place = rank - extra, .partner = rank};
    }
    return (ls_fold_t){
        .size = size, .extra = extra, .place = rank / 2, .partner = rank ^ 1U, .is_folded = rank % 2 == 1};
}

uint32_t ls_fold_rank(const ls_fold_t *fold, uint32_t place)
{
    return place < fold->extra ? 2 * place : place + fold->extra;
}

ls_status_t ls_fold_begin(const ls_fold_t *fold, ls_plan_t *plan)
{
    if (fold->partner == plan->rank) {
        return LS_OK;
    }
    return fold->is_folded ? ls_plan_add_send(plan, 0, plan->num_blocks, &fold->partner, 1)
                           : ls_plan_add_reduce(plan, 0, plan->num_blocks, &fold->partner, 1);
}

ls_status_t ls_fold_end(const ls_fold_t *fold, ls_plan_t *plan)
{
    if (fold->partner == plan->rank) {
        return LS_OK;
    }
    return fold->is_folded ? ls_plan_add_store(plan, 0, plan->num_blocks, fold->partner)
                           : ls_plan_add_send(plan, 0, plan->num_blocks, &fold->partner, 1);
}

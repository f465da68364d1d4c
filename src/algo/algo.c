/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "algo/algo_int.h"
#include "base/error.h"

const ls_algo_t *const ls_algo_list[] = {
    &ls_algo_allreduce_flat,
    &ls_algo_allreduce_direct,
    &ls_algo_allreduce_ring,
    &ls_algo_allreduce_recursive_doubling,
    &ls_algo_allreduce_halving_doubling,
    &ls_algo_allreduce_dims,
    &ls_algo_allreduce_two_level,
    &ls_algo_broadcast_flat,
    &ls_algo_broadcast_binomial,
    &ls_algo_broadcast_two_level,
    &ls_algo_allgather_direct,
    &ls_algo_allgather_ring,
    &ls_algo_reduce_scatter_direct,
    &ls_algo_reduce_scatter_ring,
    &ls_algo_alltoall_direct,
    &ls_algo_barrier_dissemination,
    NULL,
};

const char *ls_algo_coll_name(ls_coll_t coll)
{
    static const char *const names[LS_COLL_COUNT] = {
        [LS_COLL_ALLREDUCE] = "allreduce", [LS_COLL_BROADCAST] = "broadcast",
        [LS_COLL_ALLGATHER] = "allgather", [LS_COLL_REDUCE_SCATTER] = "reduce_scatter",
        [LS_COLL_ALLTOALL] = "alltoall",   [LS_COLL_BARRIER] = "barrier",
    };

    return (unsigned)coll < LS_COLL_COUNT ? names[coll] : "unknown collective";
}

const ls_algo_t *ls_algo_find(ls_coll_t coll, const char *name)
{
    for (const ls_algo_t *const *algo = ls_algo_list; *algo != NULL; algo++) {
        if ((*algo)->coll == coll && strcmp((*algo)->name, name) == 0) {
            return *algo;
        }
    }
    return NULL;
}

ls_status_t ls_algo_plan(const ls_algo_t *algo, const ls_algo_request_t *request, ls_plan_t **plan_p)
{
    const uint32_t num_ranks = request->topology->num_ranks;
    ls_plan_t     *plan;
    ls_status_t    status;

    if (request->rank >= num_ranks || request->root >= num_ranks) {
        return ls_error_set(LS_ERR_INTERNAL, "%s %s: rank %u or root %u is not below %u",
                            ls_algo_coll_name(algo->coll), algo->name, request->rank, request->root,
                            num_ranks);
    }
    if (!algo->supports(request)) {
        return ls_error_set(LS_ERR_UNSUPPORTED, "%s %s does not support this layout of ranks",
                            ls_algo_coll_name(algo->coll), algo->name);
    }
    status = ls_plan_create(request->rank, num_ranks, algo->num_blocks(request), &plan);
    if (status != LS_OK) {
        return status;
    }
    status = algo->plan(request, plan);
    if (status == LS_OK) {
        status = ls_plan_seal(plan);
    }
    if (status != LS_OK) {
        goto err_destroy_plan;
    }
    *plan_p = plan;
    return LS_OK;

err_destroy_plan:
    ls_plan_destroy(plan);
    return status;
}

uint32_t ls_algo_one_block(const ls_algo_request_t *request)
{
    (void)request;
    return 1;
}

uint32_t ls_algo_block_per_rank(const ls_algo_request_t *request)
{
    return request->topology->num_ranks;
}

bool ls_algo_supports_all(const ls_algo_request_t *request)
{
    (void)request;
    return true;
}

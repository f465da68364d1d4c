/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Direct all-to-all: each rank gives each other one what is meant for it.
 *
 * Words: block s*n+d is what rank s gives to rank d.  n = 4, rank 1:
 *
 *     send 6 to 2 | send 7 to 3 | send 4 to 0              block 4 + d to rank d
 *     copy 5
 *     store 1 from 0 | store 13 from 3 | store 9 from 2    block 4s + 1 from rank s
 *
 * Steps: 1. a send to each rank, beginning with the next; 2. copy what the rank gives itself; 3. store
 * what comes, beginning with the rank before: it sent to this one first.
 * Cost: a + b*S(n-1)/n, S being what a rank gives.
 * Chosen: always.
 * Same bits: nothing is computed.
 * Limits: none; n*n blocks.
 */
#include "algo/algo_int.h"

static uint32_t direct_num_blocks(const ls_algo_request_t *request)
{
    return request->topology->num_ranks * request->topology->num_ranks;
}

static ls_status_t direct_plan(const ls_algo_request_t *request, ls_plan_t *plan)
{
    const uint32_t n      = plan->num_ranks;
    const uint32_t rank   = request->rank;
    ls_status_t    status = LS_OK;

    for (uint32_t i = 1; i < n && status == LS_OK; i++) {
        const uint32_t to = (rank + i) % n;

        status = ls_plan_add_send(plan, rank * n + to, 1, &to, 1);
    }
    if (status == LS_OK) {
        status = ls_plan_add_copy(plan, rank * n + rank, 1);
    }
    for (uint32_t i = 1; i < n && status == LS_OK; i++) {
        const uint32_t from = (rank + n - i) % n;

        status = ls_plan_add_store(plan, from * n + rank, 1, from);
    }
    return status;
}

const ls_algo_t ls_algo_alltoall_direct = {
    .coll       = LS_COLL_ALLTOALL,
    .name       = "direct",
    .help       = "each rank gives each other one what is meant for it",
    .num_blocks = direct_num_blocks,
    .supports   = ls_algo_supports_all,
    .plan       = direct_plan,
};

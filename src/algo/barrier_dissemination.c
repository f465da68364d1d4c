/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dissemination barrier: with each round a rank has heard, directly or not, of twice as many.
 *
 * Words: no data; a token is a message without blocks.  n = 4, rank 1:
 *
 *     send token to 2 | store token from 0              distance 1
 *     send token to 3 | store token from 3              distance 2
 *
 * Steps: for distance 1, 2, 4 ... below n: a token to the rank that far up, one from the rank that far down.
 * Cost: a*ceil(log2(n)).
 * Chosen: always.
 * Same bits: nothing is computed.
 * Limits: none.
 */
#include "algo/algo_int.h"

static uint32_t dissemination_num_blocks(const ls_algo_request_t *request)
{
    (void)request;
    return 0;
}

static ls_status_t dissemination_plan(const ls_algo_request_t *request, ls_plan_t *plan)
{
    const uint32_t n      = plan->num_ranks;
    ls_status_t    status = LS_OK;

    for (uint32_t distance = 1; distance < n && status == LS_OK; distance *= 2) {
        const ls_exchange_t exchange = {.send_to   = (request->rank + distance) % n,
                                        .recv_from = (request->rank + n - distance) % n};

        status = ls_plan_add_exchange(plan, &exchange);
    }
    return status;
}

const ls_algo_t ls_algo_barrier_dissemination = {
    .coll       = LS_COLL_BARRIER,
    .name       = "dissemination",
    .help       = "tokens at distance 1, 2, 4 ...",
    .num_blocks = dissemination_num_blocks,
    .supports   = ls_algo_supports_all,
    .plan       = dissemination_plan,
};

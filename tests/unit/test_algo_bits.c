/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All-reduce and reduce-scatter with real numbers: every rank must end with the same bits.
 * The numbers are chosen so that another order of additions gives other bits; a runner of its own,
 * not the check of plans, moves them.
 */
#include <math.h>
#include <stdlib.h>

#include "algo/algo.h"
#include "check.h"
#include "plans.h"

#define MAX_BLOCKS   64
#define MAX_MESSAGES 256 /* between two ranks in one plan */

typedef struct runner {
    float    input[PLANS_MAX_RANKS][MAX_BLOCKS];
    float    output[PLANS_MAX_RANKS][MAX_BLOCKS]; /* NAN: not written */
    float    wire[PLANS_MAX_RANKS][PLANS_MAX_RANKS][MAX_MESSAGES][MAX_BLOCKS];
    bool     is_there[PLANS_MAX_RANKS][PLANS_MAX_RANKS][MAX_MESSAGES];
    uint32_t at[PLANS_MAX_RANKS];
} runner_t;

static float own_value(const runner_t *runner, const ls_plan_t *plan, uint32_t block)
{
    const float written = runner->output[plan->rank][block];

    return isnan(written) ? runner->input[plan->rank][block] : written;
}

/* The values of `peers` and the own one, added in rank order, as plan.h says. */
static float sum_in_rank_order(const runner_t *runner, const ls_plan_t *plan, const ls_step_t *step,
                               uint32_t block)
{
    float sum   = 0;
    bool  begun = false, own_in = false;

    for (uint32_t i = 0; i <= step->num_peers; i++) {
        const uint32_t at   = step->first_peer + i;
        const bool     last = i == step->num_peers;

        if (!own_in && (last || plan->peers[at] > plan->rank)) {
            sum    = begun ? sum + own_value(runner, plan, block) : own_value(runner, plan, block);
            begun  = true;
            own_in = true;
        }
        if (!last) {
            const float value = runner->wire[plan->peers[at]][plan->rank][plan->messages[at]][block];

            sum   = begun ? sum + value : value;
            begun = true;
        }
    }
    return sum;
}

static bool messages_are_there(const runner_t *runner, const ls_plan_t *plan, const ls_step_t *step)
{
    for (uint32_t i = step->first_peer; i < step->first_peer + step->num_peers; i++) {
        if (!runner->is_there[plan->peers[i]][plan->rank][plan->messages[i]]) {
            return false;
        }
    }
    return true;
}

static bool run_step(runner_t *runner, const ls_plan_t *plan, const ls_step_t *step)
{
    const uint32_t first = step->first_peer, end = step->block + step->num_blocks;

    if (step->kind == LS_STEP_SEND) {
        for (uint32_t i = first; i < first + step->num_peers; i++) {
            for (uint32_t b = step->block; b < end; b++) {
                runner->wire[plan->rank][plan->peers[i]][plan->messages[i]][b] = own_value(runner, plan, b);
            }
            runner->is_there[plan->rank][plan->peers[i]][plan->messages[i]] = true;
        }
        return true;
    }
    if (!messages_are_there(runner, plan, step)) {
        return false;
    }
    for (uint32_t b = step->block; b < end; b++) {
        float *output = &runner->output[plan->rank][b];

        if (step->kind == LS_STEP_COPY) {
            *output = runner->input[plan->rank][b];
        } else if (step->kind == LS_STEP_STORE) {
            *output = runner->wire[plan->peers[first]][plan->rank][plan->messages[first]][b];
        } else {
            *output = sum_in_rank_order(runner, plan, step, b);
        }
    }
    return true;
}

static void run_plans(runner_t *runner, ls_plan_t *const *plans, uint32_t n)
{
    memset(runner->is_there, 0, sizeof(runner->is_there));
    memset(runner->at, 0, sizeof(runner->at));
    for (bool moved = true; moved;) {
        moved = false;
        for (uint32_t r = 0; r < n; r++) {
            while (runner->at[r] < plans[r]->num_steps &&
                   run_step(runner, plans[r], &plans[r]->steps[runner->at[r]])) {
                runner->at[r]++;
                moved = true;
            }
        }
    }
    for (uint32_t r = 0; r < n; r++) {
        CHECK_EQ_INT(runner->at[r], plans[r]->num_steps);
    }
}

/* Large and small, of both signs: almost every order of additions rounds differently. */
static void fill(runner_t *runner)
{
    uint32_t seed = 12345;

    for (uint32_t r = 0; r < PLANS_MAX_RANKS; r++) {
        for (uint32_t b = 0; b < MAX_BLOCKS; b++) {
            seed                 = seed * 1664525U + 1013904223U;
            runner->input[r][b]  = ((float)(seed >> 8) / 0x1p23f - 1) * powf(2, (float)(seed >> 27));
            runner->output[r][b] = NAN;
        }
    }
}

static void check_block(const runner_t *runner, uint32_t n, uint32_t block, uint32_t rank)
{
    double sum = 0, size = 0;

    for (uint32_t r = 0; r < n; r++) {
        sum += runner->input[r][block];
        size += fabs((double)runner->input[r][block]);
    }
    CHECK(fabs(runner->output[rank][block] - sum) <= size * n * 0x1p-24);
}

static void check_bits(runner_t *runner, const ls_algo_t *algo, layout_t *layout)
{
    const uint32_t n = layout->topology.num_ranks;
    ls_plan_t     *plans[PLANS_MAX_RANKS];

    if (!plans_supported(algo, layout)) {
        return;
    }
    CHECK_EQ_INT(plans_make(algo, layout, 0, plans), LS_OK);
    fill(runner);
    run_plans(runner, plans, n);
    for (uint32_t r = 0; r < n; r++) {
        for (uint32_t b = 0; b < plans[0]->num_blocks; b++) {
            if (algo->coll == LS_COLL_REDUCE_SCATTER && b != r) {
                continue;
            }
            check_block(runner, n, b, r);
            if (algo->coll == LS_COLL_ALLREDUCE) {
                CHECK(memcmp(&runner->output[r][b], &runner->output[0][b], sizeof(float)) == 0);
            }
        }
    }
    plans_destroy(plans, n);
}

static void check_coll(ls_coll_t coll)
{
    static const uint32_t dims[][4] = {{2, 2}, {4, 2}, {2, 2, 2}, {3, 2}, {4, 4}, {3, 11}};
    runner_t             *runner    = malloc(sizeof(*runner));
    layout_t              layout;

    for (const ls_algo_t *const *algo = ls_algo_list; *algo != NULL; algo++) {
        if ((*algo)->coll != coll) {
            continue;
        }
        for (uint32_t n = 1; n <= 33; n += (n < 17 ? 1 : 8)) {
            for (int way = 0; way < LAYOUT_COUNT; way++) {
                layout_make(&layout, n, way);
                check_bits(runner, *algo, &layout);
            }
        }
        for (size_t i = 0; i < sizeof(dims) / sizeof(dims[0]); i++) {
            layout_make_dims(&layout, dims[i]);
            check_bits(runner, *algo, &layout);
        }
    }
    free(runner);
}

static void test_every_allreduce_gives_the_same_bits_on_all_ranks(void)
{
    check_coll(LS_COLL_ALLREDUCE);
}

static void test_every_reduce_scatter_gives_the_sum(void)
{
    check_coll(LS_COLL_REDUCE_SCATTER);
}

/* Without this the test above could pass with numbers that always add up to the same. */
static void test_the_order_of_additions_matters_for_these_numbers(void)
{
    runner_t *runner = malloc(sizeof(*runner));
    int       other  = 0;

    fill(runner);
    for (uint32_t b = 0; b < MAX_BLOCKS; b++) {
        float up = 0, down = 0;

        for (uint32_t r = 0; r < 8; r++) {
            up += runner->input[r][b];
            down += runner->input[7 - r][b];
        }
        other += memcmp(&up, &down, sizeof(float)) != 0;
    }
    CHECK(other > MAX_BLOCKS / 4);
    free(runner);
}

int main(void)
{
    RUN(test_every_allreduce_gives_the_same_bits_on_all_ranks);
    RUN(test_every_reduce_scatter_gives_the_sum);
    RUN(test_the_order_of_additions_matters_for_these_numbers);
    return check_report();
}

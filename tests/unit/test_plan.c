/* SPDX-License-Identifier: Apache-2.0 */
/* Plans: building, sealing, printing; and the check of plans must find what is wrong with wrong ones. */
#include "algo/plan.h"

#include "algo/plan_check.h"
#include "base/error.h"
#include "base/mem.h"
#include "check.h"
#include "plans.h"

static const uint32_t rank_0 = 0, rank_1 = 1, rank_2 = 2;

static void make(ls_plan_t **plans, uint32_t n, uint32_t num_blocks)
{
    for (uint32_t r = 0; r < n; r++) {
        CHECK_EQ_INT(ls_plan_create(r, n, num_blocks, &plans[r]), LS_OK);
    }
}

/* Seal and run; the error must contain `expected`, NULL: there must be none. */
static void check_plans(ls_plan_t **plans, uint32_t n, const char *expected)
{
    ls_status_t status = LS_OK;

    ls_error_clear();
    for (uint32_t r = 0; r < n && status == LS_OK; r++) {
        status = ls_plan_seal(plans[r]);
    }
    if (status == LS_OK) {
        status = ls_plan_check_all(plans, n);
    }
    CHECK_EQ_INT(status, expected == NULL ? LS_OK : LS_ERR_INTERNAL);
    CHECK_STR(ls_last_error(), expected == NULL ? "" : expected);
    plans_destroy(plans, n);
    CHECK_EQ_INT(ls_mem_live(), 0);
}

static void exchange(ls_plan_t *plan, uint32_t peer, bool reduce)
{
    const ls_exchange_t both = {.send_to         = peer,
                                .num_send_blocks = 1,
                                .recv_from       = peer,
                                .num_recv_blocks = 1,
                                .reduce          = reduce};

    CHECK_EQ_INT(ls_plan_add_exchange(plan, &both), LS_OK);
}

/* ---- building and sealing ------------------------------------------------------------------- */

static void test_seal_tells_input_from_written_and_last_from_earlier_reduces(void)
{
    ls_plan_t *plan;
    char       text[512];

    CHECK_EQ_INT(ls_plan_create(1, 4, 3, &plan), LS_OK);
    CHECK_EQ_INT(ls_plan_add_send(plan, 0, 2, (const uint32_t[]){0, 2}, 2), LS_OK);
    CHECK_EQ_INT(ls_plan_add_reduce(plan, 0, 2, (const uint32_t[]){0, 2, 3}, 3), LS_OK);
    CHECK_EQ_INT(ls_plan_add_reduce(plan, 0, 1, &rank_0, 1), LS_OK);
    CHECK_EQ_INT(ls_plan_add_store(plan, 1, 1, 2), LS_OK);
    CHECK_EQ_INT(ls_plan_add_send(plan, 0, 2, &rank_2, 1), LS_OK);
    CHECK_EQ_INT(ls_plan_add_copy(plan, 2, 1), LS_OK);
    CHECK_EQ_INT(ls_plan_add_send(plan, 0, 0, &rank_0, 1), LS_OK);
    CHECK_EQ_INT(ls_plan_seal(plan), LS_OK);

    CHECK(plan->is_sealed && plan->sent == NULL && plan->received == NULL);
    CHECK(plan->steps[0].from_input && plan->steps[1].from_input);
    CHECK(!plan->steps[2].from_input && !plan->steps[4].from_input);
    CHECK(!plan->steps[1].is_final && plan->steps[2].is_final);
    plan_text(plan, text, sizeof(text));
    CHECK_STR(text, "send 0..1 to 0 2 | reduce 0..1 from 0 2 3 | reduce 0 from 0 (final) | store 1 from 2 | "
                    "send 0..1 to 2 | copy 2 | send token to 0");
    /* Messages are numbered per pair and direction. */
    CHECK_EQ_INT(plan->messages[plan->steps[4].first_peer], 1);
    CHECK_EQ_INT(plan->messages[plan->steps[3].first_peer], 1);
    CHECK_EQ_INT(plan->messages[plan->steps[2].first_peer], 1);

    CHECK_EQ_INT(ls_plan_add_copy(plan, 2, 1), LS_ERR_INTERNAL);
    ls_plan_destroy(plan);
    ls_plan_destroy(NULL);
    CHECK_EQ_INT(ls_mem_live(), 0);
}

static void test_only_blocks_of_the_result_are_final(void)
{
    ls_plan_t *plan;

    CHECK_EQ_INT(ls_plan_create(0, 2, 2, &plan), LS_OK);
    ls_plan_set_result(plan, 1, 1);
    CHECK_EQ_INT(ls_plan_add_reduce(plan, 0, 1, &rank_1, 1), LS_OK);
    CHECK_EQ_INT(ls_plan_add_reduce(plan, 1, 1, &rank_1, 1), LS_OK);
    CHECK_EQ_INT(ls_plan_seal(plan), LS_OK);
    CHECK(!plan->steps[0].is_final && plan->steps[1].is_final);
    ls_plan_destroy(plan);
}

typedef ls_status_t (*add_fn)(ls_plan_t *plan);

static void check_seal_refuses(add_fn add, const char *expected)
{
    ls_plan_t *plan;

    CHECK_EQ_INT(ls_plan_create(1, 3, 2, &plan), LS_OK);
    CHECK_EQ_INT(add(plan), LS_OK);
    CHECK_EQ_INT(ls_plan_seal(plan), LS_ERR_INTERNAL);
    CHECK_STR(ls_last_error(), "plan of rank 1, step ");
    CHECK_STR(ls_last_error(), expected);
    ls_plan_destroy(plan);
}

static ls_status_t add_far_peer(ls_plan_t *plan)
{
    return ls_plan_add_store(plan, 0, 1, 3);
}

static ls_status_t add_own_peer(ls_plan_t *plan)
{
    return ls_plan_add_send(plan, 0, 1, &rank_1, 1);
}

static ls_status_t add_descending(ls_plan_t *plan)
{
    return ls_plan_add_send(plan, 0, 1, (const uint32_t[]){2, 0}, 2);
}

static ls_status_t add_twice_the_same(ls_plan_t *plan)
{
    return ls_plan_add_reduce(plan, 0, 1, (const uint32_t[]){2, 2}, 2);
}

static ls_status_t add_no_peer(ls_plan_t *plan)
{
    return ls_plan_add_send(plan, 0, 1, NULL, 0);
}

static ls_status_t add_far_block(ls_plan_t *plan)
{
    return ls_plan_add_send(plan, 1, 2, &rank_0, 1);
}

static ls_status_t add_overflowing_block(ls_plan_t *plan)
{
    return ls_plan_add_send(plan, 2, UINT32_MAX, &rank_0, 1);
}

static ls_status_t add_mixed_states(ls_plan_t *plan)
{
    const ls_status_t status = ls_plan_add_store(plan, 1, 1, 0);

    return status == LS_OK ? ls_plan_add_send(plan, 0, 2, &rank_0, 1) : status;
}

static ls_status_t add_mixed_results(ls_plan_t *plan)
{
    const ls_status_t status = ls_plan_add_reduce(plan, 0, 2, &rank_0, 1);

    return status == LS_OK ? ls_plan_add_reduce(plan, 0, 1, &rank_2, 1) : status;
}

static ls_status_t add_late_copy(ls_plan_t *plan)
{
    const ls_status_t status = ls_plan_add_store(plan, 1, 1, 0);

    return status == LS_OK ? ls_plan_add_copy(plan, 0, 2) : status;
}

static void test_seal_refuses_steps_that_cannot_be(void)
{
    check_seal_refuses(add_far_peer, "step 0: a peer is out of range");
    check_seal_refuses(add_own_peer, "its own peer");
    check_seal_refuses(add_descending, "not ascending");
    check_seal_refuses(add_twice_the_same, "not ascending");
    check_seal_refuses(add_no_peer, "no peer");
    check_seal_refuses(add_far_block, "blocks are out of range");
    check_seal_refuses(add_overflowing_block, "blocks are out of range");
    check_seal_refuses(add_mixed_states, "step 1: the range mixes input and written");
    check_seal_refuses(add_mixed_results, "step 0: the range mixes results");
    check_seal_refuses(add_late_copy, "step 1: a copy of blocks that were written");
    CHECK_EQ_INT(ls_mem_live(), 0);
}

/* ---- the check of all ranks' plans ---------------------------------------------------------- */

static void test_check_passes_a_right_exchange(void)
{
    ls_plan_t *plans[2];

    make(plans, 2, 1);
    exchange(plans[0], 1, true);
    exchange(plans[1], 0, true);
    check_plans(plans, 2, NULL);
}

static void test_check_finds_a_wait_for_ever(void)
{
    ls_plan_t *plans[2];

    make(plans, 2, 1);
    for (uint32_t r = 0; r < 2; r++) { /* both receive first */
        const uint32_t peer = 1 - r;

        CHECK_EQ_INT(ls_plan_add_store(plans[r], 0, 1, peer), LS_OK);
        CHECK_EQ_INT(ls_plan_add_send(plans[r], 0, 1, &peer, 1), LS_OK);
    }
    check_plans(plans, 2, "rank 0, step 0: waits for ever for rank 1");
}

static void test_check_finds_a_wrong_peer(void)
{
    ls_plan_t *plans[3];

    make(plans, 3, 1);
    exchange(plans[0], 1, true);
    exchange(plans[1], 2, true); /* should be 0 */
    exchange(plans[2], 1, true);
    check_plans(plans, 3, "rank 2, step 1: block 0 has the values of 2 of 3 ranks and is marked final");
    make(plans, 3, 1);
    CHECK_EQ_INT(ls_plan_add_send(plans[0], 0, 1, &rank_1, 1), LS_OK);
    CHECK_EQ_INT(ls_plan_add_store(plans[2], 0, 1, 0), LS_OK); /* rank 0 sends to rank 1 */
    check_plans(plans, 3, "rank 2, step 0: waits for ever for rank 0");
}

static void test_check_finds_a_message_nobody_takes(void)
{
    ls_plan_t *plans[2];

    make(plans, 2, 1);
    CHECK_EQ_INT(ls_plan_add_send(plans[0], 0, 1, &rank_1, 1), LS_OK);
    check_plans(plans, 2, "rank 1 does not take message 0 of rank 0");
}

static void test_check_finds_other_blocks_than_expected(void)
{
    ls_plan_t *plans[2];

    make(plans, 2, 3);
    CHECK_EQ_INT(ls_plan_add_send(plans[0], 1, 1, &rank_1, 1), LS_OK);
    CHECK_EQ_INT(ls_plan_add_store(plans[1], 2, 1, 0), LS_OK);
    check_plans(plans, 2, "rank 1, step 0: expects 1 blocks at 2 from rank 0, not 1 at 1");
    make(plans, 2, 3);
    CHECK_EQ_INT(ls_plan_add_send(plans[0], 1, 2, &rank_1, 1), LS_OK);
    CHECK_EQ_INT(ls_plan_add_store(plans[1], 1, 1, 0), LS_OK);
    check_plans(plans, 2, "expects 1 blocks at 1 from rank 0, not 2 at 1");
    make(plans, 2, 3);
    CHECK_EQ_INT(ls_plan_add_send(plans[0], 0, 0, &rank_1, 1), LS_OK); /* a token */
    CHECK_EQ_INT(ls_plan_add_store(plans[1], 0, 1, 0), LS_OK);
    check_plans(plans, 2, "expects 1 blocks at 0 from rank 0, not 0 at 0");
}

static void test_check_finds_a_value_counted_twice(void)
{
    ls_plan_t *plans[2];

    make(plans, 2, 1);
    for (uint32_t r = 0; r < 2; r++) {
        exchange(plans[r], 1 - r, true);
        exchange(plans[r], 1 - r, true);
    }
    check_plans(plans, 2, "block 0 has the values of 2 of 2 ranks and is not marked final");
    make(plans, 2, 1);
    exchange(plans[0], 1, false); /* stores rank 1's value, then reduces it once more */
    CHECK_EQ_INT(ls_plan_add_reduce(plans[0], 0, 1, &rank_1, 1), LS_OK);
    CHECK_EQ_INT(ls_plan_add_send(plans[1], 0, 1, &rank_0, 1), LS_OK);
    CHECK_EQ_INT(ls_plan_add_send(plans[1], 0, 1, &rank_0, 1), LS_OK);
    CHECK_EQ_INT(ls_plan_add_store(plans[1], 0, 1, 0), LS_OK);
    check_plans(plans, 2, "rank 0, step 2: block 0 from rank 1 counts rank 1 twice");
}

static void test_check_finds_a_result_without_all_values(void)
{
    ls_plan_t *plans[3];

    make(plans, 3, 1);
    exchange(plans[0], 1, true);
    exchange(plans[1], 0, true);
    check_plans(plans, 3, "rank 1, step 1: block 0 has the values of 2 of 3 ranks and is marked final");
}

static void test_check_refuses_plans_of_different_jobs(void)
{
    ls_plan_t *plans[2];

    make(plans, 2, 1);
    CHECK_EQ_INT(ls_plan_check_all(plans, 2), LS_ERR_INTERNAL); /* not sealed */
    ls_plan_destroy(plans[1]);
    CHECK_EQ_INT(ls_plan_create(1, 2, 2, &plans[1]), LS_OK);
    check_plans(plans, 2, "plan 1 is not sealed, of another rank or of another job");
}

int main(void)
{
    RUN(test_seal_tells_input_from_written_and_last_from_earlier_reduces);
    RUN(test_only_blocks_of_the_result_are_final);
    RUN(test_seal_refuses_steps_that_cannot_be);
    RUN(test_check_passes_a_right_exchange);
    RUN(test_check_finds_a_wait_for_ever);
    RUN(test_check_finds_a_wrong_peer);
    RUN(test_check_finds_a_message_nobody_takes);
    RUN(test_check_finds_other_blocks_than_expected);
    RUN(test_check_finds_a_value_counted_twice);
    RUN(test_check_finds_a_result_without_all_values);
    RUN(test_check_refuses_plans_of_different_jobs);
    return check_report();
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"
#include "engine/writes.h"

static void test_the_clock_decides_with_some_inertia(void)
{
    ls_writes_t writes = LS_WRITES_PACK;

    ls_writes_learn(&writes, 250, 100); /* not enough to make up for slower reading */
    CHECK(!writes.is_streaming);
    ls_writes_learn(&writes, 350, 100);
    CHECK(writes.is_streaming);
    ls_writes_learn(&writes, 250, 100); /* enough to stay */
    CHECK(writes.is_streaming);
    ls_writes_learn(&writes, 150, 100);
    CHECK(!writes.is_streaming);
}

/* Stages until the next trial. */
static uint32_t wait_for_trial(ls_writes_t *writes)
{
    uint32_t stages = 0;

    while (!ls_writes_wants_trial(writes, 1 << 20)) {
        stages++;
    }
    return stages;
}

static void test_trials_become_rare_while_they_confirm_and_frequent_when_not(void)
{
    ls_writes_t writes = LS_WRITES_REDUCE;
    uint32_t    last   = 0;

    CHECK_EQ_INT(wait_for_trial(&writes), 0);
    for (int i = 0; i < 20; i++) {
        ls_writes_learn(&writes, 100, 100);
        CHECK(wait_for_trial(&writes) >= last);
        last = writes.interval;
    }
    CHECK(last >= 64);
    ls_writes_learn(&writes, 1000, 100);
    CHECK(wait_for_trial(&writes) < 10);
}

static void test_small_stages_are_not_tried(void)
{
    ls_writes_t writes = LS_WRITES_PACK;

    for (int i = 0; i < 100; i++) {
        CHECK(!ls_writes_wants_trial(&writes, 64));
    }
    CHECK(ls_writes_wants_trial(&writes, 1 << 16));
}

int main(void)
{
    RUN(test_the_clock_decides_with_some_inertia);
    RUN(test_trials_become_rare_while_they_confirm_and_frequent_when_not);
    RUN(test_small_stages_are_not_tried);
    return check_report();
}

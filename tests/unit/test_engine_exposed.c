/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What of the communication is said to be hidden: what ends before the last tensor of a step is handed in, even where
 * nothing is open in between.
 */
#include "engine_ranks.h"

#define LATE_US     10000
#define AGREE_STEPS 4 /* until the schedule is agreed on */
#define STEPS       10

static const char *late_name; /* rank 1 gives it late */

static void reduce(rank_t *rank, const char *name)
{
    const ls_tensor_t tensor = vector(name, LS_FLOAT32, &rank->value, 1);

    if (rank->index == 1 && strcmp(name, late_name) == 0) {
        usleep(LATE_US);
    }
    CHECK_EQ_INT(ls_allreduce(rank->ctx, &tensor, NULL), LS_OK);
}

static void take_steps(rank_t *rank, unsigned number)
{
    for (unsigned i = 0; i < number; i++) {
        reduce(rank, "first");
        reduce(rank, "last");
    }
}

/* As a graph does: all that is there is handed in, then waited for. */
static void take_steps_side_by_side(rank_t *rank, unsigned number)
{
    static const char *const names[] = {"a", "b", "c"};

    for (unsigned i = 0; i < number; i++) {
        float values[3] = {0};

        if (rank->index == 1) {
            usleep(LATE_US);
        }
        atomic_store(&rank->num_done, 0);
        for (unsigned k = 0; k < 3; k++) {
            const ls_tensor_t tensor = vector(names[k], LS_FLOAT32, &values[k], 1);

            CHECK_EQ_INT(ls_allreduce_async(rank->ctx, &tensor, NULL, on_done, rank), LS_OK);
        }
        while (atomic_load(&rank->num_done) < 3) {
            usleep(50);
        }
    }
}

static void (*steps)(rank_t *rank, unsigned number) = take_steps;
static double exposed_share; /* of what rank 0 had open */

static void train(rank_t *rank)
{
    ls_counters_t before, after;

    steps(rank, AGREE_STEPS);
    ls_counters(rank->ctx, &before);
    steps(rank, STEPS);
    ls_counters(rank->ctx, &after);
    if (rank->index == 0) {
        CHECK(after.ns_open - before.ns_open > STEPS / 2 * (uint64_t)LATE_US * 1000);
        exposed_share = (double)(after.ns_exposed - before.ns_exposed) / (double)(after.ns_open - before.ns_open);
    }
}

/* A step in which a new name comes between the others. */
static void train_after_an_odd_step(rank_t *rank)
{
    take_steps(rank, AGREE_STEPS);
    reduce(rank, "first");
    reduce(rank, "once");
    reduce(rank, "last");
    train(rank);
}

static void test_waiting_in_the_middle_of_a_step_is_hidden(void)
{
    rank_t ranks[MAX_RANKS];

    late_name = "first";
    run_ranks(2, train, ranks);
    CHECK(exposed_share < 0.5);
}

static void test_waiting_at_the_end_of_a_step_is_exposed(void)
{
    rank_t ranks[MAX_RANKS];

    late_name = "last";
    run_ranks(2, train, ranks);
    CHECK(exposed_share > 0.5);
}

static void test_waiting_at_the_end_is_exposed_after_an_odd_step(void)
{
    rank_t ranks[MAX_RANKS];

    late_name = "last";
    run_ranks(2, train_after_an_odd_step, ranks);
    CHECK(exposed_share > 0.5);
}

static void test_waiting_for_all_of_a_step_is_exposed(void)
{
    rank_t ranks[MAX_RANKS];

    steps = take_steps_side_by_side;
    run_ranks(2, train, ranks);
    CHECK(exposed_share > 0.5);
}

int main(void)
{
    RUN(test_waiting_in_the_middle_of_a_step_is_hidden);
    RUN(test_waiting_at_the_end_of_a_step_is_exposed);
    RUN(test_waiting_at_the_end_is_exposed_after_an_odd_step);
    RUN(test_waiting_for_all_of_a_step_is_exposed);
    return check_report();
}

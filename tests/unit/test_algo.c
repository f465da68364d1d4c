/* SPDX-License-Identifier: Apache-2.0 */
/* Every algorithm, for many numbers of ranks, layouts and roots: does each rank end with the right values
 * in the right blocks?  And is the plan for n = 4 the one drawn in the head of the algorithm's file? */
#include "algo/algo.h"

#include "algo/plan_check.h"
#include "base/mem.h"
#include "check.h"
#include "plans.h"

static const uint32_t sizes[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 32, 33};

static const uint32_t dims_list[][6] = {{2, 2}, {4, 2},    {2, 2, 2}, {3, 2},  {2, 3}, {1, 4, 1},
                                        {4, 4}, {2, 3, 2}, {8, 4},    {3, 11}, {2, 2, 2, 2, 2}};

#define NUM_SIZES (sizeof(sizes) / sizeof(sizes[0]))
#define NUM_DIMS  (sizeof(dims_list) / sizeof(dims_list[0]))

#define ALL_ROOTS_UP_TO 9

/* ---- what each collective must end with ----------------------------------------------------- */

/* The block of this rank holds exactly the value of `source`. */
static bool has_one(const ls_plan_check_t *check, uint32_t rank, uint32_t block, uint32_t source)
{
    return ls_plan_check_is_written(check, rank, block) && ls_plan_check_count(check, rank, block) == 1 &&
           ls_plan_check_has(check, rank, block, source);
}

static bool has_all(const ls_plan_check_t *check, uint32_t rank, uint32_t block, uint32_t n)
{
    return ls_plan_check_is_written(check, rank, block) && ls_plan_check_count(check, rank, block) == n;
}

static bool rank_is_right(ls_coll_t coll, const ls_plan_check_t *check, const ls_plan_t *plan, uint32_t root)
{
    const uint32_t n     = plan->num_ranks;
    bool           right = true;

    switch (coll) {
    case LS_COLL_ALLREDUCE:
        for (uint32_t b = 0; b < plan->num_blocks; b++) {
            right = right && has_all(check, plan->rank, b, n);
        }
        return right;
    case LS_COLL_BROADCAST:
        return plan->num_blocks == 1 && has_one(check, plan->rank, 0, root);
    case LS_COLL_ALLGATHER:
        for (uint32_t b = 0; b < n; b++) {
            right = right && has_one(check, plan->rank, b, b);
        }
        return right && plan->num_blocks == n;
    case LS_COLL_REDUCE_SCATTER:
        return plan->num_blocks == n && has_all(check, plan->rank, plan->rank, n) &&
               plan->result_block == plan->rank && plan->num_result_blocks == 1;
    case LS_COLL_ALLTOALL:
        for (uint32_t s = 0; s < n; s++) {
            right = right && has_one(check, plan->rank, s * n + plan->rank, s);
        }
        return right && plan->num_blocks == n * n;
    default:
        return plan->num_blocks == 0;
    }
}

/* A rank may only leave a barrier when every rank has entered it: follow the tokens. */
static bool barrier_is_right(ls_plan_t *const *plans, uint32_t n)
{
    uint64_t knows[PLANS_MAX_RANKS];

    for (uint32_t r = 0; r < n; r++) {
        knows[r] = 1ULL << r;
    }
    for (uint32_t s = 0; s < plans[0]->num_steps; s += 2) { /* all ranks go round by round */
        uint64_t before[PLANS_MAX_RANKS];

        memcpy(before, knows, sizeof(before));
        for (uint32_t r = 0; r < n; r++) {
            knows[r] |= before[plans[r]->peers[plans[r]->steps[s + 1].first_peer]];
        }
    }
    for (uint32_t r = 0; r < n; r++) {
        if (knows[r] != (~0ULL >> (64 - n))) {
            return false;
        }
    }
    return true;
}

static uint32_t num_checked;

static void check_algo(const ls_algo_t *algo, layout_t *layout, uint32_t root)
{
    const uint32_t   n = layout->topology.num_ranks;
    ls_plan_t       *plans[PLANS_MAX_RANKS];
    ls_plan_check_t *check;
    bool             right = plans_make(algo, layout, root, plans) == LS_OK;

    CHECK(right);
    if (!right) {
        fprintf(stderr, "%s %s, %u ranks, %s: %s\n", ls_algo_coll_name(algo->coll), algo->name, n,
                layout->name, ls_last_error());
        return;
    }
    right = ls_plan_check_all(plans, n) == LS_OK && ls_plan_check_run(plans, n, &check) == LS_OK;
    if (right) {
        for (uint32_t r = 0; r < n; r++) {
            right = right && rank_is_right(algo->coll, check, plans[r], root);
        }
        right = right && (algo->coll != LS_COLL_BARRIER || barrier_is_right(plans, n));
        ls_plan_check_destroy(check);
    }
    if (!right) {
        fprintf(stderr, "%s %s, %u ranks, %s, root %u: wrong; %s\n", ls_algo_coll_name(algo->coll),
                algo->name, n, layout->name, root, ls_last_error());
    }
    CHECK(right);
    plans_destroy(plans, n);
    num_checked++;
}

static void check_algo_all_roots(const ls_algo_t *algo, layout_t *layout)
{
    const uint32_t n = layout->topology.num_ranks;

    if (!plans_supported(algo, layout)) {
        return;
    }
    check_algo(algo, layout, 0);
    if (algo->coll == LS_COLL_BROADCAST) {
        for (uint32_t root = n <= ALL_ROOTS_UP_TO ? 1 : n - 1; root < n; root++) {
            check_algo(algo, layout, root);
        }
    }
}

static void check_coll(ls_coll_t coll)
{
    layout_t layout;

    num_checked = 0;
    for (const ls_algo_t *const *algo = ls_algo_list; *algo != NULL; algo++) {
        if ((*algo)->coll != coll) {
            continue;
        }
        for (size_t i = 0; i < NUM_SIZES; i++) {
            for (int way = 0; way < LAYOUT_COUNT; way++) {
                layout_make(&layout, sizes[i], way);
                check_algo_all_roots(*algo, &layout);
            }
        }
        for (size_t i = 0; i < NUM_DIMS; i++) {
            layout_make_dims(&layout, dims_list[i]);
            CHECK(plans_supported(*algo, &layout));
            check_algo_all_roots(*algo, &layout);
        }
    }
    CHECK(num_checked >= NUM_SIZES * LAYOUT_COUNT);
    CHECK_EQ_INT(ls_mem_live(), 0);
}

static void test_every_allreduce_gives_all_values_to_all_ranks(void)
{
    check_coll(LS_COLL_ALLREDUCE);
}

static void test_every_broadcast_gives_the_roots_value_to_all_ranks(void)
{
    check_coll(LS_COLL_BROADCAST);
}

static void test_every_allgather_gives_each_ranks_block_to_all_ranks(void)
{
    check_coll(LS_COLL_ALLGATHER);
}

static void test_every_reduce_scatter_gives_each_rank_its_block_of_all_values(void)
{
    check_coll(LS_COLL_REDUCE_SCATTER);
}

static void test_every_alltoall_gives_each_rank_what_is_meant_for_it(void)
{
    check_coll(LS_COLL_ALLTOALL);
}

static void test_every_barrier_lets_nobody_out_before_all_are_in(void)
{
    check_coll(LS_COLL_BARRIER);
}

/* ---- the drawings --------------------------------------------------------------------------- */

typedef struct drawing {
    ls_coll_t   coll;
    const char *name;
    uint32_t    rank, root;
    const char *text;
} drawing_t;

static const drawing_t drawings[] = {
    {LS_COLL_ALLREDUCE, "flat", 1, 0, "send 0 to 0 2 3 | reduce 0 from 0 2 3 (final)"},
    {LS_COLL_ALLREDUCE, "direct", 1, 0,
     "send 2 to 2 | send 3 to 3 | send 0 to 0 | reduce 1 from 0 2 3 (final) | send 1 to 0 2 3 | "
     "store 2 from 2 | store 3 from 3 | store 0 from 0"},
    {LS_COLL_ALLREDUCE, "ring", 0, 0,
     "send 0 to 1 | reduce 3 from 3 | send 3 to 1 | reduce 2 from 3 | send 2 to 1 | "
     "reduce 1 from 3 (final) | send 1 to 1 | store 0 from 3 | "
     "send 0 to 1 | store 3 from 3 | send 3 to 1 | store 2 from 3"},
    {LS_COLL_ALLREDUCE, "recursive_doubling", 1, 0,
     "send 0 to 0 | reduce 0 from 0 | send 0 to 3 | reduce 0 from 3 (final)"},
    {LS_COLL_ALLREDUCE, "halving_doubling", 1, 0,
     "send 0..1 to 0 | reduce 2..3 from 0 | send 3 to 3 | reduce 2 from 3 (final) | send 2 to 3 | "
     "store 3 from 3 | send 2..3 to 0 | store 0..1 from 0"},
    {LS_COLL_ALLREDUCE, "dims", 1, 0,
     "send 0..1 to 0 | reduce 2..3 from 0 | send 3 to 3 | reduce 2 from 3 (final) | send 2 to 3 | "
     "store 3 from 3 | send 2..3 to 0 | store 0..1 from 0"},
    {LS_COLL_BROADCAST, "flat", 1, 1, "send 0 to 0 2 3 | copy 0"},
    {LS_COLL_BROADCAST, "flat", 2, 1, "store 0 from 1"},
    {LS_COLL_BROADCAST, "binomial", 0, 0, "send 0 to 1 2 | copy 0"},
    {LS_COLL_BROADCAST, "binomial", 2, 0, "store 0 from 0 | send 0 to 3"},
    {LS_COLL_BROADCAST, "binomial", 3, 0, "store 0 from 2"},
    {LS_COLL_BROADCAST, "two_level", 1, 1, "send 0 to 0 2 | copy 0"},
    {LS_COLL_BROADCAST, "two_level", 2, 1, "store 0 from 1 | send 0 to 3"},
    {LS_COLL_BROADCAST, "two_level", 0, 1, "store 0 from 1"},
    {LS_COLL_ALLGATHER, "direct", 1, 0,
     "send 1 to 0 2 3 | copy 1 | store 2 from 2 | store 3 from 3 | store 0 from 0"},
    {LS_COLL_ALLGATHER, "ring", 0, 0,
     "copy 0 | send 0 to 1 | store 3 from 3 | send 3 to 1 | store 2 from 3 | send 2 to 1 | store 1 from 3"},
    {LS_COLL_REDUCE_SCATTER, "direct", 1, 0,
     "send 2 to 2 | send 3 to 3 | send 0 to 0 | reduce 1 from 0 2 3 (final)"},
    {LS_COLL_REDUCE_SCATTER, "ring", 0, 0,
     "send 3 to 1 | reduce 2 from 3 | send 2 to 1 | reduce 1 from 3 | send 1 to 1 | reduce 0 from 3 (final)"},
    {LS_COLL_ALLTOALL, "direct", 1, 0,
     "send 6 to 2 | send 7 to 3 | send 4 to 0 | copy 5 | store 1 from 0 | store 13 from 3 | store 9 from 2"},
    {LS_COLL_BARRIER, "dissemination", 1, 0,
     "send token to 2 | store token from 0 | send token to 3 | store token from 3"},
};

static void check_drawing(const drawing_t *drawing, layout_t *layout)
{
    const ls_algo_t *algo = ls_algo_find(drawing->coll, drawing->name);
    ls_plan_t       *plans[PLANS_MAX_RANKS];
    char             text[2048];

    CHECK(algo != NULL);
    CHECK_EQ_INT(plans_make(algo, layout, drawing->root, plans), LS_OK);
    plan_text(plans[drawing->rank], text, sizeof(text));
    if (strcmp(text, drawing->text) != 0) {
        fprintf(stderr, "%s %s rank %u: %s\n", ls_algo_coll_name(drawing->coll), drawing->name,
                drawing->rank, text);
    }
    CHECK(strcmp(text, drawing->text) == 0);
    plans_destroy(plans, layout->topology.num_ranks);
}

static void test_plans_of_four_ranks_are_those_drawn_in_the_heads(void)
{
    static const drawing_t uneven[] = {
        {LS_COLL_ALLREDUCE, "two_level", 0, 0,
         "reduce 0..1 from 1 2 | send 0 to 3 | reduce 1 from 3 (final) | send 1 to 3 | store 0 from 3 | "
         "send 0..1 to 1 2"},
        {LS_COLL_ALLREDUCE, "two_level", 1, 0, "send 0..1 to 0 | store 0..1 from 0"},
    };
    layout_t layout;

    layout_make_dims(&layout, dims_list[0]);
    for (size_t i = 0; i < sizeof(drawings) / sizeof(drawings[0]); i++) {
        check_drawing(&drawings[i], &layout);
    }
    layout.topology.num_dims = 0; /* nodes {0 1 2} and {3} */
    layout.node_of[2]        = 0;
    for (size_t i = 0; i < sizeof(uneven) / sizeof(uneven[0]); i++) {
        check_drawing(&uneven[i], &layout);
    }
}

/* ---- the list ------------------------------------------------------------------------------- */

static void test_algorithms_are_found_by_collective_and_name(void)
{
    for (const ls_algo_t *const *algo = ls_algo_list; *algo != NULL; algo++) {
        CHECK(ls_algo_find((*algo)->coll, (*algo)->name) == *algo);
        CHECK((*algo)->help[0] != '\0');
    }
    CHECK(ls_algo_find(LS_COLL_ALLREDUCE, "binomial") == NULL);
    CHECK_STR(ls_algo_coll_name(LS_COLL_REDUCE_SCATTER), "reduce_scatter");
    CHECK_STR(ls_algo_coll_name(LS_COLL_COUNT), "unknown");
}

static void test_dims_need_a_product_that_is_the_number_of_ranks(void)
{
    const ls_algo_t *dims = ls_algo_find(LS_COLL_ALLREDUCE, "dims");
    layout_t         layout;
    ls_plan_t       *plans[PLANS_MAX_RANKS];

    layout_make(&layout, 6, LAYOUT_UNEVEN);
    CHECK(!plans_supported(dims, &layout));
    CHECK_EQ_INT(plans_make(dims, &layout, 0, plans), LS_ERR_UNSUPPORTED);
    layout.topology.num_dims = 2;
    layout.topology.dims[0]  = 2;
    layout.topology.dims[1]  = 2;
    CHECK(!plans_supported(dims, &layout));
    layout.topology.dims[1] = 3;
    CHECK(plans_supported(dims, &layout));
}

static void test_a_rank_or_root_outside_the_job_is_refused(void)
{
    layout_t                layout;
    ls_plan_t              *plan;
    const ls_algo_t        *flat    = ls_algo_find(LS_COLL_BROADCAST, "flat");
    const ls_algo_request_t request = {.coll = LS_COLL_BROADCAST, .root = 4, .topology = &layout.topology};

    layout_make(&layout, 4, LAYOUT_ONE_NODE);
    CHECK_EQ_INT(ls_algo_plan(flat, &request, &plan), LS_ERR_INTERNAL);
    CHECK_STR(ls_last_error(), "root 4");
}

/* Fail the first allocation, then the second ...: an error each time, nothing left behind. */
static void test_running_out_of_memory_anywhere_leaves_nothing_behind(void)
{
    static const uint32_t dims[] = {3, 2, 0};
    layout_t              layout;

    layout_make_dims(&layout, dims);
    for (const ls_algo_t *const *algo = ls_algo_list; *algo != NULL; algo++) {
        ls_plan_t  *plans[PLANS_MAX_RANKS];
        ls_status_t status = LS_ERR_NO_MEMORY;

        for (size_t n = 1; status == LS_ERR_NO_MEMORY; n++) {
            ls_mem_fail_at(n);
            status = plans_make(*algo, &layout, 0, plans);
            if (status == LS_OK) {
                status = ls_plan_check_all(plans, 6);
                plans_destroy(plans, 6);
            }
            CHECK_EQ_INT(ls_mem_live(), 0);
        }
        ls_mem_fail_at(0);
        CHECK_EQ_INT(status, LS_OK);
    }
}

int main(void)
{
    RUN(test_every_allreduce_gives_all_values_to_all_ranks);
    RUN(test_every_broadcast_gives_the_roots_value_to_all_ranks);
    RUN(test_every_allgather_gives_each_ranks_block_to_all_ranks);
    RUN(test_every_reduce_scatter_gives_each_rank_its_block_of_all_values);
    RUN(test_every_alltoall_gives_each_rank_what_is_meant_for_it);
    RUN(test_every_barrier_lets_nobody_out_before_all_are_in);
    RUN(test_plans_of_four_ranks_are_those_drawn_in_the_heads);
    RUN(test_algorithms_are_found_by_collective_and_name);
    RUN(test_dims_need_a_product_that_is_the_number_of_ranks);
    RUN(test_a_rank_or_root_outside_the_job_is_refused);
    RUN(test_running_out_of_memory_anywhere_leaves_nothing_behind);
    return check_report();
}

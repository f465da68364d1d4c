/* SPDX-License-Identifier: Apache-2.0 */
/* Every body of tests/common, with threads of this process as ranks: no MPI, and under any sanitizer. */
#include <stdio.h>
#include <stdlib.h>

#include "../common/bodies.h"
#include "check.h"

#define DEFAULT_SEED 20240229
/* Short: bodies that stop giving a tensor leave buckets partly filled, and wait that long. */
#define PATIENCE_MS  "20"

static const unsigned all_sizes[] = {1, 2, 3, 4, 5, 8};

/* Under a sanitizer everything is ten times slower: leave out sizes that are like others. */
static bool is_left_out(unsigned num_ranks)
{
    return JOB_IS_SANITIZED && (num_ranks == 1 || num_ranks == 4);
}

/* Algorithms by name under a sanitizer: 4 ranks are two rounds of a power of two, 5 leave one over.  The release build runs
 * all sizes. */
static bool is_left_out_of_variants(unsigned num_ranks)
{
    return JOB_IS_SANITIZED && num_ranks != 4 && num_ranks != 5;
}

static body_params_t params_of(unsigned num_steps)
{
    return (body_params_t){.seed = DEFAULT_SEED, .num_steps = num_steps, .is_quick = JOB_IS_SANITIZED};
}

static void run_all_sizes(job_body_fn body, body_params_t params)
{
    for (unsigned i = 0; i < sizeof(all_sizes) / sizeof(all_sizes[0]); i++) {
        const int num_failures = is_left_out(all_sizes[i]) ? 0 : job_run_threads(all_sizes[i], body, &params);

        if (num_failures != 0) {
            fprintf(stderr, "%d checks failed with %u ranks\n", num_failures, all_sizes[i]);
        }
        CHECK_EQ_INT(num_failures, 0);
    }
}

static void set(const char *name, const char *value)
{
    if (value == NULL || value[0] == '\0') {
        unsetenv(name);
    } else {
        setenv(name, value, 1);
    }
}

/* ---- bodies --------------------------------------------------------------------------------- */

static void test_allreduce_is_right_for_types_operations_and_counts(void)
{
    run_all_sizes(body_allreduce, params_of(0));
}

static void test_allreduce_of_many_elements_is_right(void)
{
    body_params_t params = params_of(0);

    CHECK_EQ_INT(job_run_threads(2, body_large, &params), 0);
    CHECK_EQ_INT(job_run_threads(3, body_large, &params), 0);
}

static void test_group_completes_together(void)
{
    run_all_sizes(body_group, params_of(0));
}

static void test_broadcast_is_right_from_every_root(void)
{
    run_all_sizes(body_broadcast, params_of(0));
}

static void test_gathers_take_different_lengths(void)
{
    run_all_sizes(body_gather, params_of(0));
}

static void test_nobody_leaves_a_barrier_before_all_have_entered(void)
{
    run_all_sizes(body_barrier, params_of(0));
}

static void test_random_sets_in_random_order_are_right(void)
{
    run_all_sizes(body_random, params_of(JOB_IS_SANITIZED ? 12 : 24));
}

/* A long patience: on a busy machine a step may take long without being different. */
static void test_equal_steps_neither_talk_nor_grow(void)
{
    body_params_t params = params_of(JOB_IS_SANITIZED ? 200 : 1000);

    set("LOCKSTEP_PATIENCE_MS", "20000");
    CHECK_EQ_INT(job_run_threads(1, body_steps, &params), 0);
    CHECK_EQ_INT(job_run_threads(3, body_steps, &params), 0);
    set("LOCKSTEP_PATIENCE_MS", PATIENCE_MS);
}

static void test_more_names_than_ids_are_right(void)
{
    body_params_t params = params_of(JOB_IS_SANITIZED ? 200 : 0);

    CHECK_EQ_INT(job_run_threads(2, body_many, &params), 0);
}

static void test_ranks_that_have_joined_give_nothing(void)
{
    run_all_sizes(body_join, params_of(0));
}

static void test_ranks_that_disagree_get_an_error_that_shows_each_side(void)
{
    run_all_sizes(body_errors, params_of(0));
}

static void test_bad_arguments_are_refused(void)
{
    run_all_sizes(body_invalid, params_of(0));
}

static void set_stall(const char *warn, const char *abort_after)
{
    set("LOCKSTEP_STALL_WARN_S", warn);
    set("LOCKSTEP_STALL_ABORT_S", abort_after);
}

static void test_missing_tensor_is_an_error_that_names_the_rank(void)
{
    body_params_t params = params_of(0);

    set_stall("0.5", "2");
    CHECK_EQ_INT(job_run_threads(3, body_stall, &params), 0);
    set_stall(NULL, NULL);
}

static void test_rank_that_disagrees_late_is_an_error_everywhere(void)
{
    body_params_t params = params_of(0);

    set_stall("0.5", "2");
    CHECK_EQ_INT(job_run_threads(3, body_late, &params), 0);
    set_stall(NULL, NULL);
}

/* ---- settings ------------------------------------------------------------------------------- */

typedef struct variant {
    const char *algo, *node_size, *topology;
    unsigned    num_ranks; /* 0: all sizes */
} variant_t;

static void run_variant(job_body_fn body, const variant_t *variant)
{
    body_params_t params = params_of(0);
    int           num_failures = 0;

    set("LOCKSTEP_ALGO", variant->algo);
    set("LOCKSTEP_NODE_SIZE", variant->node_size);
    set("LOCKSTEP_TOPOLOGY", variant->topology);
    params.is_quick = true;
    for (unsigned i = 0; i < sizeof(all_sizes) / sizeof(all_sizes[0]); i++) {
        if (variant->num_ranks == 0 ? !is_left_out_of_variants(all_sizes[i]) : variant->num_ranks == all_sizes[i]) {
            num_failures += job_run_threads(all_sizes[i], body, &params);
        }
    }
    if (num_failures != 0) {
        fprintf(stderr, "%d checks failed with algo '%s' node size '%s' topology '%s'\n", num_failures,
                variant->algo, variant->node_size, variant->topology);
    }
    CHECK_EQ_INT(num_failures, 0);
    set("LOCKSTEP_ALGO", NULL);
    set("LOCKSTEP_NODE_SIZE", NULL);
    set("LOCKSTEP_TOPOLOGY", NULL);
}

/* Small chunks, so that a tensor of 400 KB is many of them. */
static void test_every_allreduce_algorithm_is_right(void)
{
    static const variant_t variants[] = {
        {.algo = "allreduce:0-inf:flat:4k"},
        {.algo = "allreduce:0-inf:direct:4k"},
        {.algo = "allreduce:0-inf:ring:4k"},
        {.algo = "allreduce:0-inf:recursive_doubling:4k"},
        {.algo = "allreduce:0-inf:halving_doubling:4k"},
        {.algo = "allreduce:0-inf:dims:4k", .topology = "2x2", .num_ranks = 4},
        {.algo = "allreduce:0-inf:dims:4k", .topology = "2x2x2", .num_ranks = 8},
        {.algo = "allreduce:0-inf:two_level:4k", .node_size = "2"},
    };

    for (unsigned i = 0; i < sizeof(variants) / sizeof(variants[0]); i++) {
        run_variant(body_allreduce, &variants[i]);
    }
}

static void test_every_broadcast_algorithm_is_right(void)
{
    static const variant_t variants[] = {
        {.algo = "broadcast:0-inf:flat:4k"},
        {.algo = "broadcast:0-inf:binomial:4k"},
        {.algo = "broadcast:0-inf:two_level:4k", .node_size = "2"},
    };

    for (unsigned i = 0; i < sizeof(variants) / sizeof(variants[0]); i++) {
        run_variant(body_broadcast, &variants[i]);
    }
}

static void test_every_gather_algorithm_is_right(void)
{
    static const variant_t variants[] = {
        {.algo = "allgather:0-inf:direct:4k,reduce_scatter:0-inf:direct:4k"},
        {.algo = "allgather:0-inf:ring:4k,reduce_scatter:0-inf:ring:4k"},
    };

    for (unsigned i = 0; i < sizeof(variants) / sizeof(variants[0]); i++) {
        run_variant(body_gather, &variants[i]);
    }
}

static void test_virtual_nodes_are_right(void)
{
    run_variant(body_others, &(variant_t){.node_size = "2", .num_ranks = 4});
    run_variant(body_allreduce, &(variant_t){.node_size = "4", .num_ranks = 8});
    run_variant(body_join, &(variant_t){.node_size = "2", .num_ranks = 5});
}

static void test_wire_types_round_alike_on_all_ranks(void)
{
    static const char *const wires[] = {"bfloat16", "float16"};
    body_params_t            params = params_of(0);

    params.is_quick = true;
    for (unsigned i = 0; i < 2; i++) {
        set("LOCKSTEP_WIRE", wires[i]);
        CHECK_EQ_INT(job_run_threads(2, body_allreduce, &params), 0);
        CHECK_EQ_INT(job_run_threads(5, body_allreduce, &params), 0);
        set("LOCKSTEP_ALGO", "allreduce:0-inf:ring:4k");
        CHECK_EQ_INT(job_run_threads(3, body_allreduce, &params), 0);
        set("LOCKSTEP_ALGO", NULL);
    }
    set("LOCKSTEP_WIRE", NULL);
}

static void test_small_buckets_are_right(void)
{
    set("LOCKSTEP_FUSION_BYTES", "1k");
    run_variant(body_allreduce, &(variant_t){.num_ranks = 3});
    set("LOCKSTEP_FUSION_BYTES", NULL);
}

static void test_two_runs_give_the_same_bits(void)
{
    body_params_t params = params_of(8);
    uint64_t      first;

    CHECK_EQ_INT(job_run_threads(4, body_random, &params), 0);
    first = job_results();
    CHECK_EQ_INT(job_run_threads(4, body_random, &params), 0);
    CHECK(job_results() == first);
    params.seed++;
    CHECK_EQ_INT(job_run_threads(4, body_random, &params), 0);
    CHECK(job_results() != first);
}

int main(void)
{
    set("LOCKSTEP_PATIENCE_MS", PATIENCE_MS);
    RUN(test_allreduce_is_right_for_types_operations_and_counts);
    RUN(test_allreduce_of_many_elements_is_right);
    RUN(test_group_completes_together);
    RUN(test_broadcast_is_right_from_every_root);
    RUN(test_gathers_take_different_lengths);
    RUN(test_nobody_leaves_a_barrier_before_all_have_entered);
    RUN(test_random_sets_in_random_order_are_right);
    RUN(test_equal_steps_neither_talk_nor_grow);
    RUN(test_more_names_than_ids_are_right);
    RUN(test_ranks_that_have_joined_give_nothing);
    RUN(test_ranks_that_disagree_get_an_error_that_shows_each_side);
    RUN(test_bad_arguments_are_refused);
    RUN(test_missing_tensor_is_an_error_that_names_the_rank);
    RUN(test_rank_that_disagrees_late_is_an_error_everywhere);
    RUN(test_every_allreduce_algorithm_is_right);
    RUN(test_every_broadcast_algorithm_is_right);
    RUN(test_every_gather_algorithm_is_right);
    RUN(test_virtual_nodes_are_right);
    RUN(test_wire_types_round_alike_on_all_ranks);
    RUN(test_small_buckets_are_right);
    RUN(test_two_runs_give_the_same_bits);
    return check_report();
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The choice between algorithms: the table, LOCKSTEP_ALGO, and what happens when a row does not fit. */
#include "algo/algo.h"
#include "base/mem.h"
#include "check.h"
#include "plans.h"

#define KIB 1024ULL
#define MIB (1024ULL * 1024)

static ls_choice_table_t *table_of(const char *override)
{
    ls_choice_table_t *table = NULL;

    CHECK_EQ_INT(ls_choice_table_create(override, &table), LS_OK);
    return table;
}

static const ls_choice_t *find(const ls_choice_table_t *table, ls_coll_t coll, layout_t *layout,
                               uint64_t bytes)
{
    const ls_algo_request_t request = {.coll = coll, .topology = &layout->topology};

    layout->topology.node_of = layout->node_of;
    return ls_choice_find(table, &request, bytes);
}

static void check_choice(const ls_choice_table_t *table, ls_coll_t coll, layout_t *layout, uint64_t bytes,
                         const char *expected)
{
    const ls_choice_t *choice = find(table, coll, layout, bytes);

    CHECK(choice != NULL);
    CHECK_STR(choice->algo->name, expected);
    CHECK(choice->chunk_bytes > 0);
}

/* ---- the built-in table --------------------------------------------------------------------- */

static const char golden[] =
    "collective      nodes   from     to  ranks   algorithm           chunk  "
    "how\n"
    "allreduce       given      0    inf  any     dims                   4m  "
    "direct exchange along each dimension of the job in turn\n"
    "allreduce       one       8k    inf  1-2     direct               768k  "
    "each rank reduces one block for everybody\n"
    "allreduce       one        0    32k  1-4     flat                 768k  "
    "everybody sends all to everybody and reduces all\n"
    "allreduce       one        0     8k  any     flat                 768k  "
    "everybody sends all to everybody and reduces all\n"
    "allreduce       one        0    inf  any     direct               768k  "
    "each rank reduces one block for everybody\n"
    "allreduce       many       0    16k  any     recursive_doubling     4m  "
    "whole values exchanged at distance 1, 2, 4 ...\n"
    "allreduce       many       0    inf  any     dims                   4m  "
    "direct exchange along each dimension of the job in turn\n"
    "allreduce       many       0   256k  16-inf  halving_doubling       4m  "
    "halves exchanged at distance 1, 2, 4 ... and back\n"
    "allreduce       any        0    inf  any     two_level              4m  "
    "reduced in each node, a ring between the nodes; any layout\n"
    "broadcast       one        0    inf  1-64    flat                 768k  "
    "the root sends to all at once\n"
    "broadcast       one        0    inf  any     binomial             768k  "
    "a binomial tree from the root\n"
    "broadcast       any        0    inf  any     two_level            768k  "
    "a binomial tree over the nodes, then each node at once\n"
    "allgather       many     32k    inf  any     ring                   4m  "
    "blocks go around once\n"
    "allgather       any        0    inf  any     direct               768k  "
    "everybody sends its block to all at once\n"
    "reduce_scatter  many     32k    inf  any     ring                   4m  "
    "sums go around once and end at their owner\n"
    "reduce_scatter  any        0    inf  any     direct               768k  "
    "each rank reduces its own block\n"
    "alltoall        any        0    inf  any     direct                 4m  "
    "each rank gives each other one what is meant for it\n"
    "barrier         any        0    inf  any     dissemination        768k  "
    "tokens at distance 1, 2, 4 ...\n";

static void test_the_built_in_table_is_this(void)
{
    ls_choice_table_t *table = table_of("");
    FILE              *file  = tmpfile();
    char               text[8192];

    ls_choice_print(table, fileno(file));
    text_take(file, text, sizeof(text));
    if (strcmp(text, golden) != 0) {
        fprintf(stderr, "%s", text);
    }
    CHECK(strcmp(text, golden) == 0);
    ls_choice_table_destroy(table);
}

static void test_one_node_takes_flat_for_small_and_direct_for_large(void)
{
    ls_choice_table_t *table = table_of("");
    layout_t           pair, few, many;

    layout_make(&pair, 2, LAYOUT_ONE_NODE);
    layout_make(&few, 4, LAYOUT_ONE_NODE);
    layout_make(&many, 5, LAYOUT_ONE_NODE);
    check_choice(table, LS_COLL_ALLREDUCE, &pair, 8 * KIB - 1, "flat");
    check_choice(table, LS_COLL_ALLREDUCE, &pair, 8 * KIB, "direct");
    check_choice(table, LS_COLL_ALLREDUCE, &few, 0, "flat");
    check_choice(table, LS_COLL_ALLREDUCE, &few, 32 * KIB - 1, "flat");
    check_choice(table, LS_COLL_ALLREDUCE, &few, 32 * KIB, "direct");
    check_choice(table, LS_COLL_ALLREDUCE, &many, 8 * KIB - 1, "flat");
    check_choice(table, LS_COLL_ALLREDUCE, &many, 8 * KIB, "direct");
    check_choice(table, LS_COLL_ALLREDUCE, &many, UINT64_MAX, "direct");
    ls_choice_table_destroy(table);
}

static void test_a_given_topology_is_obeyed_on_one_node_too(void)
{
    ls_choice_table_t *table = table_of("");
    layout_t           layout;

    layout_make(&layout, 8, LAYOUT_ONE_NODE);
    layout.topology.is_given = true;
    check_choice(table, LS_COLL_ALLREDUCE, &layout, 100, "dims");
    check_choice(table, LS_COLL_ALLREDUCE, &layout, UINT64_MAX, "dims");
    check_choice(table, LS_COLL_BROADCAST, &layout, 100, "flat");
    ls_choice_table_destroy(table);
}

static void test_many_nodes_take_dims_when_regular_and_two_level_when_not(void)
{
    static const uint32_t dims[] = {4, 2, 0};
    ls_choice_table_t    *table  = table_of("");
    layout_t              regular, small, large;

    layout_make_dims(&regular, dims);
    layout_make(&small, 7, LAYOUT_UNEVEN);
    layout_make(&large, 33, LAYOUT_UNEVEN);
    check_choice(table, LS_COLL_ALLREDUCE, &regular, 16 * KIB - 1, "recursive_doubling");
    check_choice(table, LS_COLL_ALLREDUCE, &regular, 16 * KIB, "dims");
    check_choice(table, LS_COLL_ALLREDUCE, &small, 64 * KIB, "two_level");
    check_choice(table, LS_COLL_ALLREDUCE, &large, 64 * KIB, "halving_doubling");
    check_choice(table, LS_COLL_ALLREDUCE, &large, 256 * KIB, "two_level");
    check_choice(table, LS_COLL_BROADCAST, &regular, 1, "two_level");
    check_choice(table, LS_COLL_ALLGATHER, &regular, 1 * MIB, "ring");
    check_choice(table, LS_COLL_ALLGATHER, &regular, 1 * KIB, "direct");
    ls_choice_table_destroy(table);
}

static void test_every_request_finds_a_row_that_supports_it(void)
{
    static const uint64_t bytes[] = {0, 1, 4 * KIB, 20 * KIB, 300 * KIB, 5 * MIB, UINT64_MAX};
    ls_choice_table_t    *table   = table_of("");
    layout_t              layout;

    for (unsigned coll = 0; coll < LS_COLL_COUNT; coll++) {
        for (uint32_t n = 1; n <= 33; n++) {
            for (int way = 0; way < LAYOUT_COUNT; way++) {
                layout_make(&layout, n, way);
                for (size_t i = 0; i < sizeof(bytes) / sizeof(bytes[0]); i++) {
                    const ls_choice_t *choice = find(table, (ls_coll_t)coll, &layout, bytes[i]);

                    CHECK(choice != NULL && choice->algo->coll == (ls_coll_t)coll);
                    CHECK(choice != NULL && plans_supported(choice->algo, &layout));
                }
            }
        }
    }
    ls_choice_table_destroy(table);
}

/* ---- LOCKSTEP_ALGO -------------------------------------------------------------------------- */

static void test_override_rows_come_first_in_their_range(void)
{
    ls_choice_table_t *table = table_of("allreduce:64k-1m:ring:256k,allreduce:1m-inf:halving_doubling,"
                                        "broadcast:0-inf:binomial:1.5m");
    layout_t           layout;

    layout_make(&layout, 4, LAYOUT_ONE_NODE);
    check_choice(table, LS_COLL_ALLREDUCE, &layout, 64 * KIB - 1, "direct");
    check_choice(table, LS_COLL_ALLREDUCE, &layout, 64 * KIB, "ring");
    check_choice(table, LS_COLL_ALLREDUCE, &layout, 1 * MIB - 1, "ring");
    check_choice(table, LS_COLL_ALLREDUCE, &layout, 1 * MIB, "halving_doubling");
    check_choice(table, LS_COLL_ALLREDUCE, &layout, UINT64_MAX, "halving_doubling");
    check_choice(table, LS_COLL_BROADCAST, &layout, 0, "binomial");
    check_choice(table, LS_COLL_ALLGATHER, &layout, 0, "direct");
    CHECK_EQ_INT(find(table, LS_COLL_ALLREDUCE, &layout, 64 * KIB)->chunk_bytes, 256 * KIB);
    CHECK_EQ_INT(find(table, LS_COLL_BROADCAST, &layout, 0)->chunk_bytes, 1536 * KIB);
    ls_choice_table_destroy(table);
}

static void test_override_without_chunk_takes_the_built_in_one(void)
{
    ls_choice_table_t *table = table_of("allreduce:0-inf:direct,allgather:0-inf:ring");
    ls_choice_table_t *plain = table_of("");
    layout_t           layout;

    layout_make(&layout, 4, LAYOUT_ONE_NODE);
    CHECK_EQ_INT(find(table, LS_COLL_ALLREDUCE, &layout, 0)->chunk_bytes,
                 find(plain, LS_COLL_ALLREDUCE, &layout, 1 * MIB)->chunk_bytes);
    ls_choice_table_destroy(table);
    ls_choice_table_destroy(plain);
}

static void test_override_that_does_not_support_the_layout_falls_through(void)
{
    ls_choice_table_t *table = table_of("allreduce:0-inf:dims,allreduce:1m-inf:ring");
    layout_t           uneven, even;

    layout_make(&uneven, 5, LAYOUT_UNEVEN);
    layout_make(&even, 5, LAYOUT_NODE_PER_RANK);
    check_choice(table, LS_COLL_ALLREDUCE, &even, 2 * MIB, "dims");
    check_choice(table, LS_COLL_ALLREDUCE, &uneven, 2 * MIB, "ring");
    check_choice(table, LS_COLL_ALLREDUCE, &uneven, 1 * KIB, "recursive_doubling");
    ls_choice_table_destroy(table);
}

static void check_refused(const char *override, const char *row, const char *allowed)
{
    ls_choice_table_t *table = NULL;

    CHECK_EQ_INT(ls_choice_table_create(override, &table), LS_ERR_CONFIG);
    CHECK(table == NULL);
    CHECK_STR(ls_last_error(), row);
    CHECK_STR(ls_last_error(), allowed);
    CHECK_EQ_INT(ls_mem_live(), 0);
}

static void test_bad_overrides_are_refused_with_what_is_allowed(void)
{
    char long_row[400];

    check_refused("allreduce", "'allreduce'", "collective:from-to:algorithm[:chunk]");
    check_refused("allreduce:0-inf", "'allreduce:0-inf'", "collective:from-to:algorithm[:chunk]");
    check_refused("allreduce:0-inf:ring:1m:2", "'allreduce:0-inf:ring:1m:2'", "algorithm[:chunk]");
    check_refused(",", "''", "collective:from-to:algorithm[:chunk]");
    check_refused("allreduce:0-inf:ring,", "''", "collective:from-to:algorithm[:chunk]");
    check_refused("allreduce:0-inf:ring,reduce:0-1k:ring", "'reduce:0-1k:ring'",
                  "unknown collective 'reduce'; known are allreduce, broadcast, allgather, reduce_scatter, "
                  "alltoall, barrier");
    check_refused("allreduce:0-inf:rign", "'allreduce:0-inf:rign'",
                  "unknown algorithm 'rign'; allreduce has flat, direct, ring, recursive_doubling, "
                  "halving_doubling, dims, two_level");
    check_refused("broadcast:0-inf:ring", "'ring'", "broadcast has flat, binomial, two_level");
    check_refused("allreduce:64k:ring", "'allreduce:64k:ring'", "two sizes");
    check_refused("allreduce:1m-64k:ring", "'allreduce:1m-64k:ring'", "the smaller first");
    check_refused("allreduce:1m-1m:ring", "'allreduce:1m-1m:ring'", "the smaller first");
    check_refused("allreduce:inf-inf:ring", "'allreduce:inf-inf:ring'", "the smaller first");
    check_refused("allreduce:0-x:ring", "'allreduce:0-x:ring'", "as 64k-inf");
    check_refused("allreduce:-1-5:ring", "'allreduce:-1-5:ring'", "as 64k-inf");
    check_refused("allreduce:0-inf:ring:", "'allreduce:0-inf:ring:'", "1k to 1g");
    check_refused("allreduce:0-inf:ring:0", "'0'", "1k to 1g");
    check_refused("allreduce:0-inf:ring:1023", "'1023'", "1k to 1g");
    check_refused("allreduce:0-inf:ring:inf", "'inf'", "1k to 1g");
    memset(long_row, 'a', sizeof(long_row) - 1);
    long_row[sizeof(long_row) - 1] = '\0';
    check_refused(long_row, "row 1 is longer", "255");
}

static void test_override_rows_are_printed_first(void)
{
    ls_choice_table_t *table = table_of("allreduce:1000-2m:ring:3k");
    FILE              *file  = tmpfile();
    char               text[8192];
    char              *line;

    ls_choice_print(table, fileno(file));
    text_take(file, text, sizeof(text));
    line = strchr(text, '\n') + 1;
    *strchr(line, '\n') = '\0';
    CHECK_STR(line, "allreduce       any     1000     2m  any     ring                   3k  blocks go");
    ls_choice_table_destroy(table);
}

static void test_no_memory_for_a_table_is_an_error(void)
{
    ls_choice_table_t *table;

    ls_mem_fail_at(1);
    CHECK_EQ_INT(ls_choice_table_create("", &table), LS_ERR_NO_MEMORY);
    ls_mem_fail_at(0);
    ls_choice_table_destroy(NULL);
    CHECK_EQ_INT(ls_mem_live(), 0);
}

int main(void)
{
    RUN(test_the_built_in_table_is_this);
    RUN(test_one_node_takes_flat_for_small_and_direct_for_large);
    RUN(test_a_given_topology_is_obeyed_on_one_node_too);
    RUN(test_many_nodes_take_dims_when_regular_and_two_level_when_not);
    RUN(test_every_request_finds_a_row_that_supports_it);
    RUN(test_override_rows_come_first_in_their_range);
    RUN(test_override_without_chunk_takes_the_built_in_one);
    RUN(test_override_that_does_not_support_the_layout_falls_through);
    RUN(test_bad_overrides_are_refused_with_what_is_allowed);
    RUN(test_override_rows_are_printed_first);
    RUN(test_no_memory_for_a_table_is_an_error);
    return check_report();
}

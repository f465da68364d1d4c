/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which algorithm serves a request: the first row that fits.
 * The last row of each collective fits everything, so a request always finds one.
 */
#include "algo/choice.h"

#include <stdio.h>
#include <string.h>

#include "algo/algo_int.h"
#include "base/mem.h"

/* Chunks.  In a node: small enough to stay in the cache between sender and reader.  Between nodes:
 * large enough that a message, a chunk cut by the number of ranks, is worth its latency. */
#define CHUNK_NODE (768 * LS_KIB)
#define CHUNK_NET  (4 * LS_MIB)

#define PAIR_BYTES       (8 * LS_KIB)   /* of two ranks: from here going there and back is worth the second way */
#define FLAT_FEW_RANKS   4            /* up to here all-to-all sends are cheap */
#define FLAT_FEW_BYTES   (32 * LS_KIB)
#define FLAT_MANY_BYTES  (8 * LS_KIB)
#define NET_SMALL_BYTES  (16 * LS_KIB)  /* below, latency is everything */
#define NET_MIDDLE_BYTES (256 * LS_KIB)
#define NET_MANY_RANKS   16           /* from here a ring's latencies add up */
#define NET_GATHER_BYTES (32 * LS_KIB)
#define ROOT_SERVES      64           /* ranks that one rank can serve at once */

static const ls_choice_t built_in[] = {
    {.coll = LS_COLL_ALLREDUCE, .nodes = LS_NODES_GIVEN, .max_bytes = LS_CHOICE_NO_LIMIT,
     .algo = &ls_algo_allreduce_dims, .chunk_bytes = CHUNK_NET},
    {.coll = LS_COLL_ALLREDUCE, .nodes = LS_NODES_ONE, .min_bytes = PAIR_BYTES, .max_bytes = LS_CHOICE_NO_LIMIT,
     .max_ranks = 2, .algo = &ls_algo_allreduce_direct, .chunk_bytes = CHUNK_NODE},
    {.coll = LS_COLL_ALLREDUCE, .nodes = LS_NODES_ONE, .max_bytes = FLAT_FEW_BYTES,
     .max_ranks = FLAT_FEW_RANKS, .algo = &ls_algo_allreduce_flat, .chunk_bytes = CHUNK_NODE},
    {.coll = LS_COLL_ALLREDUCE, .nodes = LS_NODES_ONE, .max_bytes = FLAT_MANY_BYTES,
     .algo = &ls_algo_allreduce_flat, .chunk_bytes = CHUNK_NODE},
    {.coll = LS_COLL_ALLREDUCE, .nodes = LS_NODES_ONE, .max_bytes = LS_CHOICE_NO_LIMIT,
     .algo = &ls_algo_allreduce_direct, .chunk_bytes = CHUNK_NODE},
    {.coll = LS_COLL_ALLREDUCE, .nodes = LS_NODES_MANY, .max_bytes = NET_SMALL_BYTES,
     .algo = &ls_algo_allreduce_recursive_doubling, .chunk_bytes = CHUNK_NET},
    {.coll = LS_COLL_ALLREDUCE, .nodes = LS_NODES_MANY, .max_bytes = LS_CHOICE_NO_LIMIT,
     .algo = &ls_algo_allreduce_dims, .chunk_bytes = CHUNK_NET},
    {.coll = LS_COLL_ALLREDUCE, .nodes = LS_NODES_MANY, .max_bytes = NET_MIDDLE_BYTES,
     .min_ranks = NET_MANY_RANKS, .algo = &ls_algo_allreduce_halving_doubling, .chunk_bytes = CHUNK_NET},
    {.coll = LS_COLL_ALLREDUCE, .nodes = LS_NODES_ANY, .max_bytes = LS_CHOICE_NO_LIMIT,
     .algo = &ls_algo_allreduce_two_level, .chunk_bytes = CHUNK_NET},

    {.coll = LS_COLL_BROADCAST, .nodes = LS_NODES_ONE, .max_bytes = LS_CHOICE_NO_LIMIT,
     .max_ranks = ROOT_SERVES, .algo = &ls_algo_broadcast_flat, .chunk_bytes = CHUNK_NODE},
    {.coll = LS_COLL_BROADCAST, .nodes = LS_NODES_ONE, .max_bytes = LS_CHOICE_NO_LIMIT,
     .algo = &ls_algo_broadcast_binomial, .chunk_bytes = CHUNK_NODE},
    {.coll = LS_COLL_BROADCAST, .nodes = LS_NODES_ANY, .max_bytes = LS_CHOICE_NO_LIMIT,
     .algo = &ls_algo_broadcast_two_level, .chunk_bytes = CHUNK_NODE},

    {.coll = LS_COLL_ALLGATHER, .nodes = LS_NODES_MANY, .min_bytes = NET_GATHER_BYTES,
     .max_bytes = LS_CHOICE_NO_LIMIT, .algo = &ls_algo_allgather_ring, .chunk_bytes = CHUNK_NET},
    {.coll = LS_COLL_ALLGATHER, .nodes = LS_NODES_ANY, .max_bytes = LS_CHOICE_NO_LIMIT,
     .algo = &ls_algo_allgather_direct, .chunk_bytes = CHUNK_NODE},

    {.coll = LS_COLL_REDUCE_SCATTER, .nodes = LS_NODES_MANY, .min_bytes = NET_GATHER_BYTES,
     .max_bytes = LS_CHOICE_NO_LIMIT, .algo = &ls_algo_reduce_scatter_ring, .chunk_bytes = CHUNK_NET},
    {.coll = LS_COLL_REDUCE_SCATTER, .nodes = LS_NODES_ANY, .max_bytes = LS_CHOICE_NO_LIMIT,
     .algo = &ls_algo_reduce_scatter_direct, .chunk_bytes = CHUNK_NODE},

    {.coll = LS_COLL_ALLTOALL, .nodes = LS_NODES_ANY, .max_bytes = LS_CHOICE_NO_LIMIT,
     .algo = &ls_algo_alltoall_direct, .chunk_bytes = CHUNK_NET},

    {.coll = LS_COLL_BARRIER, .nodes = LS_NODES_ANY, .max_bytes = LS_CHOICE_NO_LIMIT,
     .algo = &ls_algo_barrier_dissemination, .chunk_bytes = CHUNK_NODE},
};

#define NUM_BUILT_IN (sizeof(built_in) / sizeof(built_in[0]))

struct ls_choice_table {
    size_t      num_rows;
    ls_choice_t rows[];
};

uint64_t ls_choice_default_chunk(const ls_algo_t *algo)
{
    for (size_t i = 0; i < NUM_BUILT_IN; i++) {
        if (built_in[i].algo == algo) {
            return built_in[i].chunk_bytes;
        }
    }
    return CHUNK_NET;
}

ls_status_t ls_choice_table_create(const char *override, ls_choice_table_t **table_p)
{
    const size_t       num_first = ls_choice_parse_count(override);
    const size_t       num_rows  = num_first + NUM_BUILT_IN;
    ls_choice_table_t *table;
    void              *mem;
    const size_t       bytes  = sizeof(*table) + num_rows * sizeof(ls_choice_t);
    ls_status_t        status = ls_mem_alloc(bytes, "choices", &mem);

    if (status != LS_OK) {
        return status;
    }
    table           = mem;
    table->num_rows = num_rows;
    status          = ls_choice_parse(override, table->rows);
    if (status != LS_OK) {
        goto err_destroy_table;
    }
    memcpy(table->rows + num_first, built_in, sizeof(built_in));
    *table_p = table;
    return LS_OK;

err_destroy_table:
    ls_choice_table_destroy(table);
    return status;
}

void ls_choice_table_destroy(ls_choice_table_t *table)
{
    ls_mem_free(table);
}

static bool fits(const ls_choice_t *row, const ls_algo_request_t *request, uint64_t bytes)
{
    const uint32_t num_ranks = request->topology->num_ranks;
    const bool     is_one    = request->topology->num_nodes == 1;

    if (row->coll != request->coll || (row->nodes == LS_NODES_ONE && !is_one) ||
        (row->nodes == LS_NODES_MANY && is_one) ||
        (row->nodes == LS_NODES_GIVEN && !request->topology->is_given)) {
        return false;
    }
    if (num_ranks < row->min_ranks || (row->max_ranks != 0 && num_ranks > row->max_ranks)) {
        return false;
    }
    return bytes >= row->min_bytes && (bytes < row->max_bytes || row->max_bytes == LS_CHOICE_NO_LIMIT);
}

const ls_choice_t *ls_choice_find(const ls_choice_table_t *table, const ls_algo_request_t *request,
                                  uint64_t bytes)
{
    for (size_t i = 0; i < table->num_rows; i++) {
        const ls_choice_t *row = &table->rows[i];

        if (fits(row, request, bytes) && row->algo->supports(request)) {
            return row;
        }
    }
    return NULL;
}

/* ---- print ---------------------------------------------------------------------------------- */

#define CELL_ROOM 24

static void print_size(uint64_t size, char text[CELL_ROOM])
{
    static const char *const units[] = {"", "k", "m", "g"};
    unsigned                 unit    = 0;

    if (size == LS_CHOICE_NO_LIMIT) {
        snprintf(text, CELL_ROOM, "inf");
        return;
    }
    while (size >= LS_KIB && size % LS_KIB == 0 && unit < 3) {
        size /= LS_KIB;
        unit++;
    }
    snprintf(text, CELL_ROOM, "%llu%s", (unsigned long long)size, units[unit]);
}

static void print_ranks(const ls_choice_t *row, char text[CELL_ROOM])
{
    if (row->min_ranks == 0 && row->max_ranks == 0) {
        snprintf(text, CELL_ROOM, "any");
    } else if (row->max_ranks == 0) {
        snprintf(text, CELL_ROOM, "%u-inf", row->min_ranks);
    } else {
        snprintf(text, CELL_ROOM, "%u-%u", row->min_ranks == 0 ? 1 : row->min_ranks, row->max_ranks);
    }
}

void ls_choice_print(const ls_choice_table_t *table, int fd)
{
    static const char *const nodes[] = {
        [LS_NODES_ANY] = "any", [LS_NODES_ONE] = "one", [LS_NODES_MANY] = "many", [LS_NODES_GIVEN] = "given"};
    static const char format[] = "%-14s  %-5s  %5s  %5s  %-6s  %-18s  %5s  %s\n";

    dprintf(fd, format, "collective", "nodes", "from", "to", "ranks", "algorithm", "chunk", "how");
    for (size_t i = 0; i < table->num_rows; i++) {
        const ls_choice_t *row = &table->rows[i];
        char               from[CELL_ROOM], to[CELL_ROOM], ranks[CELL_ROOM], chunk[CELL_ROOM];

        print_size(row->min_bytes, from);
        print_size(row->max_bytes, to);
        print_size(row->chunk_bytes, chunk);
        print_ranks(row, ranks);
        dprintf(fd, format, ls_algo_coll_name(row->coll), nodes[row->nodes], from, to, ranks,
                row->algo->name, chunk, row->algo->help);
    }
}

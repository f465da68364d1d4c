/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Algorithms and the choice between them.
 *
 * An algorithm is a constant with two pure functions: can it serve this request, and what would this
 * rank do.  Which one serves a request is data: the first row of the choice table that fits.
 */
#ifndef LS_ALGO_ALGO_H
#define LS_ALGO_ALGO_H

#include <stdbool.h>
#include <stdint.h>

#include "algo/plan.h"
#include "lockstep.h"

typedef enum ls_coll {
    LS_COLL_ALLREDUCE,
    LS_COLL_BROADCAST,
    LS_COLL_ALLGATHER,
    LS_COLL_REDUCE_SCATTER,
    LS_COLL_ALLTOALL,
    LS_COLL_BARRIER,
    LS_COLL_COUNT
} ls_coll_t;

#define LS_ALGO_MAX_DIMS 8

/* Where the ranks are.  Filled once at start, the same on every rank. */
typedef struct ls_topology {
    uint32_t        num_ranks;
    uint32_t        num_nodes;
    const uint32_t *node_of;                /* rank -> node, 0 .. num_nodes-1 */
    bool            is_given;               /* dims are the user's word (LOCKSTEP_TOPOLOGY) */
    uint32_t        num_dims;               /* of dims; 0: no topology string, no regular layout */
    uint32_t        dims[LS_ALGO_MAX_DIMS]; /* innermost first; product = num_ranks; rank = mixed radix */
} ls_topology_t;
/* Without a topology string, dims is {ranks per node, nodes} when ranks are numbered node by node and
 * every node has the same number, {num_ranks} when there is one node. */

/* What an algorithm is asked for. */
typedef struct ls_algo_request {
    ls_coll_t            coll;
    uint32_t             rank;
    uint32_t             root; /* broadcast */
    const ls_topology_t *topology;
} ls_algo_request_t;

typedef struct ls_algo {
    ls_coll_t   coll;
    const char *name;
    const char *help; /* one line for the printed table */
    /* Block layout the plan uses; the engine cuts the data accordingly:
     * allreduce: any number of equal blocks; broadcast: 1 block; allgather, reduce_scatter: block r is
     * rank r's; alltoall: block s*n+d is what rank s gives to rank d; barrier: 0. */
    uint32_t (*num_blocks)(const ls_algo_request_t *request);
    bool (*supports)(const ls_algo_request_t *request);
    ls_status_t (*plan)(const ls_algo_request_t *request, ls_plan_t *plan);
} ls_algo_t;

/* Every algorithm, ended by NULL. */
extern const ls_algo_t *const ls_algo_list[];

const char      *ls_algo_coll_name(ls_coll_t coll);                  /* "allreduce" */
const ls_algo_t *ls_algo_find(ls_coll_t coll, const char *name);     /* NULL: unknown */

/* Make and seal this rank's plan. */
ls_status_t ls_algo_plan(const ls_algo_t *algo, const ls_algo_request_t *request, ls_plan_t **plan_p);

/* ---- choice.c ------------------------------------------------------------------------------- */

#define LS_CHOICE_NO_LIMIT UINT64_MAX

/* LS_NODES_GIVEN: any number, when the topology is given by the user. */
typedef enum ls_choice_nodes { LS_NODES_ANY, LS_NODES_ONE, LS_NODES_MANY, LS_NODES_GIVEN } ls_choice_nodes_t;

typedef struct ls_choice {
    ls_coll_t         coll;
    ls_choice_nodes_t nodes;
    uint64_t          min_bytes, max_bytes; /* min <= bytes < max */
    uint32_t          min_ranks, max_ranks; /* inclusive; 0: no limit */
    const ls_algo_t  *algo;
    uint64_t          chunk_bytes; /* data per run of the plan, all blocks together */
} ls_choice_t;

/* The table of one job: the rows of LOCKSTEP_ALGO before the built-in ones. */
typedef struct ls_choice_table ls_choice_table_t;

/*
 * `override` is LOCKSTEP_ALGO: rows "collective:from-to:algorithm[:chunk]" separated by commas, sizes with
 * k, m, g, "inf"; "" for none.  LS_ERR_CONFIG names the row and what would be allowed.
 */
ls_status_t ls_choice_table_create(const char *override, ls_choice_table_t **table_p);
void        ls_choice_table_destroy(ls_choice_table_t *table);

/* First row that fits and whose algorithm supports the request; never NULL for a valid request. */
const ls_choice_t *ls_choice_find(const ls_choice_table_t *table, const ls_algo_request_t *request,
                                  uint64_t bytes);
void ls_choice_print(const ls_choice_table_t *table, int fd);

#endif

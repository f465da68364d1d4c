/* SPDX-License-Identifier: Apache-2.0 */
/* For the tests of algorithms: ways to lay out ranks, plans of all ranks, printed text. */
#ifndef LS_TESTS_PLANS_H
#define LS_TESTS_PLANS_H

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "algo/algo.h"

#define PLANS_MAX_RANKS 64

/* ---- layouts -------------------------------------------------------------------------------- */

typedef struct layout {
    ls_topology_t topology;
    uint32_t      node_of[PLANS_MAX_RANKS];
    char          name[32];
} layout_t;

/* Ways that work for every number of ranks. */
enum {
    LAYOUT_ONE_NODE,
    LAYOUT_NODE_PER_RANK,
    LAYOUT_UNEVEN,
    LAYOUT_ROUND_ROBIN,
    LAYOUT_BACKWARD,
    LAYOUT_COUNT
};

static inline void layout_make(layout_t *layout, uint32_t n, int way)
{
    static const char *const names[LAYOUT_COUNT] = {"one node", "a node per rank", "uneven nodes",
                                                    "round robin", "nodes backward"};
    const uint32_t           three               = n < 3 ? n : 3;

    memset(layout, 0, sizeof(*layout));
    snprintf(layout->name, sizeof(layout->name), "%s", names[way]);
    layout->topology.num_ranks = n;
    for (uint32_t r = 0, node = 0, left = 1, size = 1; r < n; r++) {
        switch (way) {
        case LAYOUT_ONE_NODE:
            layout->node_of[r] = 0;
            break;
        case LAYOUT_NODE_PER_RANK:
            layout->node_of[r] = r;
            break;
        case LAYOUT_UNEVEN: /* nodes of 1, 2, 3, ... ranks */
            if (left == 0) {
                node++;
                left = ++size;
            }
            layout->node_of[r] = node;
            left--;
            break;
        case LAYOUT_ROUND_ROBIN:
            layout->node_of[r] = r % three;
            break;
        default: /* pairs, the last node first */
            layout->node_of[r] = (n - 1 - r) / 2;
            break;
        }
    }
    for (uint32_t r = 0; r < n; r++) {
        if (layout->node_of[r] >= layout->topology.num_nodes) {
            layout->topology.num_nodes = layout->node_of[r] + 1;
        }
    }
    if (way == LAYOUT_ONE_NODE) {
        layout->topology.num_dims = 1;
        layout->topology.dims[0]  = n;
    } else if (way == LAYOUT_NODE_PER_RANK) {
        layout->topology.num_dims = 2;
        layout->topology.dims[0]  = 1;
        layout->topology.dims[1]  = n;
    }
}

/* Nodes are the innermost dimension.  Ended by 0. */
static inline void layout_make_dims(layout_t *layout, const uint32_t *dims)
{
    uint32_t n = 1, d = 0;
    size_t   used = 0;

    memset(layout, 0, sizeof(*layout));
    for (; dims[d] != 0; d++) {
        n *= dims[d];
        layout->topology.dims[d] = dims[d];
        used += (size_t)snprintf(layout->name + used, sizeof(layout->name) - used, "%s%u", d > 0 ? "x" : "",
                                 dims[d]);
    }
    layout->topology.num_ranks = n;
    layout->topology.num_dims  = d;
    layout->topology.num_nodes = n / dims[0];
    for (uint32_t r = 0; r < n; r++) {
        layout->node_of[r] = r / dims[0];
    }
}

/* ---- plans of all ranks --------------------------------------------------------------------- */

static inline void plans_destroy(ls_plan_t **plans, uint32_t n)
{
    for (uint32_t r = 0; r < n; r++) {
        ls_plan_destroy(plans[r]);
        plans[r] = NULL;
    }
}

static inline ls_status_t plans_make(const ls_algo_t *algo, layout_t *layout, uint32_t root,
                                     ls_plan_t **plans)
{
    const uint32_t n = layout->topology.num_ranks;

    layout->topology.node_of = layout->node_of;
    memset(plans, 0, n * sizeof(*plans));
    for (uint32_t r = 0; r < n; r++) {
        const ls_algo_request_t request = {
            .coll = algo->coll, .rank = r, .root = root, .topology = &layout->topology};
        const ls_status_t status = ls_algo_plan(algo, &request, &plans[r]);

        if (status != LS_OK) {
            plans_destroy(plans, n);
            return status;
        }
    }
    return LS_OK;
}

static inline bool plans_supported(const ls_algo_t *algo, layout_t *layout)
{
    const ls_algo_request_t request = {.coll = algo->coll, .topology = &layout->topology};

    layout->topology.node_of = layout->node_of;
    return algo->supports(&request);
}

/* ---- printed text --------------------------------------------------------------------------- */

/* All that was written to `file`, which is closed. */
static inline void text_take(FILE *file, char *text, size_t room)
{
    ssize_t got;

    lseek(fileno(file), 0, SEEK_SET);
    got = read(fileno(file), text, room - 1);
    text[got > 0 ? got : 0] = '\0';
    fclose(file);
}

/* The plan's steps in one line: "send 0 to 1 | store 0 from 1". */
static inline void plan_text(const ls_plan_t *plan, char *text, size_t room)
{
    FILE  *file = tmpfile();
    char   lines[4096];
    size_t used = 0;

    ls_plan_print(plan, fileno(file));
    text_take(file, lines, sizeof(lines));
    text[0] = '\0';
    for (char *rest = lines, *line; (line = strsep(&rest, "\n")) != NULL && line[0] != '\0';) {
        used += (size_t)snprintf(text + used, room - used, "%s%s", used > 0 ? " | " : "", line);
    }
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/net_topology.h"

#include <ctype.h>
#include <stdlib.h>

#include "base/error.h"

static ls_status_t parse(const char *text, ls_topology_t *topology)
{
    const char *at      = text;
    uint64_t    product = 1;

    topology->num_dims = 0;
    for (;;) {
        char         *end;
        unsigned long dim;

        if (!isdigit((unsigned char)*at)) {
            return ls_error_set(LS_ERR_CONFIG, "LOCKSTEP_TOPOLOGY=%s is not numbers with x between them, as 4x2x2",
                                text);
        }
        if (topology->num_dims == LS_ALGO_MAX_DIMS) {
            return ls_error_set(LS_ERR_CONFIG, "LOCKSTEP_TOPOLOGY=%s has more than %d dimensions", text,
                                LS_ALGO_MAX_DIMS);
        }
        dim = strtoul(at, &end, 10);
        if (dim == 0 || dim > topology->num_ranks) {
            return ls_error_set(LS_ERR_CONFIG,
                                "LOCKSTEP_TOPOLOGY=%s: %lu is not between 1 and the %u ranks of the job",
                                text, dim, topology->num_ranks);
        }
        topology->dims[topology->num_dims++] = (uint32_t)dim;
        product *= dim;
        if (product > topology->num_ranks || *end == '\0') {
            break;
        }
        if (*end != 'x') {
            return ls_error_set(LS_ERR_CONFIG, "LOCKSTEP_TOPOLOGY=%s is not numbers with x between them, as 4x2x2",
                                text);
        }
        at = end + 1;
    }
    if (product != topology->num_ranks) {
        return ls_error_set(LS_ERR_CONFIG, "LOCKSTEP_TOPOLOGY=%s makes %s %llu ranks, the job has %u", text,
                            product > topology->num_ranks ? "at least" : "only",
                            (unsigned long long)product, topology->num_ranks);
    }
    return LS_OK;
}

/* Ranks numbered node by node, all nodes alike: two dimensions.  One node: one.  Otherwise none. */
static void derive(ls_topology_t *topology)
{
    const uint32_t per_node = topology->num_ranks / topology->num_nodes;

    topology->num_dims = 0;
    for (uint32_t rank = 0; rank < topology->num_ranks; rank++) {
        if (topology->node_of[rank] != rank / per_node) {
            return;
        }
    }
    topology->dims[topology->num_dims++] = per_node;
    if (topology->num_nodes > 1) {
        topology->dims[topology->num_dims++] = topology->num_nodes;
    }
}

ls_status_t ls_net_topology_fill(const char *text, ls_topology_t *topology)
{
    topology->num_nodes = 0;
    for (uint32_t rank = 0; rank < topology->num_ranks; rank++) {
        if (topology->node_of[rank] > topology->num_nodes) {
            return ls_error_set(LS_ERR_INTERNAL, "nodes are not numbered by their smallest rank");
        }
        if (topology->node_of[rank] == topology->num_nodes) {
            topology->num_nodes++;
        }
    }
    topology->is_given = text[0] != '\0';
    if (topology->is_given) {
        return parse(text, topology);
    }
    derive(topology);
    return LS_OK;
}

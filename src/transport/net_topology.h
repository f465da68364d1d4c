/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LS_TRANSPORT_NET_TOPOLOGY_H
#define LS_TRANSPORT_NET_TOPOLOGY_H

#include "algo/algo.h"

/* Fill num_nodes and dims; num_ranks and node_of are set.  `text` is LOCKSTEP_TOPOLOGY: "4x2x2", innermost
 * first, or "" to derive dims from the nodes.  LS_ERR_CONFIG says what is wrong with it. */
ls_status_t ls_net_topology_fill(const char *text, ls_topology_t *topology);

#endif

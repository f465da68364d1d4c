/* SPDX-License-Identifier: Apache-2.0 */
/* How net_mpi.c and net_local.c put a net together. */
#ifndef LS_TRANSPORT_NET_INT_H
#define LS_TRANSPORT_NET_INT_H

#include "transport/mailbox.h"
#include "transport/net.h"
#include "transport/pulse.h"

typedef struct ls_net_parts {
    uint32_t                  rank, num_ranks;
    const char               *host;        /* copied */
    const char               *description; /* copied */
    const uint32_t           *node_of;     /* by rank; copied; nodes numbered by their smallest rank */
    const ls_config_t        *config;
    ls_mailbox_h              mailbox;     /* connected; NULL: no shared memory; the net owns it */
    bool                      mailbox_serves_all; /* ranks are threads: across virtual nodes too */
    const ls_transport_ops_t *remote_ops;  /* serves every peer the mailbox does not; NULL: none needed */
    void                     *remote;      /* self of remote_ops; the net owns it */
    ls_pulse_h                pulse;       /* NULL: none; the net owns it until it is taken */
    void (*finalize)(void *arg, bool is_orderly); /* last call of destroy; NULL: none */
    void                     *finalize_arg;
} ls_net_parts_t;

/* Derives local rank and size and the topology (LOCKSTEP_TOPOLOGY is checked here: LS_ERR_CONFIG).
 * On failure the parts stay the caller's. */
ls_status_t ls_net_create(const ls_net_parts_t *parts, ls_net_h *net_p);

#endif

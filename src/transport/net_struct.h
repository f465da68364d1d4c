/* SPDX-License-Identifier: Apache-2.0 */
/* The fields of a net; for net.c and net_control.c only. */
#ifndef LS_TRANSPORT_NET_STRUCT_H
#define LS_TRANSPORT_NET_STRUCT_H

#include "transport/net_int.h"
#include "transport/stage.h"

#define LS_NET_TEXT_ROOM 512

typedef struct ls_net_route {
    const ls_transport_ops_t *ops; /* NULL: the own rank */
    void                     *self;
    bool                      is_mailbox;
    bool                      is_same_node;
} ls_net_route_t;

/* A control message in the net's own memory: to itself, or put together from parts. */
typedef struct ls_net_block {
    struct ls_net_block *next;
    uint32_t             from;
    size_t               bytes;
    size_t               filled;
    _Alignas(LS_CACHE_LINE) char data[];
} ls_net_block_t;

/* owner: who has the engine's turn */
struct ls_net {
    ls_net_place_t            place;
    char                     *host, *description;
    uint32_t                 *node_of;
    uint32_t                  rank, num_ranks;
    ls_mailbox_h              mailbox;    /* NULL: none */
    const ls_transport_ops_t *remote_ops; /* NULL: none */
    void                     *remote;
    ls_pulse_h                pulse; /* until it is taken */
    void (*finalize)(void *arg, bool is_orderly);
    void                     *finalize_arg;
    ls_net_route_t           *routes; /* by rank */
    ls_stage_pool_h           stages;
    ls_bell_t                 own_bell; /* without a mailbox */
    bool                      has_remote;
    uint64_t                  bytes_node, bytes_net;
    uint64_t                  num_answered;

    /* net_control.c */
    ls_net_block_t  *to_self, **to_self_end; /* sent, not polled */
    ls_net_block_t  *lent;                   /* polled, not released */
    ls_net_block_t **partial;                /* by sender: being put together */
    ls_status_t      control_status;         /* of a malformed message; progress() returns it */
    char             control_text[LS_NET_TEXT_ROOM];
};

void ls_net_control_init(ls_net_h net);
void ls_net_control_destroy(ls_net_h net);

/* True if the message was one of the net's own blocks, which is freed. */
bool ls_net_control_release(ls_net_h net, const ls_message_t *message);

/* Hand one stage, already filled, to the transports of its receivers. */
ls_status_t ls_net_post(ls_net_h net, const ls_send_t *send, const uint32_t *peers,
                        const uint32_t *messages, uint32_t num_peers);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Which rank is reached how, and the way there; control messages are in net_control.c. */
#include "transport/net.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "transport/net_int.h"
#include "transport/net_struct.h"
#include "transport/net_topology.h"

/* Sent and not yet read, from which on a sender that awaits nothing pauses. */
#define MOST_BYTES_OUT (64 * LS_MIB)

/* ---- create --------------------------------------------------------------------------------- */

static ls_status_t copy_parts(ls_net_h net, const ls_net_parts_t *parts)
{
    ls_status_t status;
    void       *mem;

    status = ls_mem_strdup(parts->host, "host", &net->host);
    if (status == LS_OK) {
        status = ls_mem_strdup(parts->description, "description", &net->description);
    }
    if (status == LS_OK) {
        status = ls_mem_alloc(parts->num_ranks * sizeof(*net->node_of), "nodes", &mem);
    }
    if (status != LS_OK) {
        return status;
    }
    net->node_of = mem;
    memcpy(net->node_of, parts->node_of, parts->num_ranks * sizeof(*net->node_of));
    return LS_OK;
}

static ls_status_t find_place(ls_net_h net, const ls_net_parts_t *parts)
{
    ls_net_place_t *place = &net->place;

    place->rank               = net->rank;
    place->host               = net->host;
    place->description        = net->description;
    place->topology.num_ranks = net->num_ranks;
    place->topology.node_of   = net->node_of;
    for (uint32_t rank = 0; rank < net->num_ranks; rank++) {
        if (net->node_of[rank] == net->node_of[net->rank]) {
            place->local_rank += (rank < net->rank);
            place->local_size++;
        }
    }
    return ls_net_topology_fill(parts->config->topology, &place->topology);
}

static ls_status_t make_routes(ls_net_h net, const ls_net_parts_t *parts)
{
    ls_status_t status;
    void       *mem;

    status = ls_mem_alloc(net->num_ranks * sizeof(*net->routes), "routes", &mem);
    if (status != LS_OK) {
        return status;
    }
    net->routes = mem;
    status      = ls_mem_alloc(net->num_ranks * sizeof(*net->partial), "control parts", &mem);
    if (status != LS_OK) {
        return status;
    }
    net->partial = mem;
    for (uint32_t peer = 0; peer < net->num_ranks; peer++) {
        ls_net_route_t *route = &net->routes[peer];

        route->is_same_node = (net->node_of[peer] == net->node_of[net->rank]);
        route->is_mailbox   = parts->mailbox != NULL && (route->is_same_node || parts->mailbox_serves_all);
        if (peer == net->rank) {
            route->is_mailbox = false;
            continue;
        }
        route->ops  = route->is_mailbox ? &ls_mailbox_ops : parts->remote_ops;
        route->self = route->is_mailbox ? (void *)parts->mailbox : parts->remote;
        if (route->ops == NULL) {
            return ls_error_set(LS_ERR_INTERNAL, "rank %u has no way to rank %u", net->rank, peer);
        }
        net->has_remote = net->has_remote || !route->is_mailbox;
    }
    return LS_OK;
}

/* Everything but the parts, which stay the caller's when create fails. */
static void free_net(ls_net_h net)
{
    ls_net_control_destroy(net);
    ls_stage_pool_destroy(net->stages);
    ls_mem_free(net->partial);
    ls_mem_free(net->routes);
    ls_mem_free(net->node_of);
    ls_mem_free(net->description);
    ls_mem_free(net->host);
    ls_mem_free(net);
}

ls_status_t ls_net_create(const ls_net_parts_t *parts, ls_net_h *net_p)
{
    ls_net_h    net;
    ls_status_t status;
    void       *mem;

    status = ls_mem_alloc(sizeof(*net), "net", &mem);
    if (status != LS_OK) {
        return status;
    }
    net            = mem;
    net->rank      = parts->rank;
    net->num_ranks = parts->num_ranks;
    net->mailbox   = parts->mailbox;
    ls_bell_init(&net->own_bell);
    ls_net_control_init(net);
    status = copy_parts(net, parts);
    if (status == LS_OK) {
        status = find_place(net, parts);
    }
    if (status == LS_OK) {
        status = make_routes(net, parts);
    }
    if (status == LS_OK) {
        status = ls_stage_pool_create(parts->mailbox, &net->stages);
    }
    if (status != LS_OK) {
        free_net(net);
        return status;
    }
    net->remote_ops   = parts->remote_ops;
    net->remote       = parts->remote;
    net->pulse        = parts->pulse;
    net->finalize     = parts->finalize;
    net->finalize_arg = parts->finalize_arg;
    *net_p            = net;
    return LS_OK;
}

void ls_net_destroy(ls_net_h net, bool is_orderly)
{
    void (*finalize)(void *arg, bool is_orderly);
    ls_mailbox_h mailbox;
    ls_pulse_h   pulse;
    void        *finalize_arg;

    if (net == NULL) {
        return;
    }
    pulse        = net->pulse;
    finalize     = net->finalize;
    finalize_arg = net->finalize_arg;
    mailbox      = net->mailbox;
    if (!is_orderly) {
        ls_net_mark_gone(net, "it left because the job had failed");
    }
    /* The stages last but for the mailbox: what is still being sent is read from them. */
    if (net->remote_ops != NULL) {
        net->remote_ops->destroy(net->remote);
    }
    free_net(net);
    ls_mailbox_destroy(mailbox);
    if (finalize != NULL) {
        finalize(finalize_arg, is_orderly);
    }
    ls_pulse_destroy(pulse);
}

const ls_net_place_t *ls_net_place(ls_net_h net)
{
    return &net->place;
}

ls_pulse_h ls_net_take_pulse(ls_net_h net)
{
    ls_pulse_h pulse = net->pulse;

    net->pulse = NULL;
    return pulse;
}

ls_bell_t *ls_net_bell(ls_net_h net)
{
    return net->mailbox != NULL ? ls_mailbox_bell(net->mailbox) : &net->own_bell;
}

/* ---- data ----------------------------------------------------------------------------------- */

ls_status_t ls_net_stage(ls_net_h net, size_t bytes, ls_stage_t **stage_p)
{
    return ls_stage_get(net->stages, bytes, stage_p);
}

bool ls_net_is_overdrawn(ls_net_h net)
{
    size_t bytes, num_stages;

    /* Counting takes time, and a pool that is still small cannot hold so much. */
    ls_stage_pool_size(net->stages, &bytes, &num_stages);
    return bytes > MOST_BYTES_OUT && ls_stage_bytes_out(net->stages) > MOST_BYTES_OUT;
}

void ls_net_unstage(ls_net_h net, ls_stage_t *stage)
{
    ls_stage_put(net->stages, stage);
}

static ls_status_t post_one(ls_net_h net, const ls_send_t *send)
{
    const ls_net_route_t *route = (send->peer < net->num_ranks) ? &net->routes[send->peer] : NULL;
    ls_status_t           status;

    if (route == NULL || route->ops == NULL) {
        return ls_error_set(LS_ERR_INTERNAL, "rank %u cannot send to rank %u of %u", net->rank, send->peer,
                            net->num_ranks);
    }
    status = route->is_mailbox ? ls_mailbox_publish(net->mailbox, send) : route->ops->send(route->self, send);
    if (status == LS_OK) {
        *(route->is_same_node ? &net->bytes_node : &net->bytes_net) += send->bytes;
    }
    return status;
}

ls_status_t ls_net_post(ls_net_h net, const ls_send_t *send, const uint32_t *peers,
                        const uint32_t *messages, uint32_t num_peers)
{
    ls_stage_head_t *head   = send->stage->head;
    ls_status_t      status = LS_OK;
    uint32_t         posted = 0;

    /* Before the first receiver can see it; the descriptor's release makes it visible. */
    atomic_store_explicit(&head->pending, num_peers, memory_order_relaxed);
    ls_stage_sent(net->stages, send->stage);
    while (posted < num_peers && status == LS_OK) {
        ls_send_t one = *send;

        one.peer = peers[posted];
        one.key  = send->key | messages[posted];
        status   = post_one(net, &one);
        posted += (status == LS_OK);
    }
    for (uint32_t i = 0; i < posted; i++) {
        if (net->routes[peers[i]].is_mailbox) {
            ls_mailbox_ring(net->mailbox, peers[i], send->is_control);
        }
    }
    if (posted < num_peers) {
        atomic_fetch_sub_explicit(&head->pending, num_peers - posted, memory_order_release);
    }
    return status;
}

ls_status_t ls_net_send(ls_net_h net, ls_stage_t *stage, size_t bytes, ls_key_t key,
                        uint32_t contributors, const uint32_t *peers, const uint32_t *messages,
                        uint32_t num_peers)
{
    const ls_send_t send = {.stage = stage, .bytes = bytes, .key = key, .contributors = contributors};

    return ls_net_post(net, &send, peers, messages, num_peers);
}

ls_status_t ls_net_expect(ls_net_h net, uint32_t peer, ls_key_t key, size_t bytes)
{
    const ls_net_route_t *route = &net->routes[peer];

    return route->ops == NULL || route->ops->expect == NULL
               ? LS_OK
               : route->ops->expect(route->self, peer, key, bytes);
}

bool ls_net_match(ls_net_h net, uint32_t peer, ls_key_t key, ls_message_t *message_p)
{
    const ls_net_route_t *route = &net->routes[peer];

    return route->ops != NULL && route->ops->match(route->self, peer, key, message_p);
}

void ls_net_release(ls_net_h net, ls_message_t *message)
{
    const ls_net_route_t *route = &net->routes[message->from];

    if (!ls_net_control_release(net, message)) {
        route->ops->release(route->self, message);
    }
}

bool ls_net_can_answer(ls_net_h net, const ls_message_t *message)
{
    const ls_net_route_t *route = &net->routes[message->from];

    return route->ops->can_answer != NULL && route->ops->can_answer(route->self, message);
}

ls_status_t ls_net_answer(ls_net_h net, const ls_message_t *message, ls_key_t key, uint32_t contributors)
{
    const ls_net_route_t *route  = &net->routes[message->from];
    const ls_status_t     status = route->ops->answer(route->self, message, key, contributors);

    if (status == LS_OK) {
        *(route->is_same_node ? &net->bytes_node : &net->bytes_net) += message->bytes;
        net->num_answered++;
    }
    return status;
}

/* ---- time ----------------------------------------------------------------------------------- */

ls_status_t ls_net_progress(ls_net_h net, bool *moved_p)
{
    ls_status_t status = LS_OK;

    if (net->control_status != LS_OK) {
        return ls_error_set(net->control_status, "%s", net->control_text);
    }
    if (net->to_self != NULL) {
        *moved_p = true;
    }
    if (net->mailbox != NULL) {
        status = ls_mailbox_ops.progress(net->mailbox, moved_p);
    }
    if (status == LS_OK && net->remote_ops != NULL) {
        status = net->remote_ops->progress(net->remote, moved_p);
    }
    return status;
}

bool ls_net_has_unsent(ls_net_h net)
{
    return net->mailbox != NULL && ls_mailbox_ops.needs_polling(net->mailbox);
}

bool ls_net_has_control(ls_net_h net)
{
    return net->to_self != NULL || (net->mailbox != NULL && ls_mailbox_has_control(net->mailbox));
}

bool ls_net_needs_polling(ls_net_h net)
{
    return net->to_self != NULL ||
           ls_net_has_unsent(net) ||
           (net->remote_ops != NULL && net->remote_ops->needs_polling(net->remote));
}

bool ls_net_has_remote(ls_net_h net)
{
    return net->has_remote;
}

bool ls_net_is_for_any_thread(ls_net_h net)
{
    return net->remote_ops == NULL;
}

bool ls_net_find_lost(ls_net_h net, uint32_t *rank_p, char *text, size_t room)
{
    return net->mailbox != NULL && ls_mailbox_find_lost(net->mailbox, rank_p, text, room);
}

void ls_net_mark_gone(ls_net_h net, const char *reason)
{
    if (net->mailbox != NULL) {
        ls_mailbox_mark_gone(net->mailbox, reason);
    }
}

void ls_net_bytes_sent(ls_net_h net, uint64_t *node_p, uint64_t *net_p)
{
    *node_p = net->bytes_node;
    *net_p  = net->bytes_net;
}

void ls_net_dump(ls_net_h net, int fd)
{
    size_t bytes, num_stages;

    ls_stage_pool_size(net->stages, &bytes, &num_stages);
    dprintf(fd, "net: rank %u of %u on %s, local rank %u of %u, %s\n", net->rank, net->num_ranks, net->host,
            net->place.local_rank, net->place.local_size, net->description);
    dprintf(fd, "net: %zu stages in %zu bytes; %" PRIu64 " bytes sent in the node, %" PRIu64 " to others\n",
            num_stages, bytes, net->bytes_node, net->bytes_net);
    dprintf(fd, "net: answered in place %" PRIu64 " messages\n", net->num_answered);
    if (net->mailbox != NULL) {
        ls_mailbox_dump(net->mailbox, fd);
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Putting a mailbox up and taking it down; mailbox_ring.c moves the messages. */
#include "transport/mailbox.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "transport/mailbox_int.h"

#define MAX_STAGE_BYTES ((size_t)1 << 46)
#define FIRST_SEGMENTS  4

bool ls_mailbox_has_fault(const ls_config_t *config, const char *point, uint32_t rank)
{
    const size_t length = strlen(point);
    const char  *rest   = config->fault + length;

    if (strncmp(config->fault, point, length) != 0) {
        return false;
    }
    return *rest == '\0' || (*rest == ':' && strtoul(rest + 1, NULL, 10) == rank);
}

static ls_status_t create_segment(const ls_mailbox_h mailbox, size_t bytes, ls_segment_t *segment_p)
{
    return mailbox->is_local ? ls_segment_create_heap(bytes, segment_p)
                             : ls_segment_create_shared(bytes, segment_p);
}

/* Enter a new own segment into the directory, where peers look it up. */
static void announce(ls_mailbox_h mailbox, const ls_segment_t *segment)
{
    mailbox->head->directory[mailbox->num_segments] = (ls_mailbox_address_t){
        .pid     = getpid(),
        .fd      = segment->fd,
        .pointer = mailbox->is_local ? (uint64_t)(uintptr_t)segment->base : 0,
        .bytes   = segment->bytes,
    };
    mailbox->segments[mailbox->num_segments++] = *segment;
}

/* ---- create --------------------------------------------------------------------------------- */

static ls_status_t create_first_segment(ls_mailbox_h mailbox)
{
    const size_t stage_bytes = mailbox->config.stage_bytes;
    const size_t page        = (size_t)sysconf(_SC_PAGESIZE);
    ls_segment_t segment;
    ls_status_t  status;

    if (stage_bytes > MAX_STAGE_BYTES) {
        return ls_error_set(LS_ERR_CONFIG, "LOCKSTEP_STAGE_BYTES=%zu is more memory than there can be",
                            stage_bytes);
    }
    if (ls_mailbox_has_fault(&mailbox->config, "shm-create", mailbox->rank)) {
        return ls_error_set(LS_ERR_SYSTEM, "cannot create shared memory: LOCKSTEP_FAULT=%s",
                            mailbox->config.fault);
    }
    mailbox->stages_offset =
        sizeof(ls_mailbox_head_t) + (size_t)mailbox->local_size * sizeof(ls_mailbox_ring_t);
    status = create_segment(mailbox, (mailbox->stages_offset + stage_bytes + page - 1) & ~(page - 1),
                            &segment);
    if (status != LS_OK) {
        return status;
    }
    mailbox->head             = segment.base;
    mailbox->head->bytes      = segment.bytes;
    mailbox->head->pid        = getpid();
    mailbox->head->rank       = mailbox->rank;
    mailbox->head->local_size = mailbox->local_size;
    mailbox->head->magic      = LS_MAILBOX_MAGIC;
    ls_bell_init(&mailbox->head->bell);
    atomic_init(&mailbox->head->state, LS_MAILBOX_RUNNING);
    atomic_init(&mailbox->head->users, 1);
    announce(mailbox, &segment);
    return LS_OK;
}

static ls_status_t create_peers(ls_mailbox_h mailbox, const uint32_t *local_ranks)
{
    ls_status_t status;
    void       *mem;

    status = ls_mem_alloc(mailbox->local_size * sizeof(*mailbox->peers), "mailbox peers", &mem);
    if (status != LS_OK) {
        return status;
    }
    mailbox->peers      = mem;
    mailbox->ranks_room = local_ranks[mailbox->local_size - 1] + 1;
    status = ls_mem_alloc(mailbox->ranks_room * sizeof(*mailbox->index_of), "mailbox ranks", &mem);
    if (status != LS_OK) {
        return status;
    }
    mailbox->index_of = mem;
    memset(mailbox->index_of, 0xFF, mailbox->ranks_room * sizeof(*mailbox->index_of));
    for (uint32_t i = 0; i < mailbox->local_size; i++) {
        mailbox->index_of[local_ranks[i]]    = i;
        mailbox->peers[i].rank               = local_ranks[i];
        mailbox->peers[i].waiting.item_bytes = sizeof(ls_mailbox_note_t);
    }
    return LS_OK;
}

ls_status_t ls_mailbox_create(const ls_mailbox_params_t *params, ls_mailbox_h *mailbox_p)
{
    ls_mailbox_h mailbox;
    ls_status_t  status;
    void        *mem;

    if (params->local_rank >= params->local_size ||
        params->local_ranks[params->local_rank] != params->rank) {
        return ls_error_set(LS_ERR_INTERNAL, "rank %u is not local rank %u of %u", params->rank,
                            params->local_rank, params->local_size);
    }
    status = ls_mem_alloc(sizeof(*mailbox), "mailbox", &mem);
    if (status != LS_OK) {
        return status;
    }
    mailbox                     = mem;
    mailbox->config             = *params->config;
    mailbox->rank               = params->rank;
    mailbox->local_rank         = params->local_rank;
    mailbox->local_size         = params->local_size;
    mailbox->is_local           = params->is_local;
    mailbox->control.item_bytes = sizeof(ls_letter_t);
    if (gethostname(mailbox->host, sizeof(mailbox->host) - 1) != 0) {
        snprintf(mailbox->host, sizeof(mailbox->host), "this host");
    }
    status = create_peers(mailbox, params->local_ranks);
    if (status == LS_OK) {
        status = create_first_segment(mailbox);
    }
    if (status == LS_OK) {
        status = ls_letter_reserve(&mailbox->letters);
    }
    if (status != LS_OK) {
        ls_mailbox_destroy(mailbox);
        return status;
    }
    *mailbox_p = mailbox;
    return LS_OK;
}

void ls_mailbox_get_address(ls_mailbox_h mailbox, ls_mailbox_address_t *address_p)
{
    *address_p = mailbox->head->directory[0];
}

/* ---- connect -------------------------------------------------------------------------------- */

static ls_status_t open_address(ls_mailbox_h mailbox, const ls_mailbox_address_t *address,
                                ls_segment_t *segment_p)
{
    if (ls_mailbox_has_fault(&mailbox->config, "shm-map", mailbox->rank)) {
        return ls_error_set(LS_ERR_SYSTEM, "cannot map shared memory: LOCKSTEP_FAULT=%s",
                            mailbox->config.fault);
    }
    if (mailbox->is_local) {
        ls_segment_borrow((void *)(uintptr_t)address->pointer, address->bytes, segment_p);
        return LS_OK;
    }
    return ls_segment_open(address->pid, address->fd, address->bytes, segment_p);
}

/* In another process number space the same path can lead to other memory: see that it is the peer's. */
static bool is_peers_head(ls_mailbox_h mailbox, const ls_mailbox_peer_t *peer,
                          const ls_mailbox_address_t *address, const ls_segment_t *segment)
{
    const ls_mailbox_head_t *head = segment->base;

    return segment->bytes >= mailbox->stages_offset && head->magic == LS_MAILBOX_MAGIC &&
           head->bytes == segment->bytes && head->rank == peer->rank && head->pid == address->pid &&
           head->local_size == mailbox->local_size;
}

static ls_status_t connect_peer(ls_mailbox_h mailbox, uint32_t index, const ls_mailbox_address_t *address)
{
    ls_mailbox_peer_t *peer = &mailbox->peers[index];
    ls_status_t        status;
    void              *mem;

    status = ls_mem_alloc(FIRST_SEGMENTS * sizeof(*peer->segments), "peer segments", &mem);
    if (status != LS_OK) {
        return status;
    }
    peer->segments      = mem;
    peer->segments_room = FIRST_SEGMENTS;
    status              = open_address(mailbox, address, &peer->segments[0]);
    if (status != LS_OK) {
        return status;
    }
    if (!is_peers_head(mailbox, peer, address, &peer->segments[0])) {
        return ls_error_set(LS_ERR_INTERNAL, "the memory that rank %u announced is not its own",
                            peer->rank);
    }
    peer->head = peer->segments[0].base;
    peer->out  = &peer->head->rings[mailbox->local_rank];
    peer->in   = &mailbox->head->rings[index];
    peer->pid  = address->pid;
    atomic_fetch_add_explicit(&peer->head->users, 1, memory_order_relaxed);
    return LS_OK;
}

ls_status_t ls_mailbox_connect(ls_mailbox_h mailbox, const ls_mailbox_address_t *addresses)
{
    for (uint32_t i = 0; i < mailbox->local_size; i++) {
        if (i != mailbox->local_rank) {
            const ls_status_t status = connect_peer(mailbox, i, &addresses[i]);

            if (status != LS_OK) {
                return status;
            }
        }
    }
    return LS_OK;
}

ls_status_t ls_mailbox_map(ls_mailbox_h mailbox, ls_mailbox_peer_t *peer, uint32_t segment)
{
    if (segment >= LS_MAILBOX_MAX_SEGMENTS || peer->head->directory[segment].bytes == 0) {
        return ls_error_set(LS_ERR_INTERNAL, "rank %u sent from segment %u, which it has not announced",
                            peer->rank, segment);
    }
    if (segment >= peer->segments_room) {
        const size_t old_size = peer->segments_room * sizeof(*peer->segments);
        uint32_t     room     = peer->segments_room;
        void        *mem      = peer->segments;
        ls_status_t  status;

        while (room <= segment) {
            room *= 2;
        }
        status = ls_mem_resize(&mem, old_size, room * sizeof(*peer->segments), "peer segments");
        if (status != LS_OK) {
            return status;
        }
        peer->segments      = mem;
        peer->segments_room = room;
    }
    if (peer->segments[segment].kind != LS_SEGMENT_NONE) {
        return LS_OK;
    }
    return open_address(mailbox, &peer->head->directory[segment], &peer->segments[segment]);
}

/* ---- grow ----------------------------------------------------------------------------------- */

ls_status_t ls_mailbox_grow(ls_mailbox_h mailbox, size_t bytes, uint32_t *segment_p, void **address_p)
{
    ls_segment_t segment;
    ls_status_t  status;

    if (ls_mailbox_has_fault(&mailbox->config, "shm-grow", mailbox->rank)) {
        return ls_error_set(LS_ERR_SYSTEM, "cannot get %zu bytes more of shared memory: LOCKSTEP_FAULT=%s",
                            bytes, mailbox->config.fault);
    }
    if (mailbox->num_segments == LS_MAILBOX_MAX_SEGMENTS) {
        return ls_error_set(LS_ERR_NO_MEMORY, "all %d segments of shared memory are in use",
                            LS_MAILBOX_MAX_SEGMENTS);
    }
    status = create_segment(mailbox, bytes, &segment);
    if (status != LS_OK) {
        return status;
    }
    *segment_p = mailbox->num_segments;
    *address_p = segment.base;
    announce(mailbox, &segment);
    return LS_OK;
}

void ls_mailbox_first_stages(ls_mailbox_h mailbox, uint32_t *segment_p, uint64_t *offset_p,
                             void **address_p, size_t *bytes_p)
{
    *segment_p = 0;
    *offset_p  = mailbox->stages_offset;
    *address_p = (char *)mailbox->head + mailbox->stages_offset;
    *bytes_p   = mailbox->head->bytes - mailbox->stages_offset;
}

/* ---- destroy -------------------------------------------------------------------------------- */

/* Threads share the memory itself, and one may still ring a bell when the other is through: the last
 * user frees all segments of the rank. */
static void put_heap(ls_mailbox_head_t *head)
{
    if (atomic_fetch_sub_explicit(&head->users, 1, memory_order_acq_rel) == 1) {
        for (uint32_t i = 1; i < LS_MAILBOX_MAX_SEGMENTS && head->directory[i].bytes != 0; i++) {
            ls_mem_free((void *)(uintptr_t)head->directory[i].pointer);
        }
        ls_mem_free(head);
    }
}

static void destroy_peer(ls_mailbox_h mailbox, ls_mailbox_peer_t *peer)
{
    if (mailbox->is_local && peer->head != NULL) {
        put_heap(peer->head);
    }
    for (uint32_t i = 0; i < peer->segments_room; i++) {
        ls_segment_destroy(&peer->segments[i]);
    }
    ls_mem_free(peer->segments);
    ls_fifo_destroy(&peer->waiting);
}

void ls_mailbox_destroy(ls_mailbox_h mailbox)
{
    uint32_t running = LS_MAILBOX_RUNNING;

    if (mailbox == NULL) {
        return;
    }
    for (uint32_t i = 0; mailbox->peers != NULL && i < mailbox->local_size; i++) {
        destroy_peer(mailbox, &mailbox->peers[i]);
    }
    if (mailbox->head != NULL) {
        atomic_compare_exchange_strong(&mailbox->head->state, &running, LS_MAILBOX_STOPPED);
        if (mailbox->is_local) {
            put_heap(mailbox->head);
        }
    }
    for (uint32_t i = 0; !mailbox->is_local && i < mailbox->num_segments; i++) {
        ls_segment_destroy(&mailbox->segments[i]);
    }
    ls_letter_destroy(&mailbox->letters);
    ls_fifo_destroy(&mailbox->control);
    ls_mem_free(mailbox->index_of);
    ls_mem_free(mailbox->peers);
    ls_mem_free(mailbox);
}

/* ---- looking inside ------------------------------------------------------------------------- */

ls_bell_t *ls_mailbox_bell(ls_mailbox_h mailbox)
{
    return &mailbox->head->bell;
}

void ls_mailbox_dump(ls_mailbox_h mailbox, int fd)
{
    dprintf(fd, "mailbox: local rank %u of %u, %u segments, %zu messages not asked for, %zu control\n",
            mailbox->local_rank, mailbox->local_size, mailbox->num_segments, mailbox->letters.count,
            mailbox->control.count);
    for (uint32_t i = 0; i < mailbox->local_size; i++) {
        const ls_mailbox_peer_t *peer = &mailbox->peers[i];

        if (peer->head != NULL) {
            const uint64_t read = atomic_load_explicit(&peer->out->consumed, memory_order_relaxed);

            dprintf(fd, "  rank %u (process %" PRId64 "): %" PRIu64 " sent, %" PRIu64 " of them not taken, "
                    "%zu waiting for room, %" PRIu64 " received\n",
                    peer->rank, peer->pid, peer->sent, peer->sent - read, peer->waiting.count,
                    peer->received);
        }
    }
}

static void destroy_self(void *self)
{
    ls_mailbox_destroy(self);
}

const ls_transport_ops_t ls_mailbox_ops = {
    .name          = "shared memory",
    .send          = ls_mailbox_send,
    .match         = ls_mailbox_match,
    .release       = ls_mailbox_release,
    .can_answer    = ls_mailbox_can_answer,
    .answer        = ls_mailbox_answer,
    .poll_control  = ls_mailbox_poll_control,
    .progress      = ls_mailbox_progress,
    .needs_polling = ls_mailbox_needs_polling,
    .destroy       = destroy_self,
};

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Control messages: of any size, whole, in order.
 *
 * A message travels in parts of at most PART_BYTES.  Behind the bytes of each part stand two words, the
 * length of the whole message and where this part begins in it; behind, so that a message of one part,
 * which nearly all are, is handed on where it lies.  Others are put together in a block of the net's own.
 */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "transport/net_struct.h"

#define PART_BYTES (256 * LS_KIB) /* with its two words */
#define PART_DATA  (PART_BYTES - sizeof(part_words_t))

typedef struct part_words {
    uint64_t total;
    uint64_t at;
} part_words_t;

void ls_net_control_init(ls_net_h net)
{
    net->to_self_end = &net->to_self;
}

static void free_blocks(ls_net_block_t *block)
{
    while (block != NULL) {
        ls_net_block_t *next = block->next;

        ls_mem_free(block);
        block = next;
    }
}

void ls_net_control_destroy(ls_net_h net)
{
    for (uint32_t rank = 0; net->partial != NULL && rank < net->num_ranks; rank++) {
        ls_mem_free(net->partial[rank]);
    }
    free_blocks(net->to_self);
    free_blocks(net->lent);
}

static ls_status_t make_block(uint32_t from, size_t bytes, ls_net_block_t **block_p)
{
    ls_status_t status;
    void       *mem;

    if (bytes > SIZE_MAX - sizeof(ls_net_block_t)) {
        return ls_error_set(LS_ERR_NO_MEMORY, "a control message cannot have %zu bytes", bytes);
    }
    status = ls_mem_alloc(sizeof(ls_net_block_t) + bytes, "control message", &mem);
    if (status == LS_OK) {
        *block_p          = mem;
        (*block_p)->from  = from;
        (*block_p)->bytes = bytes;
    }
    return status;
}

/* ---- send ----------------------------------------------------------------------------------- */

static ls_status_t send_to_self(ls_net_h net, const void *data, size_t bytes)
{
    ls_net_block_t   *block  = NULL;
    const ls_status_t status = make_block(net->rank, bytes, &block);

    if (status != LS_OK) {
        return status;
    }
    if (bytes > 0) {
        memcpy(block->data, data, bytes);
    }
    *net->to_self_end = block;
    net->to_self_end  = &block->next;
    ls_bell_ring(ls_net_bell(net));
    return LS_OK;
}

static ls_status_t send_part(ls_net_h net, uint32_t peer, const char *data, size_t bytes,
                             const part_words_t *words)
{
    const uint32_t no_message = 0;
    ls_stage_t    *stage;
    ls_status_t    status;

    status = ls_stage_get(net->stages, bytes + sizeof(*words), &stage);
    if (status != LS_OK) {
        return status;
    }
    if (bytes > 0) {
        memcpy(stage->data, data, bytes);
    }
    memcpy((char *)stage->data + bytes, words, sizeof(*words));
    return ls_net_post(net,
                       &(ls_send_t){.stage = stage, .bytes = bytes + sizeof(*words), .is_control = true},
                       &peer, &no_message, 1);
}

ls_status_t ls_net_send_control(ls_net_h net, uint32_t peer, const void *data, size_t bytes)
{
    part_words_t words = {.total = bytes};
    ls_status_t  status;

    if (peer == net->rank) {
        return send_to_self(net, data, bytes);
    }
    do {
        const size_t left = bytes - words.at;
        const size_t part = left < PART_DATA ? left : PART_DATA;

        status = send_part(net, peer, (const char *)data + words.at, part, &words);
        words.at += part;
    } while (status == LS_OK && words.at < bytes);
    return status;
}

/* ---- receive -------------------------------------------------------------------------------- */

static void lend(ls_net_h net, ls_net_block_t *block, ls_message_t *message_p)
{
    block->next = net->lent;
    net->lent   = block;
    *message_p  = (ls_message_t){.data = block->data, .bytes = block->bytes, .from = block->from, .token = block};
}

bool ls_net_control_release(ls_net_h net, const ls_message_t *message)
{
    for (ls_net_block_t **link = &net->lent; *link != NULL; link = &(*link)->next) {
        ls_net_block_t *block = *link;

        if (block == message->token) {
            *link = block->next;
            ls_mem_free(block);
            return true;
        }
    }
    return false;
}

/* poll_control cannot fail, so the next progress() does. */
static void remember_failure(ls_net_h net, ls_status_t status)
{
    net->control_status = status;
    snprintf(net->control_text, sizeof(net->control_text), "%s", ls_last_error());
}

/* The words of a part, if they make sense after what came before; else LS_ERR_INTERNAL. */
static ls_status_t read_words(ls_net_h net, const ls_message_t *part, part_words_t *words_p)
{
    const ls_net_block_t *block    = net->partial[part->from];
    const uint64_t        expected = (block == NULL) ? 0 : block->filled;

    if (part->bytes >= sizeof(*words_p)) {
        const uint64_t bytes = part->bytes - sizeof(*words_p);

        memcpy(words_p, (const char *)part->data + bytes, sizeof(*words_p));
        if (words_p->at == expected && (block == NULL || words_p->total == block->bytes) &&
            words_p->total >= words_p->at && bytes <= words_p->total - words_p->at &&
            (bytes > 0 || words_p->total == 0)) {
            return LS_OK;
        }
    }
    return ls_error_set(LS_ERR_INTERNAL,
                        "a control message from rank %u is malformed (%zu bytes, %llu expected next)",
                        part->from, part->bytes, (unsigned long long)expected);
}

/* Add a part to the block of its sender; *whole_p is the block when it is complete. */
static ls_status_t add_part(ls_net_h net, const ls_message_t *part, const part_words_t *words,
                            ls_net_block_t **whole_p)
{
    const size_t     bytes = part->bytes - sizeof(*words);
    ls_net_block_t **slot  = &net->partial[part->from];

    if (*slot == NULL) {
        const ls_status_t status = make_block(part->from, words->total, slot);

        if (status != LS_OK) {
            return status;
        }
    }
    memcpy((*slot)->data + words->at, part->data, bytes);
    (*slot)->filled += bytes;
    if ((*slot)->filled == (*slot)->bytes) {
        *whole_p = *slot;
        *slot    = NULL;
    }
    return LS_OK;
}

/* True if this part completes a message. */
static bool take_part(ls_net_h net, ls_message_t *part, ls_message_t *message_p)
{
    ls_net_block_t *whole = NULL;
    part_words_t    words;
    ls_status_t     status;

    status = read_words(net, part, &words);
    if (status == LS_OK && words.at == 0 && words.total == part->bytes - sizeof(words)) {
        *message_p       = *part;
        message_p->bytes = words.total;
        return true;
    }
    if (status == LS_OK) {
        status = add_part(net, part, &words, &whole);
    }
    net->routes[part->from].ops->release(net->routes[part->from].self, part);
    if (status != LS_OK) {
        remember_failure(net, status);
        return false;
    }
    if (whole != NULL) {
        lend(net, whole, message_p);
    }
    return whole != NULL;
}

static bool poll_transport(ls_net_h net, const ls_transport_ops_t *ops, void *self, ls_message_t *message_p)
{
    ls_message_t part;

    while (net->control_status == LS_OK && ops->poll_control(self, &part)) {
        if (take_part(net, &part, message_p)) {
            return true;
        }
    }
    return false;
}

bool ls_net_poll_control(ls_net_h net, ls_message_t *message_p)
{
    ls_net_block_t *block = net->to_self;

    if (block != NULL) {
        net->to_self = block->next;
        if (net->to_self == NULL) {
            net->to_self_end = &net->to_self;
        }
        lend(net, block, message_p);
        return true;
    }
    return (net->mailbox != NULL && poll_transport(net, &ls_mailbox_ops, net->mailbox, message_p)) ||
           (net->remote_ops != NULL && poll_transport(net, net->remote_ops, net->remote, message_p));
}

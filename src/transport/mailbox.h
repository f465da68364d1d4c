/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mailboxes: messages between the ranks of one node through memory they share.
 *
 * Each rank owns segments that the others map.  The first one begins with the rank's bell, its
 * process id and "gone" flag, and one ring of descriptors per sender; the rest of it, and every later
 * segment, is stages.  To send is to write a descriptor {key, segment, offset, bytes, contributors} into
 * the receiver's ring for this sender and to ring the bell; to receive is to find the descriptor and read
 * the bytes where they are; to release is to count down the stage's `pending`.  Each ring has one writer
 * and one reader, each stage one writer, so nothing needs a lock.
 *
 * Segments are anonymous (memfd): they have no name that could be left behind, /dev/shm may be as
 * small as it likes, and the kernel frees them with the last process.  Room is claimed at creation
 * (fallocate), so a full machine is an error here and never a SIGBUS later.  Peers open them through
 * /proc/<pid>/fd/<fd>.  Ranks that are threads of one process (is_local) use heap memory and the same code.
 */
#ifndef LS_TRANSPORT_MAILBOX_H
#define LS_TRANSPORT_MAILBOX_H

#include "base/bell.h"
#include "base/config.h"
#include "transport/transport.h"

typedef struct ls_mailbox *ls_mailbox_h;

typedef struct ls_mailbox_params {
    const ls_config_t *config;
    uint32_t           rank;       /* in the job */
    uint32_t           local_rank; /* among local_ranks */
    uint32_t           local_size;
    const uint32_t    *local_ranks; /* job ranks of the node, ascending; copied */
    bool               is_local;    /* ranks are threads of one process */
} ls_mailbox_params_t;

/* Where a peer finds a segment of another rank. */
typedef struct ls_mailbox_address {
    int64_t  pid;
    int64_t  fd;      /* memfd, or -1 with is_local */
    uint64_t pointer; /* with is_local */
    uint64_t bytes;
} ls_mailbox_address_t;

/* Open the own mailbox, tell its address to the node's ranks (the caller's work), connect to theirs.
 * addresses are by local rank; the own one is not looked at.  A create that fails leaves nothing behind;
 * after a connect that fails, only destroy is left to do.  The caller then goes without shared memory.
 * Destroy says "stopped" to the peers, unless the rank was marked as gone before. */
ls_status_t ls_mailbox_create(const ls_mailbox_params_t *params, ls_mailbox_h *mailbox_p);
void        ls_mailbox_get_address(ls_mailbox_h mailbox, ls_mailbox_address_t *address_p);
ls_status_t ls_mailbox_connect(ls_mailbox_h mailbox, const ls_mailbox_address_t *addresses);
void        ls_mailbox_destroy(ls_mailbox_h mailbox);

ls_bell_t *ls_mailbox_bell(ls_mailbox_h mailbox);

/* A new segment of stages; others learn of it when a descriptor names it.  *address is where it is here. */
ls_status_t ls_mailbox_grow(ls_mailbox_h mailbox, size_t bytes, uint32_t *segment_p, void **address_p);

/* The stage room of the first segment. */
void ls_mailbox_first_stages(ls_mailbox_h mailbox, uint32_t *segment_p, uint64_t *offset_p,
                             void **address_p, size_t *bytes_p);

bool ls_mailbox_find_lost(ls_mailbox_h mailbox, uint32_t *rank_p, char *text, size_t room);
void ls_mailbox_mark_gone(ls_mailbox_h mailbox, const char *reason);
void ls_mailbox_dump(ls_mailbox_h mailbox, int fd);

bool ls_mailbox_has_control(ls_mailbox_h mailbox); /* not yet polled */

/* The two halves of ops->send: one message for several ranks is published to all, then all are rung. */
ls_status_t ls_mailbox_publish(ls_mailbox_h mailbox, const ls_send_t *send);
void        ls_mailbox_ring(ls_mailbox_h mailbox, uint32_t rank, bool is_control); /* after a publish to it */

/* self is the mailbox. */
extern const ls_transport_ops_t ls_mailbox_ops;

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks for messages that come through MPI, and the table that finds them by sender and key.
 *
 * The pool grows to what was outstanding at once and is then reused, the block given back last first,
 * since it is still in the cache.
 */
#ifndef LS_TRANSPORT_MPI_RECEIVE_H
#define LS_TRANSPORT_MPI_RECEIVE_H

#include "base/mem.h"
#include "transport/transport.h"

#define LS_MPI_RECEIVE_CHAINS  1024 /* of the table; a power of two */
#define LS_MPI_RECEIVE_CLASSES 24   /* of block sizes: 256 << 23 is more than any message */

/* Travels behind the bytes of a message. */
typedef struct ls_mpi_trailer {
    uint32_t contributors;
    uint32_t check; /* from the key; see mpi_transport.h */
} ls_mpi_trailer_t;

/* A block and what is, was or will be received into it. */
typedef struct ls_mpi_receive {
    struct ls_mpi_receive *next;     /* in a chain of the table, or in the pool */
    struct ls_mpi_receive *next_all; /* every block there is */
    ls_key_t               key;
    size_t                 bytes; /* without trailer */
    uint32_t               peer;
    uint32_t               size_class;
    bool                   is_posted; /* not here yet: MPI may write to it */
    _Alignas(LS_CACHE_LINE) unsigned char data[];
} ls_mpi_receive_t;

typedef struct ls_mpi_receive_set {
    ls_mpi_receive_t *chains[LS_MPI_RECEIVE_CHAINS];
    ls_mpi_receive_t *pool[LS_MPI_RECEIVE_CLASSES];
    ls_mpi_receive_t *all;
} ls_mpi_receive_set_t; /* zero-initialised: empty */

/* A block for `bytes` (at most INT_MAX) and a trailer; in no chain. */
ls_status_t ls_mpi_receive_get(ls_mpi_receive_set_t *set, size_t bytes, ls_mpi_receive_t **receive_p);
void        ls_mpi_receive_put(ls_mpi_receive_set_t *set, ls_mpi_receive_t *receive);

/* The link that points to the block of this message, or the NULL at the end of its chain.  Blocks are
 * put into the table, and taken out, by writing to the link. */
ls_mpi_receive_t **ls_mpi_receive_find(ls_mpi_receive_set_t *set, uint32_t peer, ls_key_t key);

/* Free all blocks but those that MPI may still write to. */
void ls_mpi_receive_free_all(ls_mpi_receive_set_t *set);

#endif

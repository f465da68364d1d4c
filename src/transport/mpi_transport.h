/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages over MPI point to point, for every peer that the mailbox does not serve.
 *
 * A key is longer than an MPI tag, so the tag holds what is left of it:
 *
 *     bit 22 .. 11   bucket id (never 0: tag 0 is control)
 *         10 .. 8    chunk mod 8
 *          7 .. 0    message mod 256
 *
 * Two messages of one pair that share a tag are still told apart, because MPI delivers them in the
 * order sent and they are expected in that order: a rank starts chunk c + 8 of a bucket only when its
 * chunk c is complete, the next iteration only after the last chunk, and it sends, and expects, in the
 * order of the plan.  A word behind the bytes, made from the whole key, proves it for every message.
 *
 * Peers are ranks of the communicator.  One thread makes all calls.
 */
#ifndef LS_TRANSPORT_MPI_TRANSPORT_H
#define LS_TRANSPORT_MPI_TRANSPORT_H

#include <mpi.h>

#include "transport/transport.h"

typedef struct ls_mpi_transport *ls_mpi_transport_h;

/* `comm` must return errors (MPI_ERRORS_RETURN), carry nothing else, and outlive the transport.  MPICH asks
 * MPI_COMM_SELF's handler too: if the program left that one fatal, a failed message ends the process there.
 * LS_ERR_UNSUPPORTED if this MPI's tags are too short. */
ls_status_t ls_mpi_transport_create(MPI_Comm comm, ls_mpi_transport_h *transport_p);

/* self is the transport.  destroy() waits for nobody: what a lost peer keeps open is left behind. */
extern const ls_transport_ops_t ls_mpi_transport_ops;

#endif

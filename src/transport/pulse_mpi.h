/* SPDX-License-Identifier: Apache-2.0 */
/* How the ranks of an MPI job find each other's pulse. */
#ifndef LS_TRANSPORT_PULSE_MPI_H
#define LS_TRANSPORT_PULSE_MPI_H

#include <mpi.h>

#include "transport/pulse.h"

typedef struct ls_pulse_mpi {
    const ls_config_t *config;
    MPI_Comm           comm, local; /* all ranks; those of this (virtual) node, ascending */
    uint32_t           rank, num_ranks, local_rank, local_size;
    uint32_t           node_leader; /* smallest rank of the node */
    const char        *host;
    ls_pulse_member_t *members; /* room for num_ranks, the caller's */
} ls_pulse_mpi_t;

/* Collective over comm.  What is missing on a node (shared memory, a socket) makes the pulse see less, with a warning;
 * a failure is one of MPI, or of memory on this rank. */
ls_status_t ls_pulse_create_mpi(const ls_pulse_mpi_t *job, ls_pulse_h *pulse_p);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* MPI started and ended, and a communicator that carries nothing but our messages. */
#ifndef LS_TRANSPORT_MPI_SESSION_H
#define LS_TRANSPORT_MPI_SESSION_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>

#include "lockstep.h"

typedef struct ls_mpi_session {
    MPI_Comm comm;    /* all ranks of the job, returns errors; MPI_COMM_NULL when no longer needed */
    bool     is_ours; /* we initialised MPI, so we finalize it */
} ls_mpi_session_t;

/* Collective.  Initialises MPI unless the program did, and then makes it return errors; the error handlers
 * of a program that initialised MPI itself stay as they are. */
ls_status_t ls_mpi_session_open(ls_mpi_session_t **session_p);

/* `arg` is the session.  Orderly: collective; frees the communicator and finalizes MPI if it is ours.
 * Otherwise makes no call that could wait for a rank that is gone.  Does nothing to a finalized MPI. */
void ls_mpi_session_close(void *arg, bool is_orderly);

/* Short name and version of the MPI library: "Open MPI 4.1.4". */
void ls_mpi_session_library(char *name, size_t room);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The one place where MPI's error codes become ours. */
#ifndef LS_TRANSPORT_STATUS_MPI_H
#define LS_TRANSPORT_STATUS_MPI_H

#include "lockstep.h"

/* LS_OK for MPI_SUCCESS; otherwise a status and, for ls_last_error(), MPI's own text. */
ls_status_t ls_status_from_mpi(int code);

#endif

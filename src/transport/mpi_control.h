/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The receiving side of control messages over MPI.
 *
 * Nobody expects them, so each turn probes for them, from any rank.  For each sender MPI matches messages in
 * the order in which they were sent, but it may complete their receives in another; they are therefore handed
 * out strictly in the order in which they were matched, which keeps the order of every pair.
 */
#ifndef LS_TRANSPORT_MPI_CONTROL_H
#define LS_TRANSPORT_MPI_CONTROL_H

#include <mpi.h>

#include "base/mem.h"
#include "transport/transport.h"

#define LS_MPI_CONTROL_TAG   0
#define LS_MPI_CONTROL_COUNT 8 /* messages at a time */

/* Largest control message that one send may carry; ls_net_send_control cuts longer ones. */
#define LS_MPI_CONTROL_ROOM (256 * LS_KIB + 64)

typedef struct ls_mpi_control_slot {
    MPI_Request request;
    void       *data;
    size_t      bytes;
    uint32_t    from;
} ls_mpi_control_slot_t;

typedef struct ls_mpi_control {
    MPI_Comm              comm;
    ls_mpi_control_slot_t slots[LS_MPI_CONTROL_COUNT];
    /* In posting order from ring_first: num_ready that have come, then num_coming that MPI is receiving. */
    ls_mpi_control_slot_t *ring[LS_MPI_CONTROL_COUNT];
    ls_mpi_control_slot_t *idle[LS_MPI_CONTROL_COUNT]; /* free for the next message */
    uint32_t               ring_first, num_ready, num_coming, num_idle;
} ls_mpi_control_t; /* zero-initialised: closed */

ls_status_t ls_mpi_control_open(ls_mpi_control_t *control, MPI_Comm comm);
ls_status_t ls_mpi_control_progress(ls_mpi_control_t *control, bool *moved_p);
bool        ls_mpi_control_poll(ls_mpi_control_t *control, ls_message_t *message_p);

/* False if the message is none of these. */
bool ls_mpi_control_release(ls_mpi_control_t *control, ls_message_t *message);

/* Take the receives back from MPI, if it still runs.  Waits for nobody: a message that is just coming
 * in keeps its memory. */
void ls_mpi_control_close(ls_mpi_control_t *control, bool is_mpi_running);

#endif

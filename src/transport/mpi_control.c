/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/mpi_control.h"

#include "base/error.h"
#include "transport/status_mpi.h"

/* Take what has come: probed and matched one by one, because MPICH 5.0 over UCX loses messages that meet a posted
 * receive from any source (tests/hosts sees it). */
static ls_status_t take_arrived(ls_mpi_control_t *control)
{
    int         is_here = 1;
    ls_status_t status  = LS_OK;

    while (control->num_idle > 0 && is_here && status == LS_OK) {
        ls_mpi_control_slot_t *slot  = control->idle[control->num_idle - 1];
        const uint32_t         place = control->ring_first + control->num_ready + control->num_coming;
        MPI_Message            message;
        MPI_Status             mpi_status;

        is_here = 0;
        status  = ls_status_from_mpi(MPI_Improbe(MPI_ANY_SOURCE, LS_MPI_CONTROL_TAG, control->comm, &is_here, &message,
                                                 &mpi_status));
        if (status != LS_OK || !is_here) {
            break;
        }
        status = ls_status_from_mpi(
            MPI_Imrecv(slot->data, (int)LS_MPI_CONTROL_ROOM, MPI_BYTE, &message, &slot->request));
        if (status != LS_OK) {
            slot->request = MPI_REQUEST_NULL;
            break;
        }
        control->ring[place % LS_MPI_CONTROL_COUNT] = slot;
        control->num_coming++;
        control->num_idle--;
    }
    return status;
}

ls_status_t ls_mpi_control_open(ls_mpi_control_t *control, MPI_Comm comm)
{
    ls_status_t status = LS_OK;

    control->comm = comm;
    for (size_t i = 0; i < LS_MPI_CONTROL_COUNT && status == LS_OK; i++) {
        control->slots[i].request = MPI_REQUEST_NULL;
        status = ls_mem_alloc(LS_MPI_CONTROL_ROOM, "mpi control", &control->slots[i].data);
        if (status == LS_OK) {
            control->idle[control->num_idle++] = &control->slots[i];
        }
    }
    if (status != LS_OK) {
        ls_mpi_control_close(control, true);
    }
    return status;
}

/* *is_here_p: the oldest message that was coming is complete and now ready. */
static ls_status_t test_oldest(ls_mpi_control_t *control, int *is_here_p)
{
    const uint32_t         place = control->ring_first + control->num_ready;
    ls_mpi_control_slot_t *slot  = control->ring[place % LS_MPI_CONTROL_COUNT];
    int                    length = 0;
    MPI_Status             mpi_status;
    ls_status_t status = ls_status_from_mpi(MPI_Test(&slot->request, is_here_p, &mpi_status));

    if (status != LS_OK || !*is_here_p) {
        return status;
    }
    status = ls_status_from_mpi(MPI_Get_count(&mpi_status, MPI_BYTE, &length));
    if (status != LS_OK) {
        return status;
    }
    slot->bytes = (size_t)length;
    slot->from  = (uint32_t)mpi_status.MPI_SOURCE;
    control->num_coming--;
    control->num_ready++;
    return LS_OK;
}

ls_status_t ls_mpi_control_progress(ls_mpi_control_t *control, bool *moved_p)
{
    ls_status_t status  = take_arrived(control);
    int         is_here = 1;

    while (status == LS_OK && is_here && control->num_coming > 0) {
        is_here = 0;
        status  = test_oldest(control, &is_here);
        *moved_p |= (is_here != 0);
    }
    return (status == LS_OK) ? LS_OK
                             : ls_error_set(status, "receiving control messages: %s", ls_last_error());
}

bool ls_mpi_control_poll(ls_mpi_control_t *control, ls_message_t *message_p)
{
    ls_mpi_control_slot_t *slot = control->ring[control->ring_first];

    if (control->num_ready == 0) {
        return false;
    }
    control->ring_first = (control->ring_first + 1) % LS_MPI_CONTROL_COUNT;
    control->num_ready--;
    *message_p = (ls_message_t){
        .data = slot->data, .bytes = slot->bytes, .from = slot->from, .token = slot,
    };
    return true;
}

bool ls_mpi_control_release(ls_mpi_control_t *control, ls_message_t *message)
{
    for (size_t i = 0; i < LS_MPI_CONTROL_COUNT; i++) {
        if (message->token == &control->slots[i]) {
            control->idle[control->num_idle++] = &control->slots[i];
            return true;
        }
    }
    return false;
}

void ls_mpi_control_close(ls_mpi_control_t *control, bool is_mpi_running)
{
    for (size_t i = 0; i < LS_MPI_CONTROL_COUNT; i++) {
        ls_mpi_control_slot_t *slot    = &control->slots[i];
        int                    is_done = 1;

        if (is_mpi_running && slot->data != NULL && slot->request != MPI_REQUEST_NULL) {
            is_done = 0;
            (void)MPI_Test(&slot->request, &is_done, MPI_STATUS_IGNORE);
        }
        if (is_done) {
            ls_mem_free(slot->data);
        }
    }
    *control = (ls_mpi_control_t){.comm = MPI_COMM_NULL};
}

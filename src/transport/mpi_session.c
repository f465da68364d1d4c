/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/mpi_session.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "base/mem.h"
#include "transport/status_mpi.h"

void ls_mpi_session_close(void *arg, bool is_orderly)
{
    ls_mpi_session_t *session      = arg;
    int               is_finalized = 0;

    (void)MPI_Finalized(&is_finalized); /* cannot fail */
    if (is_orderly && !is_finalized) {
        if (session->comm != MPI_COMM_NULL &&
            ls_status_from_mpi(MPI_Comm_free(&session->comm)) != LS_OK) {
            ls_warn("cannot free the communicator: %s", ls_last_error());
        }
        if (session->is_ours && ls_status_from_mpi(MPI_Finalize()) != LS_OK) {
            ls_warn("cannot finalize MPI: %s", ls_last_error());
        }
    }
    ls_mem_free(session);
}

static ls_status_t mpi_init(bool *is_ours_p)
{
    int         is_initialized = 0, is_finalized = 0, level;
    ls_status_t status;

    (void)MPI_Initialized(&is_initialized); /* these two cannot fail */
    (void)MPI_Finalized(&is_finalized);
    if (is_finalized) {
        return ls_error_set(LS_ERR_INVALID, "MPI has been finalized in this process and cannot start again: "
                                            "start lockstep before MPI_Finalize, and once");
    }
    *is_ours_p = !is_initialized;
    if (is_initialized) {
        return LS_OK;
    }
    /* Any level will do for us, since one thread makes all calls; the program may want more. */
    status = ls_status_from_mpi(MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &level));
    /* Some MPIs report errors of calls for several requests through these two, and would end the process. */
    if (status == LS_OK) {
        status = ls_status_from_mpi(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    }
    if (status == LS_OK) {
        status = ls_status_from_mpi(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    }
    return (status == LS_OK) ? LS_OK : ls_error_set(status, "cannot start MPI: %s", ls_last_error());
}

ls_status_t ls_mpi_session_open(ls_mpi_session_t **session_p)
{
    ls_mpi_session_t *session;
    void             *mem;
    ls_status_t       status = ls_mem_alloc(sizeof(*session), "mpi session", &mem);

    if (status != LS_OK) {
        return status;
    }
    session       = mem;
    session->comm = MPI_COMM_NULL;
    status        = mpi_init(&session->is_ours);
    if (status == LS_OK) {
        status = ls_status_from_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &session->comm));
    }
    if (status == LS_OK) {
        status = ls_status_from_mpi(MPI_Comm_set_errhandler(session->comm, MPI_ERRORS_RETURN));
    }
    if (status != LS_OK) {
        ls_mpi_session_close(session, false);
        return status;
    }
    *session_p = session;
    return LS_OK;
}

/* "Open MPI v4.1.4, package: ..." and "MPICH Version:      5.0.2\n..." become name and number. */
void ls_mpi_session_library(char *name, size_t room)
{
    char   version[MPI_MAX_LIBRARY_VERSION_STRING + 1] = "";
    char  *word, *rest = NULL;
    int    length = 0;
    size_t used   = 0;

    if (MPI_Get_library_version(version, &length) != MPI_SUCCESS) {
        version[0] = '\0';
    }
    version[strcspn(version, ",\n")] = '\0';
    snprintf(name, room, "unknown library");
    for (word = strtok_r(version, " \t", &rest); word != NULL && used < room / 2;
         word = strtok_r(NULL, " \t", &rest)) {
        if (strcmp(word, "Version:") == 0) {
            continue;
        }
        if (word[0] == 'v' && word[1] >= '0' && word[1] <= '9') {
            word++;
        }
        used += (size_t)snprintf(name + used, room - used, "%s%.40s", used > 0 ? " " : "", word);
    }
}

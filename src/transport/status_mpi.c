/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/status_mpi.h"

#include <mpi.h>
#include <stddef.h>

#include "base/error.h"

/* What is not listed is LS_ERR_MPI.  A truncated message means that two ranks differ about a size that
 * they had agreed on: that is our mistake, not MPI's. */
static const struct {
    int         error_class;
    ls_status_t status;
} classes[] = {
    {.error_class = MPI_ERR_NO_MEM, .status = LS_ERR_NO_MEMORY},
    {.error_class = MPI_ERR_TRUNCATE, .status = LS_ERR_INTERNAL},
#ifdef MPI_ERR_PROC_ABORTED /* since MPI 4.0 */
    {.error_class = MPI_ERR_PROC_ABORTED, .status = LS_ERR_RANK_LOST},
#endif
};

ls_status_t ls_status_from_mpi(int code)
{
    char        text[MPI_MAX_ERROR_STRING + 1];
    int         length = 0, error_class = MPI_ERR_UNKNOWN;
    ls_status_t status = LS_ERR_MPI;

    if (code == MPI_SUCCESS) {
        return LS_OK;
    }
    if (MPI_Error_string(code, text, &length) != MPI_SUCCESS) {
        return ls_error_set(status, "MPI: error %d, which MPI cannot explain", code);
    }
    text[length] = '\0';
    if (MPI_Error_class(code, &error_class) == MPI_SUCCESS) {
        for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++) {
            if (classes[i].error_class == error_class) {
                status = classes[i].status;
            }
        }
    }
    return ls_error_set(status, "MPI: %s", text);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Takes the place of net_mpi.c in a build without MPI. */
#include "base/error.h"
#include "transport/net.h"

ls_status_t ls_net_create_mpi(const ls_config_t *config, ls_net_h *net_p)
{
    (void)config;
    (void)net_p;
    return ls_error_set(LS_ERR_UNSUPPORTED, "this library was built without MPI: only jobs whose ranks "
                                            "are threads (ls_local_job_create) can be started");
}

const char *ls_mpi_version(void)
{
    return "";
}

const char *ls_mpi_path(void)
{
    return "";
}

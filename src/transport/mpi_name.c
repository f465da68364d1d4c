/* SPDX-License-Identifier: Apache-2.0 */
/* Which MPI this library runs with: a launcher of another one would start ranks that do not see each other. */
#include <dlfcn.h>
#include <mpi.h>
#include <pthread.h>
#include <string.h>

#include "lockstep.h"

static pthread_once_t version_once = PTHREAD_ONCE_INIT;
static char           version_text[MPI_MAX_LIBRARY_VERSION_STRING];

/* Allowed before MPI_Init.  The first line: some MPIs add how they were configured. */
static void read_version(void)
{
    int length = 0;

    if (MPI_Get_library_version(version_text, &length) != MPI_SUCCESS) {
        version_text[0] = '\0';
    }
    version_text[strcspn(version_text, "\n")] = '\0';
}

const char *ls_mpi_version(void)
{
    (void)pthread_once(&version_once, read_version);
    return version_text;
}

const char *ls_mpi_path(void)
{
    int (*const function)(char *, int *) = MPI_Get_library_version;
    Dl_info info;
    void   *address;

    /* C has no cast from a function to a pointer; POSIX promises that they look alike. */
    memcpy(&address, &function, sizeof(address));
    return (dladdr(address, &info) != 0 && info.dli_fname != NULL) ? info.dli_fname : "";
}

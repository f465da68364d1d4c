/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loaded before all other libraries (LD_PRELOAD): notes which rank opens which file for writing, or renames one into place.
 *
 * WHO_WRITES_LOG is the file for the notes, a line "rank path" each; WHO_WRITES_UNDER the folder of interest.  What C++ and
 * HDF5 write is seen here too, unlike in Python.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NEXT(_name) ((__typeof__(&_name))dlsym(RTLD_NEXT, #_name))

static void note(const char *path)
{
    const char *log = getenv("WHO_WRITES_LOG"), *under = getenv("WHO_WRITES_UNDER");
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");
    char        full[4096], line[4200];
    long        fd;
    int         length;

    if (log == NULL || under == NULL || path == NULL) {
        return;
    }
    if (path[0] == '/') {
        snprintf(full, sizeof(full), "%s", path);
    } else if (getcwd(full, sizeof(full) / 2) != NULL) {
        snprintf(full + strlen(full), sizeof(full) / 2, "/%s", path);
    }
    if (strncmp(full, under, strlen(under)) != 0) {
        return;
    }
    length = snprintf(line, sizeof(line), "%s %s\n", (rank == NULL) ? "-" : rank, full);
    fd     = syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd >= 0) {
        (void)!syscall(SYS_write, fd, line, (size_t)length);
        (void)syscall(SYS_close, fd);
    }
}

static int is_writing(int flags)
{
    return (flags & O_ACCMODE) != O_RDONLY || (flags & O_CREAT) != 0;
}

/* What open() and openat() do first: `mode` is their last argument, where there is one. */
#define NOTE_AND_TAKE_MODE                                     \
    va_list  args;                                             \
    unsigned mode;                                             \
                                                               \
    va_start(args, flags);                                     \
    mode = va_arg(args, unsigned);                             \
    va_end(args);                                              \
    if (is_writing(flags)) {                                   \
        note(path);                                            \
    }

#define OPEN(_name)                                            \
    int _name(const char *path, int flags, ...)                \
    {                                                          \
        NOTE_AND_TAKE_MODE                                     \
        return NEXT(_name)(path, flags, mode);                 \
    }

#define OPENAT(_name)                                          \
    int _name(int folder, const char *path, int flags, ...)    \
    {                                                          \
        NOTE_AND_TAKE_MODE                                     \
        return NEXT(_name)(folder, path, flags, mode);         \
    }

#define FOPEN(_name)                                           \
    FILE *_name(const char *path, const char *mode)            \
    {                                                          \
        if (strpbrk(mode, "wa+") != NULL) {                    \
            note(path);                                        \
        }                                                      \
        return NEXT(_name)(path, mode);                        \
    }

OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)
FOPEN(fopen)
FOPEN(fopen64)

int rename(const char *from, const char *to)
{
    note(to);
    return NEXT(rename)(from, to);
}

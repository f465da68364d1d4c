/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/mem.h"

/* "/proc/<pid>/fd/<fd>" */
#define PATH_ROOM 64

/*
 * Claim the room.  With signals let in, a profiling timer could interrupt the call for ever, and a file size
 * limit would end the process by SIGXFSZ; so they wait, and a SIGXFSZ that this call caused is taken back.
 */
static int claim(int fd, size_t bytes)
{
    const struct timespec no_time = {0};
    sigset_t              all, before, pending, limit_signal;
    int                   code;

    sigfillset(&all);
    sigemptyset(&pending);
    sigemptyset(&limit_signal);
    sigaddset(&limit_signal, SIGXFSZ);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    sigpending(&pending);
    do {
        code = posix_fallocate(fd, 0, (off_t)bytes);
    } while (code == EINTR);
    if (code == EFBIG && !sigismember(&pending, SIGXFSZ)) {
        while (sigtimedwait(&limit_signal, NULL, &no_time) < 0 && errno == EINTR) {
        }
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return code;
}

ls_status_t ls_segment_create_shared(size_t bytes, ls_segment_t *segment_p)
{
    ls_status_t status;
    void       *base;
    int         code, fd;

    if (bytes == 0 || bytes > (size_t)INT64_MAX) {
        return ls_error_set(LS_ERR_INVALID, "shared memory cannot have %zu bytes", bytes);
    }
    fd = memfd_create("lockstep", MFD_CLOEXEC);
    if (fd < 0) {
        return ls_error_set_errno("cannot create shared memory");
    }
    code = claim(fd, bytes);
    if (code != 0) {
        errno  = code;
        status = ls_error_set_errno("cannot claim %zu bytes of shared memory%s", bytes,
                                    code == EFBIG ? " (see the file size limit, ulimit -f)" : "");
        goto err_close;
    }
    base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
    if (base == MAP_FAILED) {
        status = ls_error_set_errno("cannot map %zu bytes of shared memory", bytes);
        goto err_close;
    }
    *segment_p = (ls_segment_t){.kind = LS_SEGMENT_SHARED, .fd = fd, .base = base, .bytes = bytes};
    return LS_OK;

err_close:
    close(fd);
    return status;
}

ls_status_t ls_segment_create_heap(size_t bytes, ls_segment_t *segment_p)
{
    void             *base;
    const ls_status_t status = ls_mem_alloc(bytes, "segment", &base);

    if (status == LS_OK) {
        *segment_p = (ls_segment_t){.kind = LS_SEGMENT_HEAP, .fd = -1, .base = base, .bytes = bytes};
    }
    return status;
}

ls_status_t ls_segment_open(int64_t pid, int64_t fd, size_t bytes, ls_segment_t *segment_p)
{
    char        path[PATH_ROOM];
    struct stat file;
    ls_status_t status = LS_OK;
    void       *base   = NULL;
    int         here;

    snprintf(path, sizeof(path), "/proc/%" PRId64 "/fd/%" PRId64, pid, fd);
    /* Not blocking: behind a wrong number may be a pipe. */
    here = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
    if (here < 0) {
        return ls_error_set_errno("cannot open shared memory %s", path);
    }
    if (fstat(here, &file) != 0) {
        status = ls_error_set_errno("cannot look at shared memory %s", path);
    } else if (!S_ISREG(file.st_mode) || bytes == 0 || (uint64_t)file.st_size != bytes) {
        status = ls_error_set(LS_ERR_INTERNAL, "shared memory %s has %lld bytes, not the %zu announced",
                              path, (long long)file.st_size, bytes);
    } else {
        base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, here, 0);
        if (base == MAP_FAILED) {
            status = ls_error_set_errno("cannot map %zu bytes of shared memory %s", bytes, path);
        }
    }
    close(here); /* the mapping stays */
    if (status == LS_OK) {
        *segment_p = (ls_segment_t){.kind = LS_SEGMENT_OPENED, .fd = -1, .base = base, .bytes = bytes};
    }
    return status;
}

void ls_segment_borrow(void *base, size_t bytes, ls_segment_t *segment_p)
{
    *segment_p = (ls_segment_t){.kind = LS_SEGMENT_BORROWED, .fd = -1, .base = base, .bytes = bytes};
}

void ls_segment_destroy(ls_segment_t *segment)
{
    switch (segment->kind) {
    case LS_SEGMENT_SHARED:
        munmap(segment->base, segment->bytes);
        close(segment->fd);
        break;
    case LS_SEGMENT_OPENED:
        munmap(segment->base, segment->bytes);
        break;
    case LS_SEGMENT_HEAP:
        ls_mem_free(segment->base);
        break;
    case LS_SEGMENT_NONE:
    case LS_SEGMENT_BORROWED:
    case LS_SEGMENT_KIND_COUNT:
        break;
    }
    *segment = (ls_segment_t){.fd = -1};
}

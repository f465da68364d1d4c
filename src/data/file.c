/* SPDX-License-Identifier: Apache-2.0 */
#include "data/file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/mem.h"

#define REASON_ROOM 1024
#define READ_MOST   (1UL << 30) /* read() gives at most 2 GiB at a time */

ls_status_t ls_file_error(const char *path, const char *unit, uint64_t record, uint64_t offset,
                          const char *reason, ...)
{
    char    text[REASON_ROOM], where[64] = "", at[64] = "";
    va_list args;

    va_start(args, reason);
    vsnprintf(text, sizeof(text), reason, args);
    va_end(args);
    if (record != LS_FILE_NOWHERE) {
        snprintf(where, sizeof(where), "%s %" PRIu64, unit, record);
    }
    if (offset != LS_FILE_NOWHERE) {
        snprintf(at, sizeof(at), "%sbyte %" PRIu64, where[0] != '\0' ? ", " : "", offset);
    }
    return ls_error_set(LS_ERR_INVALID, "%s: %s%s%s%s", path, where, at, where[0] + at[0] != 0 ? ": " : "",
                        text);
}

ls_status_t ls_file_open(const char *path, ls_file_t *file_p)
{
    ls_file_t file = {.fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)}; /* a FIFO must not make it wait */
    struct stat status;
    ls_status_t result;

    if (file.fd < 0) {
        return ls_error_set_errno("%s: it cannot be opened", path);
    }
    if (fstat(file.fd, &status) != 0) {
        result = ls_error_set_errno("%s: nothing can be found out about it", path);
        goto err_close;
    }
    if (!S_ISREG(status.st_mode)) {
        result = ls_error_set(LS_ERR_INVALID, "%s: it is %s, not a file", path,
                              S_ISDIR(status.st_mode) ? "a folder" : "a device, pipe or socket");
        goto err_close;
    }
    file.bytes    = (uint64_t)status.st_size;
    file.modified = status.st_mtim;
    result        = ls_mem_strdup(path, "path of a data file", &file.path);
    if (result != LS_OK) {
        goto err_close;
    }
    *file_p = file;
    return LS_OK;

err_close:
    close(file.fd);
    return result;
}

void ls_file_close(ls_file_t *file)
{
    if (file->path == NULL) {
        return;
    }
    if (file->mapping != NULL) {
        munmap(file->mapping, file->bytes);
    }
    close(file->fd);
    ls_mem_free(file->path);
    *file = (ls_file_t){.fd = -1};
}

ls_status_t ls_file_read(const ls_file_t *file, uint64_t offset, size_t bytes, void *memory)
{
    size_t done = 0;

    while (done < bytes) {
        const size_t  rest = bytes - done;
        const ssize_t got  = pread(file->fd, (char *)memory + done, rest < READ_MOST ? rest : READ_MOST,
                                   (off_t)(offset + done));

        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return ls_error_set_errno("%s: byte %" PRIu64 ": it cannot be read", file->path, offset + done);
        }
        if (got == 0) {
            const ls_status_t status = ls_file_unchanged(file);

            return status != LS_OK ? status
                                   : ls_file_error(file->path, "", LS_FILE_NOWHERE, offset + done,
                                                   "the file ends here, %zu bytes too early", rest);
        }
        done += (size_t)got;
    }
    return LS_OK;
}

ls_status_t ls_file_unchanged(const ls_file_t *file)
{
    struct stat now;

    if (fstat(file->fd, &now) != 0) {
        return ls_error_set_errno("%s: nothing can be found out about it", file->path);
    }
    if ((uint64_t)now.st_size != file->bytes) {
        return ls_file_error(file->path, "", LS_FILE_NOWHERE, LS_FILE_NOWHERE,
                             "the file has changed while it was read: it had %" PRIu64 " bytes, now %" PRIu64,
                             file->bytes, (uint64_t)now.st_size);
    }
    if (now.st_mtim.tv_sec != file->modified.tv_sec || now.st_mtim.tv_nsec != file->modified.tv_nsec) {
        return ls_file_error(file->path, "", LS_FILE_NOWHERE, LS_FILE_NOWHERE,
                             "the file has changed while it was read: it was written to after it was opened");
    }
    return LS_OK;
}

ls_status_t ls_file_map(ls_file_t *file, const unsigned char **bytes_p)
{
    ls_status_t status = ls_file_unchanged(file);

    if (status != LS_OK) {
        return status;
    }
    if (file->mapping == NULL) {
        if (file->bytes == 0) {
            return ls_error_set(LS_ERR_UNSUPPORTED, "%s: an empty file cannot be mapped", file->path);
        }
        void *mapping = mmap(NULL, file->bytes, PROT_READ, MAP_SHARED, file->fd, 0);

        if (mapping == MAP_FAILED) {
            return ls_error_set_errno("%s: it cannot be mapped", file->path);
        }
        file->mapping = mapping;
    }
    *bytes_p = file->mapping;
    return LS_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/mem.h"
#include "state/state_int.h"

#define WRITE_BYTES (8u << 20) /* at a time: a kill or a full disk is noticed soon */
#define LINE_ROOM   80
#define UNFINISHED  ".part" /* one file is written at a time */

ls_status_t ls_state_path(const char *folder, const char *name, const char *ending, char path[LS_STATE_PATH_ROOM])
{
    const int length = snprintf(path, LS_STATE_PATH_ROOM, "%s/%s%s", folder, name, ending);

    if (name[0] == '\0' || name[0] == '.' || strchr(name, '/') != NULL) {
        return ls_error_set(LS_ERR_INVALID, "'%s' is no name of a snapshot", name);
    }
    if (length < 0 || length >= LS_STATE_PATH_ROOM) {
        return ls_error_set(LS_ERR_INVALID, "the path of snapshot '%s' is too long", name);
    }
    return LS_OK;
}

static ls_status_t write_all(int fd, const char *path, uint64_t offset, const void *data, uint64_t size)
{
    const char *bytes = data;

    for (uint64_t done = 0; done < size;) {
        const uint64_t left = size - done;
        const ssize_t  put  = pwrite(fd, bytes + done, left < WRITE_BYTES ? (size_t)left : WRITE_BYTES,
                                     (off_t)(offset + done));

        if (put < 0 && errno == EINTR) {
            continue;
        }
        if (put <= 0) {
            return ls_error_set_errno("%s: byte %" PRIu64 ": it cannot be written", path, offset + done);
        }
        done += (uint64_t)put;
    }
    return LS_OK;
}

static uint64_t size_of(const ls_state_part_t *parts, unsigned num_parts)
{
    uint64_t size = 0;

    for (unsigned i = 0; i < num_parts; i++) {
        size = ls_state_aligned(size + parts[i].size);
    }
    return size;
}

/* Parts one after another; the last is filled up to the end of the file. */
static ls_status_t write_parts(int fd, const char *path, const ls_state_part_t *parts, unsigned num_parts, uint64_t size)
{
    uint64_t offset = 0;

    for (unsigned i = 0; i < num_parts; i++) {
        const ls_status_t status = write_all(fd, path, offset, parts[i].data, parts[i].size);

        if (status != LS_OK) {
            return status;
        }
        offset = ls_state_aligned(offset + parts[i].size);
    }
    return ftruncate(fd, (off_t)size) == 0
               ? LS_OK
               : ls_error_set_errno("%s: it cannot be made %" PRIu64 " bytes long", path, size);
}

/* What is to be renamed has to be on the disk first. */
static ls_status_t close_synced(int fd, const char *path, ls_status_t status)
{
    if (status == LS_OK && fsync(fd) != 0) {
        status = ls_error_set_errno("%s: it cannot be brought to the disk", path);
    }
    if (close(fd) != 0 && status == LS_OK) { /* network file systems tell of a full disk here */
        status = ls_error_set_errno("%s: it cannot be closed", path);
    }
    return status;
}

static ls_status_t open_new(const char *path, int *fd_p)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);

    if (fd < 0) {
        return ls_error_set_errno("%s: it cannot be made", path);
    }
    *fd_p = fd;
    return LS_OK;
}

static ls_status_t rename_to(const char *from, const char *to)
{
    return rename(from, to) == 0 ? LS_OK : ls_error_set_errno("%s: it cannot be renamed to %s", from, to);
}

static ls_status_t sync_folder(const char *folder)
{
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0) {
        return ls_error_set_errno("%s: it cannot be opened", folder);
    }
    /* Some network file systems have no fsync of a folder: their server keeps the order by itself. */
    if (fsync(fd) != 0 && errno != EINVAL && errno != ENOTSUP) {
        const ls_status_t status = ls_error_set_errno("%s: it cannot be brought to the disk", folder);

        close(fd);
        return status;
    }
    close(fd);
    return LS_OK;
}

/* A file that has its name only when all of it is on the disk, and whose name is there before anything later is. */
static ls_status_t put_file(const char *folder, const char *name, const char *ending, const ls_state_part_t *parts,
                            unsigned num_parts, uint64_t size)
{
    char        path[LS_STATE_PATH_ROOM], unfinished[LS_STATE_PATH_ROOM];
    int         fd     = -1;
    ls_status_t status = ls_state_path(folder, name, ending, path);

    if (status == LS_OK) {
        status = ls_state_path(folder, name, UNFINISHED, unfinished);
    }
    if (status == LS_OK) {
        status = open_new(unfinished, &fd);
    }
    if (status != LS_OK) {
        return status;
    }
    status = close_synced(fd, unfinished, write_parts(fd, unfinished, parts, num_parts, size));
    if (status == LS_OK) {
        status = rename_to(unfinished, path);
    }
    if (status != LS_OK) {
        unlink(unfinished);
        return status;
    }
    return sync_folder(folder);
}

/* The text of the manifest; returns its length. */
static size_t describe(const ls_state_part_t *parts, unsigned num_parts, char *text, size_t room)
{
    uint64_t offset = 0;
    size_t   used   = (size_t)snprintf(text, room, LS_STATE_HEAD "data %" PRIu64 "\n", size_of(parts, num_parts));

    for (unsigned i = 0; i < num_parts; i++) {
        used += (size_t)snprintf(text + used, room - used, "part %" PRIu64 " %" PRIu64 " %016" PRIx64 "\n", offset,
                                 parts[i].size, ls_hash(parts[i].data, (size_t)parts[i].size));
        offset = ls_state_aligned(offset + parts[i].size);
    }
    return used + (size_t)snprintf(text + used, room - used, "end %u %016" PRIx64 "\n", num_parts, ls_hash(text, used));
}

ls_status_t ls_state_write(const char *folder, const char *name, const ls_state_part_t *parts, unsigned num_parts)
{
    const size_t room = ((size_t)num_parts + 3) * LINE_ROOM;
    void        *text = NULL;
    ls_status_t  status;

    if (num_parts > LS_STATE_MAX_PARTS) {
        return ls_error_set(LS_ERR_INVALID, "snapshot '%s' has %u parts; at most %u are allowed", name, num_parts,
                            LS_STATE_MAX_PARTS);
    }
    status = ls_mem_alloc(room, "manifest", &text);
    if (status != LS_OK) {
        return status;
    }
    ls_state_remove(folder, name);
    status = put_file(folder, name, ".data", parts, num_parts, size_of(parts, num_parts));
    if (status == LS_OK) {
        const ls_state_part_t manifest = {.data = text, .size = describe(parts, num_parts, text, room)};

        status = put_file(folder, name, ".manifest", &manifest, 1, manifest.size);
    }
    if (status != LS_OK) {
        ls_state_remove(folder, name);
    }
    ls_mem_free(text);
    return status;
}

void ls_state_remove(const char *folder, const char *name)
{
    static const char *const endings[] = {".manifest", ".data", UNFINISHED};
    char                     path[LS_STATE_PATH_ROOM];

    for (unsigned i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
        if (ls_state_path(folder, name, endings[i], path) == LS_OK) {
            unlink(path);
        }
    }
}

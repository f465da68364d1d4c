/* SPDX-License-Identifier: Apache-2.0 */
/* PKWARE's APPNOTE 6.3: the end of the file says where the directory is, the directory where the entries are.
 */
#include "data/zip.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "base/mem.h"

#define END_BYTES      22
#define END_COMMENT    65535
#define END64_BYTES    56
#define LOCATOR_BYTES  20
#define ENTRY_BYTES    46
#define LOCAL_BYTES    30
#define MAX_ENTRIES    4096
#define MAX_DIRECTORY  (16UL << 20)
#define MAX_32         0xffffffffu
#define EXTRA_ZIP64    1
#define FLAG_ENCRYPTED 1

typedef struct directory {
    uint64_t offset, bytes, count;
} directory_t;

static unsigned get16(const unsigned char *at)
{
    return at[0] | (unsigned)at[1] << 8;
}

static uint32_t get32(const unsigned char *at)
{
    return get16(at) | (uint32_t)get16(at + 2) << 16;
}

static uint64_t get64(const unsigned char *at)
{
    return get32(at) | (uint64_t)get32(at + 4) << 32;
}

static bool is_signature(const unsigned char *at, char one, char two)
{
    return at[0] == 'P' && at[1] == 'K' && at[2] == one && at[3] == two;
}

static ls_status_t bad(const ls_file_t *file, uint64_t entry, uint64_t offset, const char *reason)
{
    return ls_file_error(file->path, "entry", entry, offset, "%s", reason);
}

/* Sizes that do not fit 32 bits are in another record before the end record. */
static ls_status_t find_directory_64(const ls_file_t *file, uint64_t end_offset, directory_t *directory_p)
{
    unsigned char locator[LOCATOR_BYTES], end[END64_BYTES];
    uint64_t      offset;
    ls_status_t   status;

    if (end_offset < LOCATOR_BYTES) {
        return bad(file, LS_FILE_NOWHERE, end_offset, "the zip directory's 64-bit record is missing");
    }
    status = ls_file_read(file, end_offset - LOCATOR_BYTES, LOCATOR_BYTES, locator);
    if (status != LS_OK) {
        return status;
    }
    offset = get64(locator + 8);
    if (!is_signature(locator, 6, 7) || file->bytes < END64_BYTES || offset > file->bytes - END64_BYTES) {
        return bad(file, LS_FILE_NOWHERE, end_offset - LOCATOR_BYTES,
                   "the zip directory's 64-bit record is missing");
    }
    status = ls_file_read(file, offset, END64_BYTES, end);
    if (status != LS_OK) {
        return status;
    }
    if (!is_signature(end, 6, 6)) {
        return bad(file, LS_FILE_NOWHERE, offset, "the zip directory's 64-bit record is damaged");
    }
    *directory_p =
        (directory_t){.count = get64(end + 32), .bytes = get64(end + 40), .offset = get64(end + 48)};
    return LS_OK;
}

static ls_status_t find_directory(const ls_file_t *file, unsigned char *tail, size_t tail_bytes,
                                  directory_t *directory_p)
{
    const uint64_t tail_offset = file->bytes - tail_bytes;
    ls_status_t    status      = ls_file_read(file, tail_offset, tail_bytes, tail);

    if (status != LS_OK) {
        return status;
    }
    for (size_t at = tail_bytes - END_BYTES + 1; at-- > 0;) {
        if (is_signature(tail + at, 5, 6) && get16(tail + at + 20) == tail_bytes - END_BYTES - at) {
            const unsigned char *end = tail + at;

            *directory_p =
                (directory_t){.count = get16(end + 10), .bytes = get32(end + 12), .offset = get32(end + 16)};
            return directory_p->count == 0xffff || directory_p->bytes == MAX_32 ||
                           directory_p->offset == MAX_32
                       ? find_directory_64(file, tail_offset + at, directory_p)
                       : LS_OK;
        }
    }
    return bad(file, LS_FILE_NOWHERE, file->bytes, "the zip directory is missing; was the file cut short?");
}

static ls_status_t locate_directory(const ls_file_t *file, directory_t *directory_p)
{
    const size_t tail_bytes =
        file->bytes < END_BYTES + END_COMMENT ? (size_t)file->bytes : END_BYTES + END_COMMENT;
    unsigned char *tail = NULL;
    ls_status_t    status;

    if (file->bytes < END_BYTES) {
        return bad(file, LS_FILE_NOWHERE, file->bytes, "the file is too short to be a zip file");
    }
    status = ls_mem_alloc(tail_bytes, "end of a zip file", (void **)&tail);
    if (status != LS_OK) {
        return status;
    }
    status = find_directory(file, tail, tail_bytes, directory_p);
    ls_mem_free(tail);
    if (status != LS_OK) {
        return status;
    }
    if (directory_p->bytes > file->bytes || directory_p->offset > file->bytes - directory_p->bytes ||
        directory_p->bytes > MAX_DIRECTORY || directory_p->count > MAX_ENTRIES) {
        return ls_file_error(file->path, "", LS_FILE_NOWHERE, directory_p->offset,
                             "a zip directory of %" PRIu64 " entries in %" PRIu64
                             " bytes does not fit the file, or is too large",
                             directory_p->count, directory_p->bytes);
    }
    return LS_OK;
}

/* Replaces what was too large for 32 bits. */
static bool read_extra(const unsigned char *extra, size_t bytes, uint64_t *unpacked_p, uint64_t *packed_p,
                       uint64_t *local_p)
{
    uint64_t *const wide[] = {unpacked_p, packed_p, local_p};

    for (size_t at = 0; at + 4 <= bytes;) {
        const size_t length = get16(extra + at + 2);
        size_t       used   = 0;

        if (at + 4 + length > bytes) {
            return false;
        }
        for (unsigned i = 0; i < 3 && get16(extra + at) == EXTRA_ZIP64; i++) {
            if (*wide[i] == MAX_32) {
                if (used + 8 > length) {
                    return false;
                }
                *wide[i] = get64(extra + at + 4 + used);
                used += 8;
            }
        }
        at += 4 + length;
    }
    return true;
}

/* The data follows the entry's own header, whose length may differ from the directory's. */
static ls_status_t find_data(const ls_file_t *file, uint64_t number, uint64_t local,
                             ls_stream_entry_t *stream)
{
    unsigned char header[LOCAL_BYTES];
    ls_status_t   status;

    if (local > file->bytes || file->bytes - local < LOCAL_BYTES) {
        return bad(file, number, local, "the zip directory points behind the end of the file");
    }
    status = ls_file_read(file, local, LOCAL_BYTES, header);
    if (status != LS_OK) {
        return status;
    }
    if (!is_signature(header, 3, 4)) {
        return bad(file, number, local, "there is no zip entry where the directory says");
    }
    stream->offset = local + LOCAL_BYTES + get16(header + 26) + get16(header + 28);
    if (stream->offset > file->bytes || stream->packed > file->bytes - stream->offset) {
        return bad(file, number, stream->offset,
                   "the entry is longer than the file; was the file cut short?");
    }
    if (!stream->is_deflated && stream->packed != stream->bytes) {
        return bad(file, number, stream->offset, "a stored entry has two different sizes");
    }
    return LS_OK;
}

static ls_status_t read_entry(const ls_file_t *file, uint64_t number, const unsigned char *at, size_t left,
                              uint64_t offset, ls_zip_entry_t *entry, size_t *used_p)
{
    size_t   name_bytes, extra_bytes;
    unsigned method;
    uint64_t local;

    if (left < ENTRY_BYTES || !is_signature(at, 1, 2)) {
        return bad(file, number, offset, "the zip directory is damaged");
    }
    name_bytes  = get16(at + 28);
    extra_bytes = get16(at + 30);
    *used_p     = ENTRY_BYTES + name_bytes + extra_bytes + get16(at + 32);
    if (*used_p > left || name_bytes >= LS_ZIP_MAX_NAME ||
        memchr(at + ENTRY_BYTES, '\0', name_bytes) != NULL) {
        return bad(file, number, offset,
                   "the zip directory is damaged, or a name is longer than 255 bytes or has a NUL byte");
    }
    memcpy(entry->name, at + ENTRY_BYTES, name_bytes);
    method = get16(at + 10);
    if ((get16(at + 8) & FLAG_ENCRYPTED) || (method != 0 && method != 8)) {
        return bad(file, number, offset,
                   "the entry is encrypted, or packed in another way than stored or deflated");
    }
    local         = get32(at + 42);
    entry->stream = (ls_stream_entry_t){
        .crc = get32(at + 16), .packed = get32(at + 20), .bytes = get32(at + 24), .is_deflated = method == 8};
    if (!read_extra(at + ENTRY_BYTES + name_bytes, extra_bytes, &entry->stream.bytes, &entry->stream.packed,
                    &local)) {
        return bad(file, number, offset, "the zip directory's 64-bit sizes are damaged");
    }
    return find_data(file, number, local, &entry->stream);
}

static ls_status_t read_entries(const ls_file_t *file, const directory_t *directory,
                                const unsigned char *bytes, ls_zip_entry_t *entries)
{
    size_t      at = 0, used = 0;
    ls_status_t status = LS_OK;

    for (uint64_t i = 0; i < directory->count && status == LS_OK; i++, at += used) {
        status = read_entry(file, i, bytes + at, (size_t)directory->bytes - at, directory->offset + at,
                            &entries[i], &used);
    }
    return status;
}

ls_status_t ls_zip_list(const ls_file_t *file, ls_zip_entry_t **entries_p, unsigned *count_p)
{
    directory_t     directory = {0};
    unsigned char  *bytes     = NULL;
    ls_zip_entry_t *entries   = NULL;
    ls_status_t     status    = locate_directory(file, &directory);

    if (status == LS_OK) {
        status = ls_mem_alloc((size_t)directory.bytes, "directory of a zip file", (void **)&bytes);
    }
    if (status == LS_OK) {
        status = ls_file_read(file, directory.offset, (size_t)directory.bytes, bytes);
    }
    if (status == LS_OK) {
        status = ls_mem_alloc((size_t)directory.count * sizeof(*entries), "entries of a zip file",
                              (void **)&entries);
    }
    if (status == LS_OK) {
        status = read_entries(file, &directory, bytes, entries);
    }
    ls_mem_free(bytes);
    if (status != LS_OK) {
        ls_mem_free(entries);
        return status;
    }
    *entries_p = entries;
    *count_p   = (unsigned)directory.count;
    return LS_OK;
}

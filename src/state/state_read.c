/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/mem.h"
#include "state/state_int.h"

#define MIN_LINE 10 /* bytes of the shortest line of the manifest: bounds the number of parts before they are counted */

typedef struct part {
    uint64_t offset, size, hash;
} part_t;

typedef struct file {
    const char *bytes;
    uint64_t    size; /* 0: nothing is mapped, bytes point to an empty text */
} file_t;

struct ls_state {
    file_t   data;
    unsigned num_parts;
    part_t  *parts;
};

static ls_status_t map_file(const char *path, file_t *file_p)
{
    struct stat info;
    file_t      file   = {.bytes = ""};
    ls_status_t status = LS_OK;
    const int   fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0) {
        return ls_error_set_errno("%s: it cannot be opened", path);
    }
    if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
        status = ls_error_set(LS_ERR_INVALID, "%s: it is no plain file", path);
    } else if (info.st_size > 0) {
        void *bytes = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);

        if (bytes == MAP_FAILED) {
            status = ls_error_set_errno("%s: it cannot be mapped", path);
        } else {
            file.bytes = bytes;
            file.size  = (uint64_t)info.st_size;
        }
    }
    close(fd);
    if (status == LS_OK) {
        *file_p = file;
    }
    return status;
}

static void unmap_file(file_t *file)
{
    if (file->size > 0) {
        munmap((void *)(uintptr_t)file->bytes, (size_t)file->size);
    }
}

/* A cursor over text that is not terminated by 0. */
typedef struct cursor {
    const char *at, *end;
} cursor_t;

static bool take_text(cursor_t *cursor, const char *text)
{
    const size_t length = strlen(text);

    if ((size_t)(cursor->end - cursor->at) < length || memcmp(cursor->at, text, length) != 0) {
        return false;
    }
    cursor->at += length;
    return true;
}

/* A number in base 10 or 16, of at most 20 or of exactly 16 digits. */
static bool take_number(cursor_t *cursor, unsigned base, uint64_t *number_p)
{
    uint64_t number = 0;
    unsigned digits = 0;

    for (; cursor->at < cursor->end && digits < 20; cursor->at++, digits++) {
        static const char figures[] = "0123456789abcdef";
        const char       *found     = memchr(figures, *cursor->at, base);

        if (found == NULL) {
            break;
        }
        if (__builtin_mul_overflow(number, (uint64_t)base, &number) ||
            __builtin_add_overflow(number, (uint64_t)(found - figures), &number)) {
            return false;
        }
    }
    if (digits == 0 || (base == 16 && digits != 16)) {
        return false;
    }
    *number_p = number;
    return true;
}

static bool take_part(cursor_t *cursor, part_t *part_p)
{
    return take_text(cursor, "part ") && take_number(cursor, 10, &part_p->offset) && take_text(cursor, " ") &&
           take_number(cursor, 10, &part_p->size) && take_text(cursor, " ") &&
           take_number(cursor, 16, &part_p->hash) && take_text(cursor, "\n");
}

static bool take_end(cursor_t *cursor, uint64_t num_parts, const file_t *manifest)
{
    const uint64_t own = ls_hash(manifest->bytes, (size_t)(cursor->at - manifest->bytes));
    uint64_t       count, hash;

    return take_text(cursor, "end ") && take_number(cursor, 10, &count) && take_text(cursor, " ") &&
           take_number(cursor, 16, &hash) && take_text(cursor, "\n") && cursor->at == cursor->end &&
           count == num_parts && hash == own;
}

/* Parts follow each other without gaps, and fill the data. */
static bool is_in_order(const part_t *parts, unsigned num_parts, uint64_t data_size)
{
    uint64_t offset = 0;

    for (unsigned i = 0; i < num_parts; i++) {
        if (parts[i].offset != offset || parts[i].size > data_size || offset > data_size - parts[i].size) {
            return false;
        }
        offset = ls_state_aligned(offset + parts[i].size);
    }
    return offset == data_size;
}

static bool parse(const file_t *manifest, struct ls_state *state, unsigned room, uint64_t *data_size_p)
{
    cursor_t cursor = {.at = manifest->bytes, .end = manifest->bytes + manifest->size};

    if (!take_text(&cursor, LS_STATE_HEAD) || !take_text(&cursor, "data ") || !take_number(&cursor, 10, data_size_p) ||
        !take_text(&cursor, "\n")) {
        return false;
    }
    while (state->num_parts < room && cursor.at < cursor.end && *cursor.at == 'p') {
        if (!take_part(&cursor, &state->parts[state->num_parts])) {
            return false;
        }
        state->num_parts++;
    }
    return take_end(&cursor, state->num_parts, manifest) && is_in_order(state->parts, state->num_parts, *data_size_p);
}

static ls_status_t read_manifest(const char *path, struct ls_state *state, uint64_t *data_size_p)
{
    file_t      manifest = {0};
    void       *parts    = NULL;
    unsigned    room;
    ls_status_t status = map_file(path, &manifest);

    if (status != LS_OK) {
        return status;
    }
    room   = manifest.size / MIN_LINE > LS_STATE_MAX_PARTS ? LS_STATE_MAX_PARTS : (unsigned)(manifest.size / MIN_LINE);
    status = ls_mem_alloc(room * sizeof(part_t), "parts", &parts);
    if (status == LS_OK) {
        state->parts = parts;
        if (!parse(&manifest, state, room, data_size_p)) {
            status = ls_error_set(LS_ERR_INVALID, "%s: it is no manifest, or it is damaged", path);
        }
    }
    unmap_file(&manifest);
    return status;
}

static ls_status_t check_data(const char *path, const struct ls_state *state, uint64_t expected)
{
    if (state->data.size != expected) {
        return ls_error_set(LS_ERR_INVALID, "%s: it has %" PRIu64 " bytes, its manifest says %" PRIu64, path,
                            state->data.size, expected);
    }
    for (unsigned i = 0; i < state->num_parts; i++) {
        const part_t *part = &state->parts[i];

        if (ls_hash(state->data.bytes + part->offset, (size_t)part->size) != part->hash) {
            return ls_error_set(LS_ERR_INVALID, "%s: byte %" PRIu64 ": part %u of %" PRIu64 " bytes is damaged", path,
                                part->offset, i, part->size);
        }
    }
    return LS_OK;
}

static ls_status_t read_state(const char *folder, const char *name, struct ls_state *state)
{
    char        path[LS_STATE_PATH_ROOM];
    uint64_t    data_size = 0;
    ls_status_t status    = ls_state_path(folder, name, ".manifest", path);

    if (status == LS_OK) {
        status = read_manifest(path, state, &data_size);
    }
    if (status == LS_OK) {
        status = ls_state_path(folder, name, ".data", path);
    }
    if (status == LS_OK) {
        status = map_file(path, &state->data);
    }
    return status == LS_OK ? check_data(path, state, data_size) : status;
}

ls_status_t ls_state_open(const char *folder, const char *name, ls_state_h *state_p)
{
    void       *memory = NULL;
    ls_status_t status = ls_mem_alloc(sizeof(struct ls_state), "state", &memory);

    if (status != LS_OK) {
        return status;
    }
    status = read_state(folder, name, memory);
    if (status != LS_OK) {
        ls_state_close(memory);
        return status;
    }
    *state_p = memory;
    return LS_OK;
}

void ls_state_close(ls_state_h state)
{
    if (state != NULL) {
        unmap_file(&state->data);
        ls_mem_free(state->parts);
        ls_mem_free(state);
    }
}

unsigned ls_state_num_parts(ls_state_h state)
{
    return state->num_parts;
}

const void *ls_state_part(ls_state_h state, unsigned index, uint64_t *size_p)
{
    if (index >= state->num_parts) {
        *size_p = 0;
        return NULL;
    }
    *size_p = state->parts[index].size;
    return state->data.bytes + state->parts[index].offset;
}

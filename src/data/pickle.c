/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pickle is a program for a small stack machine.  This one knows the instructions that Python 2's cPickle
 * (protocol 2: the files people download) and Python 3's pickle (protocols 3 to 5: the same saved again)
 * write for
 *
 *     {'data': numpy.ndarray(uint8, (rows, 3072)), 'labels': [int, ...], 'filenames': [str, ...],
 * 'batch_label': str}
 *
 * Values keep only what is needed: where text and bytes are in the file, small numbers, which list.
 */
#include "data/pickle.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "base/mem.h"
#include "data/pickle_int.h"

#define BUFFER_BYTES (64UL * 1024)

struct ls_pickle_input {
    const ls_file_t *file;
    uint64_t         offset; /* of the next byte */
    uint64_t         begin;  /* of the buffer in the file */
    size_t           bytes;
    unsigned char    buffer[BUFFER_BYTES];
};

/* ---- input
 * ----------------------------------------------------------------------------------------------------------
 */

static ls_status_t take(ls_pickle_machine_t *machine, size_t count, void *memory)
{
    struct ls_pickle_input *input = machine->input;
    const uint64_t          left  = input->file->bytes - input->offset;

    if (count > left) {
        return ls_pickle_bad(machine, "the file ends in the middle of the pickle");
    }
    if (input->offset < input->begin || input->offset + count > input->begin + input->bytes) {
        ls_status_t status;

        input->begin = input->offset;
        input->bytes = left < BUFFER_BYTES ? (size_t)left : BUFFER_BYTES;
        status       = ls_file_read(input->file, input->begin, input->bytes, input->buffer);
        if (status != LS_OK) {
            return status;
        }
    }
    memcpy(memory, input->buffer + (input->offset - input->begin), count);
    input->offset += count;
    return LS_OK;
}

/* A number of `count` bytes, little endian. */
static ls_status_t take_number(ls_pickle_machine_t *machine, size_t count, uint64_t *value_p)
{
    uint64_t          value  = 0; /* little-endian machine */
    const ls_status_t status = take(machine, count, &value);

    *value_p = value;
    return status;
}

static ls_status_t skip(ls_pickle_machine_t *machine, uint64_t count)
{
    if (count > machine->input->file->bytes - machine->input->offset) {
        return ls_pickle_bad(machine, "a text or array is longer than the file");
    }
    machine->input->offset += count;
    return LS_OK;
}

/* Text or bytes: the place is remembered, and the beginning as a name. */
static ls_status_t take_text(ls_pickle_machine_t *machine, size_t length_bytes)
{
    ls_pickle_value_t value  = {.kind = LS_PICKLE_TEXT};
    uint64_t          length = 0;
    ls_status_t       status = take_number(machine, length_bytes, &length);

    value.number = length;
    value.offset = machine->input->offset;
    if (status == LS_OK && length < sizeof(value.name)) {
        status = take(machine, (size_t)length, value.name);
    } else if (status == LS_OK) {
        status = skip(machine, length);
    }
    return status == LS_OK ? ls_pickle_push(machine, &value) : status;
}

/* A line of text, as names of modules are written. */
static ls_status_t take_line(ls_pickle_machine_t *machine, char line[LS_PICKLE_NAME_ROOM])
{
    for (size_t at = 0; at < LS_PICKLE_NAME_ROOM; at++) {
        const ls_status_t status = take(machine, 1, &line[at]);

        if (status != LS_OK) {
            return status;
        }
        if (line[at] == '\n') {
            line[at] = '\0';
            return LS_OK;
        }
    }
    return ls_pickle_bad(machine, "a name is too long");
}

ls_status_t ls_pickle_bad(ls_pickle_machine_t *machine, const char *reason)
{
    return ls_file_error(machine->input->file->path, "instruction", machine->num_instructions,
                         machine->input->offset, "%s", reason);
}

/* ---- instructions
 * --------------------------------------------------------------------------------------------------- */

static ls_status_t push_number(ls_pickle_machine_t *machine, size_t bytes)
{
    ls_pickle_value_t value  = {.kind = LS_PICKLE_NUMBER};
    const ls_status_t status = take_number(machine, bytes, &value.number);

    return status == LS_OK ? ls_pickle_push(machine, &value) : status;
}

static ls_status_t push_kind(ls_pickle_machine_t *machine, ls_pickle_kind_t kind)
{
    return ls_pickle_push(machine, &(ls_pickle_value_t){.kind = kind});
}

static ls_status_t put(ls_pickle_machine_t *machine, size_t index_bytes)
{
    uint64_t          index  = machine->num_memo;
    const ls_status_t status = index_bytes > 0 ? take_number(machine, index_bytes, &index) : LS_OK;

    return status == LS_OK ? ls_pickle_remember(machine, index) : status;
}

static ls_status_t get(ls_pickle_machine_t *machine, size_t index_bytes)
{
    uint64_t          index  = 0;
    const ls_status_t status = take_number(machine, index_bytes, &index);

    return status == LS_OK ? ls_pickle_recall(machine, index) : status;
}

static ls_status_t name_line(ls_pickle_machine_t *machine)
{
    char        module[LS_PICKLE_NAME_ROOM] = "", name[LS_PICKLE_NAME_ROOM] = "";
    ls_status_t status = take_line(machine, module);

    if (status == LS_OK) {
        status = take_line(machine, name);
    }
    return status == LS_OK ? ls_pickle_name(machine, module, name) : status;
}

static ls_status_t header(ls_pickle_machine_t *machine, size_t bytes)
{
    uint64_t ignored = 0;

    return take_number(machine, bytes, &ignored);
}

/* One instruction; the letters are those of Python's pickletools. */
static ls_status_t step(ls_pickle_machine_t *machine, unsigned char code)
{
    switch (code) {
    case 0x80: /* PROTO */
        return header(machine, 1);
    case 0x95: /* FRAME */
        return header(machine, 8);
    case '(':
        return push_kind(machine, LS_PICKLE_MARK);
    case '}':
        return push_kind(machine, LS_PICKLE_DICT);
    case ']':
        return ls_pickle_new_list(machine);
    case ')':
        return ls_pickle_tuple(machine, 0);
    case 'N':
    case 0x88: /* True */
    case 0x89: /* False */
        return push_kind(machine, LS_PICKLE_NONE);
    case 'K':
        return push_number(machine, 1);
    case 'M':
        return push_number(machine, 2);
    case 'J':
        return push_number(machine, 4);
    case 'U': /* text of Python 2, bytes, unicode; lengths of 1, 4 or 8 bytes */
    case 'C':
    case 0x8c:
        return take_text(machine, 1);
    case 'T':
    case 'B':
    case 'X':
        return take_text(machine, 4);
    case 0x8d:
    case 0x8e:
    case 0x96:
        return take_text(machine, 8);
    case 'q':
        return put(machine, 1);
    case 'r':
        return put(machine, 4);
    case 0x94:
        return put(machine, 0);
    case 'h':
        return get(machine, 1);
    case 'j':
        return get(machine, 4);
    case 'c':
        return name_line(machine);
    case 0x93:
        return ls_pickle_name_from_stack(machine);
    case 't':
        return ls_pickle_tuple_from_mark(machine);
    case 0x85:
    case 0x86:
    case 0x87:
        return ls_pickle_tuple(machine, code - 0x84u);
    case 'a':
        return ls_pickle_append(machine, false);
    case 'e':
        return ls_pickle_append(machine, true);
    case 's':
        return ls_pickle_set(machine, false);
    case 'u':
        return ls_pickle_set(machine, true);
    case 'R':
        return ls_pickle_call(machine);
    case 'b':
        return ls_pickle_build(machine);
    default:
        return ls_file_error(
            machine->input->file->path, "instruction", machine->num_instructions, machine->input->offset - 1,
            "the pickle has the instruction 0x%02x, which CIFAR's files do not use; nothing was executed",
            code);
    }
}

ls_status_t ls_pickle_read(const ls_file_t *file, ls_pickle_t *pickle_p)
{
    ls_pickle_machine_t *machine = NULL;
    unsigned char        code    = 0;
    ls_status_t          status  = ls_mem_alloc(sizeof(*machine), "pickle", (void **)&machine);

    if (status != LS_OK) {
        return status;
    }
    status = ls_mem_alloc(sizeof(*machine->input), "input of a pickle", (void **)&machine->input);
    if (status == LS_OK) {
        machine->input->file = file;
        status               = take(machine, 1, &code);
    }
    while (status == LS_OK && code != '.') {
        status = step(machine, code);
        machine->num_instructions++;
        if (status == LS_OK) {
            status = take(machine, 1, &code);
        }
    }
    if (status == LS_OK) {
        *pickle_p = machine->pickle;
    } else {
        ls_pickle_clear(&machine->pickle);
    }
    ls_mem_free(machine->memo);
    ls_mem_free(machine->input);
    ls_mem_free(machine);
    return status;
}

void ls_pickle_clear(ls_pickle_t *pickle)
{
    for (unsigned i = 0; i < pickle->num_lists; i++) {
        ls_mem_free(pickle->lists[i].values);
    }
    *pickle = (ls_pickle_t){0};
}

const ls_pickle_list_t *ls_pickle_find(const ls_pickle_t *pickle, const char *key)
{
    for (unsigned i = 0; i < pickle->num_lists; i++) {
        if (strcmp(pickle->lists[i].key, key) == 0) {
            return pickle->lists[i].values != NULL ? &pickle->lists[i] : NULL;
        }
    }
    return NULL;
}

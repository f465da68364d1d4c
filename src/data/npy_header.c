/* SPDX-License-Identifier: Apache-2.0 */
/*
 * "\x93NUMPY", version, length, then a Python dictionary as text, of which this form alone is read (never
 * executed):
 *   {'descr': '<f4', 'fortran_order': False, 'shape': (60000, 28, 28), }
 */
#include "data/npy_header.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define MAX_TEXT (64UL * 1024)

typedef struct header_text {
    const char *path, *where;
    uint64_t    origin; /* byte of the file at which the text begins */
    const char *text, *at;
    char        descr[16];
    bool        is_fortran, has_descr, has_order, has_shape;
    uint64_t    dims[LS_DATA_MAX_DIMS];
    unsigned    num_dims;
} header_text_t;

static ls_status_t bad(const header_text_t *header, const char *reason)
{
    return ls_file_error(header->path, "", LS_FILE_NOWHERE,
                         header->origin + (uint64_t)(header->at - header->text), "%s%s%s", header->where,
                         header->where[0] != '\0' ? ": " : "", reason);
}

static void skip_blanks(header_text_t *header)
{
    while (isspace((unsigned char)*header->at)) {
        header->at++;
    }
}

static bool skip_char(header_text_t *header, char wanted)
{
    skip_blanks(header);
    if (*header->at != wanted) {
        return false;
    }
    header->at++;
    return true;
}

static bool skip_word(header_text_t *header, const char *word)
{
    skip_blanks(header);
    if (strncmp(header->at, word, strlen(word)) != 0) {
        return false;
    }
    header->at += strlen(word);
    return true;
}

static ls_status_t read_descr(header_text_t *header)
{
    size_t length;

    if (!skip_char(header, '\'')) {
        return bad(header, "arrays with named fields or objects are not supported; save plain numbers");
    }
    length = strcspn(header->at, "'");
    if (length >= sizeof(header->descr) || header->at[length] != '\'') {
        return bad(header, "the type has no end");
    }
    memcpy(header->descr, header->at, length);
    header->descr[length] = '\0';
    header->at += length + 1;
    header->has_descr = true;
    return LS_OK;
}

static ls_status_t read_shape(header_text_t *header)
{
    if (!skip_char(header, '(')) {
        return bad(header, "the shape is not a tuple");
    }
    while (!skip_char(header, ')')) {
        uint64_t size = 0;

        if (header->num_dims == LS_DATA_MAX_DIMS) {
            return bad(header, "more than 8 dimensions");
        }
        if (!isdigit((unsigned char)*header->at)) {
            return bad(header, "the shape has something that is not a number");
        }
        for (; isdigit((unsigned char)*header->at); header->at++) {
            if (__builtin_mul_overflow(size, 10u, &size) ||
                __builtin_add_overflow(size, (uint64_t)(*header->at - '0'), &size)) {
                return bad(header, "a dimension is larger than any file can hold");
            }
        }
        header->dims[header->num_dims++] = size;
        (void)skip_char(header, ',');
    }
    header->has_shape = true;
    return LS_OK;
}

static ls_status_t read_entry(header_text_t *header)
{
    if (skip_word(header, "'descr':")) {
        return read_descr(header);
    }
    if (skip_word(header, "'shape':")) {
        return header->num_dims > 0 ? bad(header, "two shapes") : read_shape(header);
    }
    if (skip_word(header, "'fortran_order':")) {
        header->is_fortran = skip_word(header, "True");
        header->has_order  = header->is_fortran || skip_word(header, "False");
        return header->has_order ? LS_OK : bad(header, "fortran_order is neither True nor False");
    }
    return bad(header, "the header has something else than descr, fortran_order and shape");
}

static ls_status_t read_text(header_text_t *header)
{
    ls_status_t status = skip_char(header, '{') ? LS_OK : bad(header, "the header is not a dictionary");

    while (status == LS_OK && !skip_char(header, '}')) {
        status = read_entry(header);
        (void)skip_char(header, ',');
    }
    if (status != LS_OK) {
        return status;
    }
    skip_blanks(header);
    if (*header->at != '\0') {
        return bad(header, "something follows the header's dictionary");
    }
    return header->has_descr && header->has_order && header->has_shape
               ? LS_OK
               : bad(header, "the header lacks one of descr, fortran_order and shape");
}

static ls_status_t read_type(const header_text_t *header, ls_data_type_t *type_p, bool *is_swapped_p)
{
    static const struct {
        char           text[4];
        ls_data_type_t type;
    } types[] = {
        {"b1", LS_DATA_BOOL},   {"i1", LS_DATA_INT8},    {"i2", LS_DATA_INT16},   {"i4", LS_DATA_INT32},
        {"i8", LS_DATA_INT64},  {"u1", LS_DATA_UINT8},   {"u2", LS_DATA_UINT16},  {"u4", LS_DATA_UINT32},
        {"u8", LS_DATA_UINT64}, {"f2", LS_DATA_FLOAT16}, {"f4", LS_DATA_FLOAT32}, {"f8", LS_DATA_FLOAT64},
    };
    char reason[128];

    for (unsigned i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        if (strchr("<>|=", header->descr[0]) != NULL && strcmp(header->descr + 1, types[i].text) == 0) {
            *type_p       = types[i].type;
            *is_swapped_p = header->descr[0] == '>' && ls_data_type_size(types[i].type) > 1;
            return LS_OK;
        }
    }
    snprintf(reason, sizeof(reason), "elements of type '%.15s' are not supported; only numbers and bool are",
             header->descr);
    return bad(header, reason);
}

/* The length of the text, and where it begins in the stream. */
static ls_status_t read_prefix(ls_stream_h stream, header_text_t *header, size_t *begin_p, size_t *length_p)
{
    unsigned char prefix[12] = {0};
    ls_status_t   status     = ls_stream_read(stream, 0, 10, prefix);
    size_t        length;

    if (status != LS_OK) {
        return status;
    }
    if (memcmp(prefix, LS_NPY_MAGIC, LS_NPY_MAGIC_BYTES) != 0) {
        return bad(header, "this is not NumPy's format: it does not begin with \\x93NUMPY");
    }
    if (prefix[6] < 1 || prefix[6] > 3) {
        return bad(header, "this version of NumPy's format is not known");
    }
    *begin_p = prefix[6] == 1 ? 10 : 12;
    status   = ls_stream_read(stream, 8, *begin_p - 8, prefix + 8);
    if (status != LS_OK) {
        return status;
    }
    length = prefix[8] + 256u * prefix[9] + 65536u * prefix[10] + 16777216u * (size_t)prefix[11];
    if (prefix[6] == 1) {
        length &= 0xffff;
    }
    *length_p = length;
    return length <= MAX_TEXT ? LS_OK : bad(header, "the header is longer than 64 KiB");
}

static ls_status_t describe(const header_text_t *header, ls_stream_h stream, ls_array_t *array_p)
{
    ls_data_type_t type   = LS_DATA_AUTO;
    ls_status_t    status = read_type(header, &type, &array_p->is_swapped);

    if (status != LS_OK) {
        return status;
    }
    if (header->is_fortran && header->num_dims > 1) {
        return bad(
            header,
            "the array is in Fortran's order, its rows are not together; save numpy.ascontiguousarray(...)");
    }
    if (!ls_array_describe(array_p, type, header->dims, header->num_dims)) {
        return bad(header, "the shape multiplies to more than any file can hold");
    }
    return ls_stream_expect(stream, array_p->offset + array_p->bytes);
}

ls_status_t ls_npy_header_read(ls_stream_h stream, const char *path, const char *where, uint64_t origin,
                               ls_array_t *array_p)
{
    header_text_t header = {.path = path, .where = where, .origin = origin, .text = "", .at = ""};
    char         *text   = NULL;
    size_t        begin = 0, length = 0;
    ls_status_t   status;

    header.at = header.text;
    status    = read_prefix(stream, &header, &begin, &length);
    if (status != LS_OK) {
        return status;
    }
    status = ls_mem_alloc(length + 1, "header of an array", (void **)&text); /* zeroed: the text has an end */
    if (status != LS_OK) {
        return status;
    }
    header.text = header.at = text;
    header.origin += begin;
    status = ls_stream_read(stream, begin, length, text);
    if (status == LS_OK) {
        status =
            strlen(text) < length ? bad(&header, "there is a NUL byte in the header") : read_text(&header);
    }
    if (status == LS_OK) {
        array_p->offset = begin + length;
        status          = describe(&header, stream, array_p);
    }
    ls_mem_free(text);
    return status;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes for the wire: a writer that grows, a reader that never reads past the end.
 * Numbers are little-endian; strings are a 32-bit length and the bytes.  Both remember the first
 * failure, so that a caller checks once at the end.
 */
#ifndef LS_BASE_BLOB_H
#define LS_BASE_BLOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lockstep.h"

typedef struct ls_blob {
    uint8_t    *data;
    size_t      size;
    size_t      room;
    ls_status_t status;
} ls_blob_t; /* zero-initialised: empty */

void ls_blob_put_u8(ls_blob_t *blob, uint8_t value);
void ls_blob_put_u32(ls_blob_t *blob, uint32_t value);
void ls_blob_put_u64(ls_blob_t *blob, uint64_t value);
void ls_blob_put_f64(ls_blob_t *blob, double value);
void ls_blob_put_str(ls_blob_t *blob, const char *text);
void ls_blob_put_bytes(ls_blob_t *blob, const void *data, size_t size);
void ls_blob_clear(ls_blob_t *blob);   /* empty, keeps the room */
void ls_blob_destroy(ls_blob_t *blob); /* frees, leaves it empty */

typedef struct ls_blob_reader {
    const uint8_t *data;
    size_t         size;
    size_t         at;
    bool           is_bad; /* something was read past the end; all reads since gave 0 or "" */
} ls_blob_reader_t;

ls_blob_reader_t ls_blob_reader(const void *data, size_t size);
uint8_t          ls_blob_get_u8(ls_blob_reader_t *reader);
uint32_t         ls_blob_get_u32(ls_blob_reader_t *reader);
uint64_t         ls_blob_get_u64(ls_blob_reader_t *reader);
double           ls_blob_get_f64(ls_blob_reader_t *reader);
/* Into the caller's room, always terminated; is_bad if the string does not fit or holds a NUL. */
void ls_blob_get_str(ls_blob_reader_t *reader, char *text, size_t room);
/* A pointer into the data, or NULL (is_bad). */
const void *ls_blob_get_bytes(ls_blob_reader_t *reader, size_t size);
size_t      ls_blob_left(const ls_blob_reader_t *reader);

#endif

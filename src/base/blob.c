/* SPDX-License-Identifier: Apache-2.0 */
#include "base/blob.h"

#include <string.h>

#include "base/mem.h"

void ls_blob_put_bytes(ls_blob_t *blob, const void *data, size_t size)
{
    if (blob->status != LS_OK) {
        return;
    }
    if (blob->room - blob->size < size) {
        const size_t room = 2 * (blob->size + size) + LS_CACHE_LINE;
        void        *mem  = blob->data;

        blob->status = ls_mem_resize(&mem, blob->size, room, "blob");
        if (blob->status != LS_OK) {
            return;
        }
        blob->data = mem;
        blob->room = room;
    }
    if (size > 0) {
        memcpy(blob->data + blob->size, data, size);
        blob->size += size;
    }
}

static void put_little_endian(ls_blob_t *blob, uint64_t value, size_t size)
{
    uint8_t bytes[sizeof(value)];

    for (size_t i = 0; i < size; i++) {
        bytes[i] = (uint8_t)(value >> (8 * i));
    }
    ls_blob_put_bytes(blob, bytes, size);
}

void ls_blob_put_u8(ls_blob_t *blob, uint8_t value)
{
    put_little_endian(blob, value, sizeof(value));
}

void ls_blob_put_u32(ls_blob_t *blob, uint32_t value)
{
    put_little_endian(blob, value, sizeof(value));
}

void ls_blob_put_u64(ls_blob_t *blob, uint64_t value)
{
    put_little_endian(blob, value, sizeof(value));
}

void ls_blob_put_f64(ls_blob_t *blob, double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof(bits));
    ls_blob_put_u64(blob, bits);
}

void ls_blob_put_str(ls_blob_t *blob, const char *text)
{
    const size_t length = strlen(text);

    ls_blob_put_u32(blob, (uint32_t)length);
    ls_blob_put_bytes(blob, text, length);
}

void ls_blob_clear(ls_blob_t *blob)
{
    blob->size   = 0;
    blob->status = LS_OK;
}

void ls_blob_destroy(ls_blob_t *blob)
{
    ls_mem_free(blob->data);
    *blob = (ls_blob_t){0};
}

ls_blob_reader_t ls_blob_reader(const void *data, size_t size)
{
    return (ls_blob_reader_t){.data = data, .size = size};
}

size_t ls_blob_left(const ls_blob_reader_t *reader)
{
    return reader->size - reader->at;
}

const void *ls_blob_get_bytes(ls_blob_reader_t *reader, size_t size)
{
    const uint8_t *bytes;

    if (reader->is_bad || ls_blob_left(reader) < size) {
        reader->is_bad = true;
        return NULL;
    }
    bytes = reader->data + reader->at;
    reader->at += size;
    return bytes;
}

static uint64_t get_little_endian(ls_blob_reader_t *reader, size_t size)
{
    const uint8_t *bytes = ls_blob_get_bytes(reader, size);
    uint64_t       value = 0;

    for (size_t i = 0; bytes != NULL && i < size; i++) {
        value |= (uint64_t)bytes[i] << (8 * i);
    }
    return value;
}

uint8_t ls_blob_get_u8(ls_blob_reader_t *reader)
{
    return (uint8_t)get_little_endian(reader, sizeof(uint8_t));
}

uint32_t ls_blob_get_u32(ls_blob_reader_t *reader)
{
    return (uint32_t)get_little_endian(reader, sizeof(uint32_t));
}

uint64_t ls_blob_get_u64(ls_blob_reader_t *reader)
{
    return get_little_endian(reader, sizeof(uint64_t));
}

double ls_blob_get_f64(ls_blob_reader_t *reader)
{
    const uint64_t bits = ls_blob_get_u64(reader);
    double         value;

    memcpy(&value, &bits, sizeof(value));
    return value;
}

void ls_blob_get_str(ls_blob_reader_t *reader, char *text, size_t room)
{
    const uint32_t length = ls_blob_get_u32(reader);
    const char    *bytes  = ls_blob_get_bytes(reader, length);

    if (bytes == NULL || length >= room || memchr(bytes, '\0', length) != NULL) {
        reader->is_bad = true;
        text[0]        = '\0';
        return;
    }
    memcpy(text, bytes, length);
    text[length] = '\0';
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "schedule/messages.h"

#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "schedule/signature.h"

enum {
    HAS_EPOCH     = 1 << 0,
    HAS_ROUND     = 1 << 1,
    HAS_ID        = 1 << 2,
    HAS_ITERATION = 1 << 3,
    HAS_SLOT      = 1 << 4,
    HAS_FLAG      = 1 << 5,
    HAS_STATUS    = 1 << 6,
    HAS_BUCKETS   = 1 << 7,
    HAS_NAMES     = 1 << 8,
    HAS_TEXT      = 1 << 9,
};

static const unsigned fields_of[LS_MESSAGE_COUNT] = {
    [LS_MESSAGE_REPORT]   = HAS_EPOCH | HAS_NAMES,
    [LS_MESSAGE_GIVE_UP]  = HAS_EPOCH | HAS_ID | HAS_FLAG | HAS_NAMES,
    [LS_MESSAGE_FROZEN]   = HAS_EPOCH | HAS_ROUND | HAS_ID | HAS_ITERATION | HAS_SLOT,
    [LS_MESSAGE_REACHED]  = HAS_EPOCH | HAS_ROUND | HAS_ID,
    [LS_MESSAGE_JOIN]     = HAS_EPOCH | HAS_FLAG,
    [LS_MESSAGE_LEAVE]    = HAS_EPOCH | HAS_NAMES,
    [LS_MESSAGE_RESPONSE] = HAS_BUCKETS | HAS_NAMES,
    [LS_MESSAGE_ADOPT]    = HAS_BUCKETS | HAS_NAMES,
    [LS_MESSAGE_ERROR]    = HAS_STATUS | HAS_NAMES | HAS_TEXT,
    [LS_MESSAGE_FREEZE]   = HAS_ROUND | HAS_ID,
    [LS_MESSAGE_RESUME]   = HAS_ROUND | HAS_ID | HAS_ITERATION | HAS_FLAG,
    [LS_MESSAGE_RETIRE]   = HAS_ID,
    [LS_MESSAGE_JOINED]   = 0,
    [LS_MESSAGE_BROKEN]   = HAS_STATUS | HAS_TEXT,
};

#define NAME_MIN_WIRE   (4 + LS_SIGNATURE_MIN_WIRE + 8)
#define BUCKET_MIN_WIRE 20

bool ls_messages_is_broadcast(ls_message_kind_t kind)
{
    return kind >= LS_MESSAGE_RESPONSE;
}

static void put_lists(const ls_message_t *message, unsigned fields, ls_blob_t *blob)
{
    if ((fields & HAS_BUCKETS) != 0) {
        ls_blob_put_u32(blob, message->num_buckets);
        for (uint32_t i = 0; i < message->num_buckets; i++) {
            const ls_message_bucket_t *bucket = &message->buckets[i];

            ls_blob_put_u32(blob, bucket->id);
            ls_blob_put_u32(blob, bucket->iteration);
            ls_blob_put_u64(blob, bucket->patience_ns);
            ls_blob_put_u32(blob, bucket->num_names);
        }
    }
    if ((fields & HAS_NAMES) != 0) {
        ls_blob_put_u32(blob, message->num_names);
        for (uint32_t i = 0; i < message->num_names; i++) {
            ls_blob_put_str(blob, message->names[i].name);
            ls_signature_put(&message->names[i].signature, blob);
            ls_blob_put_u64(blob, message->names[i].after);
        }
    }
}

void ls_messages_encode(const ls_message_t *message, ls_blob_t *blob)
{
    const unsigned fields = fields_of[message->kind];

    ls_blob_put_u8(blob, (uint8_t)message->kind);
    if ((fields & HAS_EPOCH) != 0) {
        ls_blob_put_u64(blob, message->epoch);
    }
    if ((fields & HAS_ROUND) != 0) {
        ls_blob_put_u64(blob, message->round);
    }
    if ((fields & HAS_ID) != 0) {
        ls_blob_put_u32(blob, message->id);
    }
    if ((fields & HAS_ITERATION) != 0) {
        ls_blob_put_u32(blob, message->iteration);
    }
    if ((fields & HAS_SLOT) != 0) {
        ls_blob_put_u32(blob, message->slot);
    }
    if ((fields & HAS_FLAG) != 0) {
        ls_blob_put_u8(blob, (uint8_t)message->flag);
    }
    if ((fields & HAS_STATUS) != 0) {
        ls_blob_put_u8(blob, (uint8_t)(-(int)message->status));
    }
    put_lists(message, fields, blob);
    if ((fields & HAS_TEXT) != 0) {
        ls_blob_put_str(blob, message->text);
    }
}

/* One allocation for the two lists and the strings: on the wire a string has four bytes of length, so
 * the terminating zeros fit into as many bytes as the message has. */
static ls_status_t make_room(uint32_t num_buckets, uint32_t num_names, size_t size, ls_message_t *message,
                             char **strings_p)
{
    const size_t buckets_size = (size_t)num_buckets * sizeof(ls_message_bucket_t);
    const size_t names_size   = (size_t)num_names * sizeof(ls_message_name_t);
    ls_status_t  status       = ls_mem_alloc(names_size + buckets_size + size, "control message", &message->mem);

    if (status != LS_OK) {
        return status;
    }
    message->num_buckets = num_buckets;
    message->num_names   = num_names;
    message->names       = message->mem;
    message->buckets     = (void *)((char *)message->mem + names_size);
    *strings_p           = (char *)message->mem + names_size + buckets_size;
    return LS_OK;
}

/* Moves *strings_p behind the string. */
static const char *get_string(ls_blob_reader_t *reader, size_t room, char **strings_p)
{
    char *text = *strings_p;

    /* What is left of the message is also what is left of the room. */
    ls_blob_get_str(reader, text, ls_blob_left(reader) < room ? ls_blob_left(reader) : room);
    *strings_p += reader->is_bad ? 0 : strlen(text) + 1;
    return text;
}

static bool get_bucket(ls_blob_reader_t *reader, ls_message_kind_t kind, ls_message_bucket_t *bucket_p)
{
    bucket_p->id          = ls_blob_get_u32(reader);
    bucket_p->iteration   = ls_blob_get_u32(reader);
    bucket_p->patience_ns = ls_blob_get_u64(reader);
    bucket_p->num_names   = ls_blob_get_u32(reader);
    if (kind == LS_MESSAGE_RESPONSE) {
        return bucket_p->id >= 1 && bucket_p->id < LS_SCHEDULE_FIRST_ADOPTED;
    }
    return bucket_p->id >= LS_SCHEDULE_FIRST_ADOPTED && bucket_p->id < LS_SCHEDULE_NUM_IDS;
}

static bool get_buckets(ls_blob_reader_t *reader, ls_message_t *message, uint32_t num_names)
{
    uint32_t first = 0;

    for (uint32_t i = 0; i < message->num_buckets; i++) {
        ls_message_bucket_t *bucket = &message->buckets[i];

        if (!get_bucket(reader, message->kind, bucket) || bucket->num_names == 0 ||
            bucket->num_names > num_names - first) {
            return false;
        }
        bucket->first_name = first;
        first += bucket->num_names;
    }
    return first == num_names;
}

static ls_status_t get_lists(ls_blob_reader_t *reader, unsigned fields, ls_message_t *message)
{
    const bool       has_names   = (fields & (HAS_NAMES | HAS_TEXT)) != 0;
    const uint32_t   num_buckets = (fields & HAS_BUCKETS) != 0 ? ls_blob_get_u32(reader) : 0;
    ls_blob_reader_t names       = *reader; /* the number of names stands behind the buckets */
    uint32_t         num_names   = 0;
    char            *strings;
    ls_status_t      status;

    if (!has_names) {
        return LS_OK;
    }
    if (ls_blob_get_bytes(&names, (size_t)num_buckets * BUCKET_MIN_WIRE) != NULL && (fields & HAS_NAMES) != 0) {
        num_names = ls_blob_get_u32(&names);
    }
    if (names.is_bad || num_names > ls_blob_left(&names) / NAME_MIN_WIRE) {
        return LS_ERR_INTERNAL;
    }
    status = make_room(num_buckets, num_names, reader->size, message, &strings);
    if (status != LS_OK) {
        return status;
    }
    if ((fields & HAS_BUCKETS) != 0 && !get_buckets(reader, message, num_names)) {
        return LS_ERR_INTERNAL;
    }
    *reader = names;
    for (uint32_t i = 0; i < num_names; i++) {
        message->names[i].name = get_string(reader, LS_SCHEDULE_NAME_ROOM, &strings);
        if (!ls_signature_get(reader, &message->names[i].signature)) {
            return LS_ERR_INTERNAL;
        }
        message->names[i].after = ls_blob_get_u64(reader);
    }
    message->text = (fields & HAS_TEXT) != 0 ? get_string(reader, LS_MESSAGES_TEXT_ROOM, &strings) : "";
    return LS_OK;
}

static bool is_sound(const ls_message_t *message, unsigned fields)
{
    if ((fields & HAS_ID) != 0 &&
        (message->id < LS_SCHEDULE_FIRST_ADOPTED || message->id >= LS_SCHEDULE_NUM_IDS)) {
        return false;
    }
    if (message->flag > 1 || (message->kind == LS_MESSAGE_ERROR && message->num_names != 1)) {
        return false;
    }
    return message->kind != LS_MESSAGE_GIVE_UP || message->flag == 0 || message->num_names == 1;
}

static bool get_numbers(ls_blob_reader_t *reader, unsigned fields, ls_message_t *message)
{
    message->epoch     = (fields & HAS_EPOCH) != 0 ? ls_blob_get_u64(reader) : 0;
    message->round     = (fields & HAS_ROUND) != 0 ? ls_blob_get_u64(reader) : 0;
    message->id        = (fields & HAS_ID) != 0 ? ls_blob_get_u32(reader) : 0;
    message->iteration = (fields & HAS_ITERATION) != 0 ? ls_blob_get_u32(reader) : 0;
    message->slot      = (fields & HAS_SLOT) != 0 ? ls_blob_get_u32(reader) : 0;
    message->flag      = (fields & HAS_FLAG) != 0 ? ls_blob_get_u8(reader) : 0;
    if ((fields & HAS_STATUS) != 0) {
        const int code = -(int)ls_blob_get_u8(reader);

        message->status = (ls_status_t)code;
        return code >= LS_ERR_INTERNAL && code <= LS_ERR_INVALID;
    }
    return true;
}

ls_status_t ls_messages_decode(const void *data, size_t size, ls_message_t *message_p)
{
    ls_blob_reader_t reader  = ls_blob_reader(data, size);
    const uint8_t    kind    = ls_blob_get_u8(&reader);
    ls_message_t     message = {.kind = (ls_message_kind_t)kind};
    ls_status_t      status;

    if (reader.is_bad || kind >= LS_MESSAGE_COUNT || !get_numbers(&reader, fields_of[kind], &message)) {
        status = LS_ERR_INTERNAL;
    } else {
        status = get_lists(&reader, fields_of[kind], &message);
    }
    if (status == LS_OK && (reader.is_bad || ls_blob_left(&reader) != 0 || !is_sound(&message, fields_of[kind]))) {
        status = LS_ERR_INTERNAL;
    }
    if (status != LS_OK) {
        ls_messages_destroy(&message);
        return (status == LS_ERR_INTERNAL)
                   ? ls_error_set(status, "a control message of %zu bytes, kind %u, is malformed", size, kind)
                   : status;
    }
    *message_p = message;
    return LS_OK;
}

void ls_messages_destroy(ls_message_t *message)
{
    ls_mem_free(message->mem);
    message->mem = NULL;
}

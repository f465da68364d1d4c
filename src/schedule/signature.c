/* SPDX-License-Identifier: Apache-2.0 */
#include "schedule/signature.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "device/dtype.h"

/* Append at *used_p, never past the room. */
static void append(char *text, size_t room, size_t *used_p, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static void append(char *text, size_t room, size_t *used_p, const char *format, ...)
{
    va_list args;
    int     length;

    if (*used_p >= room) {
        return;
    }
    va_start(args, format);
    length = vsnprintf(text + *used_p, room - *used_p, format, args);
    va_end(args);
    *used_p += (length > 0) ? (size_t)length : 0;
}

static bool has_op(const ls_signature_t *signature)
{
    return signature->coll == LS_COLL_ALLREDUCE || signature->coll == LS_COLL_REDUCE_SCATTER;
}

void ls_signature_print(const ls_signature_t *signature, char *text, size_t room)
{
    size_t used = 0;

    append(text, room, &used, "%s", ls_algo_coll_name(signature->coll));
    if (signature->coll == LS_COLL_BARRIER) {
        return;
    }
    if (has_op(signature)) {
        append(text, room, &used, " %s", ls_dtype_op_name(signature->op));
    }
    append(text, room, &used, " %s [", ls_dtype_name(signature->dtype));
    for (uint32_t i = 0; i < signature->num_dims && i < LS_SIGNATURE_MAX_DIMS; i++) {
        append(text, room, &used, "%s%" PRId64, (i == 0) ? "" : ", ", signature->shape[i]);
    }
    if (signature->num_dims == 0 && signature->count != 1) {
        append(text, room, &used, "%" PRIu64, signature->count);
    }
    append(text, room, &used, "]");
    if (signature->coll == LS_COLL_BROADCAST) {
        append(text, room, &used, " from rank %" PRIu32, signature->root);
    }
    /* 0 and 1 both stand for no scaling. */
    if (signature->prescale < 0 || (signature->prescale > 0 && signature->prescale != 1.0)) {
        append(text, room, &used, " prescale %.17g", signature->prescale);
    }
    if (signature->postscale < 0 || (signature->postscale > 0 && signature->postscale != 1.0)) {
        append(text, room, &used, " postscale %.17g", signature->postscale);
    }
}

bool ls_signature_has_free_count(const ls_signature_t *signature)
{
    return signature->coll == LS_COLL_ALLGATHER || signature->coll == LS_COLL_ALLTOALL;
}

/* By bits: a scale that is not a number equals itself, so a rank always agrees with itself. */
static bool same_double(double a, double b)
{
    return memcmp(&a, &b, sizeof(a)) == 0;
}

bool ls_signature_equal(const ls_signature_t *a, const ls_signature_t *b)
{
    const bool     is_free   = ls_signature_has_free_count(a);
    const uint32_t first_dim = is_free ? 1 : 0;

    if (a->coll != b->coll || a->dtype != b->dtype || a->op != b->op || a->root != b->root ||
        !same_double(a->prescale, b->prescale) || !same_double(a->postscale, b->postscale) ||
        a->num_dims != b->num_dims || (!is_free && a->count != b->count)) {
        return false;
    }
    for (uint32_t i = first_dim; i < a->num_dims; i++) {
        if (a->shape[i] != b->shape[i]) {
            return false;
        }
    }
    return true;
}

bool ls_signature_can_fuse(const ls_signature_t *a, const ls_signature_t *b)
{
    return a->coll == LS_COLL_ALLREDUCE && b->coll == LS_COLL_ALLREDUCE && a->dtype == b->dtype &&
           a->op == b->op && same_double(a->prescale, b->prescale) &&
           same_double(a->postscale, b->postscale);
}

uint64_t ls_signature_bytes(const ls_signature_t *signature)
{
    const uint64_t size = ls_dtype_size(signature->dtype);

    return (size != 0 && signature->count > UINT64_MAX / size) ? UINT64_MAX : signature->count * size;
}

void ls_signature_fill_count(const ls_schedule_item_t *item, ls_signature_t *signature)
{
    if (!ls_signature_has_free_count(signature)) {
        return;
    }
    signature->count    = (item == NULL) ? 0 : item->signature.count;
    signature->shape[0] = (item == NULL) ? 0 : item->signature.shape[0];
}

void ls_signature_put(const ls_signature_t *signature, ls_blob_t *blob)
{
    ls_blob_put_u8(blob, (uint8_t)signature->coll);
    ls_blob_put_u8(blob, (uint8_t)signature->dtype);
    ls_blob_put_u8(blob, (uint8_t)signature->op);
    ls_blob_put_u32(blob, signature->root);
    ls_blob_put_f64(blob, signature->prescale);
    ls_blob_put_f64(blob, signature->postscale);
    ls_blob_put_u64(blob, signature->count);
    ls_blob_put_u32(blob, signature->num_dims);
    for (uint32_t i = 0; i < signature->num_dims; i++) {
        ls_blob_put_u64(blob, (uint64_t)signature->shape[i]);
    }
}

bool ls_signature_get(ls_blob_reader_t *reader, ls_signature_t *signature_p)
{
    const uint8_t  coll      = ls_blob_get_u8(reader);
    const uint8_t  dtype     = ls_blob_get_u8(reader);
    const uint8_t  op        = ls_blob_get_u8(reader);
    ls_signature_t signature = {.root = ls_blob_get_u32(reader)};

    signature.prescale  = ls_blob_get_f64(reader);
    signature.postscale = ls_blob_get_f64(reader);
    signature.count     = ls_blob_get_u64(reader);
    signature.num_dims  = ls_blob_get_u32(reader);
    if (reader->is_bad || coll >= LS_COLL_COUNT || dtype >= LS_DTYPE_COUNT || op >= LS_OP_COUNT ||
        signature.num_dims > LS_SIGNATURE_MAX_DIMS) {
        return false;
    }
    signature.coll  = (ls_coll_t)coll;
    signature.dtype = (ls_dtype_t)dtype;
    signature.op    = (ls_op_t)op;
    for (uint32_t i = 0; i < signature.num_dims; i++) {
        signature.shape[i] = (int64_t)ls_blob_get_u64(reader);
    }
    if (reader->is_bad) {
        return false;
    }
    *signature_p = signature;
    return true;
}

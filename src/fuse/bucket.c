/* SPDX-License-Identifier: Apache-2.0 */
#include "fuse/bucket.h"

#include <string.h>

#include "device/dtype.h"
#include "device/kernel.h"

/* A stretch of the bucket that lies in one part. */
typedef struct piece {
    ls_part_t *part;
    uint64_t   at;    /* in the part */
    uint64_t   count;
} piece_t;

size_t ls_bucket_wire_bytes(const ls_bucket_t *bucket, uint64_t count)
{
    return (size_t)count * ls_dtype_size(bucket->wire);
}

static bool is_cast(const ls_bucket_t *bucket)
{
    return bucket->wire != bucket->dtype;
}

/* The last part that starts at or before `at`; parts without elements are passed over. */
static ls_part_t *find_part(const ls_bucket_t *bucket, uint64_t at)
{
    uint32_t low = 0, high = bucket->num_parts;

    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;

        if (bucket->parts[middle].start <= at) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return &bucket->parts[low];
}

static piece_t piece_at(const ls_bucket_t *bucket, uint64_t at, uint64_t count)
{
    ls_part_t *part  = find_part(bucket, at);
    piece_t    piece = {.part = part, .at = at - part->start, .count = count};

    /* With one part, offsets into an output larger than the input are meant as they are. */
    if (bucket->num_parts > 1 && piece.count > part->count - piece.at) {
        piece.count = part->count - piece.at;
    }
    return piece;
}

static const void *input_of(const ls_bucket_t *bucket, const piece_t *piece)
{
    return (const char *)piece->part->input + piece->at * ls_dtype_size(bucket->dtype);
}

static void *output_of(const ls_bucket_t *bucket, const piece_t *piece)
{
    return (char *)piece->part->output + piece->at * ls_dtype_size(bucket->dtype);
}

/* One of a part is enough: a bad value is rarely alone. */
static void tell_if_bad(const ls_bucket_t *bucket, const piece_t *piece, const ls_bad_value_t *bad)
{
    if (bad->is_found) {
        piece->part->is_watched = false;
        bucket->found(bucket->found_arg, (uint32_t)(piece->part - bucket->parts), piece->at + bad->at, bad->is_nan);
    }
}

/* One piece as it travels. */
static void pack_piece(const ls_bucket_t *bucket, bool from_input, const piece_t *piece, bool stream, void *stage)
{
    ls_bad_value_t bad = {0};

    if (from_input && !piece->part->gives) {
        ls_kernel_fill_identity(bucket->wire, bucket->op, stage, piece->count);
    } else {
        const ls_kernel_cast_t cast = {
            .dst_dtype = bucket->wire,
            .src_dtype = bucket->dtype,
            .scale     = from_input ? piece->part->prescale : 1.0,
            .src       = from_input ? input_of(bucket, piece) : output_of(bucket, piece),
            .dst       = stage,
            .count     = piece->count,
            .stream    = stream,
            .bad       = (from_input && piece->part->is_watched) ? &bad : NULL,
        };
        ls_kernel_cast(&cast);
        tell_if_bad(bucket, piece, &bad);
    }
}

void ls_bucket_pack(const ls_bucket_t *bucket, bool from_input, uint64_t at, uint64_t count, bool stream,
                    void *stage)
{
    while (count > 0) {
        const piece_t piece = piece_at(bucket, at, count);

        pack_piece(bucket, from_input, &piece, stream, stage);
        stage = (char *)stage + ls_bucket_wire_bytes(bucket, piece.count);
        at += piece.count;
        count -= piece.count;
    }
}

void ls_bucket_store(const ls_bucket_t *bucket, uint64_t at, uint64_t count, const void *received)
{
    while (count > 0) {
        const piece_t          piece = piece_at(bucket, at, count);
        const ls_kernel_cast_t cast  = {
             .dst_dtype = bucket->dtype,
             .src_dtype = bucket->wire,
             .scale     = 1.0,
             .src       = received,
             .dst       = output_of(bucket, &piece),
             .count     = piece.count,
             .stream    = bucket->is_large,
        };

        ls_kernel_cast(&cast);
        received = (const char *)received + ls_bucket_wire_bytes(bucket, piece.count);
        at += piece.count;
        count -= piece.count;
    }
}

/* Own value and output have the type that travels: one pass does it all. */
static void reduce_plain(const ls_bucket_t *bucket, const ls_bucket_reduce_t *args, const piece_t *own,
                         ls_kernel_reduce_t *kernel)
{
    ls_bad_value_t bad = {0};

    if (args->from_input && !own->part->gives) {
        ls_kernel_fill_identity(bucket->dtype, bucket->op, bucket->scratch, own->count);
        args->received[args->own_index] = bucket->scratch;
    } else if (args->from_input) {
        args->received[args->own_index] = input_of(bucket, own);
        kernel->own                     = args->own_index;
        kernel->own_scale               = own->part->prescale;
        kernel->bad                     = own->part->is_watched ? &bad : NULL;
        kernel->stream                  = bucket->is_large && own->part->input != own->part->output;
    } else {
        args->received[args->own_index] = kernel->dst;
    }
    ls_kernel_reduce(kernel);
    tell_if_bad(bucket, own, &bad);
}

/* Another type travels: the own value is rounded as if it had travelled, and so is the result, because
 * every rank must end with the same bits whether it computed or received them. */
static void reduce_cast(const ls_bucket_t *bucket, const ls_bucket_reduce_t *args, const piece_t *own,
                        ls_kernel_reduce_t *kernel)
{
    ls_kernel_cast_t back = {
        .dst_dtype = bucket->dtype,
        .src_dtype = bucket->wire,
        .scale     = 1.0,
        .dst       = kernel->dst,
        .count     = kernel->count,
    };

    pack_piece(bucket, args->from_input, own, false, bucket->scratch);
    args->received[args->own_index] = bucket->scratch;
    kernel->dst                     = (kernel->dst2 != NULL) ? kernel->dst2 : bucket->scratch;
    kernel->dst2                    = NULL;
    ls_kernel_reduce(kernel);
    back.src = kernel->dst;
    ls_kernel_cast(&back);
}

/* What the sum is multiplied with (floats) or divided by (integers) once it is complete. */
static void set_final_scale(const ls_bucket_t *bucket, uint32_t contributors, ls_kernel_reduce_t *kernel)
{
    const uint32_t divisor = (bucket->is_mean && contributors > 1) ? contributors : 1;

    if (ls_dtype_is_float(bucket->dtype)) {
        kernel->scale = bucket->postscale / divisor;
    } else {
        kernel->divide = divisor;
    }
}

/* Longest piece that the scratch can serve. */
static uint64_t limit_to_scratch(const ls_bucket_t *bucket, uint64_t count)
{
    const uint64_t room = LS_BUCKET_SCRATCH / ls_dtype_size(bucket->dtype);

    return (count < room) ? count : room;
}

static void advance(const ls_bucket_t *bucket, const ls_bucket_reduce_t *args, uint64_t count, void **packed)
{
    const size_t bytes = ls_bucket_wire_bytes(bucket, count);

    for (uint32_t i = 0; i <= args->num_received; i++) {
        args->received[i] = (const char *)args->received[i] + bytes;
    }
    if (*packed != NULL) {
        *packed = (char *)*packed + bytes;
    }
}

void ls_bucket_reduce(const ls_bucket_t *bucket, const ls_bucket_reduce_t *args)
{
    void    *packed = args->packed;
    uint64_t done   = 0;

    memmove(&args->received[args->own_index + 1], &args->received[args->own_index],
            (args->num_received - args->own_index) * sizeof(*args->received));
    args->received[args->own_index] = bucket->scratch;
    while (done < args->count) {
        const uint64_t left = args->count - done;
        const piece_t  out  = piece_at(bucket, args->at + done, left);
        piece_t        own  = args->from_input ? piece_at(bucket, args->own_at + done, out.count) : out;
        const bool     use_scratch = is_cast(bucket) || !own.part->gives;
        ls_kernel_reduce_t kernel;

        own.count = use_scratch ? limit_to_scratch(bucket, out.count) : out.count;
        kernel    = (ls_kernel_reduce_t){
               .dtype     = bucket->wire,
               .op        = bucket->op,
               .num_src   = args->num_received + 1,
               .own       = LS_KERNEL_NO_OWN,
               .src       = args->received,
               .own_scale = 1.0,
               .scale     = 1.0,
               .dst       = output_of(bucket, &out),
               .dst2      = packed,
               .stream2   = args->stream_packed,
               .count     = own.count,
        };
        if (args->is_final) {
            set_final_scale(bucket, args->contributors, &kernel);
        }
        (is_cast(bucket) ? reduce_cast : reduce_plain)(bucket, args, &own, &kernel);
        advance(bucket, args, own.count, &packed);
        done += own.count;
    }
}

void ls_bucket_copy(const ls_bucket_t *bucket, uint64_t input_at, uint64_t output_at, uint64_t count,
                    uint32_t contributors)
{
    const void *none[1];

    for (uint64_t done = 0; done < count;) {
        const piece_t in  = piece_at(bucket, input_at + done, count - done);
        const piece_t out = piece_at(bucket, output_at + done, in.count);
        const bool    is_plain = bucket->postscale == 1.0 && in.part->prescale == 1.0 && in.part->gives &&
                              !is_cast(bucket);

        if (is_plain && input_of(bucket, &in) != output_of(bucket, &out)) {
            memcpy(output_of(bucket, &out), input_of(bucket, &in), out.count * ls_dtype_size(bucket->dtype));
        } else if (!is_plain) {
            const ls_bucket_reduce_t alone = {
                .from_input = true, .is_final = true, .own_at = input_at + done, .at = output_at + done,
                .count = out.count, .received = none, .contributors = contributors,
            };
            ls_bucket_reduce(bucket, &alone);
        }
        done += out.count;
    }
}

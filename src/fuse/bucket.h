/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bucket: tensors that are reduced together, seen as one long vector.
 *
 *      element   0         5    7              12
 *                |  part 0  | p1 |    part 2    |       parts keep their own memory
 *
 * There is no fusion buffer.  What is sent is packed from the tensors straight into the stage that
 * the receiver reads, cast and scaled on the way; what is received is reduced or stored straight into
 * the output tensors.  So fusing costs no pass over memory that sending alone would not cost; nor does
 * the search for NaN in what is packed or reduced.
 *
 * An all-reduce has one space for input and output.  Other collectives have one part, whose input and
 * output are different vectors: `at` arguments are then offsets into the one that is meant.
 */
#ifndef LS_FUSE_BUCKET_H
#define LS_FUSE_BUCKET_H

#include <stdbool.h>
#include <stdint.h>

#include "lockstep.h"

typedef struct ls_part {
    const void *input;
    void       *output;
    uint64_t    start; /* first element in the bucket */
    uint64_t    count;
    double      prescale; /* 1: none */
    bool        gives;    /* false: the input is not read and counts as the op's identity */
    bool        is_watched; /* is the input finite?  Looked at when it is read; false once it was not. */
} ls_part_t;

/* Element `at` of the input of a watched part is NaN or infinite. */
typedef void (*ls_bucket_found_fn)(void *arg, uint32_t part, uint64_t at, bool is_nan);

typedef struct ls_bucket {
    ls_dtype_t dtype;
    ls_dtype_t wire;      /* type that travels: dtype, or a 16-bit float */
    ls_op_t    op;        /* as the kernels know it: LS_SUM, LS_MIN, LS_MAX or LS_PRODUCT */
    bool       is_mean;   /* divide by the number of contributors at the end */
    bool       is_large;  /* larger than the caches: results are streamed past them */
    double     postscale; /* 1: none */
    uint32_t   num_parts;
    ls_part_t *parts;
    uint64_t   count;   /* of the whole input space */
    void      *scratch; /* LS_BUCKET_SCRATCH bytes of the engine's, for cast and identity */
    ls_bucket_found_fn found; /* NULL where no part is watched */
    void              *found_arg;
} ls_bucket_t;

#define LS_BUCKET_SCRATCH (128 * 1024)

/* Bytes that `count` elements have on the wire. */
size_t ls_bucket_wire_bytes(const ls_bucket_t *bucket, uint64_t count);

/* Values [at, at + count) to `stage`, as they travel: of the input (scaled), or of the output; with `stream`
 * past the caches. */
void ls_bucket_pack(const ls_bucket_t *bucket, bool from_input, uint64_t at, uint64_t count, bool stream,
                    void *stage);

/* Received values to the output. */
void ls_bucket_store(const ls_bucket_t *bucket, uint64_t at, uint64_t count, const void *received);

/* Input to output, with all the scaling of a reduction over one rank (contributors: 0 or 1). */
void ls_bucket_copy(const ls_bucket_t *bucket, uint64_t input_at, uint64_t output_at, uint64_t count,
                    uint32_t contributors);

/*
 * output[at ...] := received[0] op ... op own op ... op received[n-1], own at position own_index; scaled
 * (mean, postscale) when is_final.  own is the input at own_at or, with from_input false, the output at `at`.
 * `packed`, if not NULL, receives the result as it travels.  received[] is changed.
 */
typedef struct ls_bucket_reduce {
    bool         from_input;
    bool         is_final;
    uint64_t     own_at, at, count;
    uint32_t     own_index;
    uint32_t     num_received;
    const void **received; /* room for one more: the own value is put among them */
    uint32_t     contributors;
    void        *packed;
    bool         stream_packed; /* past the caches */
} ls_bucket_reduce_t;

void ls_bucket_reduce(const ls_bucket_t *bucket, const ls_bucket_reduce_t *args);

#endif

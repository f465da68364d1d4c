/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses a path at load, brings arguments into the form the paths take, finishes the hash. */
#include "device/kernel.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>

#include "base/error.h"
#include "device/dtype.h"
#include "device/kernel_int.h"

#define TWO_STEP_COUNT 1024 /* float32 values on the stack between two casts */

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "hash and identities are little-endian");

/* Best first. */
static const ls_kernel_ops_t *(*const paths[])(void) = {
    ls_kernel_avx512_get, ls_kernel_avx2_get, ls_kernel_c_get,
};

/* Set at load and by ls_kernel_select, which ranks that are threads call at the same time with the same word. */
static _Atomic(const ls_kernel_ops_t *) current;

static const ls_kernel_ops_t *in_use(void)
{
    return atomic_load_explicit(&current, memory_order_relaxed);
}

ls_status_t ls_kernel_select(const char *path)
{
    const bool is_auto = (strcmp(path, "auto") == 0);

    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        const ls_kernel_ops_t *ops = paths[i]();

        if (ops != NULL && (is_auto || strcmp(path, ops->name) == 0)) {
            atomic_store_explicit(&current, ops, memory_order_relaxed);
            return LS_OK;
        }
    }
    return ls_error_set(LS_ERR_CONFIG, "no kernel path '%s': it is unknown, or not for this processor",
                        path);
}

__attribute__((constructor)) static void select_best(void)
{
    (void)ls_kernel_select("auto"); /* "c" is always there */
}

const char *ls_kernel_path(void)
{
    return in_use()->name;
}

/* Bools are kept as 0 and 1, where "or" is the larger and "and" the smaller. */
static ls_op_t op_for(ls_dtype_t dtype, ls_op_t op)
{
    if (dtype == LS_BOOL && op == LS_SUM) {
        return LS_MAX;
    }
    return (dtype == LS_BOOL && op == LS_PRODUCT) ? LS_MIN : op;
}

/* A destination that was just read is in the cache, and one off its type's alignment never gets
 * onto a cache line. */
static bool may_stream(const ls_kernel_reduce_t *args, const void *dst)
{
    bool may = (uintptr_t)dst % ls_dtype_size(args->dtype) == 0;

    for (uint32_t i = 0; i < args->num_src && may; i++) {
        may = (args->src[i] != dst);
    }
    return may;
}

void ls_kernel_reduce(const ls_kernel_reduce_t *args)
{
    const ls_op_t      op  = op_for(args->dtype, args->op);
    ls_kernel_reduce_t job = *args;

    assert(in_use()->reduce[args->dtype][op] != NULL);
    if (job.count == 0) {
        return;
    }
    job.stream  = args->stream && may_stream(args, args->dst);
    job.stream2 = args->stream2 && args->dst2 != NULL && may_stream(args, args->dst2);
    in_use()->reduce[args->dtype][op](&job);
}

/* The sum of one source. */
static void scale_in_type(const ls_kernel_cast_t *args)
{
    ls_kernel_reduce(&(ls_kernel_reduce_t){
        .dtype = args->src_dtype, .op = LS_SUM, .num_src = 1, .own = 0, .src = &args->src, .scale = 1.0,
        .own_scale = args->scale, .dst = args->dst, .count = args->count, .stream = args->stream, .bad = args->bad,
    });
}

/* So is copying, where it shall be around the cache. */
static void copy(const ls_kernel_cast_t *args)
{
    const size_t bytes = args->count * ls_dtype_size(args->src_dtype);

    if (args->src == args->dst) {
        return;
    }
    if (!args->stream) {
        memcpy(args->dst, args->src, bytes);
        return;
    }
    ls_kernel_reduce(&(ls_kernel_reduce_t){
        .dtype = LS_UINT8, .op = LS_SUM, .num_src = 1, .own = LS_KERNEL_NO_OWN, .src = &args->src,
        .scale = 1.0, .own_scale = 1.0, .dst = args->dst, .count = bytes, .stream = true,
    });
}

/* Neither is float32: go through it.  The scale is applied where the wider type is. */
static void cast_in_two_steps(const ls_kernel_cast_t *args)
{
    const size_t     in_size    = ls_dtype_size(args->src_dtype);
    const size_t     out_size   = ls_dtype_size(args->dst_dtype);
    const bool       scale_last = (args->dst_dtype == LS_FLOAT64);
    float            between[TWO_STEP_COUNT];
    ls_kernel_cast_t in = *args, out = *args;

    in.dst    = between;
    out.src   = between;
    in.scale  = scale_last ? 1.0 : args->scale;
    out.scale = scale_last ? args->scale : 1.0;
    for (size_t done = 0; done < args->count; done += in.count) {
        const size_t left = args->count - done;

        in.count = out.count = (left < TWO_STEP_COUNT) ? left : TWO_STEP_COUNT;
        in.src  = (const uint8_t *)args->src + done * in_size;
        out.dst = (uint8_t *)args->dst + done * out_size;
        in_use()->to_float32[args->src_dtype](&in);
        in_use()->from_float32[args->dst_dtype](&out);
    }
}

void ls_kernel_cast(const ls_kernel_cast_t *args)
{
    if (args->count == 0) {
        return;
    }
    if (args->src_dtype == args->dst_dtype) {
        if (args->scale == 1.0 && args->bad == NULL) {
            copy(args);
        } else {
            scale_in_type(args);
        }
        return;
    }
    assert(ls_dtype_is_float(args->src_dtype) && ls_dtype_is_float(args->dst_dtype));
    if (args->bad != NULL && !ls_kernel_is_finite(args->src_dtype, args->src, args->count)) {
        ls_finite_note(args->src_dtype, args->src, args->count, 0, args->bad);
    }
    if (args->dst_dtype == LS_FLOAT32) {
        in_use()->to_float32[args->src_dtype](args);
    } else if (args->src_dtype == LS_FLOAT32) {
        in_use()->from_float32[args->dst_dtype](args);
    } else {
        cast_in_two_steps(args);
    }
}

/* As bits; what is not named here is 0, the identity of sums. */
static const uint64_t identities[LS_DTYPE_COUNT][LS_OP_COUNT] = {
    [LS_FLOAT16]  = {[LS_PRODUCT] = 0x3c00, [LS_MIN] = 0x7c00, [LS_MAX] = 0xfc00},
    [LS_BFLOAT16] = {[LS_PRODUCT] = 0x3f80, [LS_MIN] = 0x7f80, [LS_MAX] = 0xff80},
    [LS_FLOAT32]  = {[LS_PRODUCT] = 0x3f800000, [LS_MIN] = 0x7f800000, [LS_MAX] = 0xff800000},
    [LS_FLOAT64]  = {[LS_PRODUCT] = 0x3ff0000000000000, [LS_MIN] = 0x7ff0000000000000,
                     [LS_MAX] = 0xfff0000000000000},
    [LS_INT8]     = {[LS_PRODUCT] = 1, [LS_MIN] = 0x7f, [LS_MAX] = 0x80},
    [LS_UINT8]    = {[LS_PRODUCT] = 1, [LS_MIN] = 0xff},
    [LS_INT32]    = {[LS_PRODUCT] = 1, [LS_MIN] = 0x7fffffff, [LS_MAX] = 0x80000000},
    [LS_INT64]    = {[LS_PRODUCT] = 1, [LS_MIN] = INT64_MAX, [LS_MAX] = 0x8000000000000000},
    [LS_BOOL]     = {[LS_PRODUCT] = 1, [LS_MIN] = 1},
};

void ls_kernel_fill_identity(ls_dtype_t dtype, ls_op_t op, void *dst, size_t count)
{
    const size_t size = ls_dtype_size(dtype);

    for (size_t i = 0; i < count; i++) {
        memcpy((uint8_t *)dst + i * size, &identities[dtype][op], size);
    }
}

/* Every bit of x reaches every bit of the result, and it can be undone (the end of MurmurHash3). */
static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 33)) * 0xff51afd7ed558ccdULL;
    x = (x ^ (x >> 33)) * 0xc4ceb9fe1a85ec53ULL;
    return x ^ (x >> 33);
}

uint64_t ls_kernel_hash(const void *data, size_t bytes, uint64_t seed)
{
    const uint8_t *at    = data;
    const size_t   whole = bytes / LS_KERNEL_HASH_BYTES, rest = bytes % LS_KERNEL_HASH_BYTES;
    uint64_t       result = mix(seed ^ mix(bytes));
    uint8_t        last[LS_KERNEL_HASH_BYTES] = {0};
    uint32_t       words[LS_KERNEL_HASH_WORDS];

    for (uint32_t i = 0; i < LS_KERNEL_HASH_WORDS; i++) {
        words[i] = (i + 1) * LS_KERNEL_HASH_MUL;
    }
    in_use()->hash(at, whole, words);
    if (rest > 0) {
        memcpy(last, at + whole * LS_KERNEL_HASH_BYTES, rest);
        in_use()->hash(last, 1, words);
    }
    for (uint32_t i = 0; i < LS_KERNEL_HASH_WORDS; i += 2) {
        result = mix(result ^ (words[i] | (uint64_t)words[i + 1] << 32)) + seed;
    }
    return result;
}

bool ls_kernel_is_finite(ls_dtype_t dtype, const void *data, size_t count)
{
    return in_use()->is_finite[dtype] == NULL || in_use()->is_finite[dtype](data, count);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions of every type, operation and shape of arguments, on every path, against the oracle. */
#include "device/kernel.h"

#include "check.h"
#include "kernel_oracle.h"

#define MAX_SRC     8
#define GUARD       64
#define GUARD_BYTE  0xa5
#define LONG_COUNT  100 /* above it, not every shape is tried */

static const ls_op_t  ops[]     = {LS_SUM, LS_MIN, LS_MAX, LS_PRODUCT};
static const uint32_t num_srcs[] = {1, 2, 3, 5, 8};
static const size_t   counts[]  = {0, 1, 7, 8, 15, 16, 17, 63, 64, 65, 1000, 4099};

#define LENGTH(_array) (sizeof(_array) / sizeof((_array)[0]))

/* The sources of a case end with their memory, so that reading further is seen. */
typedef struct reduce_case {
    ls_kernel_reduce_t args; /* dst not set */
    size_t             size, bytes;
    uint8_t           *mem[MAX_SRC];
    const void        *src[MAX_SRC];
    uint8_t           *expected;
} reduce_case_t;

static uint64_t get_int(ls_dtype_t dtype, const uint8_t *at)
{
    int32_t i32;
    int64_t i64;

    switch (dtype) {
    case LS_INT8:
        return (uint64_t)(int8_t)*at;
    case LS_INT32:
        memcpy(&i32, at, sizeof(i32));
        return (uint64_t)i32;
    case LS_INT64:
        memcpy(&i64, at, sizeof(i64));
        return (uint64_t)i64;
    default:
        return *at;
    }
}

static uint64_t combine_int(ls_op_t op, uint64_t a, uint64_t b)
{
    switch (op) {
    case LS_MIN:
        return ((int64_t)a < (int64_t)b) ? a : b;
    case LS_MAX:
        return ((int64_t)a > (int64_t)b) ? a : b;
    case LS_PRODUCT:
        return a * b;
    default:
        return a + b;
    }
}

static void expect_int(const ls_kernel_reduce_t *args, size_t offset, uint8_t *result)
{
    const size_t size = ls_dtype_size(args->dtype);
    uint64_t     acc  = get_int(args->dtype, (const uint8_t *)args->src[0] + offset);

    for (uint32_t s = 1; s < args->num_src; s++) {
        acc = combine_int(args->op, acc, get_int(args->dtype, (const uint8_t *)args->src[s] + offset));
    }
    memcpy(result, &acc, size); /* wraps */
    if (args->divide > 1) {
        acc = (uint64_t)((int64_t)get_int(args->dtype, result) / args->divide);
        memcpy(result, &acc, size);
    }
}

static void expect_bool(const ls_kernel_reduce_t *args, size_t offset, uint8_t *result)
{
    const bool is_or = (args->op == LS_SUM || args->op == LS_MAX);
    bool       acc   = ((const uint8_t *)args->src[0])[offset] != 0;

    for (uint32_t s = 1; s < args->num_src; s++) {
        const bool more = ((const uint8_t *)args->src[s])[offset] != 0;

        acc = is_or ? (acc || more) : (acc && more);
    }
    *result = acc ? 1 : 0;
}

static double combine_float(ls_dtype_t dtype, ls_op_t op, double a, double b)
{
    if (op == LS_SUM) {
        return oracle_plus(dtype, a, b);
    }
    if (op == LS_PRODUCT) {
        return oracle_times(dtype, a, b);
    }
    if (__builtin_isnan(a) || __builtin_isnan(b)) {
        return __builtin_nan("");
    }
    return ((op == LS_MIN) ? (a < b) : (a > b)) ? a : b;
}

static double get_source(const ls_kernel_reduce_t *args, uint32_t s, size_t offset)
{
    const double value = oracle_get(args->dtype, (const uint8_t *)args->src[s] + offset);
    uint8_t      rounded[8];

    if (s != args->own || args->own_scale == 1.0) {
        return value;
    }
    oracle_put(args->dtype, oracle_times(args->dtype, value, args->own_scale), rounded);
    return oracle_get(args->dtype, rounded);
}

static void expect_float(const ls_kernel_reduce_t *args, size_t offset, uint8_t *result)
{
    double acc = get_source(args, 0, offset);

    for (uint32_t s = 1; s < args->num_src; s++) {
        acc = combine_float(args->dtype, args->op, acc, get_source(args, s, offset));
    }
    oracle_put(args->dtype, oracle_times(args->dtype, acc, args->scale), result);
}

static void expect(reduce_case_t *c)
{
    for (size_t offset = 0; offset < c->bytes; offset += c->size) {
        if (c->args.dtype == LS_BOOL) {
            expect_bool(&c->args, offset, c->expected + offset);
        } else if (ls_dtype_is_float(c->args.dtype)) {
            expect_float(&c->args, offset, c->expected + offset);
        } else {
            expect_int(&c->args, offset, c->expected + offset);
        }
    }
}

static void create_case(ls_dtype_t dtype, ls_op_t op, uint32_t num_src, size_t count, reduce_case_t *c)
{
    *c = (reduce_case_t){
        .args = {.dtype = dtype, .op = op, .num_src = num_src, .count = count,
                 .own = LS_KERNEL_NO_OWN, .own_scale = 1.0, .scale = 1.0},
        .size = ls_dtype_size(dtype),
    };
    c->bytes    = count * c->size;
    c->expected = malloc(c->bytes + 1);
    for (uint32_t s = 0; s < num_src; s++) {
        const size_t gap = (s * 5 + 1) % 9 * c->size; /* off the alignment of vectors */

        c->mem[s] = malloc(gap + c->bytes);
        c->src[s] = c->mem[s] + gap;
        oracle_fill(dtype, c->mem[s] + gap, count);
    }
    c->args.src = c->src;
}

static void destroy_case(reduce_case_t *c)
{
    free(c->expected);
    for (uint32_t s = 0; s < c->args.num_src; s++) {
        free(c->mem[s]);
    }
}

/* An output with a guard on both sides. */
static uint8_t *create_output(const reduce_case_t *c, size_t gap)
{
    uint8_t *mem = malloc(gap + c->bytes + 2 * GUARD);

    memset(mem, GUARD_BYTE, gap + c->bytes + 2 * GUARD);
    return mem;
}

static void check_output(const reduce_case_t *c, const uint8_t *mem, size_t gap)
{
    bool is_guarded = true;

    for (size_t i = 0; i < GUARD; i++) {
        is_guarded = is_guarded && mem[gap + i] == GUARD_BYTE &&
                     mem[gap + GUARD + c->bytes + i] == GUARD_BYTE;
    }
    CHECK(is_guarded);
    if (memcmp(mem + gap + GUARD, c->expected, c->bytes) != 0) {
        CHECK_STR("as expected", "result");
        fprintf(stderr,
                "    path %s, %s, %s of %u, count %zu, own %u, scale %g, divide %d, stream %d\n",
                ls_kernel_path(), ls_dtype_name(c->args.dtype), ls_dtype_op_name(c->args.op),
                c->args.num_src, c->args.count, c->args.own, c->args.scale, (int)c->args.divide,
                c->args.stream);
    }
}

/* in_place: the source that is also dst (and the next one dst2); num_src: none. */
static void run_shape(const reduce_case_t *c, uint32_t in_place, bool has_dst2, bool stream)
{
    const size_t       gap = (c->args.count % 3) * c->size;
    uint8_t *const     mem = create_output(c, gap), *const mem2 = create_output(c, 0);
    uint8_t *const     dst = mem + gap + GUARD, *const dst2 = mem2 + GUARD;
    const void        *src[MAX_SRC];
    ls_kernel_reduce_t args = c->args;

    memcpy(src, c->src, sizeof(src));
    if (in_place < args.num_src) {
        memcpy(dst, src[in_place], c->bytes);
        src[in_place] = dst;
    }
    if (has_dst2 && in_place + 1 < args.num_src) {
        memcpy(dst2, src[in_place + 1], c->bytes);
        src[in_place + 1] = dst2;
    }
    args.src    = src;
    args.dst    = dst;
    args.dst2   = has_dst2 ? dst2 : NULL;
    args.stream = stream;
    ls_kernel_reduce(&args);
    check_output(c, mem, gap);
    if (has_dst2) {
        check_output(c, mem2, 0);
    }
    free(mem);
    free(mem2);
}

static void run_shapes(const reduce_case_t *c)
{
    const uint32_t last = c->args.num_src;

    for (size_t p = 0; p < ORACLE_NUM_PATHS; p++) {
        if (ls_kernel_select(oracle_paths[p]) != LS_OK) {
            continue;
        }
        run_shape(c, last, false, true);
        run_shape(c, 0, true, false);
        if (c->args.count <= LONG_COUNT) {
            run_shape(c, last, false, false);
            run_shape(c, last, true, true);
            run_shape(c, last - 1, false, true);
            run_shape(c, last / 2, true, true);
        }
    }
}

static void run_factors(reduce_case_t *c)
{
    const bool is_float = ls_dtype_is_float(c->args.dtype), is_bool = (c->args.dtype == LS_BOOL);

    expect(c);
    run_shapes(c);
    if (is_bool) {
        return;
    }
    c->args.divide = is_float ? 0 : 3;
    c->args.scale  = is_float ? 0.3 : 1.0;
    expect(c);
    run_shapes(c);
    if (is_float) {
        c->args.own       = c->args.num_src / 2;
        c->args.own_scale = 0.37;
        expect(c);
        run_shapes(c);
        c->args.own   = 0;
        c->args.scale = 1.0;
        expect(c);
        run_shapes(c);
    }
}

static void run_dtype(ls_dtype_t dtype)
{
    reduce_case_t c;

    for (size_t o = 0; o < LENGTH(ops); o++) {
        for (size_t n = 0; n < LENGTH(num_srcs); n++) {
            for (size_t k = 0; k < LENGTH(counts); k++) {
                create_case(dtype, ops[o], num_srcs[n], counts[k], &c);
                run_factors(&c);
                destroy_case(&c);
            }
        }
    }
}

static void test_reduce_of_float16_is_exact_on_every_path(void)
{
    run_dtype(LS_FLOAT16);
}

static void test_reduce_of_bfloat16_is_exact_on_every_path(void)
{
    run_dtype(LS_BFLOAT16);
}

static void test_reduce_of_float32_and_float64_is_exact_on_every_path(void)
{
    run_dtype(LS_FLOAT32);
    run_dtype(LS_FLOAT64);
}

static void test_reduce_of_integers_wraps_and_divides_toward_zero(void)
{
    run_dtype(LS_INT8);
    run_dtype(LS_UINT8);
    run_dtype(LS_INT32);
    run_dtype(LS_INT64);
}

static void test_reduce_of_bools_gives_0_and_1(void)
{
    run_dtype(LS_BOOL);
}

static void test_identity_changes_nothing(void)
{
    uint8_t identity[17 * 8], result[17 * 8];

    for (ls_dtype_t dtype = 0; dtype < LS_DTYPE_COUNT; dtype++) {
        for (size_t o = 0; o < LENGTH(ops); o++) {
            reduce_case_t c;

            create_case(dtype, ops[o], 1, 17, &c);
            expect(&c);
            ls_kernel_fill_identity(dtype, ops[o], identity, 17);
            ls_kernel_reduce(&(ls_kernel_reduce_t){
                .dtype = dtype, .op = ops[o], .num_src = 2, .own = LS_KERNEL_NO_OWN, .own_scale = 1.0,
                .scale = 1.0, .src = (const void *const[]){identity, c.src[0]}, .dst = result,
                .count = 17,
            });
            for (size_t i = 0; i < 17 && ls_dtype_is_float(dtype); i++) {
                if (oracle_get(dtype, c.expected + i * c.size) == 0.0) { /* 0 + -0 is 0 */
                    memcpy(c.expected + i * c.size, result + i * c.size, c.size);
                }
            }
            CHECK(memcmp(result, c.expected, c.bytes) == 0);
            destroy_case(&c);
        }
    }
}

static void test_unknown_path_is_refused_by_name(void)
{
    CHECK_EQ_INT(ls_kernel_select("c"), LS_OK);
    CHECK_EQ_INT(ls_kernel_select("mmx"), LS_ERR_CONFIG);
    CHECK_STR(ls_last_error(), "'mmx'");
    CHECK_STR(ls_kernel_path(), "c");
    CHECK_EQ_INT(ls_kernel_select("auto"), LS_OK);
}

static void test_dtypes_have_names_and_sizes(void)
{
    CHECK_STR(ls_dtype_name(LS_BFLOAT16), "bfloat16");
    CHECK_STR(ls_dtype_name(LS_DTYPE_COUNT), "?");
    CHECK_STR(ls_dtype_name((ls_dtype_t)-1), "?");
    CHECK_STR(ls_dtype_op_name(LS_PRODUCT), "product");
    CHECK_STR(ls_dtype_op_name(LS_OP_COUNT), "?");
    CHECK_EQ_INT(ls_dtype_size(LS_INT64), 8);
    CHECK_EQ_INT(ls_dtype_size(LS_DTYPE_COUNT), 0);
    CHECK(ls_dtype_is_float(LS_FLOAT64) && !ls_dtype_is_float(LS_INT32));
    CHECK(!ls_dtype_is_float(LS_DTYPE_COUNT));
}

int main(void)
{
    printf("path %s\n", ls_kernel_path());
    RUN(test_dtypes_have_names_and_sizes);
    RUN(test_reduce_of_float16_is_exact_on_every_path);
    RUN(test_reduce_of_bfloat16_is_exact_on_every_path);
    RUN(test_reduce_of_float32_and_float64_is_exact_on_every_path);
    RUN(test_reduce_of_integers_wraps_and_divides_toward_zero);
    RUN(test_reduce_of_bools_gives_0_and_1);
    RUN(test_identity_changes_nothing);
    RUN(test_unknown_path_is_refused_by_name);
    return check_report();
}

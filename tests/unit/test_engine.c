/* SPDX-License-Identifier: Apache-2.0 */
/* The engine where it ends, is asked from its own thread, or finds ranks in odd states.  Ranks are threads. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "check.h"
#include "lockstep.h"

#define MAX_RANKS 4
#define LARGE     ((uint64_t)16 << 20) /* elements: more than is reduced at once */

typedef struct rank {
    pthread_t        thread;
    ls_local_job_h   job;
    unsigned         index, num_ranks;
    ls_context_h     ctx;
    ls_status_t      started;
    void           (*body)(struct rank *rank);
    _Atomic unsigned num_done; /* of any request */
    ls_status_t      status;   /* of the last one */
    char             message[1024];
    int              fd;
    float            value;
    double           best[2]; /* seconds */
} rank_t;

static void *run_rank(void *arg)
{
    rank_t                 *rank   = arg;
    const ls_start_params_t params = {.local_job = rank->job, .local_rank = rank->index};

    rank->started = ls_start(&params, &rank->ctx);
    if (rank->started != LS_OK) {
        snprintf(rank->message, sizeof(rank->message), "%s", ls_last_error());
        return NULL;
    }
    rank->body(rank);
    ls_stop(rank->ctx);
    return NULL;
}

/* Every rank runs `body`, then stops. */
static void run_ranks(unsigned num_ranks, void (*body)(rank_t *rank), rank_t ranks[MAX_RANKS])
{
    ls_local_job_h job;

    CHECK_EQ_INT(ls_local_job_create(num_ranks, &job), LS_OK);
    for (unsigned i = 0; i < num_ranks; i++) {
        ranks[i] = (rank_t){.job = job, .index = i, .num_ranks = num_ranks, .body = body};
    }
    for (unsigned i = 0; i < num_ranks; i++) {
        CHECK_EQ_INT(pthread_create(&ranks[i].thread, NULL, run_rank, &ranks[i]), 0);
    }
    for (unsigned i = 0; i < num_ranks; i++) {
        pthread_join(ranks[i].thread, NULL);
    }
    ls_local_job_destroy(job);
}

static void on_done(void *arg, ls_status_t status, const char *message)
{
    rank_t *rank = arg;

    rank->status = status;
    snprintf(rank->message, sizeof(rank->message), "%s", message);
    atomic_fetch_add(&rank->num_done, 1);
}


static ls_tensor_t vector(const char *name, ls_dtype_t dtype, void *data, uint64_t count)
{
    return (ls_tensor_t){.name = name, .dtype = dtype, .input = data, .output = data, .count = count};
}

/* ---- stop ----------------------------------------------------------------------------------- */

static float large[2][LARGE];

static void leave_a_reduction_open(rank_t *rank)
{
    const ls_tensor_t tensor = vector("x", LS_FLOAT32, large[rank->index], LARGE);

    for (int i = 0; i < 2; i++) {
        CHECK_EQ_INT(ls_allreduce(rank->ctx, &tensor, NULL), LS_OK);
    }
    CHECK_EQ_INT(ls_allreduce_async(rank->ctx, &tensor, NULL, on_done, rank), LS_OK);
}

static void test_stop_ends_reductions_under_way(void)
{
    const size_t live = ls_mem_live();
    rank_t       ranks[MAX_RANKS];

    for (int i = 0; i < 10; i++) {
        run_ranks(2, leave_a_reduction_open, ranks);
        for (unsigned r = 0; r < 2; r++) {
            CHECK_EQ_INT(ranks[r].num_done, 1);
            CHECK(ranks[r].status == LS_OK || ranks[r].status == LS_ERR_STOPPED);
        }
    }
    CHECK_EQ_INT(ls_mem_live(), live);
}

static void leave_a_join_open(rank_t *rank)
{
    if (rank->index == 0) {
        CHECK_EQ_INT(ls_join_async(rank->ctx, on_done, rank), LS_OK);
    }
}

static void test_stop_ends_a_join(void)
{
    const size_t live = ls_mem_live();
    rank_t       ranks[MAX_RANKS];

    run_ranks(2, leave_a_join_open, ranks);
    CHECK_EQ_INT(ranks[0].num_done, 1);
    CHECK_EQ_INT(ranks[0].status, LS_ERR_STOPPED);
    CHECK_EQ_INT(ls_mem_live(), live);
}

static void try_again(void *arg, ls_status_t status, const char *message)
{
    rank_t           *rank  = arg;
    float             value = 0;
    const ls_tensor_t tensor = vector("y", LS_FLOAT32, &value, 1);

    on_done(arg, status, message);
    rank->status = ls_allreduce_async(rank->ctx, &tensor, NULL, try_again, rank);
}

static void leave_one_open_that_tries_again(rank_t *rank)
{
    static float      value;
    const ls_tensor_t tensor = vector("x", LS_FLOAT32, &value, 1);

    if (rank->index == 0) {
        CHECK_EQ_INT(ls_allreduce_async(rank->ctx, &tensor, NULL, try_again, rank), LS_OK);
    }
}

static void test_stop_refuses_what_its_callbacks_hand_in(void)
{
    const size_t live = ls_mem_live();
    rank_t       ranks[MAX_RANKS];

    run_ranks(2, leave_one_open_that_tries_again, ranks);
    CHECK_EQ_INT(ranks[0].num_done, 1);
    CHECK_EQ_INT(ranks[0].status, LS_ERR_STOPPED);
    CHECK_EQ_INT(ls_mem_live(), live);
}

static float small[MAX_RANKS][1000];

/* Agreed and replayed; then rank 0 begins it once more, and nobody else. */
static void begin_alone(rank_t *rank)
{
    const ls_tensor_t tensor = vector("begun", LS_FLOAT32, small[rank->index], 1000);

    for (int i = 0; i < 5; i++) {
        CHECK_EQ_INT(ls_allreduce(rank->ctx, &tensor, NULL), LS_OK);
    }
    if (rank->index == 0) {
        CHECK_EQ_INT(ls_allreduce_async(rank->ctx, &tensor, NULL, on_done, rank), LS_OK);
    }
}

static void test_stop_ends_a_bucket_that_one_rank_alone_has_begun(void)
{
    const size_t live = ls_mem_live();
    rank_t       ranks[MAX_RANKS];

    run_ranks(3, begin_alone, ranks);
    CHECK_EQ_INT(ranks[0].num_done, 1);
    CHECK_EQ_INT(ranks[0].status, LS_ERR_STOPPED);
    CHECK_EQ_INT(ls_mem_live(), live);
}

static void stop_early_but_rank_1(rank_t *rank)
{
    const ls_tensor_t tensor = vector("late", LS_FLOAT32, small[rank->index], 1000);

    CHECK_EQ_INT(ls_allreduce_async(rank->ctx, &tensor, NULL, on_done, rank), LS_OK);
    if (rank->index == 1) {
        usleep(100000);
        while (atomic_load(&rank->num_done) == 0) {
            usleep(1000);
        }
    }
}

static void test_ranks_that_stop_still_serve_the_others(void)
{
    rank_t ranks[MAX_RANKS];

    run_ranks(3, stop_early_but_rank_1, ranks);
    for (unsigned r = 0; r < 3; r++) {
        CHECK_EQ_INT(ranks[r].num_done, 1);
        CHECK_EQ_INT(ranks[r].status, LS_OK);
    }
}

/* ---- callbacks ------------------------------------------------------------------------------ */

static void ask_too_much(void *arg, ls_status_t status, const char *message)
{
    rank_t *rank = arg;

    (void)status;
    (void)message;
    ls_dump(rank->ctx, rank->fd);
    ls_stop(rank->ctx);
    on_done(arg, ls_barrier(rank->ctx, "inner"), ls_last_error());
}

static void hand_in_a_group(rank_t *rank)
{
    float             a = 1, b = 2;
    const ls_tensor_t tensors[] = {vector("a", LS_FLOAT32, &a, 1), vector("b", LS_FLOAT32, &b, 1)};

    rank->fd = fileno(tmpfile());
    CHECK_EQ_INT(ls_allreduce_async(rank->ctx, &tensors[0], NULL, ask_too_much, rank), LS_OK);
    CHECK_EQ_INT(ls_allreduce_async(rank->ctx, &tensors[1], NULL, ask_too_much, rank), LS_OK);
    while (atomic_load(&rank->num_done) < 2) {
        usleep(100);
    }
}

static void test_a_callback_may_dump_and_is_refused_what_would_block(void)
{
    rank_t ranks[MAX_RANKS];
    char   text[16] = "";

    run_ranks(2, hand_in_a_group, ranks);
    for (unsigned r = 0; r < 2; r++) {
        CHECK_EQ_INT(ranks[r].status, LS_ERR_INVALID);
        CHECK(strstr(ranks[r].message, "callback") != NULL);
        CHECK(pread(ranks[r].fd, text, 8, 0) == 8);
        CHECK_STR(text, "lockstep");
    }
}

/* ---- ranks that differ ---------------------------------------------------------------------- */

static void give_other_bytes(rank_t *rank)
{
    static const ls_dtype_t dtypes[] = {LS_INT8, LS_UINT8, LS_INT32};
    const ls_reduce_t       mean     = {.op = LS_MEAN};
    int32_t                 values[4] = {0};
    const ls_tensor_t       tensor   = vector("t", dtypes[rank->index], values, 4);

    rank->status = ls_allreduce(rank->ctx, &tensor, &mean);
    snprintf(rank->message, sizeof(rank->message), "%s", ls_last_error());
}

static void test_means_of_different_integers_are_a_mismatch(void)
{
    rank_t ranks[MAX_RANKS];

    run_ranks(3, give_other_bytes, ranks);
    for (unsigned r = 0; r < 3; r++) {
        CHECK_EQ_INT(ranks[r].status, LS_ERR_MISMATCH);
        CHECK(strstr(ranks[r].message, "int8") != NULL && strstr(ranks[r].message, "mean") != NULL);
    }
}

/* All give a and b for a while; then the last rank gives a and joins, when the others have begun both. */
static void join_in_the_middle(rank_t *rank)
{
    const ls_reduce_t mean = {.op = LS_MEAN};
    const bool        is_last = rank->index + 1 == rank->num_ranks;
    float             a, b;
    const ls_tensor_t tensors[] = {vector("a", LS_FLOAT32, &a, 1), vector("b", LS_FLOAT32, &b, 1)};

    for (int i = 0; i < 5; i++) {
        a = b = (float)rank->index;
        CHECK_EQ_INT(ls_allreduce_group(rank->ctx, tensors, 2, &mean), LS_OK);
    }
    a = b = (float)rank->index;
    if (is_last) {
        usleep(50000);
    }
    rank->status = LS_OK;
    CHECK_EQ_INT(ls_allreduce_async(rank->ctx, &tensors[0], &mean, on_done, rank), LS_OK);
    if (!is_last) {
        CHECK_EQ_INT(ls_allreduce_async(rank->ctx, &tensors[1], &mean, on_done, rank), LS_OK);
    }
    (void)ls_join(rank->ctx);
    while (atomic_load(&rank->num_done) < (is_last ? 1U : 2U)) {
        usleep(100);
    }
    rank->value = a;
}

static void test_a_mean_is_never_wrong_when_a_rank_joins_in_the_middle(void)
{
    rank_t ranks[MAX_RANKS];

    setenv("LOCKSTEP_PATIENCE_MS", "20000", 1);
    run_ranks(3, join_in_the_middle, ranks);
    unsetenv("LOCKSTEP_PATIENCE_MS");
    for (unsigned r = 0; r < 3; r++) {
        CHECK(ranks[r].value == 1 || ranks[r].status == LS_ERR_UNSUPPORTED);
    }
}

/* ---- different orders ----------------------------------------------------------------------- */

#define NUM_LARGE  2
#define NUM_EQUAL  5
#define NUM_STEPS  10

static double now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Best times of steps in which the ranks begin large tensors in the same and in opposite orders. */
static void begin_in_both_orders(rank_t *rank)
{
    static const char *const names[NUM_LARGE] = {"a", "b"};
    const uint64_t           count            = sizeof(large[0]) / NUM_LARGE;

    rank->best[0] = rank->best[1] = 1e9;
    for (int step = 0; step < NUM_STEPS; step++) {
        const bool   is_opposite = step >= NUM_EQUAL;
        const double begin       = now_s();

        atomic_store(&rank->num_done, 0);
        for (unsigned i = 0; i < NUM_LARGE; i++) {
            const unsigned    at     = (rank->index == 1 && is_opposite) ? NUM_LARGE - 1 - i : i;
            const ls_tensor_t tensor = vector(names[at], LS_UINT8, (char *)large[rank->index] + at * count, count);

            CHECK_EQ_INT(ls_allreduce_async(rank->ctx, &tensor, NULL, on_done, rank), LS_OK);
        }
        while (atomic_load(&rank->num_done) < NUM_LARGE) {
            usleep(100);
        }
        if (now_s() - begin < rank->best[is_opposite]) {
            rank->best[is_opposite] = now_s() - begin;
        }
    }
}

/* It took 20 times as long, nearly all of it asleep. */
static void test_large_tensors_may_be_begun_in_opposite_orders(void)
{
    rank_t ranks[MAX_RANKS];

    run_ranks(2, begin_in_both_orders, ranks);
    printf("        %.3f s in the same order, %.3f s in opposite orders\n", ranks[0].best[0], ranks[0].best[1]);
    CHECK(ranks[0].best[1] < 6 * ranks[0].best[0] + 0.02);
}

/* ---- children ------------------------------------------------------------------------------- */

static void have_a_child_that_exits(rank_t *rank)
{
    float             value  = 0;
    const ls_tensor_t tensor = vector("x", LS_FLOAT32, &value, 1);

    for (int i = 0; i < 400; i++) {
        CHECK_EQ_INT(ls_allreduce(rank->ctx, &tensor, NULL), LS_OK);
        if (rank->index == 0 && i % 100 == 50) {
            const pid_t child = fork();

            if (child == 0) {
                fclose(stdout); /* what the test has printed is the parent's to write */
                exit(0);
            }
            CHECK(waitpid(child, NULL, 0) == child);
        }
    }
}

static unsigned count_in(const char *path, const char *what)
{
    FILE    *file = fopen(path, "r");
    char     line[1024];
    unsigned count = 0;

    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        count += strstr(line, what) != NULL;
    }
    if (file != NULL) {
        fclose(file);
    }
    unlink(path);
    return count;
}

static void test_children_that_exit_write_nothing_into_the_trace(void)
{
    char   directory[] = "/tmp/lockstep-trace-XXXXXX", path[64];
    rank_t ranks[MAX_RANKS];

    CHECK(mkdtemp(directory) != NULL);
    setenv("LOCKSTEP_TRACE", directory, 1);
    run_ranks(2, have_a_child_that_exits, ranks);
    unsetenv("LOCKSTEP_TRACE");
    for (unsigned r = 0; r < 2; r++) {
        snprintf(path, sizeof(path), "%s/rank-%u.json", directory, r);
        CHECK_EQ_INT(count_in(path, "\"name\":\"x\""), 2 * 400); /* a bucket and a request each */
    }
    rmdir(directory);
}

/* ---- without memory ------------------------------------------------------------------------- */

static void *give_room(void *arg, const uint64_t *counts, unsigned num_ranks)
{
    (void)counts;
    (void)num_ranks;
    return arg;
}

/* A bit of everything; the first failure ends it. */
static void do_some_of_everything(rank_t *rank)
{
    const ls_reduce_t mean = {.op = LS_WEIGHTED_MEAN, .weight = rank->index + 1};
    float             values[64] = {0}, others[64] = {0}, room[64 * MAX_RANKS];
    ls_tensor_t       tensors[2] = {vector("a", LS_FLOAT32, values, 64), vector("b", LS_FLOAT32, others, 64)};
    const uint64_t    counts[MAX_RANKS] = {16, 16, 16, 16};
    ls_status_t       status = LS_OK;

    for (int i = 0; i < 3 && status == LS_OK; i++) {
        const ls_tensor_t part = vector("part", LS_FLOAT32, values, 16 * (uint64_t)rank->num_ranks);

        if ((status = ls_allreduce_group(rank->ctx, tensors, 2, &mean)) != LS_OK ||
            (status = ls_allgather(rank->ctx, &part, give_room, room)) != LS_OK ||
            (status = ls_barrier(rank->ctx, "all")) != LS_OK) {
            break;
        }
        tensors[0].name = "c";
        status          = ls_alltoall(rank->ctx, &(ls_tensor_t){.name = "d", .dtype = LS_FLOAT32, .input = values,
                                                                .count = 16 * (uint64_t)rank->num_ranks},
                                      counts, give_room, room);
        tensors[0].name = "a";
    }
    rank->status = status;
}

static void test_without_memory_every_rank_ends_with_an_error(void)
{
    const size_t live   = ls_mem_live();
    size_t       num_ok = 0;
    rank_t       ranks[MAX_RANKS];

    setenv("LOCKSTEP_LOG", "error", 1);
    setenv("LOCKSTEP_STALL_ABORT_S", "0.2", 1);
    setenv("LOCKSTEP_STALL_WARN_S", "0.1", 1);
    /* From 3: the first two are the job's own. */
    for (size_t n = 3; n < 1000 && num_ok < 3; n += (n < 40) ? 1 : 3) {
        bool is_ok = true;

        ls_mem_fail_at(n);
        run_ranks(2, do_some_of_everything, ranks);
        ls_mem_fail_at(0);
        for (unsigned r = 0; r < 2; r++) {
            is_ok = is_ok && ranks[r].started == LS_OK && ranks[r].status == LS_OK;
        }
        num_ok = is_ok ? num_ok + 1 : 0; /* beyond the last allocation nothing fails any more */
        CHECK_EQ_INT(ls_mem_live(), live);
    }
    unsetenv("LOCKSTEP_STALL_WARN_S");
    unsetenv("LOCKSTEP_STALL_ABORT_S");
    unsetenv("LOCKSTEP_LOG");
}

/* Shared memory that a rank has taken for stages, as its dump tells. */
static size_t stage_bytes(ls_context_h ctx)
{
    FILE  *file = tmpfile();
    char   line[512];
    size_t num_stages, bytes = 0;

    ls_dump(ctx, fileno(file));
    rewind(file);
    while (bytes == 0 && fgets(line, sizeof(line), file) != NULL) {
        if (sscanf(line, "net: %zu stages in %zu bytes", &num_stages, &bytes) != 2) {
            bytes = 0;
        }
    }
    fclose(file);
    return bytes;
}

/* Rank 0 broadcasts and never waits for anybody; rank 1 is slow. */
static void read_slowly(rank_t *rank)
{
    const uint64_t    count  = 1 << 18;
    const ls_tensor_t tensor = vector("news", LS_FLOAT32, large[rank->index], count);
    size_t            bytes;

    for (int i = 0; i < 400; i++) {
        CHECK_EQ_INT(ls_broadcast(rank->ctx, &tensor, 0), LS_OK);
        usleep(rank->index == 1 ? 1000 : 0);
    }
    bytes = stage_bytes(rank->ctx);
    CHECK(bytes > 0 && bytes < 128 * LS_MIB);
}

static void test_a_root_does_not_run_ahead_without_limit(void)
{
    rank_t ranks[MAX_RANKS];

    run_ranks(2, read_slowly, ranks);
}

int main(void)
{
    RUN(test_a_root_does_not_run_ahead_without_limit);
    RUN(test_stop_ends_reductions_under_way);
    RUN(test_stop_ends_a_join);
    RUN(test_stop_refuses_what_its_callbacks_hand_in);
    RUN(test_stop_ends_a_bucket_that_one_rank_alone_has_begun);
    RUN(test_ranks_that_stop_still_serve_the_others);
    RUN(test_a_callback_may_dump_and_is_refused_what_would_block);
    RUN(test_means_of_different_integers_are_a_mismatch);
    RUN(test_a_mean_is_never_wrong_when_a_rank_joins_in_the_middle);
    RUN(test_large_tensors_may_be_begun_in_opposite_orders);
    RUN(test_children_that_exit_write_nothing_into_the_trace);
    RUN(test_without_memory_every_rank_ends_with_an_error);
    return check_report();
}

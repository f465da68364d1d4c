/* SPDX-License-Identifier: Apache-2.0 */
/* The engine under strain: opposite orders, children, no memory, readers that are slow.  Ranks are threads. */
#include "common/stages.h"
#include "engine_ranks.h"

/* ---- different orders ----------------------------------------------------------------------- */

#define NUM_LARGE 2
#define NUM_EQUAL 5
#define NUM_STEPS 10

/* Large tensors, begun first in the same order on both ranks, then in opposite orders. */
static void begin_in_both_orders(rank_t *rank)
{
    static const char *const names[NUM_LARGE] = {"a", "b"};
    const uint64_t           count            = sizeof(large[0]) / NUM_LARGE;

    for (int step = 0; step < NUM_STEPS; step++) {
        const bool is_opposite = step >= NUM_EQUAL;

        atomic_store(&rank->num_done, 0);
        for (unsigned i = 0; i < NUM_LARGE; i++) {
            const unsigned    at     = (rank->index == 1 && is_opposite) ? NUM_LARGE - 1 - i : i;
            const ls_tensor_t tensor = vector(names[at], LS_UINT8, (char *)large[rank->index] + at * count, count);

            CHECK_EQ_INT(ls_allreduce_async(rank->ctx, &tensor, NULL, on_done, rank), LS_OK);
        }
        while (atomic_load(&rank->num_done) < NUM_LARGE) {
            usleep(100);
        }
        CHECK_EQ_INT(rank->status, LS_OK);
    }
}

static void test_large_tensors_may_be_begun_in_opposite_orders(void)
{
    rank_t ranks[MAX_RANKS];

    run_ranks(2, begin_in_both_orders, ranks);
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
    setenv("LOCKSTEP_STAGE_BYTES", "256k", 1); /* claiming more would take most of the time */
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
    unsetenv("LOCKSTEP_STAGE_BYTES");
    unsetenv("LOCKSTEP_STALL_WARN_S");
    unsetenv("LOCKSTEP_STALL_ABORT_S");
    unsetenv("LOCKSTEP_LOG");
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
    bytes = stages_taken(rank->ctx);
    CHECK(bytes > 0 && bytes < 128 * LS_MIB);
}

static void test_a_root_does_not_run_ahead_without_limit(void)
{
    rank_t ranks[MAX_RANKS];

    run_ranks(2, read_slowly, ranks);
}

/* ---- what was used once -------------------------------------------------------------------------- */

#define NUM_NAMES 600
#define REPEATS   4 /* the schedule adopts a tensor that comes with the same length again */

static size_t live_early, live_late;

/* Each tensor is negotiated, adopted, and given up when its length changes; then it is not seen again. */
static void use_names_and_leave_them(rank_t *rank)
{
    float values[2] = {0};
    char  name[32];

    for (int i = 0; i < NUM_NAMES; i++) {
        snprintf(name, sizeof(name), "tensor.%d", i);
        for (int repeat = 0; repeat <= REPEATS; repeat++) {
            const ls_tensor_t tensor = vector(name, LS_FLOAT32, values, (repeat < REPEATS) ? 1 : 2);

            CHECK_EQ_INT(ls_allreduce(rank->ctx, &tensor, NULL), LS_OK);
        }
        if (rank->index == 0 && i == NUM_NAMES / 4) {
            live_early = ls_mem_live();
        }
    }
    CHECK_EQ_INT(ls_barrier(rank->ctx, "end"), LS_OK);
    if (rank->index == 0) {
        live_late = ls_mem_live();
    }
    CHECK_EQ_INT(ls_barrier(rank->ctx, "left"), LS_OK);
}

/* Rank 0 remembers a name and what it learned of it; work that was kept would be a dozen pieces on each rank. */
static void test_what_is_not_agreed_any_more_takes_no_memory(void)
{
    const size_t names = NUM_NAMES - NUM_NAMES / 4;
    rank_t       ranks[MAX_RANKS];

    run_ranks(2, use_names_and_leave_them, ranks);
    CHECK(live_late - live_early <= 5 * names);
}

int main(void)
{
    RUN(test_what_is_not_agreed_any_more_takes_no_memory);
    RUN(test_a_root_does_not_run_ahead_without_limit);
    RUN(test_large_tensors_may_be_begun_in_opposite_orders);
    RUN(test_children_that_exit_write_nothing_into_the_trace);
    RUN(test_without_memory_every_rank_ends_with_an_error);
    return check_report();
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Random programs on a random network: whatever the order, all ranks run the same, and all ends. */
#include "base/log.h"
#include "schedule_world.h"

#define MAX_NAMES 24
#define MAX_STEPS 14

typedef struct op {
    uint32_t name;
    uint64_t count;
    bool     waits;    /* the rank goes on only when all it gave has ended */
    bool     is_wrong; /* on one rank with another count, under a name of its own */
    bool     is_gather;
} op_t;

typedef struct step {
    uint32_t num_ops;
    op_t     ops[MAX_NAMES];
} step_t;

/* Where a rank is in the program. */
typedef struct runner {
    uint32_t step, op, num_steps;
    uint32_t order[MAX_NAMES];
    bool     has_joined;
} runner_t;

typedef struct program {
    long     phase;
    uint32_t num_steps;
    uint32_t odd_rank; /* gives the wrong ones */
    step_t   steps[MAX_STEPS];
} program_t;

static void make_step(world_t *world, step_t *step, uint32_t num_names, bool with_errors)
{
    step->num_ops = 0;
    for (uint32_t name = 0; name < num_names; name++) {
        op_t op = {.name = name, .count = 1 + name * 7, .is_gather = name % 5 == 4};

        if (world_random(world, 12) == 0) {
            continue; /* dropped in this step */
        }
        if (world_random(world, 40) == 0) {
            op.count += 1 + world_random(world, 2); /* another shape, on all ranks */
        }
        op.waits    = world_random(world, 20) == 0;
        op.is_wrong = with_errors && world_random(world, 60) == 0;
        step->ops[step->num_ops++] = op;
        if (world_random(world, 30) == 0 && step->num_ops < MAX_NAMES) {
            step->ops[step->num_ops++] = op; /* twice in a step */
        }
        if (step->num_ops == MAX_NAMES) {
            break;
        }
    }
}

/* In another order on each rank; but what waits, and what is given twice, keeps its place. */
static void shuffle(world_t *world, const step_t *step, uint32_t *order)
{
    uint32_t begin = 0;

    for (uint32_t i = 0; i < step->num_ops; i++) {
        order[i] = i;
    }
    for (uint32_t end = 0; end < step->num_ops; end++) {
        if (!step->ops[end].waits && end + 1 < step->num_ops) {
            continue;
        }
        for (uint32_t i = begin; i + 1 < end; i++) {
            const uint32_t j    = i + world_random(world, end - i);
            const uint32_t kept = order[i];

            if (step->ops[order[i]].name != step->ops[order[j]].name) {
                order[i] = order[j];
                order[j] = kept;
            }
        }
        begin = end + 1;
    }
}

static void give(world_t *world, const program_t *program, uint32_t rank, runner_t *runner)
{
    const op_t    *op        = &program->steps[runner->step].ops[runner->order[runner->op]];
    ls_signature_t signature = world_vector(op->count);
    char           name[32];

    if (op->is_gather) {
        signature.coll     = LS_COLL_ALLGATHER;
        signature.count    = world_random(world, 100);
        signature.shape[0] = (int64_t)signature.count;
    }
    snprintf(name, sizeof(name), "t%u", op->name);
    if (op->is_wrong) {
        snprintf(name, sizeof(name), "wrong%u", op->name);
        signature.dtype = (rank == program->odd_rank) ? LS_FLOAT64 : LS_FLOAT32;
    }
    world_submit(world, rank, name, &signature, program->phase * 1000 + (long)runner->step);
    runner->op++;
}

/* One thing that this rank can do; false if it has nothing to do now. */
static bool advance_rank(world_t *world, const program_t *program, uint32_t rank, runner_t *runner)
{
    const step_t *step = &program->steps[runner->step];

    if (runner->has_joined) {
        return false;
    }
    if (runner->step == runner->num_steps) {
        world_join(world, rank);
        runner->has_joined = true;
        return true;
    }
    if (runner->op > 0 && runner->op <= step->num_ops && step->ops[runner->order[runner->op - 1]].waits &&
        world->ranks[rank].num_open > 0) {
        return false;
    }
    if (runner->op == step->num_ops) {
        /* At most two steps ahead of its own results. */
        if (world->ranks[rank].num_open > 2 * MAX_NAMES) {
            return false;
        }
        runner->step++;
        runner->op = 0;
        if (runner->step < runner->num_steps) {
            shuffle(world, &program->steps[runner->step], runner->order);
        }
        return true;
    }
    give(world, program, rank, runner);
    return true;
}

/* Random turns: a rank goes on, a message comes, a rank ticks; the clock moves when nothing else does. */
static void play(world_t *world, const program_t *program, runner_t *runners)
{
    uint32_t idle = 0, num_joined = 0;

    for (long turn = 0; turn < 2000000 && num_joined < world->num_ranks; turn++) {
        const uint32_t rank = world_random(world, world->num_ranks);

        switch (world_random(world, 4)) {
        case 0:
            if (!runners[rank].has_joined && advance_rank(world, program, rank, &runners[rank])) {
                num_joined += runners[rank].has_joined ? 1 : 0;
                idle = 0;
            }
            break;
        case 1:
            world_tick(world, rank);
            if (world_random(world, 100) == 0) {
                ls_schedule_doubt(world->ranks[rank].schedule, LS_SCHEDULE_FIRST_ADOPTED + world_random(world, 8),
                                  world->now);
            }
            break;
        default:
            if (world->num_in_flight > 0) {
                world_deliver(world);
                idle = 0;
            }
            break;
        }
        if (++idle > 1000 && world->num_in_flight == 0) {
            idle = 0;
            CHECK(world_advance(world));
        }
        if (world_random(world, 8) == 0) {
            world->now += world_random(world, 20) * LS_NS_PER_MS;
        }
    }
    CHECK_EQ_INT(num_joined, world->num_ranks);
}

static void check_results(const world_t *world, size_t *num_failed_p)
{
    *num_failed_p = 0;
    for (size_t i = 0; i < world->num_results; i++) {
        CHECK_EQ_INT(world->results[i].num_ends, 1);
        if (world->results[i].status != LS_OK) {
            CHECK_EQ_INT(world->results[i].status, LS_ERR_MISMATCH);
            CHECK_STR(world->results[i].text, "wrong");
            (*num_failed_p)++;
        }
    }
}

static size_t total_items, total_failed, total_replayed, total_null;

static void play_world(uint32_t num_ranks, uint64_t seed, bool is_uneven)
{
    static program_t program;
    world_t          world;
    size_t           num_failed;

    world_open(&world, num_ranks, seed);
    for (long phase = 0; phase < 3; phase++) {
        runner_t       runners[WORLD_MAX_RANKS] = {{0}};
        const uint32_t num_names                = 1 + world_random(&world, MAX_NAMES);

        program = (program_t){.phase     = phase,
                              .num_steps = 2 + world_random(&world, MAX_STEPS - 2),
                              .odd_rank  = world_random(&world, num_ranks)};
        for (uint32_t i = 0; i < program.num_steps; i++) {
            make_step(&world, &program.steps[i], num_names, !is_uneven && num_ranks > 1);
        }
        for (uint32_t r = 0; r < num_ranks; r++) {
            const uint32_t fewer = is_uneven ? world_random(&world, program.num_steps) : 0;

            runners[r].num_steps = program.num_steps - fewer;
            shuffle(&world, &program.steps[0], runners[r].order);
        }
        play(&world, &program, runners);
        world_finish(&world);
        for (uint32_t r = 0; r < num_ranks; r++) {
            CHECK_EQ_INT(world.ranks[r].num_joined, phase + 1);
            CHECK_EQ_INT(world.ranks[r].num_broken, 0);
        }
    }
    check_results(&world, &num_failed);
    total_items += world.num_results;
    total_failed += num_failed;
    total_null += world.num_null_items;
    for (size_t i = 0; i < world.num_results; i++) {
        total_replayed += world.results[i].is_replay ? 1 : 0;
    }
    world_close(&world);
    if (atomic_load(&check_failures) > 0) {
        fprintf(stderr, "in the world of %u ranks, seed %lu%s\n", num_ranks, (unsigned long)seed,
                is_uneven ? ", uneven" : "");
    }
}

static void test_random_programs_run_alike_on_all_ranks(void)
{
    for (uint64_t seed = 1; seed <= 60 && atomic_load(&check_failures) == 0; seed++) {
        play_world(1 + (uint32_t)(seed % 5), seed, false);
    }
    CHECK(total_items > 10000);
    CHECK(total_failed > 0);
    CHECK(total_replayed > total_items / 20);
}

static void test_random_programs_with_ranks_that_join_early(void)
{
    total_null = 0;
    for (uint64_t seed = 1; seed <= 60 && atomic_load(&check_failures) == 0; seed++) {
        play_world(2 + (uint32_t)(seed % 4), seed, true);
    }
    CHECK(total_null > 0);
}

int main(void)
{
    ls_log_set_level(LS_LOG_ERROR); /* doubts warn about ranks that are only a little late */
    RUN(test_random_programs_run_alike_on_all_ranks);
    RUN(test_random_programs_with_ranks_that_join_early);
    printf("items %zu, replayed %zu, failed %zu, given as nothing %zu\n", total_items, total_replayed,
           total_failed, total_null);
    return check_report();
}

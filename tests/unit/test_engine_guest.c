/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that take the engine's turn: who runs the callbacks, what they may do there, and that nothing is lost. */
#include <fcntl.h>
#include <fenv.h>

#include "engine/engine_int.h"
#include "engine/run_int.h"
#include "engine_ranks.h"

#define STEPS     2000
#define AGREED    8 /* steps until the schedule is agreed on and nothing is left to say */
#define SMALL     64
#define TOO_LARGE (32 * LS_KIB) /* floats: 128 KiB, twice the limit */
#define GIVERS    3

typedef struct call {
    rank_t          *rank;
    pthread_t        giver;
    _Atomic unsigned num_here, num_elsewhere; /* callbacks in the giving thread; in another */
    _Atomic bool     is_done;
    ls_status_t      waited; /* what a call that waits was told in the callback */
    float            value, next_value;
    ls_tensor_t      next;
} call_t;

static void note(void *arg, ls_status_t status, const char *message)
{
    call_t *call = arg;

    (void)message;
    CHECK_EQ_INT(status, LS_OK);
    atomic_fetch_add(pthread_equal(call->giver, pthread_self()) ? &call->num_here : &call->num_elsewhere, 1);
    atomic_store(&call->is_done, true);
}

static void wait_for(call_t *call)
{
    while (!atomic_load(&call->is_done)) {
        usleep(20);
    }
}

static void reduce(call_t *call, const char *name, void *data, uint64_t count, ls_done_fn done)
{
    const ls_tensor_t tensor = vector(name, LS_FLOAT32, data, count);

    call->giver = pthread_self();
    atomic_store(&call->is_done, false);
    CHECK_EQ_INT(ls_allreduce_async(call->rank->ctx, &tensor, NULL, done, call), LS_OK);
    wait_for(call);
}

/* Rank 1 comes first and leaves the wait to its engine; rank 0 finds all it needs. */
static void give_small(rank_t *rank)
{
    call_t call = {.rank = rank};
    float  data[SMALL];

    for (unsigned i = 0; i < 100; i++) {
        for (unsigned k = 0; k < SMALL; k++) {
            data[k] = (float)(rank->index + k);
        }
        if (rank->index == 0) {
            usleep(2000);
        }
        reduce(&call, "small", data, SMALL, note);
        CHECK(data[3] == 1 + 2 * 3);
    }
    rank->value = (float)atomic_load(&call.num_here);
}

static void test_the_giver_of_something_small_is_called_back_in_its_own_thread(void)
{
    rank_t ranks[MAX_RANKS];

    run_ranks(2, give_small, ranks);
    CHECK(ranks[0].value > 10); /* most of 100; the machine may be busy, and the first steps are agreed on by the engines */
}

static float bulk[2][TOO_LARGE];

static void give_large(rank_t *rank)
{
    call_t call = {.rank = rank};

    for (unsigned i = 0; i < 20; i++) {
        reduce(&call, "large", bulk[rank->index], TOO_LARGE, note);
    }
    CHECK_EQ_INT(atomic_load(&call.num_here), 0);
}

static void test_what_is_large_is_left_to_the_engine(void)
{
    rank_t ranks[MAX_RANKS];

    run_ranks(2, give_large, ranks);
}

static void test_zero_switches_guests_off(void)
{
    rank_t ranks[MAX_RANKS];

    setenv("LOCKSTEP_GUEST_BYTES", "0", 1);
    run_ranks(2, give_small, ranks);
    unsetenv("LOCKSTEP_GUEST_BYTES");
    CHECK_EQ_INT((int)ranks[0].value, 0);
    CHECK_EQ_INT((int)ranks[1].value, 0);
}

/* In a callback: more may be handed in, waiting is refused, wherever it runs. */
static void note_and_go_on(void *arg, ls_status_t status, const char *message)
{
    call_t           *call = arg;
    const ls_tensor_t tensor = vector("waits", LS_FLOAT32, &call->value, 1);

    (void)message;
    CHECK_EQ_INT(status, LS_OK);
    call->waited = ls_allreduce(call->rank->ctx, &tensor, NULL);
    CHECK_EQ_INT(ls_allreduce_async(call->rank->ctx, &call->next, NULL, note, call), LS_OK);
}

static void chain(rank_t *rank)
{
    call_t call = {.rank = rank};

    call.next = vector("chained", LS_FLOAT32, &call.next_value, 1);
    for (unsigned i = 0; i < 200; i++) {
        float first = 1;

        call.next_value = 2;
        call.waited     = LS_OK;
        reduce(&call, "first", &first, 1, note_and_go_on);
        CHECK_EQ_INT(call.waited, LS_ERR_INVALID);
        CHECK(first == 2 && call.next_value == 4);
    }
}

static void test_a_callback_hands_in_more_and_must_not_wait(void)
{
    rank_t ranks[MAX_RANKS];

    run_ranks(2, chain, ranks);
}

/* Callers that round upwards, as others flush small numbers to 0: whether an engine or a guest adds up must not matter. */
static void give_rounding_upwards(rank_t *rank)
{
    for (unsigned i = 0; i < 100; i++) {
        float             number = (rank->index == 0) ? 1.0F : 1e-9F;
        const ls_tensor_t tensor = vector("rounded", LS_FLOAT32, &number, 1);

        if (rank->index == 0) {
            usleep(500);
        }
        CHECK_EQ_INT(fesetround(FE_UPWARD), 0);
        CHECK_EQ_INT(ls_allreduce(rank->ctx, &tensor, NULL), LS_OK);
        CHECK_EQ_INT(fegetround(), FE_UPWARD);
        fesetround(FE_TONEAREST);
        CHECK(number == 1.0F);
    }
}

static void test_guests_compute_as_the_engine_does(void)
{
    rank_t ranks[MAX_RANKS];

    run_ranks(2, give_rounding_upwards, ranks);
}

/* A callback of one context hands in to another, whose callback asks for a dump of the first. */
static ls_context_h outer_ctx, inner_ctx;
static _Atomic bool is_dumped;
static float        outer_value, inner_value;

static void dump_outer(void *arg, ls_status_t status, const char *message)
{
    (void)arg;
    (void)message;
    CHECK_EQ_INT(status, LS_OK);
    ls_dump(outer_ctx, open("/dev/null", O_WRONLY | O_CLOEXEC));
    atomic_store(&is_dumped, true);
}

static void hand_in_to_inner(void *arg, ls_status_t status, const char *message)
{
    const ls_tensor_t tensor = vector("inner", LS_FLOAT32, &inner_value, 1);

    (void)arg;
    (void)message;
    CHECK_EQ_INT(status, LS_OK);
    CHECK_EQ_INT(ls_allreduce_async(inner_ctx, &tensor, NULL, dump_outer, NULL), LS_OK);
}

static void test_a_guest_of_two_contexts_knows_both(void)
{
    const ls_tensor_t outer = vector("outer", LS_FLOAT32, &outer_value, 1);
    const ls_tensor_t inner = vector("inner", LS_FLOAT32, &inner_value, 1);
    ls_local_job_h    jobs[2];

    CHECK_EQ_INT(ls_local_job_create(1, &jobs[0]), LS_OK);
    CHECK_EQ_INT(ls_local_job_create(1, &jobs[1]), LS_OK);
    CHECK_EQ_INT(ls_start(&(ls_start_params_t){.local_job = jobs[0]}, &outer_ctx), LS_OK);
    CHECK_EQ_INT(ls_start(&(ls_start_params_t){.local_job = jobs[1]}, &inner_ctx), LS_OK);
    for (unsigned i = 0; i < AGREED; i++) {
        CHECK_EQ_INT(ls_allreduce(outer_ctx, &outer, NULL), LS_OK);
        CHECK_EQ_INT(ls_allreduce(inner_ctx, &inner, NULL), LS_OK);
    }
    usleep(50000); /* both engines sleep */
    CHECK_EQ_INT(ls_allreduce_async(outer_ctx, &outer, NULL, hand_in_to_inner, NULL), LS_OK);
    while (!atomic_load(&is_dumped)) {
        usleep(100);
    }
    ls_stop(outer_ctx);
    ls_stop(inner_ctx);
    ls_local_job_destroy(jobs[0]);
    ls_local_job_destroy(jobs[1]);
}

/* A peer that sends less than was agreed, to a guest that looks more than once: the caller is told, and reads nothing else. */
static float agreed[2][1024];

static void send_too_little(ls_context_h ctx)
{
    uint32_t    peer  = 0;
    ls_stage_t *stage = NULL;
    ls_work_t  *work  = NULL;
    ls_pass_t   pass  = {0};
    ls_run_t    run;

    pthread_mutex_lock(&ctx->turn_lock);
    for (uint32_t id = 0; id < LS_SCHEDULE_NUM_IDS && work == NULL; id++) {
        work = ctx->works.idle[id];
    }
    CHECK(work != NULL);
    run           = work->run;
    run.iteration = work->iteration + 1;
    CHECK_EQ_INT(ls_net_stage(ctx->net, 64, &stage), LS_OK);
    memset(stage->data, 0, 64);
    CHECK_EQ_INT(ls_net_send(ctx->net, stage, 64, ls_run_key(&run, &pass), 1, &peer, run.plan->messages, 1), LS_OK);
    pthread_mutex_unlock(&ctx->turn_lock);
}

static void give_to_a_broken_peer(rank_t *rank)
{
    const ls_tensor_t tensor = vector("agreed", LS_FLOAT32, agreed[rank->index], 1024);

    for (unsigned i = 0; i < AGREED; i++) {
        CHECK_EQ_INT(ls_allreduce(rank->ctx, &tensor, NULL), LS_OK);
    }
    usleep(50000); /* the engines sleep */
    if (rank->index == 1) {
        send_too_little(rank->ctx);
    } else {
        usleep(100000);
        CHECK_EQ_INT(ls_allreduce(rank->ctx, &tensor, NULL), LS_ERR_INTERNAL);
        CHECK_STR(ls_last_error(), "sent 64 bytes");
    }
}

static void test_what_failed_in_a_guests_turn_does_not_go_on(void)
{
    rank_t ranks[MAX_RANKS];

    run_ranks(2, give_to_a_broken_peer, ranks);
}

/* Several threads of each rank at once, each with names of its own. */
static void *give_many(void *arg)
{
    call_t *call = arg;
    char    name[32];

    snprintf(name, sizeof(name), "giver %d", (int)call->value);
    for (unsigned i = 0; i < STEPS; i++) {
        float number = (float)i;

        reduce(call, name, &number, 1, note);
        CHECK(number == 3 * (float)i);
    }
    return NULL;
}

static void give_from_many_threads(rank_t *rank)
{
    pthread_t threads[GIVERS];
    call_t    calls[GIVERS];

    for (unsigned i = 0; i < GIVERS; i++) {
        calls[i] = (call_t){.rank = rank, .value = (float)i};
        CHECK_EQ_INT(pthread_create(&threads[i], NULL, give_many, &calls[i]), 0);
    }
    for (unsigned i = 0; i < GIVERS; i++) {
        pthread_join(threads[i], NULL);
        CHECK_EQ_INT(atomic_load(&calls[i].num_here) + atomic_load(&calls[i].num_elsewhere), STEPS);
    }
}

static void test_many_givers_take_turns(void)
{
    rank_t ranks[MAX_RANKS];

    run_ranks(3, give_from_many_threads, ranks);
}

#define PARTS 6

static void wait_for_parts(rank_t *rank, unsigned number)
{
    while (atomic_load(&rank->num_done) < number) {
        usleep(50);
    }
}

static unsigned long num_sleeps(ls_context_h ctx)
{
    ls_counters_t counters;

    ls_counters(ctx, &counters);
    return (unsigned long)counters.sleeps;
}

/* Handed in as a group they become one bucket; then one by one.  In how many steps does the engine sleep through until the
 * last one? */
static void give_parts(rank_t *rank)
{
    static const char *const names[PARTS] = {"a", "b", "c", "d", "e", "f"};
    float                    values[PARTS] = {0};
    ls_tensor_t              parts[PARTS];
    unsigned                 num_asleep = 0;

    for (unsigned k = 0; k < PARTS; k++) {
        parts[k] = vector(names[k], LS_FLOAT32, &values[k], 1);
    }
    for (unsigned step = 0; step < AGREED; step++) {
        CHECK_EQ_INT(ls_allreduce_group(rank->ctx, parts, PARTS, NULL), LS_OK);
    }
    for (unsigned step = 0; step < 20; step++) {
        unsigned long before;

        usleep(5000); /* the engine goes to sleep */
        before = num_sleeps(rank->ctx);
        atomic_store(&rank->num_done, 0);
        for (unsigned k = 0; k < PARTS; k++) {
            num_asleep += (k == PARTS - 1 && num_sleeps(rank->ctx) == before);
            CHECK_EQ_INT(ls_allreduce_async(rank->ctx, &parts[k], NULL, on_done, rank), LS_OK);
            usleep(1000);
        }
        wait_for_parts(rank, PARTS);
    }
    rank->value = (float)num_asleep;
}

static void test_parts_of_a_bucket_wake_nobody(void)
{
    rank_t ranks[MAX_RANKS];

    run_ranks(2, give_parts, ranks);
    CHECK(ranks[0].value >= 3 && ranks[1].value >= 3); /* of 20, on a machine that is busy; 0 where each part wakes it */
}

int main(void)
{
    RUN(test_the_giver_of_something_small_is_called_back_in_its_own_thread);
    RUN(test_what_is_large_is_left_to_the_engine);
    RUN(test_zero_switches_guests_off);
    RUN(test_a_callback_hands_in_more_and_must_not_wait);
    RUN(test_guests_compute_as_the_engine_does);
    RUN(test_a_guest_of_two_contexts_knows_both);
    RUN(test_what_failed_in_a_guests_turn_does_not_go_on);
    RUN(test_many_givers_take_turns);
    RUN(test_parts_of_a_bucket_wake_nobody);
    return check_report();
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rank 0 tells the others when all have said good-bye, and goes.  That word may find no room: then it has to stay until
 * there is some, or the others wait for ever.  Here rank 1 says good-bye and is held in a callback, its ring fills up,
 * and rank 0 stops.
 */
#include "base/bell.h"
#include "engine_ranks.h"
#include "transport/mailbox_int.h"

#define HELD_MS    300 /* long enough for a rank 0 that does not wait to be gone */
#define MORE_NAMES 10

static _Atomic(ls_context_h) leaving; /* rank 1, which stops now */
static _Atomic bool          is_held, has_stopped;
static ls_gate_t             may_go;

static void hold(void *arg, ls_status_t status, const char *message)
{
    (void)arg;
    (void)status;
    (void)message;
    atomic_store(&is_held, true);
    ls_gate_wait(&may_go);
}

static unsigned long num_control_messages(ls_context_h ctx)
{
    ls_counters_t counters;

    ls_counters(ctx, &counters);
    return (unsigned long)counters.control_messages;
}

/* Rank 1 has said nothing before its good-bye, so its first messages show that it was said. */
static void hold_rank_1_after_its_good_bye(void)
{
    ls_context_h ctx;

    while ((ctx = atomic_load(&leaving)) == NULL || num_control_messages(ctx) == 0) {
        usleep(100);
    }
    CHECK_EQ_INT(ls_allreduce_group_async(ctx, NULL, 0, NULL, hold, NULL), LS_OK);
    while (!atomic_load(&is_held)) {
        usleep(100);
    }
}

/* Each of these fails, because rank 1 gives no more, and is told to all ranks. */
static void fill_the_ring(ls_context_h ctx)
{
    float value = 0;
    char  name[32];

    for (unsigned i = 0; i < LS_MAILBOX_RING_ENTRIES + MORE_NAMES; i++) {
        const ls_tensor_t tensor = vector(name, LS_FLOAT32, &value, 1);

        snprintf(name, sizeof(name), "late.%u", i);
        CHECK_EQ_INT(ls_allreduce(ctx, &tensor, NULL), LS_ERR_RANK_LOST);
    }
}

static unsigned num_waiting_for_room(ls_context_h ctx)
{
    FILE       *file = tmpfile();
    char        line[512];
    const char *at;
    unsigned    number = 0;

    ls_dump(ctx, fileno(file));
    rewind(file);
    while (fgets(line, sizeof(line), file) != NULL) {
        at = strstr(line, "not taken, ");
        if (strncmp(line, "  rank 1 ", 9) == 0 && at != NULL) {
            (void)sscanf(at, "not taken, %u waiting", &number);
        }
    }
    fclose(file);
    return number;
}

static void *let_go(void *arg)
{
    (void)arg;
    usleep(HELD_MS * 1000);
    if (atomic_load(&has_stopped)) {
        fprintf(stderr, "rank 0 has gone with its last word\n");
        _exit(1); /* rank 1 would wait for ever */
    }
    ls_gate_open(&may_go);
    return NULL;
}

static void stop_with_a_full_ring(rank_t *rank)
{
    ls_context_h ctx = rank->ctx;
    pthread_t    thread;

    if (rank->index == 1) {
        atomic_store(&leaving, ctx);
        return;
    }
    hold_rank_1_after_its_good_bye();
    fill_the_ring(ctx);
    CHECK(num_waiting_for_room(ctx) >= MORE_NAMES);
    CHECK_EQ_INT(pthread_create(&thread, NULL, let_go, NULL), 0);
    rank->ctx = NULL;
    CHECK_EQ_INT(ls_stop(ctx), LS_OK);
    atomic_store(&has_stopped, true);
    pthread_join(thread, NULL);
}

static void test_the_last_word_waits_for_room(void)
{
    rank_t ranks[MAX_RANKS];

    run_ranks(2, stop_with_a_full_ring, ranks);
    CHECK(atomic_load(&has_stopped));
}

int main(void)
{
    RUN(test_the_last_word_waits_for_room);
    return check_report();
}

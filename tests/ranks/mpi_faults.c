/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The MPI transport alone, where things go wrong: lengths, keys, order, leaving early.
 * Run: mpirun -n 2 mpi_faults (more ranks look on).
 */
#include <limits.h>
#include <mpi.h>
#include <stdlib.h>

#include "../unit/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "transport/mpi_control.h"
#include "transport/mpi_transport.h"

#define STAGE_ROOM (1024 * 1024)

static MPI_Comm                  comm;
static int                       rank;
static ls_mpi_transport_h        transport;
static const ls_transport_ops_t *ops = &ls_mpi_transport_ops;

static ls_stage_t *stage_make(void)
{
    ls_stage_t *stage = calloc(1, sizeof(*stage));

    stage->data = calloc(1, STAGE_ROOM + LS_STAGE_TRAILER);
    stage->room = STAGE_ROOM;
    stage->head = calloc(1, sizeof(*stage->head));
    return stage;
}

static void stage_free(ls_stage_t *stage)
{
    free(stage->data);
    free(stage->head);
    free(stage);
}

static ls_status_t progress(void)
{
    bool moved = false;

    return ops->progress(transport, &moved);
}

static void stage_wait(ls_stage_t *stage)
{
    while (atomic_load(&stage->head->pending) > 0 && progress() == LS_OK) {
    }
    CHECK_EQ_INT(atomic_load(&stage->head->pending), 0);
}

static ls_status_t send_bytes(ls_stage_t *stage, uint32_t peer, ls_key_t key, size_t bytes)
{
    const ls_send_t send = {.stage = stage, .bytes = bytes, .peer = peer, .key = key, .contributors = 3};

    atomic_fetch_add(&stage->head->pending, 1);
    return ops->send(transport, &send);
}

/* Each test has a transport of its own, since an error leaves it unusable. */
static void begin(void)
{
    MPI_Barrier(comm);
    CHECK_EQ_INT(ls_mpi_transport_create(comm, &transport), LS_OK);
}

static void end(void)
{
    MPI_Barrier(comm);
    ops->destroy(transport);
    MPI_Barrier(comm);
    CHECK_EQ_INT(ls_mem_live(), 0);
}

/* Rank 1 sends `sent` bytes under `sent_key`, rank 0 expects others: what does rank 0 get to know? */
static void send_wrong(size_t sent, ls_key_t sent_key, size_t expected, ls_key_t expected_key,
                       ls_status_t status, const char *text)
{
    ls_stage_t *stage = stage_make();

    begin();
    if (rank == 1) {
        CHECK_EQ_INT(send_bytes(stage, 0, sent_key, sent), LS_OK);
        stage_wait(stage);
    }
    if (rank == 0) {
        ls_message_t message;
        ls_status_t  got = ops->expect(transport, 1, expected_key, expected);

        while (got == LS_OK && !ops->match(transport, 1, expected_key, &message)) {
            got = progress();
        }
        CHECK_EQ_INT(got, status);
        CHECK_STR(ls_last_error(), text);
        CHECK_STR(ls_last_error(), "rank 1");
        CHECK(!ops->match(transport, 1, expected_key, &message));
    }
    end();
    stage_free(stage);
}

static void test_shorter_message_is_an_error_that_names_both_lengths(void)
{
    const ls_key_t key = ls_key_make(9, 0, 0, 0);

    send_wrong(5, key, 9, key, LS_ERR_INTERNAL, "sent 5 bytes where 9 were expected");
}

static void test_longer_message_is_an_error_that_names_the_expected_length(void)
{
    const ls_key_t key = ls_key_make(9, 0, 0, 0);

    send_wrong(3000, key, 2000, key, LS_ERR_INTERNAL, "2000 bytes");
}

static void test_another_key_with_the_same_tag_is_an_error(void)
{
    send_wrong(64, ls_key_make(9, 1, 10, 0), 64, ls_key_make(9, 1, 2, 0), LS_ERR_INTERNAL, "another message");
}

static void test_messages_with_the_same_tag_come_in_the_order_sent(void)
{
    ls_stage_t *stages[4];

    begin();
    for (uint32_t i = 0; i < 4; i++) { /* chunks 1, 9, 17, 25 share a tag */
        const ls_key_t key = ls_key_make(7, 5, 1 + 8 * i, 256 * i);

        stages[i] = stage_make();
        memset(stages[i]->data, (int)i + 1, 100000);
        if (rank == 1) {
            CHECK_EQ_INT(send_bytes(stages[i], 0, key, 100000), LS_OK);
        } else if (rank == 0) {
            CHECK_EQ_INT(ops->expect(transport, 1, key, 100000), LS_OK);
        }
    }
    for (uint32_t i = 4; rank == 0 && i-- > 0;) { /* asked for in another order */
        const ls_key_t key = ls_key_make(7, 5, 1 + 8 * i, 256 * i);
        ls_message_t   message;

        while (!ops->match(transport, 1, key, &message) && progress() == LS_OK) {
        }
        CHECK_EQ_INT(message.contributors, 3);
        CHECK_EQ_INT(message.bytes, 100000);
        CHECK_EQ_INT(((const unsigned char *)message.data)[99999], i + 1);
        ops->release(transport, &message);
        CHECK(message.token == NULL);
    }
    for (uint32_t i = 0; i < 4; i++) {
        stage_wait(stages[i]);
        stage_free(stages[i]);
    }
    CHECK(!ops->needs_polling(transport));
    end();
}

/* More messages than receives are posted, large and small in turn, several held at a time. */
static void test_control_messages_keep_their_order_while_some_are_held(void)
{
    enum { COUNT = 60, HELD = 3 };
    ls_stage_t *stage = stage_make();
    ls_message_t held[HELD];

    begin();
    for (int i = 0; rank == 1 && i < COUNT; i++) {
        const ls_send_t send = {.stage = stage, .peer = 0, .is_control = true,
                                .bytes = (i % 2 == 0) ? LS_MPI_CONTROL_ROOM - (size_t)i : (size_t)i};

        atomic_fetch_add(&stage->head->pending, 1);
        CHECK_EQ_INT(ops->send(transport, &send), LS_OK);
    }
    for (int i = 0; rank == 0 && i < COUNT; i++) {
        ls_message_t *message = &held[i % HELD];

        if (i >= HELD) {
            ops->release(transport, message);
        }
        while (!ops->poll_control(transport, message) && progress() == LS_OK) {
        }
        CHECK_EQ_INT(message->from, 1);
        CHECK_EQ_INT(message->bytes, (i % 2 == 0) ? LS_MPI_CONTROL_ROOM - (size_t)i : (size_t)i);
    }
    stage_wait(stage);
    end();
    stage_free(stage);
}

static void test_what_cannot_be_sent_is_refused(void)
{
    ls_stage_t     *stage   = stage_make();
    const ls_send_t control = {.stage = stage, .is_control = true, .bytes = LS_MPI_CONTROL_ROOM + 1};

    begin();
    CHECK_EQ_INT(send_bytes(stage, 0, ls_key_make(1, 0, 0, 0), (size_t)INT_MAX), LS_ERR_UNSUPPORTED);
    CHECK_STR(ls_last_error(), "2147483647 bytes");
    CHECK_EQ_INT(ops->expect(transport, 0, ls_key_make(1, 0, 0, 0), SIZE_MAX), LS_ERR_UNSUPPORTED);
    CHECK_EQ_INT(send_bytes(stage, 0, ls_key_make(0, 1, 1, 1), 4), LS_ERR_INTERNAL);
    CHECK_EQ_INT(ops->send(transport, &control), LS_ERR_INTERNAL);
    CHECK(!ops->needs_polling(transport));
    end();
    stage_free(stage);
}

static void test_destroy_does_not_wait_for_messages_that_never_come(void)
{
    begin();
    for (uint32_t i = 0; i < 200; i++) {
        CHECK_EQ_INT(ops->expect(transport, (uint32_t)(1 - rank % 2), ls_key_make(5, 0, i, 0), 5000), LS_OK);
    }
    CHECK(ops->needs_polling(transport));
    CHECK_EQ_INT(progress(), LS_OK);
    end();
}

static void test_failed_allocation_leaves_the_transport_usable(void)
{
    const ls_key_t key = ls_key_make(4, 0, 0, 0);
    ls_message_t   message;
    ls_stage_t    *stage = stage_make();

    begin();
    for (size_t n = 1; n <= 5; n++) { /* four arrays and a block */
        ls_mem_fail_at(n);
        CHECK_EQ_INT(ops->expect(transport, (uint32_t)rank, key, 100), LS_ERR_NO_MEMORY);
        ls_mem_fail_at(0);
    }
    CHECK_EQ_INT(ops->expect(transport, (uint32_t)rank, key, 100), LS_OK);
    CHECK_EQ_INT(send_bytes(stage, (uint32_t)rank, key, 100), LS_OK);
    while (!ops->match(transport, (uint32_t)rank, key, &message) && progress() == LS_OK) {
    }
    CHECK_EQ_INT(message.bytes, 100);
    ops->release(transport, &message);
    stage_wait(stage);
    end();
    stage_free(stage);
}

int main(void)
{
    int level, result;

    MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_rank(comm, &rank);
    RUN(test_shorter_message_is_an_error_that_names_both_lengths);
    RUN(test_longer_message_is_an_error_that_names_the_expected_length);
    RUN(test_another_key_with_the_same_tag_is_an_error);
    RUN(test_messages_with_the_same_tag_come_in_the_order_sent);
    RUN(test_control_messages_keep_their_order_while_some_are_held);
    RUN(test_what_cannot_be_sent_is_refused);
    RUN(test_destroy_does_not_wait_for_messages_that_never_come);
    RUN(test_failed_allocation_leaves_the_transport_usable);
    result = check_report();
    MPI_Comm_free(&comm);
    MPI_Finalize();
    return result;
}

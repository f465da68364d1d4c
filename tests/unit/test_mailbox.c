/* SPDX-License-Identifier: Apache-2.0 */
/* Mailboxes within one thread: rings, tables, stages, descriptors that are wrong. */
#include "mailbox_ranks.h"

typedef struct pair {
    ls_mailbox_h    box[2];
    ls_stage_pool_h pool[2];
} pair_t;

static void open_pair(pair_t *pair)
{
    const ls_config_t    config = small_config();
    ls_mailbox_address_t addresses[2];

    for (uint32_t i = 0; i < 2; i++) {
        CHECK_EQ_INT(create(i, 2, true, &config, &pair->box[i]), LS_OK);
        ls_mailbox_get_address(pair->box[i], &addresses[i]);
        CHECK_EQ_INT(ls_stage_pool_create(pair->box[i], &pair->pool[i]), LS_OK);
    }
    for (uint32_t i = 0; i < 2; i++) {
        CHECK_EQ_INT(ls_mailbox_connect(pair->box[i], addresses), LS_OK);
    }
}

static void close_pair(pair_t *pair)
{
    for (uint32_t i = 0; i < 2; i++) {
        ls_stage_pool_destroy(pair->pool[i]);
        ls_mailbox_destroy(pair->box[i]);
    }
}

static void test_equal_keys_come_out_oldest_first(void)
{
    pair_t       pair;
    ls_message_t message;
    bool         moved = false;

    open_pair(&pair);
    for (uint32_t i = 0; i < 1000; i++) { /* the table grows meanwhile */
        CHECK_EQ_INT(send_number(pair.box[0], pair.pool[0], 11, i % 50, i, 8), LS_OK);
        CHECK_EQ_INT(ls_mailbox_ops.progress(pair.box[1], &moved), LS_OK);
    }
    for (uint32_t i = 0; i < 1000; i++) {
        CHECK(ls_mailbox_ops.match(pair.box[1], 10, i % 50, &message));
        CHECK_EQ_INT(*(const uint32_t *)message.data, i);
        CHECK_EQ_INT(message.contributors, i);
        ls_mailbox_ops.release(pair.box[1], &message);
    }
    CHECK(!ls_mailbox_ops.match(pair.box[1], 10, 0, &message));
    CHECK(!ls_mailbox_ops.match(pair.box[1], 12, 0, &message)); /* not of this node */
    CHECK(!ls_mailbox_ops.match(pair.box[1], 11, 0, &message)); /* itself */
    close_pair(&pair);
}

static void test_a_send_does_not_overtake_those_that_wait_for_room(void)
{
    pair_t       pair;
    ls_message_t message;
    bool         moved = false;

    open_pair(&pair);
    for (uint32_t i = 0; i < LS_MAILBOX_RING_ENTRIES + 10; i++) {
        CHECK_EQ_INT(send_number(pair.box[0], pair.pool[0], 11, 1, i, 8), LS_OK);
    }
    CHECK(ls_mailbox_ops.needs_polling(pair.box[0]));
    CHECK_EQ_INT(ls_mailbox_ops.progress(pair.box[1], &moved), LS_OK); /* now there is room */
    CHECK_EQ_INT(send_number(pair.box[0], pair.pool[0], 11, 1, LS_MAILBOX_RING_ENTRIES + 10, 8), LS_OK);
    CHECK_EQ_INT(ls_mailbox_ops.progress(pair.box[0], &moved), LS_OK);
    CHECK(!ls_mailbox_ops.needs_polling(pair.box[0]));
    for (uint32_t i = 0; i <= LS_MAILBOX_RING_ENTRIES + 10; i++) {
        CHECK(ls_mailbox_ops.match(pair.box[1], 10, 1, &message));
        CHECK_EQ_INT(message.contributors, i);
        ls_mailbox_ops.release(pair.box[1], &message);
    }
    close_pair(&pair);
}

/* There and back: rank 11 doubles the number where it lies. */
static ls_stage_head_t *ask_and_answer(pair_t *pair, uint32_t number)
{
    ls_message_t asked, answered;

    CHECK_EQ_INT(send_number(pair->box[0], pair->pool[0], 11, 5, number, 8), LS_OK);
    CHECK(ls_mailbox_ops.match(pair->box[1], 10, 5, &asked));
    CHECK(ls_mailbox_ops.can_answer(pair->box[1], &asked));
    *(uint32_t *)asked.data *= 2;
    CHECK_EQ_INT(ls_mailbox_ops.answer(pair->box[1], &asked, 6, 2), LS_OK);
    CHECK(ls_mailbox_ops.match(pair->box[0], 11, 6, &answered));
    CHECK_EQ_INT(*(const uint32_t *)answered.data, 2 * number);
    CHECK_EQ_INT(answered.contributors, 2);
    CHECK_EQ_INT(answered.bytes, 8);
    CHECK(answered.token == asked.token); /* the same stage */
    CHECK(!ls_mailbox_ops.can_answer(pair->box[0], &answered));
    ls_mailbox_ops.release(pair->box[0], &answered);
    return answered.token;
}

static void test_a_message_is_answered_where_it_lies_and_its_stage_used_again_first(void)
{
    pair_t           pair;
    ls_stage_head_t *first;

    open_pair(&pair);
    first = ask_and_answer(&pair, 21);
    for (uint32_t i = 0; i < 1000; i++) {
        CHECK(ask_and_answer(&pair, i) == first);
    }
    close_pair(&pair);
}

static void test_a_message_with_another_reader_is_not_to_be_answered(void)
{
    pair_t       pair;
    ls_message_t message;

    open_pair(&pair);
    CHECK_EQ_INT(send_number(pair.box[0], pair.pool[0], 11, 5, 1, 8), LS_OK);
    CHECK(ls_mailbox_ops.match(pair.box[1], 10, 5, &message));
    atomic_store(&((ls_stage_head_t *)message.token)->pending, 2);
    CHECK(!ls_mailbox_ops.can_answer(pair.box[1], &message));
    close_pair(&pair);
}

static void check_bad_answer(uint32_t segment, uint64_t offset, const char *part)
{
    const ls_message_t message = {.from = 11, .segment = segment, .offset = offset, .bytes = 8};
    pair_t             pair;
    bool               moved = false;

    open_pair(&pair);
    CHECK_EQ_INT(ls_mailbox_ops.answer(pair.box[0], &message, 1, 1), LS_OK);
    CHECK_EQ_INT(ls_mailbox_ops.progress(pair.box[1], &moved), LS_ERR_INTERNAL);
    CHECK_STR(ls_last_error(), part);
    close_pair(&pair);
}

static void test_bad_answers_are_an_error_of_progress(void)
{
    check_bad_answer(1, 64, "rank 10 answered in segment 1 of rank 11, which has 1");
    check_bad_answer(UINT32_MAX, 64, "rank 10 answered in segment");
    check_bad_answer(0, 64, "at 64 of segment 0");
    check_bad_answer(0, 1ULL << 40, "of segment 0");
    check_bad_answer(0, 204800, "at 204800 of segment 0, where nothing was sent to it alone");
}

/* Get, fill and send a stage that is back at once, or kept by its receiver. */
static ls_stage_t *use_stage(ls_stage_pool_h pool, size_t bytes, uint32_t pending)
{
    ls_stage_t *stage = NULL;

    CHECK_EQ_INT(ls_stage_get(pool, bytes, &stage), LS_OK);
    memset(stage->data, 1, stage->room + LS_STAGE_TRAILER);
    atomic_store(&stage->head->pending, pending);
    ls_stage_sent(pool, stage);
    return stage;
}

static void test_stages_go_round_oldest_first_and_need_no_mailbox(void)
{
    const size_t    live = ls_mem_live(), size = 300 * LS_KIB;
    ls_stage_t     *used[64];
    ls_stage_pool_h pool;
    size_t          bytes, length, num_stages;

    CHECK_EQ_INT(ls_stage_pool_create(NULL, &pool), LS_OK);
    for (unsigned i = 0; i < 64; i++) {
        used[i] = use_stage(pool, size, 0);
    }
    ls_stage_pool_size(pool, &bytes, &length);
    CHECK(length > 1 && length < 64);
    for (unsigned i = (unsigned)length; i < 64; i++) {
        CHECK(used[i] == used[i - length]);
    }
    use_stage(pool, size, 2); /* one that stays away ... */
    for (unsigned i = 0; i < 2 * length; i++) {
        use_stage(pool, size, 0);
    }
    ls_stage_pool_size(pool, &bytes, &num_stages);
    CHECK_EQ_INT(num_stages, length); /* ... does not make the pool grow */
    ls_stage_pool_destroy(pool);
    CHECK_EQ_INT(ls_mem_live(), live);
}

static void check_bad_descriptor(uint32_t segment, uint64_t offset, uint64_t bytes, const char *part)
{
    ls_stage_t stage = {.segment = segment, .offset = offset};
    pair_t     pair;
    bool       moved = false;

    open_pair(&pair);
    CHECK_EQ_INT(ls_mailbox_ops.send(pair.box[0], &(ls_send_t){.stage = &stage, .bytes = bytes, .peer = 11}), LS_OK);
    CHECK(!ls_mailbox_ops.match(pair.box[1], 10, 0, &(ls_message_t){0}));
    CHECK_EQ_INT(ls_mailbox_ops.progress(pair.box[1], &moved), LS_ERR_INTERNAL);
    CHECK_STR(ls_last_error(), "rank 10 sent");
    CHECK_STR(ls_last_error(), part);
    close_pair(&pair);
}

static void test_bad_descriptors_are_an_error_of_progress(void)
{
    check_bad_descriptor(1, 64, 8, "segment 1, which it has not announced");
    check_bad_descriptor(5000, 64, 8, "segment 5000, which it has not announced");
    check_bad_descriptor(0, 64, 8, "64 of segment 0"); /* the head, not a stage */
    check_bad_descriptor(0, 1ULL << 40, 8, "of segment 0");
    check_bad_descriptor(0, 200001, 8, "at 200001 of segment 0"); /* not at a cache line */
    check_bad_descriptor(0, 204800, UINT64_MAX, "at 204800 of segment 0");
}

static void test_a_send_outside_the_node_is_refused(void)
{
    ls_stage_t stage = {0};
    pair_t     pair;

    open_pair(&pair);
    CHECK_EQ_INT(ls_mailbox_ops.send(pair.box[0], &(ls_send_t){.stage = &stage, .peer = 12}), LS_ERR_INTERNAL);
    CHECK_EQ_INT(ls_mailbox_ops.send(pair.box[0], &(ls_send_t){.stage = &stage, .peer = 4000000}), LS_ERR_INTERNAL);
    close_pair(&pair);
}

static void test_impossible_stage_bytes_are_refused(void)
{
    ls_config_t  config = small_config();
    ls_mailbox_h mailbox;

    config.stage_bytes = SIZE_MAX;
    CHECK_EQ_INT(create(0, 1, true, &config, &mailbox), LS_ERR_CONFIG);
    CHECK_STR(ls_last_error(), "LOCKSTEP_STAGE_BYTES");
}

int main(void)
{
    RUN(test_equal_keys_come_out_oldest_first);
    RUN(test_a_send_does_not_overtake_those_that_wait_for_room);
    RUN(test_a_message_is_answered_where_it_lies_and_its_stage_used_again_first);
    RUN(test_a_message_with_another_reader_is_not_to_be_answered);
    RUN(test_bad_answers_are_an_error_of_progress);
    RUN(test_stages_go_round_oldest_first_and_need_no_mailbox);
    RUN(test_bad_descriptors_are_an_error_of_progress);
    RUN(test_a_send_outside_the_node_is_refused);
    RUN(test_impossible_stage_bytes_are_refused);
    return check_report();
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The net with ranks as threads: messages, stages, bells. */
#include "net_ranks.h"

/* ---- data ----------------------------------------------------------------------------------- */

#define MESSAGES 20
#define STRIDE   61 /* one byte in each cache line is enough, and quick under a sanitizer */

static size_t size_of(uint32_t from, uint32_t to, uint32_t number)
{
    static const size_t sizes[] = {0, 1, 63, 4096, 4097, 70000, 262144, 300000, 1048576, 3000001};
    uint32_t            seed    = from * 7919 + to * 104729 + number * 31;

    return sizes[next_random(&seed) % (sizeof(sizes) / sizeof(sizes[0]))];
}

static unsigned char byte_at(uint32_t from, uint32_t to, uint32_t number, size_t at)
{
    return (unsigned char)(from * 31 + to * 17 + number * 5 + at * 7 + (at >> 12));
}

static void send_pattern(ls_net_h net, uint32_t from, uint32_t to, uint32_t number)
{
    const size_t   bytes   = size_of(from, to, number);
    const uint32_t message = number;
    ls_stage_t    *stage;

    CHECK_EQ_INT(ls_net_stage(net, bytes, &stage), LS_OK);
    CHECK(stage->room >= bytes);
    CHECK_EQ_INT((uintptr_t)stage->data % LS_CACHE_LINE, 0);
    for (size_t at = 0; at < bytes; at += STRIDE) {
        ((unsigned char *)stage->data)[at] = byte_at(from, to, number, at);
    }
    CHECK_EQ_INT(ls_net_send(net, stage, bytes, ls_key_make(1, 2, 3, 0), number + 1, &to, &message, 1), LS_OK);
}

static void check_pattern(const ls_message_t *message, uint32_t to, uint32_t number)
{
    const unsigned char *data  = message->data;
    size_t               wrong = 0;

    CHECK_EQ_INT(message->bytes, size_of(message->from, to, number));
    CHECK_EQ_INT(message->contributors, number + 1);
    for (size_t at = 0; at < message->bytes; at += STRIDE) {
        wrong += (data[at] != byte_at(message->from, to, number, at));
    }
    CHECK_EQ_INT(wrong, 0);
}

static void body_all_to_all(ls_net_h net, unsigned rank, unsigned num_ranks)
{
    uint32_t seed = rank + 1, sent[MAX_RANKS] = {0}, order[MESSAGES];

    for (uint32_t n = 0; n < MESSAGES * (num_ranks - 1);) {
        const uint32_t peer = next_random(&seed) % num_ranks;

        if (peer != rank && sent[peer] < MESSAGES) {
            send_pattern(net, rank, peer, sent[peer]++);
            n++;
        }
    }
    for (uint32_t peer = 0; peer < num_ranks; peer++) {
        for (uint32_t i = 0; i < MESSAGES; i++) {
            const uint32_t j = next_random(&seed) % (i + 1);

            order[i] = order[j];
            order[j] = i;
        }
        for (uint32_t i = 0; peer != rank && i < MESSAGES; i++) {
            ls_message_t message;

            CHECK_EQ_INT(ls_net_expect(net, peer, ls_key_make(1, 2, 3, order[i]), 1), LS_OK);
            message = wait_data(net, peer, ls_key_make(1, 2, 3, order[i]));
            check_pattern(&message, rank, order[i]);
            ls_net_release(net, &message);
        }
    }
}

static void test_messages_asked_in_any_order_arrive_whole(void)
{
    for (unsigned num_ranks = 2; num_ranks <= 5; num_ranks++) {
        run_ranks(num_ranks, body_all_to_all);
    }
}

static void body_one_stage_many_peers(ls_net_h net, unsigned rank, unsigned num_ranks)
{
    uint32_t peers[MAX_RANKS], messages[MAX_RANKS], num_peers = 0;
    size_t   bytes_before = 0, bytes, num_stages;
    uint64_t node_bytes, net_bytes;

    for (uint32_t peer = 0; peer < num_ranks; peer++) {
        if (peer != rank) {
            peers[num_peers]      = peer;
            messages[num_peers++] = 10 + peer;
        }
    }
    for (uint32_t round = 0; round < 200; round++) {
        const ls_key_t key = ls_key_make(5, round, 0, 0);
        ls_stage_t    *stage;

        CHECK_EQ_INT(ls_net_stage(net, 8192, &stage), LS_OK);
        memset(stage->data, (int)(rank + round), 8192);
        CHECK_EQ_INT(ls_net_send(net, stage, 8192, key, 1, peers, messages, num_peers), LS_OK);
        for (uint32_t i = 0; i < num_peers; i++) {
            ls_message_t message = wait_data(net, peers[i], key | (10 + rank));

            CHECK_EQ_INT(message.bytes, 8192);
            CHECK_EQ_INT(((const unsigned char *)message.data)[0], (peers[i] + round) & 0xFF);
            CHECK_EQ_INT(((const unsigned char *)message.data)[8191], (peers[i] + round) & 0xFF);
            ls_net_release(net, &message);
        }
        if (round == 0) {
            ls_stage_pool_size(net->stages, &bytes_before, &num_stages);
        }
    }
    ls_stage_pool_size(net->stages, &bytes, &num_stages);
    CHECK_EQ_INT(bytes, bytes_before);
    ls_net_bytes_sent(net, &node_bytes, &net_bytes);
    CHECK_EQ_INT(node_bytes, 200 * 8192 * num_peers);
    CHECK_EQ_INT(net_bytes, 0);
}

static void test_one_stage_serves_many_receivers(void)
{
    run_ranks(2, body_one_stage_many_peers);
    run_ranks(5, body_one_stage_many_peers);
}

#define FLOOD 5000

static _Atomic bool flood_is_sent;

static void body_flood(ls_net_h net, unsigned rank, unsigned num_ranks)
{
    const uint32_t zero = 0;

    (void)num_ranks;
    if (rank == 0) {
        for (uint32_t i = 0; i < FLOOD; i++) {
            const uint32_t to = 1;
            ls_stage_t    *stage;

            CHECK_EQ_INT(ls_net_stage(net, sizeof(i), &stage), LS_OK);
            memcpy(stage->data, &i, sizeof(i));
            CHECK_EQ_INT(ls_net_send(net, stage, sizeof(i), ls_key_make(1, 0, i, 0), 1, &to, &zero, 1), LS_OK);
        }
        CHECK(ls_net_needs_polling(net));
        CHECK_EQ_INT(ls_net_send_control(net, 1, "last", 4), LS_OK);
        atomic_store(&flood_is_sent, true);
    }
    if (rank == 1) {
        ls_message_t message;

        while (!atomic_load(&flood_is_sent)) {
            sched_yield();
        }
        message = wait_control(net); /* comes after all the data, which is kept meanwhile */
        CHECK_EQ_INT(message.bytes, 4);
        ls_net_release(net, &message);
        for (uint32_t i = FLOOD; i > 0; i--) {
            CHECK(ls_net_match(net, 0, ls_key_make(1, 0, i - 1, 0), &message));
            CHECK_EQ_INT(*(const uint32_t *)message.data, i - 1);
            ls_net_release(net, &message);
        }
    }
    while (ls_net_needs_polling(net)) {
        step(net);
    }
}

static void test_sends_beyond_the_ring_wait_and_arrive(void)
{
    run_ranks(2, body_flood);
}

static void body_steady_rounds(ls_net_h net, unsigned rank, unsigned num_ranks)
{
    const uint32_t right = (rank + 1) % num_ranks, left = (rank + num_ranks - 1) % num_ranks, zero = 0;
    size_t         bytes_before = 0, stages_before = 0, bytes, num_stages;

    for (uint32_t round = 0; round < 10000; round++) {
        const ls_key_t key = ls_key_make(1, round, 0, 0);
        ls_stage_t    *stage;
        ls_message_t   message;

        CHECK_EQ_INT(ls_net_stage(net, 1000, &stage), LS_OK);
        memcpy(stage->data, &round, sizeof(round));
        CHECK_EQ_INT(ls_net_send(net, stage, 1000, key, 1, &right, &zero, 1), LS_OK);
        message = wait_data(net, left, key);
        CHECK_EQ_INT(*(const uint32_t *)message.data, round);
        ls_net_release(net, &message);
        if (round == 5000) { /* the circle of stages is complete by now */
            ls_stage_pool_size(net->stages, &bytes_before, &stages_before);
        }
    }
    ls_stage_pool_size(net->stages, &bytes, &num_stages);
    CHECK_EQ_INT(bytes, bytes_before);
    CHECK_EQ_INT(num_stages, stages_before);
}

static void test_pool_stops_growing_in_the_steady_state(void)
{
    run_ranks(2, body_steady_rounds);
    run_ranks(3, body_steady_rounds);
}

/* One stage is kept by a slow receiver; those sent after it come back and must be found. */
static void body_slow_receiver(ls_net_h net, unsigned rank, unsigned num_ranks)
{
    const uint32_t to = 1 - rank, zero = 0;
    ls_message_t   kept = {0}, message;
    ls_stage_t    *stage;
    size_t         bytes, num_stages, stages_before = 0;

    (void)num_ranks;
    for (uint32_t round = 0; round < 4000; round++) {
        if (round == 3000) {
            ls_stage_pool_size(net->stages, &bytes, &stages_before);
        }
        CHECK_EQ_INT(ls_net_stage(net, 100, &stage), LS_OK);
        CHECK_EQ_INT(ls_net_send(net, stage, 100, ls_key_make(1, round, 0, 0), 1, &to, &zero, 1), LS_OK);
        message = wait_data(net, to, ls_key_make(1, round, 0, 0));
        if (round == 0) {
            kept = message;
        } else {
            ls_net_release(net, &message);
        }
    }
    ls_stage_pool_size(net->stages, &bytes, &num_stages);
    CHECK_EQ_INT(num_stages, stages_before);
    ls_net_release(net, &kept);
}

static void test_stages_behind_a_slow_one_are_reused(void)
{
    run_ranks(2, body_slow_receiver);
}

static void body_large_stages(ls_net_h net, unsigned rank, unsigned num_ranks)
{
    size_t before = 0, bytes, num_stages;

    (void)rank;
    (void)num_ranks;
    for (uint32_t round = 0; round < 50; round++) {
        ls_stage_t *small, *large;

        CHECK_EQ_INT(ls_net_stage(net, 20 * LS_MIB + round, &large), LS_OK);
        CHECK_EQ_INT(ls_net_stage(net, 3 * LS_MIB, &small), LS_OK);
        CHECK(large->room >= 20 * LS_MIB + round && small->room < 20 * LS_MIB);
        ((char *)large->data)[large->room + LS_STAGE_TRAILER - 1] = 1;
        ls_net_unstage(net, small);
        ls_net_unstage(net, large);
        if (round == 1) {
            ls_stage_pool_size(net->stages, &before, &num_stages);
        }
    }
    ls_stage_pool_size(net->stages, &bytes, &num_stages);
    CHECK_EQ_INT(bytes, before);
    CHECK_EQ_INT(ls_net_stage(net, SIZE_MAX - 5, &(ls_stage_t *){NULL}), LS_ERR_NO_MEMORY);
}

static void test_large_stages_are_reused(void)
{
    run_ranks(1, body_large_stages);
}

/* ---- sleeping ------------------------------------------------------------------------------- */

/* match() for one key takes in the message for another: the next progress() must say that it moved. */
static void body_match_tells_of_others(ls_net_h net, unsigned rank, unsigned num_ranks)
{
    const uint32_t to = 1, zero = 0;
    ls_message_t   message;
    bool           moved = false;

    if (rank == 0) {
        ls_stage_t *stage;

        CHECK_EQ_INT(ls_net_stage(net, 1, &stage), LS_OK);
        CHECK_EQ_INT(ls_net_send(net, stage, 1, ls_key_make(1, 0, 0, 0), 1, &to, &zero, 1), LS_OK);
    }
    barrier(net, rank, num_ranks, 1);
    if (rank == 0) {
        ls_stage_t *stage;

        CHECK_EQ_INT(ls_net_stage(net, 1, &stage), LS_OK);
        CHECK_EQ_INT(ls_net_send(net, stage, 1, ls_key_make(2, 0, 0, 0), 1, &to, &zero, 1), LS_OK);
        CHECK_EQ_INT(ls_net_send_control(net, 1, "", 0), LS_OK);
        return;
    }
    message = wait_data(net, 0, ls_key_make(1, 0, 0, 0));
    ls_net_release(net, &message);
    while (!ls_net_poll_control(net, &message)) {
        CHECK(!ls_net_match(net, 0, ls_key_make(3, 0, 0, 0), &message)); /* drains the ring */
    }
    ls_net_release(net, &message);
    CHECK_EQ_INT(ls_net_progress(net, &moved), LS_OK);
    CHECK(moved);
    message = wait_data(net, 0, ls_key_make(2, 0, 0, 0));
    ls_net_release(net, &message);
}

static void test_match_does_not_hide_messages_from_a_sleeper(void)
{
    run_ranks(2, body_match_tells_of_others);
}

static void body_bell(ls_net_h net, unsigned rank, unsigned num_ranks)
{
    const uint32_t to = 1 - rank, zero = 0;

    (void)num_ranks;
    for (uint32_t round = 0; round < 300; round++) {
        const ls_key_t key = ls_key_make(1, round, 0, 0);
        ls_stage_t    *stage;
        ls_message_t   message;

        if (rank == 0) {
            CHECK_EQ_INT(ls_net_stage(net, 1, &stage), LS_OK);
            CHECK_EQ_INT(ls_net_send(net, stage, 1, key, 1, &to, &zero, 1), LS_OK);
        }
        while (!ls_net_match(net, to, key, &message)) {
            const uint32_t heard = ls_bell_listen(ls_net_bell(net), LS_BELL_WAITING);
            bool           moved = false;

            CHECK_EQ_INT(ls_net_progress(net, &moved), LS_OK);
            ls_bell_sleep(ls_net_bell(net), heard, moved ? 0 : 60000000000ULL); /* a lost ring is a timeout */
        }
        ls_net_release(net, &message);
        if (rank == 1) {
            CHECK_EQ_INT(ls_net_stage(net, 1, &stage), LS_OK);
            CHECK_EQ_INT(ls_net_send(net, stage, 1, key, 1, &to, &zero, 1), LS_OK);
        }
    }
}

static void test_a_sleeping_rank_is_rung_awake(void)
{
    run_ranks(2, body_bell);
}

int main(void)
{
    RUN(test_messages_asked_in_any_order_arrive_whole);
    RUN(test_one_stage_serves_many_receivers);
    RUN(test_sends_beyond_the_ring_wait_and_arrive);
    RUN(test_pool_stops_growing_in_the_steady_state);
    RUN(test_stages_behind_a_slow_one_are_reused);
    RUN(test_large_stages_are_reused);
    RUN(test_match_does_not_hide_messages_from_a_sleeper);
    RUN(test_a_sleeping_rank_is_rung_awake);
    return check_report();
}

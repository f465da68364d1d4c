/* SPDX-License-Identifier: Apache-2.0 */
/* The net with ranks as threads: data, control, stages, topology, loss. */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/mem.h"
#include "check.h"
#include "transport/net_struct.h"

#define MAX_RANKS 8

typedef struct rank_args {
    ls_local_job_h job;
    unsigned       rank, num_ranks;
    ls_config_t    config;
    void (*body)(ls_net_h net, unsigned rank, unsigned num_ranks);
    ls_status_t status;
    char        text[512];
} rank_args_t;

static ls_config_t default_config(void)
{
    ls_config_t config;

    CHECK_EQ_INT(ls_config_load(&config), LS_OK);
    return config;
}

static uint32_t next_random(uint32_t *seed)
{
    *seed = *seed * 1664525U + 1013904223U;
    return *seed >> 8;
}

static void step(ls_net_h net)
{
    bool moved = false;

    CHECK_EQ_INT(ls_net_progress(net, &moved), LS_OK);
    if (!moved) {
        sched_yield();
    }
}

static ls_message_t wait_control(ls_net_h net)
{
    ls_message_t message;

    while (!ls_net_poll_control(net, &message)) {
        step(net);
    }
    return message;
}

static ls_message_t wait_data(ls_net_h net, uint32_t peer, ls_key_t key)
{
    ls_message_t message;

    while (!ls_net_match(net, peer, key, &message)) {
        step(net);
    }
    CHECK_EQ_INT(message.from, peer);
    return message;
}

/* Every rank to every other and back: nobody is through before all are here.  Uses keys of id 4095. */
static void barrier(ls_net_h net, unsigned rank, unsigned num_ranks, uint32_t number)
{
    const ls_key_t key = ls_key_make(4095, number, 0, 0);

    for (uint32_t peer = 0; peer < num_ranks; peer++) {
        const uint32_t message = 0;
        ls_stage_t    *stage;

        if (peer != rank) {
            CHECK_EQ_INT(ls_net_stage(net, 0, &stage), LS_OK);
            CHECK_EQ_INT(ls_net_send(net, stage, 0, key, 0, &peer, &message, 1), LS_OK);
        }
    }
    for (uint32_t peer = 0; peer < num_ranks; peer++) {
        if (peer != rank) {
            ls_message_t message = wait_data(net, peer, key);

            CHECK_EQ_INT(message.bytes, 0);
            ls_net_release(net, &message);
        }
    }
    while (ls_net_needs_polling(net)) {
        step(net);
    }
}

static void *run_rank(void *arg)
{
    rank_args_t *args = arg;
    ls_net_h     net  = NULL;

    args->status = ls_net_create_local(args->job, args->rank, &args->config, &net);
    if (args->status != LS_OK) {
        snprintf(args->text, sizeof(args->text), "%s", ls_last_error());
        return NULL;
    }
    args->body(net, args->rank, args->num_ranks);
    barrier(net, args->rank, args->num_ranks, 4000);
    ls_net_destroy(net, true);
    return NULL;
}

static rank_args_t all_args[MAX_RANKS];

/* All ranks with the config of all_args, which the caller may change per rank. */
static void run_prepared(unsigned num_ranks, void (*body)(ls_net_h, unsigned, unsigned))
{
    const size_t   live = ls_mem_live();
    pthread_t      threads[MAX_RANKS];
    ls_local_job_h job;

    CHECK_EQ_INT(ls_local_job_create(num_ranks, &job), LS_OK);
    for (unsigned rank = 0; rank < num_ranks; rank++) {
        all_args[rank].job       = job;
        all_args[rank].rank      = rank;
        all_args[rank].num_ranks = num_ranks;
        all_args[rank].body      = body;
        all_args[rank].text[0]   = '\0';
        pthread_create(&threads[rank], NULL, run_rank, &all_args[rank]);
    }
    for (unsigned rank = 0; rank < num_ranks; rank++) {
        pthread_join(threads[rank], NULL);
    }
    ls_local_job_destroy(job);
    CHECK_EQ_INT(ls_mem_live(), live);
}

static void prepare(const ls_config_t *config)
{
    for (unsigned rank = 0; rank < MAX_RANKS; rank++) {
        all_args[rank].config = *config;
    }
}

static void run_ranks(unsigned num_ranks, void (*body)(ls_net_h, unsigned, unsigned))
{
    const ls_config_t config = default_config();

    prepare(&config);
    run_prepared(num_ranks, body);
    for (unsigned rank = 0; rank < num_ranks; rank++) {
        CHECK_EQ_INT(all_args[rank].status, LS_OK);
    }
}

/* ---- data ----------------------------------------------------------------------------------- */

#define MESSAGES 40
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
    size_t         bytes_before = 0, stages_before = 0, bytes, num_stages, live = 0;

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
        if (round == 1000) {
            ls_stage_pool_size(net->stages, &bytes_before, &stages_before);
            live = ls_mem_live();
        }
    }
    ls_stage_pool_size(net->stages, &bytes, &num_stages);
    CHECK_EQ_INT(bytes, bytes_before);
    CHECK(num_stages <= 2 * num_ranks + 2); /* a ring's neighbours are at most num_ranks rounds apart */
    CHECK(live > 0);
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
    size_t         bytes, num_stages;

    (void)num_ranks;
    for (uint32_t round = 0; round < 500; round++) {
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
    CHECK(num_stages <= 8);
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

/* ---- control -------------------------------------------------------------------------------- */

static void body_control(ls_net_h net, unsigned rank, unsigned num_ranks)
{
    static const size_t sizes[] = {0, 5, 1048577, 262128, 262129, 1, 0};
    const size_t        num     = sizeof(sizes) / sizeof(sizes[0]);
    uint32_t            got[MAX_RANKS] = {0};
    char               *data           = malloc(2 * LS_MIB);

    for (size_t i = 0; i < num; i++) {
        for (uint32_t peer = 0; peer < num_ranks; peer++) {
            memset(data, (int)(rank * 16 + i), sizes[i]);
            CHECK_EQ_INT(ls_net_send_control(net, peer, data, sizes[i]), LS_OK);
        }
    }
    CHECK(ls_net_needs_polling(net)); /* the one to itself */
    for (size_t n = 0; n < num * num_ranks; n++) {
        ls_message_t         message = wait_control(net);
        const unsigned char *bytes   = message.data;
        const uint32_t       index   = got[message.from]++;

        CHECK(index < num);
        CHECK_EQ_INT(message.bytes, sizes[index]);
        if (message.bytes > 0) {
            CHECK_EQ_INT(bytes[0], message.from * 16 + index);
            CHECK(memcmp(bytes, bytes + 1, message.bytes - 1) == 0);
        }
        ls_net_release(net, &message);
    }
    free(data);
}

static void test_control_messages_of_any_size_come_in_order(void)
{
    run_ranks(1, body_control);
    run_ranks(2, body_control);
    run_ranks(4, body_control);
}

/* A part that does not follow what came before is an error of progress(), not a crash. */
static void body_bad_control(ls_net_h net, unsigned rank, unsigned num_ranks)
{
    const uint64_t words[2] = {100, 7};
    const uint32_t to = 1, zero = 0;
    ls_message_t   message;
    ls_status_t    status = LS_OK;
    bool           moved;

    (void)num_ranks;
    if (rank == 0) {
        ls_stage_t *stage;

        CHECK_EQ_INT(ls_net_stage(net, sizeof(words), &stage), LS_OK);
        memcpy(stage->data, words, sizeof(words));
        ls_net_post(net, &(ls_send_t){.stage = stage, .bytes = sizeof(words), .is_control = true}, &to, &zero, 1);
        return;
    }
    while (status == LS_OK) {
        CHECK(!ls_net_poll_control(net, &message));
        status = ls_net_progress(net, &moved);
    }
    CHECK_EQ_INT(status, LS_ERR_INTERNAL);
    CHECK_STR(ls_last_error(), "control message from rank 0 is malformed");
    net->control_status = LS_OK; /* for the barrier */
}

static void test_malformed_control_part_is_an_error(void)
{
    run_ranks(2, body_bad_control);
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
            const uint32_t heard = ls_bell_listen(ls_net_bell(net));
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

/* ---- loss ----------------------------------------------------------------------------------- */

static void body_gone(ls_net_h net, unsigned rank, unsigned num_ranks)
{
    char     text[512];
    uint32_t lost = 99;

    CHECK(!ls_net_find_lost(net, &lost, text, sizeof(text)));
    barrier(net, rank, num_ranks, 1);
    if (rank == 2) {
        ls_net_mark_gone(net, "its script raised KeyError: 'x'");
        ls_net_mark_gone(net, "second");
        return;
    }
    while (!ls_net_find_lost(net, &lost, text, sizeof(text))) {
        step(net);
    }
    CHECK_EQ_INT(lost, 2);
    CHECK_STR(text, "rank 2 (process ");
    CHECK_STR(text, ") is gone: its script raised KeyError: 'x'");
}

static void test_a_rank_that_says_so_is_gone(void)
{
    run_ranks(3, body_gone);
}

static void *leave_at_once(void *arg)
{
    rank_args_t *args = arg;
    ls_net_h     net;
    char         text[512];
    uint32_t     lost;

    CHECK_EQ_INT(ls_net_create_local(args->job, args->rank, &args->config, &net), LS_OK);
    if (args->rank == 1) {
        while (!ls_net_find_lost(net, &lost, text, sizeof(text))) {
            step(net);
        }
        CHECK_STR(text, "because the job had failed");
        for (int i = 0; i < 1000; i++) { /* the memory of the one that left is still there */
            CHECK_EQ_INT(ls_net_send_control(net, 0, text, 100), LS_OK);
        }
    }
    ls_net_destroy(net, args->rank == 1);
    return NULL;
}

static void test_leaving_without_a_barrier_harms_nobody(void)
{
    const ls_config_t config = default_config();
    const size_t      live   = ls_mem_live();
    pthread_t         threads[2];
    ls_local_job_h    job;

    prepare(&config);
    CHECK_EQ_INT(ls_local_job_create(2, &job), LS_OK);
    for (unsigned rank = 0; rank < 2; rank++) {
        all_args[rank].job  = job;
        all_args[rank].rank = rank;
        pthread_create(&threads[rank], NULL, leave_at_once, &all_args[rank]);
    }
    for (unsigned rank = 0; rank < 2; rank++) {
        pthread_join(threads[rank], NULL);
    }
    ls_local_job_destroy(job);
    CHECK_EQ_INT(ls_mem_live(), live);
}

/* ---- place and settings --------------------------------------------------------------------- */

static const char *expected_dims; /* "4,2" */
static uint32_t    expected_nodes, expected_local_size;

static void body_place(ls_net_h net, unsigned rank, unsigned num_ranks)
{
    const ls_net_place_t *place    = ls_net_place(net);
    char                  text[64] = "";

    CHECK_EQ_INT(place->rank, rank);
    CHECK_EQ_INT(place->topology.num_ranks, num_ranks);
    CHECK_EQ_INT(place->topology.num_nodes, expected_nodes);
    if (expected_local_size > 0) {
        CHECK_EQ_INT(place->local_size, expected_local_size);
        CHECK_EQ_INT(place->local_rank, rank % expected_local_size);
        CHECK_EQ_INT(place->topology.node_of[rank], rank / expected_local_size);
    }
    for (uint32_t i = 0; i < place->topology.num_dims; i++) {
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "%u,", place->topology.dims[i]);
    }
    if (strcmp(text, expected_dims) != 0) {
        CHECK_STR(text, "the expected dims");
    }
    CHECK(strlen(place->host) > 0);
    CHECK(!ls_net_has_remote(net));
    body_control(net, rank, num_ranks);
}

static void check_place(unsigned num_ranks, unsigned node_size, const char *topology, uint32_t nodes,
                        uint32_t local_size, const char *dims)
{
    ls_config_t config = default_config();

    config.node_size = node_size;
    snprintf(config.topology, sizeof(config.topology), "%s", topology);
    expected_nodes      = nodes;
    expected_local_size = local_size;
    expected_dims       = dims;
    prepare(&config);
    run_prepared(num_ranks, body_place);
    CHECK_EQ_INT(all_args[0].status, LS_OK);
}

static void test_topology_is_derived_or_taken_from_the_setting(void)
{
    check_place(1, 0, "", 1, 1, "1,");
    check_place(3, 0, "", 1, 3, "3,");
    check_place(4, 2, "", 2, 2, "2,2,");
    check_place(5, 2, "", 3, 0, "");
    check_place(6, 0, "3x2", 1, 6, "3,2,");
    check_place(8, 4, "2x2x2", 2, 4, "2,2,2,");
    check_place(4, 1, "1x4", 4, 1, "1,4,");
}

static void check_bad_topology(const char *topology, const char *part)
{
    ls_config_t config = default_config();

    snprintf(config.topology, sizeof(config.topology), "%s", topology);
    prepare(&config);
    run_prepared(4, body_place);
    for (unsigned rank = 0; rank < 4; rank++) {
        CHECK_EQ_INT(all_args[rank].status, LS_ERR_CONFIG);
        CHECK_STR(all_args[rank].text, part);
        CHECK_STR(all_args[rank].text, topology);
    }
}

static void test_bad_topology_is_refused_with_the_reason(void)
{
    check_bad_topology("3x2", "makes at least 6 ranks, the job has 4");
    check_bad_topology("3", "makes only 3 ranks, the job has 4");
    check_bad_topology("2x", "is not numbers with x between them");
    check_bad_topology("x2", "is not numbers with x between them");
    check_bad_topology("2*2", "is not numbers with x between them");
    check_bad_topology("-2x-2", "is not numbers with x between them");
    check_bad_topology("0x4", "0 is not between 1 and");
    check_bad_topology("99999999999999999999", "is not between 1 and");
    check_bad_topology("4x1x1x1x1x1x1x1x1", "more than 8 dimensions");
}

static void test_settings_that_differ_are_named(void)
{
    const ls_config_t config = default_config();

    prepare(&config);
    all_args[1].config.fusion_bytes = 12345;
    run_prepared(2, body_place);
    for (unsigned rank = 0; rank < 2; rank++) {
        CHECK_EQ_INT(all_args[rank].status, LS_ERR_CONFIG);
        CHECK_STR(all_args[rank].text, "LOCKSTEP_FUSION_BYTES=12345 on rank 1");
        CHECK_STR(all_args[rank].text, " on rank 0");
    }
}

static void body_bytes_between_nodes(ls_net_h net, unsigned rank, unsigned num_ranks)
{
    const uint32_t peers[3] = {rank ^ 1, rank ^ 2, rank ^ 3}, zeros[3] = {0};
    uint64_t       node_bytes, net_bytes;
    ls_stage_t    *stage;

    (void)num_ranks;
    CHECK_EQ_INT(ls_net_stage(net, 1000, &stage), LS_OK);
    CHECK_EQ_INT(ls_net_send(net, stage, 1000, ls_key_make(1, 0, 0, 0), 1, peers, zeros, 3), LS_OK);
    for (int i = 0; i < 3; i++) {
        ls_message_t message = wait_data(net, peers[i], ls_key_make(1, 0, 0, 0));

        ls_net_release(net, &message);
    }
    ls_net_bytes_sent(net, &node_bytes, &net_bytes);
    CHECK_EQ_INT(node_bytes, 1000);
    CHECK_EQ_INT(net_bytes, 2000);
}

static void test_bytes_are_counted_by_virtual_node(void)
{
    ls_config_t config = default_config();

    config.node_size = 2;
    prepare(&config);
    run_prepared(4, body_bytes_between_nodes);
}

/* ---- failure -------------------------------------------------------------------------------- */

static void check_fault(const char *fault, const char *part)
{
    const ls_config_t config = default_config();

    prepare(&config);
    snprintf(all_args[1].config.fault, sizeof(all_args[1].config.fault), "%s", fault);
    run_prepared(3, body_control);
    for (unsigned rank = 0; rank < 3; rank++) {
        CHECK_EQ_INT(all_args[rank].status, LS_ERR_SYSTEM);
        CHECK_STR(all_args[rank].text, part);
        CHECK_STR(all_args[rank].text, fault);
    }
    CHECK_STR(all_args[0].text, "rank 1: ");
}

static void body_cannot_grow(ls_net_h net, unsigned rank, unsigned num_ranks)
{
    ls_stage_t *stage;

    (void)rank;
    (void)num_ranks;
    CHECK_EQ_INT(ls_net_stage(net, 64 * LS_MIB, &stage), LS_ERR_SYSTEM);
    CHECK_STR(ls_last_error(), "LOCKSTEP_FAULT=shm-grow");
}

static void test_faults_fail_every_rank_with_a_reason(void)
{
    ls_config_t config = default_config();

    check_fault("shm-create", "cannot create shared memory");
    check_fault("shm-map:1", "cannot map shared memory");
    snprintf(config.fault, sizeof(config.fault), "shm-grow");
    prepare(&config);
    run_prepared(2, body_cannot_grow);
    snprintf(config.fault, sizeof(config.fault), "shm-create:7"); /* not a rank of this job */
    prepare(&config);
    run_prepared(2, body_control);
    CHECK_EQ_INT(all_args[0].status, LS_OK);
}

static void body_started(ls_net_h net, unsigned rank, unsigned num_ranks)
{
    ls_mem_fail_at(0); /* only the start is to fail */
    (void)net;
    (void)rank;
    (void)num_ranks;
}

static void test_start_survives_every_failed_allocation(void)
{
    const ls_config_t config = default_config();
    unsigned          failed = 0;

    prepare(&config);
    for (unsigned rank = 0; rank < MAX_RANKS; rank++) {
        all_args[rank].config.stage_bytes = 64 * LS_KIB;
    }
    for (size_t n = 3; n < 45; n++) { /* the first two are the job itself */
        ls_mem_fail_at(n);
        run_prepared(2, body_started);
        ls_mem_fail_at(0);
        CHECK_EQ_INT(all_args[0].status, all_args[1].status);
        if (all_args[0].status != LS_OK) {
            CHECK_EQ_INT(all_args[0].status, LS_ERR_NO_MEMORY);
            failed++;
        } else {
            break;
        }
    }
    CHECK(failed > 10);
}

int main(void)
{
    RUN(test_messages_asked_in_any_order_arrive_whole);
    RUN(test_one_stage_serves_many_receivers);
    RUN(test_sends_beyond_the_ring_wait_and_arrive);
    RUN(test_pool_stops_growing_in_the_steady_state);
    RUN(test_stages_behind_a_slow_one_are_reused);
    RUN(test_large_stages_are_reused);
    RUN(test_control_messages_of_any_size_come_in_order);
    RUN(test_malformed_control_part_is_an_error);
    RUN(test_match_does_not_hide_messages_from_a_sleeper);
    RUN(test_a_sleeping_rank_is_rung_awake);
    RUN(test_a_rank_that_says_so_is_gone);
    RUN(test_leaving_without_a_barrier_harms_nobody);
    RUN(test_topology_is_derived_or_taken_from_the_setting);
    RUN(test_bad_topology_is_refused_with_the_reason);
    RUN(test_settings_that_differ_are_named);
    RUN(test_bytes_are_counted_by_virtual_node);
    RUN(test_faults_fail_every_rank_with_a_reason);
    RUN(test_start_survives_every_failed_allocation);
    return check_report();
}

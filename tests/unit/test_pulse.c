/* SPDX-License-Identifier: Apache-2.0 */
/* The pulse: several of them in one process, with boards in plain memory, sockets on loopback and a clock by hand. */
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/peer_process.h"
#include "check.h"
#include "transport/pulse.h"
#include "transport/pulse_message.h"

#define MAX_RANKS 6
#define LIMIT_NS  (5 * LS_NS_PER_S)

typedef struct world {
    uint32_t          num_ranks;
    ls_pulse_member_t members[MAX_RANKS];
    ls_segment_t      boards[MAX_RANKS]; /* by leader */
    ls_pulse_h        pulses[MAX_RANKS];
    uint64_t          now;
} world_t;

static const uint8_t key[LS_SIPHASH_KEY_BYTES] = "0123456789abcde";

/* Ranks in nodes of `node_size`, each with a board; sockets if there are several. */
static void world_open(world_t *world, uint32_t num_ranks, uint32_t node_size)
{
    int fds[MAX_RANKS];

    *world = (world_t){.num_ranks = num_ranks, .now = LS_NS_PER_S};
    for (uint32_t r = 0; r < num_ranks; r++) {
        ls_pulse_member_t *member = &world->members[r];

        fds[r]         = -1;
        member->pid    = getpid();
        member->started = ls_peer_process_start(getpid());
        member->leader = r / node_size * node_size;
        member->slot   = r % node_size;
        snprintf(member->host, sizeof(member->host), "host%u", r / node_size);
        if (member->leader == r) {
            CHECK_EQ_INT(ls_segment_create_heap(ls_pulse_board_bytes(node_size), &world->boards[r]), LS_OK);
            ls_pulse_board_init(world->boards[r].base, node_size);
            if (node_size < num_ranks) {
                CHECK_EQ_INT(ls_pulse_link_open(true, "", &fds[r], &member->address), LS_OK);
            }
        }
    }
    for (uint32_t r = 0; r < num_ranks; r++) {
        ls_pulse_params_t params = {.rank = r, .num_ranks = num_ranks, .limit_ns = LIMIT_NS, .fd = fds[r],
                                    .members = world->members};

        memcpy(params.key, key, sizeof(key));
        params.segment = (ls_segment_t){.kind = LS_SEGMENT_BORROWED, .fd = -1,
                                        .base = world->boards[world->members[r].leader].base};
        CHECK_EQ_INT(ls_pulse_create(&params, &world->pulses[r]), LS_OK);
    }
}

static void world_close(world_t *world)
{
    for (uint32_t r = 0; r < world->num_ranks; r++) {
        ls_pulse_destroy(world->pulses[r]);
    }
    for (uint32_t r = 0; r < world->num_ranks; r++) {
        ls_segment_destroy(&world->boards[r]);
    }
}

/* All but the `silent` rank live on. */
static void live(world_t *world, double seconds, uint32_t silent)
{
    const uint64_t end = world->now + (uint64_t)(seconds * 1e9);

    while (world->now < end) {
        world->now += 250 * LS_NS_PER_MS;
        for (uint32_t r = 0; r < world->num_ranks; r++) {
            if (r != silent) {
                ls_pulse_tick(world->pulses[r], world->now);
            }
        }
    }
}

static bool is_accused(world_t *world, uint32_t by, uint32_t who, const char *text)
{
    char     verdict[LS_PULSE_TEXT_ROOM];
    uint32_t rank;

    if (!ls_pulse_verdict(world->pulses[by], &rank, verdict)) {
        return false;
    }
    CHECK_EQ_INT(rank, who);
    CHECK_STR(verdict, text);
    return true;
}

static uint32_t count_accusers(world_t *world, uint32_t who, const char *text)
{
    uint32_t num = 0;

    for (uint32_t r = 0; r < world->num_ranks; r++) {
        num += is_accused(world, r, who, text) ? 1 : 0;
    }
    return num;
}

static void test_ranks_that_live_are_not_accused(void)
{
    for (uint32_t node_size = 1; node_size <= 4; node_size += (node_size == 1) ? 1 : 2) {
        world_t world;

        world_open(&world, 4, node_size);
        live(&world, 60, MAX_RANKS);
        CHECK_EQ_INT(count_accusers(&world, 0, ""), 0);
        world_close(&world);
    }
}

static void test_a_silent_rank_is_found_in_time_by_all(void)
{
    for (uint32_t node_size = 1; node_size <= 4; node_size += (node_size == 1) ? 1 : 2) {
        for (uint32_t silent = 0; silent < 4; silent++) {
            world_t world;

            world_open(&world, 4, node_size);
            ls_flight_add(ls_pulse_flight(world.pulses[silent], silent), LS_FLIGHT_DONE, world.now, 7, 1, "dense/kernel");
            live(&world, 2, MAX_RANKS);
            live(&world, 3, silent);
            CHECK_EQ_INT(count_accusers(&world, silent, ""), 0);
            live(&world, 2, silent);
            CHECK_EQ_INT(count_accusers(&world, silent, "does not respond: no heartbeat for"), 3);
            CHECK(is_accused(&world, (silent + 1) % 4, silent, "last tensor 'dense/kernel'"));
            ls_pulse_tick(world.pulses[silent], world.now); /* it wakes up, and finds out */
            CHECK(is_accused(&world, silent, silent, "does not respond"));
            world_close(&world);
        }
    }
}

static void test_a_rank_that_says_it_goes_is_accused_at_once(void)
{
    for (uint32_t node_size = 1; node_size <= 4; node_size += 3) {
        world_t world;

        world_open(&world, 4, node_size);
        live(&world, 1, MAX_RANKS);
        ls_pulse_mark_gone(world.pulses[2], "it exited without stopping");
        ls_pulse_mark_gone(world.pulses[2], "another reason");
        live(&world, 0.3, 2);
        CHECK_EQ_INT(count_accusers(&world, 2, "rank 2 (process"), 3);
        CHECK(is_accused(&world, 0, 2, "is gone: it exited without stopping"));
        world_close(&world);
    }
}

static void test_a_rank_that_leaves_in_order_is_not_missed(void)
{
    for (uint32_t node_size = 1; node_size <= 4; node_size += (node_size == 1) ? 1 : 2) {
        world_t world;

        world_open(&world, 4, node_size);
        live(&world, 1, MAX_RANKS);
        ls_pulse_leave(world.pulses[3]);
        live(&world, 20, 3);
        CHECK_EQ_INT(count_accusers(&world, 3, ""), 0);
        world_close(&world);
    }
}

/* All were stopped together (a terminal's ^Z): nobody has listened, so nobody may accuse. */
static void test_who_was_away_accuses_nobody(void)
{
    for (uint32_t node_size = 1; node_size <= 4; node_size += 3) {
        world_t world;

        world_open(&world, 4, node_size);
        live(&world, 2, MAX_RANKS);
        world.now += 100 * LS_NS_PER_S;
        live(&world, 20, MAX_RANKS);
        CHECK_EQ_INT(count_accusers(&world, 0, ""), 0);
        world_close(&world);
    }
}

/* A firewall: datagrams never come.  Better not to watch than to kill a job that works. */
static void test_a_leader_that_was_never_heard_is_not_accused(void)
{
    world_t world;

    world_open(&world, 2, 1);
    ls_log_set_level(LS_LOG_ERROR); /* a warning is expected */
    live(&world, 60, 1);
    ls_log_set_level(LS_LOG_WARN);
    CHECK_EQ_INT(count_accusers(&world, 1, ""), 0);
    world_close(&world);
}

static void find_ended(bool is_zombie)
{
    world_t     world;
    const pid_t child = fork();

    if (child == 0) {
        _exit(0);
    }
    world_open(&world, 3, 3);
    ls_pulse_destroy(world.pulses[0]);
    world.members[1].pid     = child;
    world.members[1].started = LS_PEER_PROCESS_UNKNOWN;
    CHECK_EQ_INT(ls_pulse_create(&(ls_pulse_params_t){.num_ranks = 3, .limit_ns = LIMIT_NS, .fd = -1,
                                                      .members = world.members,
                                                      .segment = {.kind = LS_SEGMENT_BORROWED, .fd = -1,
                                                                  .base = world.boards[0].base}},
                                 &world.pulses[0]), LS_OK);
    CHECK_EQ_INT(is_zombie ? child : waitpid(child, NULL, 0), child);
    while (!ls_peer_process_has_ended(&(ls_peer_process_t){.pid = child, .started = LS_PEER_PROCESS_UNKNOWN})) {
        usleep(1000);
    }
    live(&world, 0.5, MAX_RANKS);
    CHECK_EQ_INT(count_accusers(&world, 1, "is gone: its process has ended"), 3);
    CHECK_EQ_INT(is_zombie ? waitpid(child, NULL, 0) : child, child);
    world_close(&world);
}

static void test_a_process_that_has_ended_is_found(void)
{
    find_ended(false);
    find_ended(true);
}

/* ---- strangers ------------------------------------------------------------------------------------ */

static void send_raw(const world_t *world, uint32_t to, const void *data, size_t size)
{
    const int fd = ls_pulse_link_open_sender(&world->members[to].address);

    CHECK(fd >= 0);
    ls_pulse_link_send(fd, &world->members[to].address, data, size);
    close(fd);
}

static size_t make_verdict(const uint8_t with_key[LS_SIPHASH_KEY_BYTES], uint64_t number, uint8_t *data)
{
    const ls_pulse_message_t message = {.kind = LS_PULSE_VERDICT, .from = 1, .rank = 1, .number = number,
                                        .text = "rank 1 is a lie"};

    return ls_pulse_message_encode(&message, with_key, data);
}

static void test_what_strangers_send_is_dropped(void)
{
    static const uint8_t other_key[LS_SIPHASH_KEY_BYTES] = "0123456789abcdf";
    uint8_t              data[LS_PULSE_MESSAGE_BYTES + 100] = {0};
    size_t               size;
    world_t              world;

    world_open(&world, 2, 1);
    live(&world, 1, MAX_RANKS);
    send_raw(&world, 0, data, 0);
    send_raw(&world, 0, data, sizeof(data));
    size = make_verdict(other_key, 1000, data);
    send_raw(&world, 0, data, size);
    size = make_verdict(key, 1000, data);
    data[10] ^= 1;
    send_raw(&world, 0, data, size);
    data[10] ^= 1;
    send_raw(&world, 0, data, size - 1);
    size = make_verdict(key, 1, data); /* a number that was used: repeated by somebody who listens */
    send_raw(&world, 0, data, size);
    live(&world, 1, MAX_RANKS);
    CHECK(!is_accused(&world, 0, 1, ""));
    size = make_verdict(key, 1000, data); /* and the real one is taken */
    send_raw(&world, 0, data, size);
    live(&world, 0.3, MAX_RANKS);
    CHECK(is_accused(&world, 0, 1, "rank 1 is a lie"));
    world_close(&world);
}

static void test_messages_come_out_as_they_went_in(void)
{
    ls_pulse_message_t message = {.kind = LS_PULSE_BEAT, .from = 3, .rank = 2, .number = 1ULL << 40, .step = 17,
                                  .age_ns = 12345, .text = "dense/\033[31mkernel"}, copy;
    uint8_t            data[LS_PULSE_MESSAGE_BYTES];
    size_t             size = ls_pulse_message_encode(&message, key, data);

    CHECK(ls_pulse_message_decode(data, size, key, 4, &copy));
    CHECK(copy.kind == message.kind && copy.from == 3 && copy.rank == 2 && copy.number == message.number);
    CHECK(copy.step == 17 && copy.age_ns == 12345);
    CHECK_STR(copy.text, "dense/?[31mkernel"); /* nothing that steers a terminal */
    CHECK(!ls_pulse_message_decode(data, size, key, 3, &copy));
    memset(message.text, 'x', sizeof(message.text));
    size = ls_pulse_message_encode(&message, key, data);
    CHECK_EQ_INT(size, LS_PULSE_MESSAGE_BYTES - 1);
    CHECK(ls_pulse_message_decode(data, size, key, 4, &copy));
    for (size_t cut = 0; cut < size; cut++) {
        CHECK(!ls_pulse_message_decode(data, cut, key, 4, &copy));
    }
}

/* The first and a later vector of the authors' paper. */
static void test_siphash_is_siphash(void)
{
    uint8_t vector_key[LS_SIPHASH_KEY_BYTES], data[15];

    for (uint8_t i = 0; i < sizeof(vector_key); i++) {
        vector_key[i] = i;
    }
    for (uint8_t i = 0; i < sizeof(data); i++) {
        data[i] = i;
    }
    CHECK(ls_siphash(vector_key, data, 0) == 0x726FDB47DD0E0E31ULL);
    CHECK(ls_siphash(vector_key, data, 15) == 0xA129CA6149BE45E5ULL);
}

int main(void)
{
    RUN(test_ranks_that_live_are_not_accused);
    RUN(test_a_silent_rank_is_found_in_time_by_all);
    RUN(test_a_rank_that_says_it_goes_is_accused_at_once);
    RUN(test_a_rank_that_leaves_in_order_is_not_missed);
    RUN(test_who_was_away_accuses_nobody);
    RUN(test_a_leader_that_was_never_heard_is_not_accused);
    RUN(test_a_process_that_has_ended_is_found);
    RUN(test_what_strangers_send_is_dropped);
    RUN(test_messages_come_out_as_they_went_in);
    RUN(test_siphash_is_siphash);
    return check_report();
}

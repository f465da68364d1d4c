/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The net over an MPI job: who sits where, and messages between all ranks, whichever way they go.
 * Run: mpirun -n 1..5 transport_mpi, and again with the argument "ours" (MPI is left to the library) and
 * with "funneled" (the program started MPI for one thread).
 *
 * What every rank sends is drawn from a generator that all ranks share, so a receiver knows what to
 * expect without being told.
 */
#include <fcntl.h>
#include <mpi.h>
#include <stdlib.h>

#include "../unit/check.h"
#include "base/config.h"
#include "base/mem.h"
#include "transport/net.h"

#define MAX_RANKS 16
#define NUM_CASTS 12 /* stages that a rank sends in a round */
#define MAX_BYTES (4UL * 1024 * 1024)

static unsigned rank, num_ranks;

/* ---- what is sent ---------------------------------------------------------------------------- */

/* One stage of one sender, sent to the ranks whose message number is set. */
typedef struct cast {
    uint32_t id, iteration, chunk, contributors;
    size_t   bytes;
    uint32_t messages[MAX_RANKS];
    bool     goes_to[MAX_RANKS];
} cast_t;

static uint64_t draw(uint64_t *state)
{
    uint64_t z = (*state += 0x9E3779B97F4A7C15ULL);

    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
}

static cast_t cast_make(uint32_t round, uint32_t from, uint32_t k)
{
    static const size_t sizes[] = {0, 1, 7, 64, 4096, 65536, 300000, 1 << 20, MAX_BYTES - 1, MAX_BYTES};
    uint64_t            state   = ((uint64_t)round << 32) | (from << 16) | k;
    cast_t              cast    = {
        /* distinct in a round, as ids of live buckets are */
        .id           = 1 + (round * 100 + k) % 4095,
        .iteration    = (uint32_t)draw(&state) & 0xFFF,
        .chunk        = (uint32_t)draw(&state) & 0xFFFFFF,
        .contributors = (uint32_t)draw(&state),
        .bytes        = sizes[draw(&state) % (sizeof(sizes) / sizeof(sizes[0]))],
    };

    for (uint32_t to = 0; to < num_ranks; to++) {
        cast.goes_to[to]  = (to != from) && (k < 3 || draw(&state) % 2 == 0);
        cast.messages[to] = (uint32_t)draw(&state) & 0xFFFF;
    }
    return cast;
}

static ls_key_t cast_key(const cast_t *cast, uint32_t message)
{
    return ls_key_make(cast->id, cast->iteration, cast->chunk, message);
}

static uint8_t cast_byte(const cast_t *cast, uint32_t from, size_t at)
{
    return (uint8_t)(cast->contributors + from + at * 31 + (at >> 12));
}

static void shuffle(uint32_t *order, uint32_t count, uint64_t seed)
{
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t other = (uint32_t)(draw(&seed) % (i + 1));

        order[i]     = order[other];
        order[other] = i;
    }
}

/* ---- messages -------------------------------------------------------------------------------- */

static void progress(ls_net_h net)
{
    bool moved = false;

    CHECK_EQ_INT(ls_net_progress(net, &moved), LS_OK);
}

static void cast_send(ls_net_h net, const cast_t *cast)
{
    uint32_t    peers[MAX_RANKS], messages[MAX_RANKS], num_peers = 0;
    ls_stage_t *stage = NULL;

    CHECK_EQ_INT(ls_net_stage(net, cast->bytes, &stage), LS_OK);
    for (size_t at = 0; at < cast->bytes; at++) {
        ((uint8_t *)stage->data)[at] = cast_byte(cast, rank, at);
    }
    for (uint32_t to = 0; to < num_ranks; to++) {
        if (cast->goes_to[to]) {
            peers[num_peers]      = to;
            messages[num_peers++] = cast->messages[to];
        }
    }
    if (num_peers == 0) {
        ls_net_unstage(net, stage);
        return;
    }
    CHECK_EQ_INT(ls_net_send(net, stage, cast->bytes, cast_key(cast, 0), cast->contributors, peers, messages,
                             num_peers), LS_OK);
}

static void cast_check(const cast_t *cast, uint32_t from, const ls_message_t *message)
{
    size_t wrong = 0;

    CHECK_EQ_INT(message->from, from);
    CHECK_EQ_INT(message->bytes, cast->bytes);
    CHECK_EQ_INT(message->contributors, cast->contributors);
    for (size_t at = 0; at < message->bytes; at++) {
        wrong += ((const uint8_t *)message->data)[at] != cast_byte(cast, from, at);
    }
    CHECK_EQ_INT(wrong, 0);
}

/* True if this rank waits for nothing more of the round. */
static bool round_match(ls_net_h net, uint32_t round, const uint32_t *order, bool *is_done)
{
    bool all_done = true;

    for (uint32_t i = 0; i < num_ranks * NUM_CASTS; i++) {
        const uint32_t from = order[i] / NUM_CASTS;
        cast_t         cast;
        ls_message_t   message;

        if (is_done[order[i]]) {
            continue;
        }
        cast = cast_make(round, from, order[i] % NUM_CASTS);
        if (!cast.goes_to[rank]) {
            is_done[order[i]] = true;
        } else if (ls_net_match(net, from, cast_key(&cast, cast.messages[rank]), &message)) {
            cast_check(&cast, from, &message);
            ls_net_release(net, &message);
            is_done[order[i]] = true;
        } else {
            all_done = false;
        }
    }
    return all_done;
}

static void exchange_round(ls_net_h net, uint32_t round)
{
    uint32_t order[MAX_RANKS * NUM_CASTS], sends[NUM_CASTS];
    bool     is_done[MAX_RANKS * NUM_CASTS] = {false};

    shuffle(order, num_ranks * NUM_CASTS, round * 1000 + rank);
    shuffle(sends, NUM_CASTS, round * 2000 + rank);
    for (uint32_t i = 0; i < num_ranks * NUM_CASTS; i++) {
        const uint32_t from = order[i] / NUM_CASTS;
        const cast_t   cast = cast_make(round, from, order[i] % NUM_CASTS);

        if (cast.goes_to[rank]) {
            CHECK_EQ_INT(ls_net_expect(net, from, cast_key(&cast, cast.messages[rank]), cast.bytes), LS_OK);
        }
    }
    for (uint32_t i = 0; i < NUM_CASTS; i++) {
        const cast_t cast = cast_make(round, rank, sends[i]);

        cast_send(net, &cast);
        progress(net);
    }
    shuffle(order, num_ranks * NUM_CASTS, round * 3000 + rank);
    while (!round_match(net, round, order, is_done)) {
        progress(net);
    }
}

/* The k-th control message between two ranks. */
static size_t control_bytes(uint32_t k)
{
    static const size_t sizes[] = {0, 300 * 1024, 1, 1024 * 1024 + 1, 0, 256 * 1024, 17};

    return (k < sizeof(sizes) / sizeof(sizes[0])) ? sizes[k] : k;
}

static void exchange_control(ls_net_h net)
{
    enum { COUNT = 40 };
    static uint8_t data[1024 * 1024 + 1];
    uint32_t       seen[MAX_RANKS] = {0}, num_left = num_ranks * COUNT;
    ls_message_t   message;
    size_t         wrong;

    for (uint32_t k = 0; k < COUNT; k++) {
        for (uint32_t to = 0; to < num_ranks; to++) {
            memset(data, (int)(rank * 50 + k) & 0xFF, control_bytes(k));
            CHECK_EQ_INT(ls_net_send_control(net, to, data, control_bytes(k)), LS_OK);
        }
    }
    while (num_left > 0) {
        if (!ls_net_poll_control(net, &message)) {
            progress(net);
            continue;
        }
        CHECK_EQ_INT(message.bytes, control_bytes(seen[message.from]));
        wrong = 0;
        for (size_t at = 0; at < message.bytes; at++) {
            wrong += ((const uint8_t *)message.data)[at] != ((message.from * 50 + seen[message.from]) & 0xFF);
        }
        CHECK_EQ_INT(wrong, 0);
        seen[message.from]++;
        num_left--;
        ls_net_release(net, &message);
    }
}

/* ---- scenarios ------------------------------------------------------------------------------- */

typedef struct scenario {
    const char *name, *value;
    unsigned    node_size;   /* what a node must have; 0: all ranks */
    const char *description; /* what the place must say */
    const char *warning;     /* what the smallest rank of the node must log; NULL: nothing */
} scenario_t;

/* Standard error of this process goes to a file meanwhile. */
static FILE *capture_begin(int *saved_p)
{
    FILE *file = tmpfile();

    fflush(stderr);
    *saved_p = dup(STDERR_FILENO);
    dup2(fileno(file), STDERR_FILENO);
    return file;
}

static void capture_end(FILE *file, int saved, char *text, size_t room)
{
    size_t length;

    fflush(stderr);
    dup2(saved, STDERR_FILENO);
    close(saved);
    rewind(file);
    length       = fread(text, 1, room - 1, file);
    text[length] = '\0';
    fclose(file);
}

static ls_status_t create_net(ls_net_h *net_p, char *log, size_t room)
{
    ls_config_t config;
    ls_status_t status;
    int         saved;
    FILE       *file;

    CHECK_EQ_INT(ls_config_load(&config), LS_OK);
    file   = capture_begin(&saved);
    status = ls_net_create_mpi(&config, net_p);
    capture_end(file, saved, log, room);
    return status;
}

/* Every rank goes on to drive its net until all are here. */
static void destroy_net(ls_net_h net)
{
    MPI_Request request;
    int         all_here = 0;

    while (ls_net_needs_polling(net)) {
        progress(net);
    }
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    while (!all_here) {
        progress(net);
        MPI_Test(&request, &all_here, MPI_STATUS_IGNORE);
    }
    ls_net_destroy(net, true);
}

static void check_place(const ls_net_place_t *place, unsigned node_size)
{
    CHECK_EQ_INT(place->rank, rank);
    CHECK_EQ_INT(place->local_rank, rank % node_size);
    CHECK_EQ_INT(place->topology.num_ranks, num_ranks);
    CHECK_EQ_INT(place->topology.num_nodes, (num_ranks + node_size - 1) / node_size);
    for (unsigned r = 0; r < num_ranks; r++) {
        CHECK_EQ_INT(place->topology.node_of[r], r / node_size);
    }
    CHECK(place->host[0] != '\0');
}

static void check_log(const char *log, const char *warning)
{
    const char *first = strstr(log, "warn:");

    if (warning == NULL) {
        CHECK_EQ_INT(strlen(log), 0);
        return;
    }
    CHECK_STR(log, warning);
    CHECK_STR(log, "its ranks use MPI, which is slower");
    CHECK(first != NULL && strstr(first + 1, "warn:") == NULL);
}

static void run_scenario(const scenario_t *scenario)
{
    const unsigned node_size = (scenario->node_size == 0) ? num_ranks : scenario->node_size;
    const size_t   live      = ls_mem_live();
    ls_net_h       net       = NULL;
    char           log[4096];

    if (scenario->name != NULL) {
        setenv(scenario->name, scenario->value, 1);
    }
    CHECK_EQ_INT(create_net(&net, log, sizeof(log)), LS_OK);
    if (scenario->name != NULL) {
        unsetenv(scenario->name);
    }
    if (net == NULL) {
        fprintf(stderr, "%s%s\n", log, ls_last_error());
        return;
    }
    check_log(log, rank == 0 ? scenario->warning : NULL);
    check_place(ls_net_place(net), node_size);
    CHECK_STR(ls_net_place(net)->description, num_ranks > 1 ? scenario->description : "one rank");
    for (uint32_t round = 0; round < 3; round++) {
        exchange_round(net, round);
    }
    exchange_control(net);
    destroy_net(net);
    CHECK_EQ_INT(ls_mem_live(), live);
}

static void test_all_ranks_of_a_node_talk_through_shared_memory(void)
{
    run_scenario(&(scenario_t){.description = "shared memory"});
}

static void test_everything_goes_through_mpi_when_shared_memory_is_off(void)
{
    run_scenario(&(scenario_t){.name = "LOCKSTEP_SHM", .value = "off", .description = "MPI ("});
}

static void test_nodes_of_one_rank_talk_through_mpi(void)
{
    run_scenario(&(scenario_t){.name = "LOCKSTEP_NODE_SIZE", .value = "1", .node_size = 1,
                               .description = "MPI ("});
}

static void test_nodes_of_two_ranks_use_both_ways(void)
{
    run_scenario(&(scenario_t){.name = "LOCKSTEP_NODE_SIZE", .value = "2", .node_size = 2,
                               .description = num_ranks > 2 ? "MPI (" : "shared memory"});
}

static void test_node_whose_memory_cannot_be_created_falls_back_to_mpi_with_one_warning(void)
{
    run_scenario(&(scenario_t){.name = "LOCKSTEP_FAULT", .value = "shm-create:1", .description = "MPI (",
                               .warning = "no shared memory on"});
}

static void test_node_whose_memory_cannot_be_mapped_falls_back_to_mpi_with_one_warning(void)
{
    run_scenario(&(scenario_t){.name = "LOCKSTEP_FAULT", .value = "shm-map:1", .description = "MPI (",
                               .warning = "no shared memory on"});
}

static void test_different_settings_fail_on_every_rank_and_name_the_setting(void)
{
    const size_t live = ls_mem_live();
    ls_net_h     net  = NULL;
    char         log[4096], name[32];

    if (rank == num_ranks - 1) {
        setenv("LOCKSTEP_FUSION_BYTES", "64k", 1);
    }
    CHECK_EQ_INT(create_net(&net, log, sizeof(log)), LS_ERR_CONFIG);
    unsetenv("LOCKSTEP_FUSION_BYTES");
    snprintf(name, sizeof(name), "rank %u", num_ranks - 1);
    CHECK_STR(ls_last_error(), name);
    CHECK_STR(ls_last_error(), "LOCKSTEP_FUSION_BYTES is '65536' here and '1048576' on rank 0");
    CHECK(net == NULL);
    CHECK_EQ_INT(ls_mem_live(), live);
}

static void test_topology_that_does_not_fit_fails_and_leaves_nothing_behind(void)
{
    const size_t live = ls_mem_live();
    ls_net_h     net  = NULL;
    char         log[4096];

    setenv("LOCKSTEP_TOPOLOGY", "97x3", 1);
    CHECK_EQ_INT(create_net(&net, log, sizeof(log)), LS_ERR_CONFIG);
    unsetenv("LOCKSTEP_TOPOLOGY");
    CHECK_STR(ls_last_error(), "97x3");
    CHECK_EQ_INT(ls_mem_live(), live);
}

/* ---- MPI started by the library, or by a program that has one thread --------------------------- */

static void test_library_starts_and_ends_mpi(void)
{
    ls_net_h net = NULL;
    int      is_finalized = 0, size = 0;
    char     log[4096];

    CHECK_EQ_INT(create_net(&net, log, sizeof(log)), LS_OK);
    if (net == NULL) {
        return;
    }
    rank = ls_net_place(net)->rank;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    num_ranks = (unsigned)size;
    exchange_round(net, 0);
    destroy_net(net);
    MPI_Finalized(&is_finalized);
    CHECK(is_finalized);
    CHECK_EQ_INT(create_net(&net, log, sizeof(log)), LS_ERR_INVALID);
    CHECK_STR(ls_last_error(), "finalized");
    CHECK_EQ_INT(ls_mem_live(), 0);
}

static void test_program_with_one_thread_is_told_what_to_do_when_mpi_is_needed(void)
{
    ls_net_h net = NULL;
    char     log[4096];

    setenv("LOCKSTEP_SHM", "off", 1);
    CHECK_EQ_INT(create_net(&net, log, sizeof(log)), LS_ERR_CONFIG);
    CHECK_STR(ls_last_error(), "MPI_THREAD_MULTIPLE");
    unsetenv("LOCKSTEP_SHM");
    run_scenario(&(scenario_t){.description = "shared memory"}); /* one node needs no MPI */
}

static int start_mpi(int wanted)
{
    int level, mpi_rank, size;

    MPI_Init_thread(NULL, NULL, wanted, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &mpi_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    rank      = (unsigned)mpi_rank;
    num_ranks = (unsigned)size;
    return level;
}

static void run_multiple(void)
{
    (void)start_mpi(MPI_THREAD_MULTIPLE);
    RUN(test_all_ranks_of_a_node_talk_through_shared_memory);
    RUN(test_everything_goes_through_mpi_when_shared_memory_is_off);
    RUN(test_nodes_of_one_rank_talk_through_mpi);
    RUN(test_nodes_of_two_ranks_use_both_ways);
    if (num_ranks > 1) {
        RUN(test_node_whose_memory_cannot_be_created_falls_back_to_mpi_with_one_warning);
        RUN(test_node_whose_memory_cannot_be_mapped_falls_back_to_mpi_with_one_warning);
        RUN(test_different_settings_fail_on_every_rank_and_name_the_setting);
    }
    RUN(test_topology_that_does_not_fit_fails_and_leaves_nothing_behind);
    MPI_Finalize();
}

int main(int argc, char **argv)
{
    const char *mode = (argc > 1) ? argv[1] : "multiple";

    if (strcmp(mode, "ours") == 0) {
        RUN(test_library_starts_and_ends_mpi);
    } else if (strcmp(mode, "funneled") == 0) {
        if (start_mpi(MPI_THREAD_FUNNELED) == MPI_THREAD_FUNNELED && num_ranks > 1) {
            RUN(test_program_with_one_thread_is_told_what_to_do_when_mpi_is_needed);
        }
        MPI_Finalize();
    } else {
        run_multiple();
    }
    return check_report();
}

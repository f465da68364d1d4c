/* SPDX-License-Identifier: Apache-2.0 */
/* Mailboxes: rings and tables within one thread, then real processes with memory shared between them. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/mem.h"
#include "check.h"
#include "transport/mailbox_int.h"
#include "transport/segment.h"
#include "transport/stage.h"

#define MAX_RANKS 4

static ls_config_t small_config(void)
{
    ls_config_t config;

    CHECK_EQ_INT(ls_config_load(&config), LS_OK);
    config.stage_bytes = 256 * LS_KIB;
    return config;
}

/* Ranks 10, 11, ... so that job ranks and local ranks cannot be mixed up unseen. */
static const uint32_t job_ranks[MAX_RANKS] = {10, 11, 13, 17};

static ls_status_t create(uint32_t local_rank, uint32_t local_size, bool is_local, const ls_config_t *config,
                          ls_mailbox_h *mailbox_p)
{
    const ls_mailbox_params_t params = {
        .config = config, .rank = job_ranks[local_rank], .local_rank = local_rank, .local_size = local_size,
        .local_ranks = job_ranks, .is_local = is_local,
    };
    return ls_mailbox_create(&params, mailbox_p);
}

/* ---- one thread ----------------------------------------------------------------------------- */

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

static ls_status_t send_number(ls_mailbox_h box, ls_stage_pool_h pool, uint32_t to, ls_key_t key,
                               uint32_t number, size_t bytes)
{
    ls_stage_t *stage;
    ls_status_t status = ls_stage_get(pool, bytes, &stage);

    if (status != LS_OK) {
        return status;
    }
    memcpy(stage->data, &number, sizeof(number));
    memcpy((char *)stage->data + bytes - sizeof(number), &number, sizeof(number));
    atomic_store(&stage->head->pending, 1);
    ls_stage_sent(pool, stage);
    return ls_mailbox_ops.send(box, &(ls_send_t){.stage = stage, .bytes = bytes, .peer = to, .key = key,
                                                 .contributors = number});
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

/* ---- processes ------------------------------------------------------------------------------ */

/* What the processes of a test share beside the mailboxes. */
typedef struct board {
    ls_mailbox_address_t addresses[MAX_RANKS];
    _Atomic uint32_t     arrived;
} board_t;

static board_t *board;

static void meet(uint32_t num_ranks)
{
    const uint32_t target = (atomic_fetch_add(&board->arrived, 1) / num_ranks + 1) * num_ranks;

    while (atomic_load(&board->arrived) < target) {
        sched_yield();
    }
}

static ls_mailbox_h join_node(uint32_t rank, uint32_t num_ranks)
{
    const ls_config_t config  = small_config();
    ls_mailbox_h      mailbox = NULL;

    CHECK_EQ_INT(create(rank, num_ranks, false, &config, &mailbox), LS_OK);
    ls_mailbox_get_address(mailbox, &board->addresses[rank]);
    meet(num_ranks);
    CHECK_EQ_INT(ls_mailbox_connect(mailbox, board->addresses), LS_OK);
    meet(num_ranks);
    return mailbox;
}

/* Run body in num_ranks child processes; a child with a failed CHECK exits with 1.  The children are
 * waited for only when all have ended, so that those which die first stay zombies meanwhile. */
static void run_processes(uint32_t num_ranks, void (*body)(uint32_t rank, uint32_t num_ranks), int killed_rank)
{
    pid_t children[MAX_RANKS];

    memset(board, 0, sizeof(*board));
    fflush(stdout);
    for (uint32_t rank = 0; rank < num_ranks; rank++) {
        children[rank] = fork();
        if (children[rank] == 0) {
            atomic_store(&check_failures, 0);
            alarm(60);
            body(rank, num_ranks);
            _exit(atomic_load(&check_failures) == 0 ? 0 : 1);
        }
    }
    for (uint32_t rank = num_ranks; rank > 0; rank--) {
        int status = 0;

        CHECK_EQ_INT(waitpid(children[rank - 1], &status, 0), children[rank - 1]);
        if ((int)rank - 1 == killed_rank) {
            CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        } else {
            CHECK(WIFEXITED(status));
            CHECK_EQ_INT(WEXITSTATUS(status), 0);
        }
    }
}

/* Of this process: what others put into /dev/shm meanwhile is not our business. */
static bool maps_a_named_file_of_shm(void)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    char  line[1024];
    bool  found = false;

    CHECK(maps != NULL);
    while (maps != NULL && fgets(line, sizeof(line), maps) != NULL) {
        found = found || strstr(line, "/dev/shm/") != NULL;
    }
    if (maps != NULL) {
        fclose(maps);
    }
    return found;
}

static void wait_number(ls_mailbox_h mailbox, uint32_t from, ls_key_t key, uint32_t number, size_t bytes)
{
    ls_message_t message;
    bool         moved = false;
    uint32_t     last  = 0;

    while (!ls_mailbox_ops.match(mailbox, from, key, &message)) {
        CHECK_EQ_INT(ls_mailbox_ops.progress(mailbox, &moved), LS_OK);
        sched_yield();
    }
    CHECK_EQ_INT(message.bytes, bytes);
    CHECK_EQ_INT(*(const uint32_t *)message.data, number);
    memcpy(&last, (const char *)message.data + bytes - sizeof(last), sizeof(last));
    CHECK_EQ_INT(last, number);
    ls_mailbox_ops.release(mailbox, &message);
}

/* Sizes up to 12 MiB make each rank grow, so that the others map segments on the way. */
static void body_exchange(uint32_t rank, uint32_t num_ranks)
{
    static const size_t sizes[] = {8, 100000, 3 * LS_MIB, 12 * LS_MIB, 64, 1000000};
    ls_mailbox_h        mailbox = join_node(rank, num_ranks);
    ls_stage_pool_h     pool;
    size_t              bytes_before = 0, bytes_after, num_stages;

    CHECK_EQ_INT(ls_stage_pool_create(mailbox, &pool), LS_OK);
    for (uint32_t round = 0; round < 60; round++) {
        const size_t bytes = sizes[round % 6];

        for (uint32_t peer = 0; peer < num_ranks; peer++) {
            if (peer != rank) {
                CHECK_EQ_INT(send_number(mailbox, pool, job_ranks[peer], round, round * 7 + rank, bytes), LS_OK);
            }
        }
        for (uint32_t peer = 0; peer < num_ranks; peer++) {
            if (peer != rank) {
                wait_number(mailbox, job_ranks[peer], round, round * 7 + peer, bytes);
            }
        }
        meet(num_ranks); /* all stages are back: the pool may not grow from the second turn on */
        if (round == 5) {
            ls_stage_pool_size(pool, &bytes_before, &num_stages);
        }
    }
    ls_stage_pool_size(pool, &bytes_after, &num_stages);
    CHECK_EQ_INT(bytes_after, bytes_before);
    CHECK(bytes_after > 12 * LS_MIB);
    meet(num_ranks);
    ls_stage_pool_destroy(pool);
    ls_mailbox_destroy(mailbox);
    CHECK_EQ_INT(ls_mem_live(), 0);
}

static void test_processes_exchange_messages_of_any_size(void)
{
    run_processes(2, body_exchange, -1);
    run_processes(3, body_exchange, -1);
}

static void body_no_names(uint32_t rank, uint32_t num_ranks)
{
    ls_mailbox_h mailbox = join_node(rank, num_ranks);
    char         path[64], target[128] = "";
    struct stat  memory;

    CHECK(!maps_a_named_file_of_shm());
    snprintf(path, sizeof(path), "/proc/self/fd/%d", (int)board->addresses[rank].fd);
    CHECK(readlink(path, target, sizeof(target) - 1) > 0);
    CHECK_STR(target, "memfd:lockstep");
    CHECK(fcntl((int)board->addresses[rank].fd, F_GETFD) & FD_CLOEXEC);
    CHECK_EQ_INT(fstat((int)board->addresses[rank].fd, &memory), 0);
    CHECK(memory.st_blocks * 512 >= (long long)board->addresses[rank].bytes); /* claimed, not only promised */
    meet(num_ranks);
    ls_mailbox_destroy(mailbox);
}

static void test_memory_is_claimed_and_has_no_name_while_in_use(void)
{
    run_processes(2, body_no_names, -1);
}

static void wait_lost(ls_mailbox_h mailbox, uint32_t rank, const char *part)
{
    const uint64_t began = ls_clock_ns();
    char           text[1024], start[64];
    uint32_t       lost = 0;

    while (!ls_mailbox_find_lost(mailbox, &lost, text, sizeof(text))) {
        usleep(1000);
    }
    CHECK(ls_clock_ns() - began < 20 * LS_NS_PER_S);
    CHECK_EQ_INT(lost, job_ranks[rank]);
    snprintf(start, sizeof(start), "rank %u (process %lld on ", job_ranks[rank],
             (long long)board->addresses[rank].pid);
    CHECK_STR(text, start);
    CHECK_STR(text, part);
}

static void body_killed(uint32_t rank, uint32_t num_ranks)
{
    ls_mailbox_h mailbox = join_node(rank, num_ranks);

    if (rank == 1) {
        raise(SIGKILL);
    }
    wait_lost(mailbox, 1, ") is gone: its process has ended");
    ls_mailbox_destroy(mailbox);
}

static void test_a_killed_process_is_found(void)
{
    run_processes(2, body_killed, 1);
}

static void body_marked(uint32_t rank, uint32_t num_ranks)
{
    ls_mailbox_h mailbox = join_node(rank, num_ranks);
    char         reason[1000];

    memset(reason, 'x', sizeof(reason));
    memcpy(reason, "it exited", 9);
    reason[sizeof(reason) - 1] = '\0';
    if (rank == 2) {
        ls_mailbox_mark_gone(mailbox, reason);
    } else {
        /* Sleeping for longer than the test may take: the mark must ring. */
        const uint32_t key = ls_bell_listen(ls_mailbox_bell(mailbox));

        if (!ls_mailbox_find_lost(mailbox, &(uint32_t){0}, (char[8]){0}, 8)) {
            ls_bell_sleep(ls_mailbox_bell(mailbox), key, 50 * LS_NS_PER_S);
        }
        wait_lost(mailbox, 2, ") is gone: it exitedxxx");
    }
    meet(num_ranks);
    ls_mailbox_destroy(mailbox);
}

static void test_a_process_that_says_so_is_gone(void)
{
    run_processes(3, body_marked, -1);
}

static void body_stopped(uint32_t rank, uint32_t num_ranks)
{
    ls_mailbox_h mailbox = join_node(rank, num_ranks);
    uint32_t     lost;
    char         text[512];

    if (rank == 1) {
        ls_mailbox_destroy(mailbox);
        return;
    }
    for (int i = 0; i < 250; i++) { /* long enough for two looks at the process */
        CHECK(!ls_mailbox_find_lost(mailbox, &lost, text, sizeof(text)));
        usleep(1000);
    }
    CHECK_EQ_INT(ls_mailbox_process_start(board->addresses[1].pid), LS_MAILBOX_PROCESS_ENDED);
    ls_mailbox_destroy(mailbox);
}

static void test_a_process_that_stopped_orderly_is_not_lost(void)
{
    run_processes(2, body_stopped, -1);
}

/* Without care the kernel would end the process with SIGXFSZ here. */
static void body_file_limit(uint32_t rank, uint32_t num_ranks)
{
    const struct rlimit limit  = {.rlim_cur = 4096, .rlim_max = 4096};
    const ls_config_t   config = small_config();
    ls_mailbox_h        mailbox;
    sigset_t            mask;

    (void)num_ranks;
    CHECK_EQ_INT(setrlimit(RLIMIT_FSIZE, &limit), 0);
    CHECK_EQ_INT(create(rank, 1, false, &config, &mailbox), LS_ERR_SYSTEM);
    CHECK_STR(ls_last_error(), "ulimit -f");
    CHECK_EQ_INT(sigpending(&mask), 0);
    CHECK(!sigismember(&mask, SIGXFSZ));
    CHECK_EQ_INT(sigprocmask(SIG_SETMASK, NULL, &mask), 0);
    CHECK(!sigismember(&mask, SIGXFSZ) && !sigismember(&mask, SIGTERM));
    CHECK_EQ_INT(ls_mem_live(), 0);
}

static void test_a_file_size_limit_is_an_error_not_the_end(void)
{
    run_processes(1, body_file_limit, -1);
}

static void body_bad_addresses(uint32_t rank, uint32_t num_ranks)
{
    ls_mailbox_h mailbox = join_node(rank, num_ranks);
    ls_segment_t segment;
    const int    fd = (int)board->addresses[1 - rank].fd;

    CHECK_EQ_INT(ls_segment_open(board->addresses[1 - rank].pid, fd, board->addresses[1 - rank].bytes + 4096,
                                 &segment), LS_ERR_INTERNAL);
    CHECK_STR(ls_last_error(), "announced");
    CHECK_EQ_INT(ls_segment_open(board->addresses[1 - rank].pid, 12345, 4096, &segment), LS_ERR_SYSTEM);
    meet(num_ranks);
    ls_mailbox_destroy(mailbox);
}

/* The announced memory is there, but belongs to another rank. */
static void body_wrong_owner(uint32_t rank, uint32_t num_ranks)
{
    const ls_config_t    config  = small_config();
    ls_mailbox_h         mailbox = NULL;
    ls_mailbox_address_t wrong[2];

    CHECK_EQ_INT(create(rank, num_ranks, false, &config, &mailbox), LS_OK);
    ls_mailbox_get_address(mailbox, &wrong[0]);
    wrong[1] = wrong[0];
    CHECK_EQ_INT(ls_mailbox_connect(mailbox, wrong), LS_ERR_INTERNAL);
    CHECK_STR(ls_last_error(), "is not its own");
    ls_mailbox_destroy(mailbox);
    CHECK_EQ_INT(ls_mem_live(), 0);
}

static void test_wrong_addresses_are_refused(void)
{
    run_processes(2, body_bad_addresses, -1);
    run_processes(2, body_wrong_owner, -1);
}

int main(void)
{
    RUN(test_equal_keys_come_out_oldest_first);
    RUN(test_bad_descriptors_are_an_error_of_progress);
    RUN(test_a_send_outside_the_node_is_refused);
    RUN(test_impossible_stage_bytes_are_refused);
    board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (board == MAP_FAILED) {
        perror("mmap");
        return 1;
    }
    RUN(test_processes_exchange_messages_of_any_size);
    RUN(test_memory_is_claimed_and_has_no_name_while_in_use);
    RUN(test_a_killed_process_is_found);
    RUN(test_a_process_that_says_so_is_gone);
    RUN(test_a_process_that_stopped_orderly_is_not_lost);
    RUN(test_a_file_size_limit_is_an_error_not_the_end);
    RUN(test_wrong_addresses_are_refused);
    munmap(board, sizeof(*board));
    return check_report();
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Mailboxes between real processes: shared memory, limits, processes that end. */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "mailbox_ranks.h"

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

/* Run body in num_ranks child processes; a child with a failed CHECK exits with 1. */
static void run_processes(uint32_t num_ranks, void (*body)(uint32_t rank, uint32_t num_ranks))
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
    for (uint32_t rank = 0; rank < num_ranks; rank++) {
        int status = 0;

        CHECK_EQ_INT(waitpid(children[rank], &status, 0), children[rank]);
        CHECK(WIFEXITED(status));
        CHECK_EQ_INT(WEXITSTATUS(status), 0);
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
    run_processes(2, body_exchange);
    run_processes(3, body_exchange);
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
    run_processes(2, body_no_names);
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
        const uint32_t key = ls_bell_listen(ls_mailbox_bell(mailbox), LS_BELL_WAITING);

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
    run_processes(3, body_marked);
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
    for (int i = 0; i < 100; i++) {
        CHECK(!ls_mailbox_find_lost(mailbox, &lost, text, sizeof(text)));
        usleep(1000);
    }
    ls_mailbox_destroy(mailbox);
}

static void test_a_process_that_stopped_orderly_is_not_lost(void)
{
    run_processes(2, body_stopped);
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
    run_processes(1, body_file_limit);
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
    run_processes(2, body_bad_addresses);
    run_processes(2, body_wrong_owner);
}

int main(void)
{
    board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (board == MAP_FAILED) {
        perror("mmap");
        return 1;
    }
    RUN(test_processes_exchange_messages_of_any_size);
    RUN(test_memory_is_claimed_and_has_no_name_while_in_use);
    RUN(test_a_process_that_says_so_is_gone);
    RUN(test_a_process_that_stopped_orderly_is_not_lost);
    RUN(test_a_file_size_limit_is_an_error_not_the_end);
    RUN(test_wrong_addresses_are_refused);
    munmap(board, sizeof(*board));
    return check_report();
}

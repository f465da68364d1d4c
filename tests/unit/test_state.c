/* SPDX-License-Identifier: Apache-2.0 */
/* Snapshots on disk: whole or not there, whatever happens while they are written. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "base/mem.h"
#include "check.h"
#include "lockstep_state.h"

#define NUM_PARTS 4
#define LARGE     (300u << 10)
#define NUM_KILLS 50

static char          folder[64];
static unsigned char large[LARGE];

static void make_folder(void)
{
    strcpy(folder, "/tmp/lockstep-test-state-XXXXXX");
    CHECK(mkdtemp(folder) != NULL);
}

static void remove_folder(void)
{
    char           path[512];
    struct dirent *entry;
    DIR           *listing = opendir(folder);

    while ((entry = readdir(listing)) != NULL) {
        snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        unlink(path);
    }
    closedir(listing);
    CHECK(rmdir(folder) == 0);
}

/* What belongs to a number: a text, nothing, much, a byte. */
static void fill(unsigned number, char text[32], ls_state_part_t parts[NUM_PARTS])
{
    snprintf(text, 32, "snapshot %u", number);
    memset(large, (int)(number % 251), sizeof(large));
    parts[0] = (ls_state_part_t){.data = text, .size = strlen(text)};
    parts[1] = (ls_state_part_t){0};
    parts[2] = (ls_state_part_t){.data = large, .size = sizeof(large)};
    parts[3] = (ls_state_part_t){.data = text, .size = 1};
}

static ls_status_t write_number(const char *name, unsigned number)
{
    char            text[32];
    ls_state_part_t parts[NUM_PARTS];

    fill(number, text, parts);
    return ls_state_write(folder, name, parts, NUM_PARTS);
}

/* Is there a whole snapshot of this name, with what belongs to the number? */
static bool holds(const char *name, unsigned number)
{
    char            text[32];
    ls_state_part_t parts[NUM_PARTS];
    ls_state_h      state;
    bool            is_equal = true;

    if (ls_state_open(folder, name, &state) != LS_OK) {
        return false;
    }
    fill(number, text, parts);
    is_equal = ls_state_num_parts(state) == NUM_PARTS;
    for (unsigned i = 0; is_equal && i < NUM_PARTS; i++) {
        uint64_t    size;
        const void *data = ls_state_part(state, i, &size);

        is_equal = size == parts[i].size && (size == 0 || memcmp(data, parts[i].data, size) == 0) &&
                   (uintptr_t)data % 64 == 0;
    }
    ls_state_close(state);
    return is_equal;
}

static unsigned num_files(void)
{
    unsigned count   = 0;
    DIR     *listing = opendir(folder);

    for (struct dirent *entry; (entry = readdir(listing)) != NULL;) {
        count += entry->d_name[0] != '.';
    }
    closedir(listing);
    return count;
}

static void test_what_is_written_is_read(void)
{
    make_folder();
    CHECK_EQ_INT(write_number("one", 1), LS_OK);
    CHECK_EQ_INT(write_number("two", 2), LS_OK);
    CHECK(holds("one", 1) && holds("two", 2) && !holds("one", 2));
    CHECK_EQ_INT(num_files(), 4);
    CHECK_EQ_INT(write_number("one", 3), LS_OK);
    CHECK(holds("one", 3));
    ls_state_remove(folder, "one");
    CHECK(!holds("one", 3) && holds("two", 2));
    CHECK_EQ_INT(num_files(), 2);
    remove_folder();
}

static void test_files_are_the_owners_alone(void)
{
    char        path[128];
    struct stat info;

    make_folder();
    CHECK_EQ_INT(write_number("one", 1), LS_OK);
    for (unsigned i = 0; i < 2; i++) {
        snprintf(path, sizeof(path), "%s/one.%s", folder, i == 0 ? "data" : "manifest");
        CHECK(stat(path, &info) == 0);
        CHECK_EQ_INT(info.st_mode & 0777, 0600);
    }
    remove_folder();
}

static void test_names_stay_in_the_folder(void)
{
    make_folder();
    CHECK_EQ_INT(write_number("../one", 1), LS_ERR_INVALID);
    CHECK_EQ_INT(write_number("", 1), LS_ERR_INVALID);
    CHECK_EQ_INT(write_number(".hidden", 1), LS_ERR_INVALID);
    CHECK_EQ_INT(num_files(), 0);
    remove_folder();
}

/* Changes one byte of a file, or cuts it off there. */
static void damage(const char *ending, off_t at, bool is_cut)
{
    char path[128], byte;
    int  fd;

    snprintf(path, sizeof(path), "%s/one.%s", folder, ending);
    fd = open(path, O_RDWR);
    CHECK(fd >= 0);
    if (is_cut) {
        CHECK(ftruncate(fd, at) == 0);
    } else {
        CHECK(pread(fd, &byte, 1, at) == 1);
        byte ^= 1;
        CHECK(pwrite(fd, &byte, 1, at) == 1);
    }
    close(fd);
}

static off_t length_of(const char *ending)
{
    char        path[128];
    struct stat info = {0};

    snprintf(path, sizeof(path), "%s/one.%s", folder, ending);
    CHECK(stat(path, &info) == 0);
    return info.st_size;
}

static void test_damage_is_found_wherever_it_is(void)
{
    make_folder();
    CHECK_EQ_INT(write_number("one", 1), LS_OK);
    for (off_t at = 0, end = length_of("manifest"); at < end; at++) {
        damage("manifest", at, false);
        CHECK(!holds("one", 1));
        damage("manifest", at, false);
        CHECK(holds("one", 1));
    }
    for (off_t at = length_of("manifest") - 1; at >= 0; at -= 3) {
        damage("manifest", at, true);
        CHECK(!holds("one", 1));
    }
    CHECK_EQ_INT(write_number("one", 1), LS_OK);
    damage("data", 64 + 1000, false);
    CHECK(!holds("one", 1));
    CHECK_STR(ls_last_error(), "part 2 of 307200 bytes is damaged");
    CHECK_EQ_INT(write_number("one", 1), LS_OK);
    damage("data", LARGE, true);
    CHECK(!holds("one", 1));
    CHECK_STR(ls_last_error(), "its manifest says");
    remove_folder();
}

/* A file size limit stands for a full disk: writing fails in the middle. */
static void test_a_full_disk_leaves_what_was_there(void)
{
    struct rlimit before, small;

    make_folder();
    signal(SIGXFSZ, SIG_IGN);
    CHECK_EQ_INT(write_number("one", 1), LS_OK);
    CHECK(getrlimit(RLIMIT_FSIZE, &before) == 0);
    for (rlim_t limit = 0; limit < LARGE; limit += 70000) {
        small = (struct rlimit){.rlim_cur = limit, .rlim_max = before.rlim_max};
        CHECK(setrlimit(RLIMIT_FSIZE, &small) == 0);
        CHECK_EQ_INT(write_number("two", 2), LS_ERR_SYSTEM);
        CHECK(setrlimit(RLIMIT_FSIZE, &before) == 0);
        CHECK_STR(ls_last_error(), "two.part: byte");
        CHECK(holds("one", 1));
        CHECK_EQ_INT(num_files(), 2);
    }
    CHECK_EQ_INT(write_number("two", 2), LS_OK);
    remove_folder();
}

static void test_a_folder_that_is_not_there_is_an_error(void)
{
    strcpy(folder, "/tmp/lockstep-test-state-nowhere");
    CHECK_EQ_INT(write_number("one", 1), LS_ERR_SYSTEM);
    CHECK_STR(ls_last_error(), "cannot be made");
}

static void write_until_killed(unsigned first)
{
    for (unsigned number = first;; number++) {
        char name[32];

        snprintf(name, sizeof(name), "snapshot-%06u", number);
        if (write_number(name, number) != LS_OK) {
            _exit(3);
        }
        snprintf(name, sizeof(name), "snapshot-%06u", number - 2);
        ls_state_remove(folder, name);
    }
}

/* The newest whole snapshot; 0: none.  Every manifest that is there must be of a whole one. */
static unsigned newest_whole(void)
{
    unsigned newest  = 0;
    DIR     *listing = opendir(folder);

    for (struct dirent *entry; (entry = readdir(listing)) != NULL;) {
        unsigned number;
        char     ending[32], name[32];

        if (sscanf(entry->d_name, "snapshot-%6u.%31s", &number, ending) != 2 || strcmp(ending, "manifest") != 0) {
            continue;
        }
        snprintf(name, sizeof(name), "snapshot-%06u", number);
        CHECK(holds(name, number));
        newest = number > newest ? number : newest;
    }
    closedir(listing);
    return newest;
}

static void test_killed_while_writing_the_newest_always_loads(void)
{
    unsigned newest = 0, num_new = 0;

    make_folder();
    srandom((unsigned)time(NULL));
    for (unsigned kill_number = 0; kill_number < NUM_KILLS; kill_number++) {
        const pid_t pid = fork();
        int         status;
        unsigned    found;

        if (pid == 0) {
            write_until_killed(newest + 1);
        }
        usleep((useconds_t)(500 + random() % 20000));
        kill(pid, SIGKILL);
        waitpid(pid, &status, 0);
        CHECK(WIFSIGNALED(status));
        found = newest_whole();
        CHECK(found >= newest);
        num_new += found > newest;
        newest = found;
    }
    CHECK(num_new > 0); /* else nothing was tested */
    remove_folder();
}

static void test_no_memory_is_an_error(void)
{
    ls_state_h state;

    make_folder();
    CHECK_EQ_INT(write_number("one", 1), LS_OK);
    for (size_t n = 1; n <= 2; n++) {
        ls_mem_fail_at(n);
        CHECK_EQ_INT(ls_state_open(folder, "one", &state), LS_ERR_NO_MEMORY);
    }
    ls_mem_fail_at(1);
    CHECK_EQ_INT(write_number("one", 1), LS_ERR_NO_MEMORY);
    ls_mem_fail_at(0);
    CHECK_EQ_INT(ls_mem_live(), 0);
    remove_folder();
}

int main(void)
{
    RUN(test_what_is_written_is_read);
    RUN(test_files_are_the_owners_alone);
    RUN(test_names_stay_in_the_folder);
    RUN(test_damage_is_found_wherever_it_is);
    RUN(test_a_full_disk_leaves_what_was_there);
    RUN(test_a_folder_that_is_not_there_is_an_error);
    RUN(test_killed_while_writing_the_newest_always_loads);
    RUN(test_no_memory_is_an_error);
    return check_report();
}

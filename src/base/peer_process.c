/* SPDX-License-Identifier: Apache-2.0 */
#include "base/peer_process.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PATH_ROOM 64
#define STAT_ROOM 1024

uint64_t ls_peer_process_start(int64_t pid)
{
    char        path[PATH_ROOM], text[STAT_ROOM];
    uint64_t    started;
    char        state;
    const char *fields;
    ssize_t     size;
    int         fd;

    snprintf(path, sizeof(path), "/proc/%" PRId64 "/stat", pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return errno == ENOENT ? LS_PEER_PROCESS_ENDED : LS_PEER_PROCESS_UNKNOWN;
    }
    size = read(fd, text, sizeof(text) - 1);
    close(fd);
    if (size <= 0) {
        return LS_PEER_PROCESS_UNKNOWN;
    }
    text[size] = '\0';
    /* "pid (name) state ... start time": the name may hold anything, so begin behind its last bracket.
     * The start time is 19 fields behind the state. */
    fields = strrchr(text, ')');
    if (fields == NULL ||
        sscanf(fields + 1, " %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %" SCNu64,
               &state, &started) != 2) {
        return LS_PEER_PROCESS_UNKNOWN;
    }
    return (state == 'Z' || state == 'X') ? LS_PEER_PROCESS_ENDED : started;
}

bool ls_peer_process_has_ended(const ls_peer_process_t *process)
{
    const uint64_t started = ls_peer_process_start(process->pid);

    if (started == LS_PEER_PROCESS_ENDED || started == LS_PEER_PROCESS_UNKNOWN) {
        /* Where /proc is hidden or no file can be opened, the signal's answer has to do. */
        return started == LS_PEER_PROCESS_ENDED || (kill((pid_t)process->pid, 0) != 0 && errno == ESRCH);
    }
    return process->started != LS_PEER_PROCESS_UNKNOWN && started != process->started;
}

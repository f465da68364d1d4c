/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "lockstep.h"

#define LINE_ROOM 4352 /* a whole error message and its prefix */
#define NO_RANK   (-1L)

static _Atomic ls_log_level_t current_level = LS_LOG_WARN;
static _Atomic int            log_fd        = STDERR_FILENO;
static _Thread_local long     thread_rank   = NO_RANK;

static const char *const level_names[LS_LOG_COUNT] = {
    [LS_LOG_ERROR] = "error", [LS_LOG_WARN] = "warn",   [LS_LOG_INFO] = "info",
    [LS_LOG_DEBUG] = "debug", [LS_LOG_TRACE] = "trace",
};

const char *ls_log_level_name(ls_log_level_t level)
{
    return (level < LS_LOG_COUNT) ? level_names[level] : "?";
}

void ls_log_set_level(ls_log_level_t level)
{
    atomic_store_explicit(&current_level, level, memory_order_relaxed);
}

bool ls_log_is_on(ls_log_level_t level)
{
    return level <= atomic_load_explicit(&current_level, memory_order_relaxed);
}

void ls_log_to(int fd)
{
    atomic_store_explicit(&log_fd, fd, memory_order_relaxed);
}

void ls_log_set_rank(unsigned rank)
{
    thread_rank = (long)rank;
}

/* One write() per line, so that lines of several ranks on one terminal do not mix. */
void ls_log_write(ls_log_level_t level, const char *format, ...)
{
    char    line[LINE_ROOM];
    int     used;
    va_list args;

    if (thread_rank == NO_RANK) {
        used = snprintf(line, sizeof(line), "lockstep: %s: ", ls_log_level_name(level));
    } else {
        used = snprintf(line, sizeof(line), "lockstep rank %ld: %s: ", thread_rank,
                        ls_log_level_name(level));
    }
    va_start(args, format);
    used += vsnprintf(line + used, sizeof(line) - (size_t)used - 1, format, args);
    va_end(args);
    if (used > (int)sizeof(line) - 2) {
        used = (int)sizeof(line) - 2;
    }
    line[used++] = '\n';
    /* A log that cannot be written is not worth a failure. */
    if (write(atomic_load_explicit(&log_fd, memory_order_relaxed), line, (size_t)used) < 0) {
        return;
    }
}

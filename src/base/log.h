/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Log lines on standard error: "lockstep rank 3: warn: tensor w waits 5.0 s for rank 1".
 * Levels are chosen by volume: error and warn a person must read; info once per job; debug in
 * proportion to objects (buckets agreed); trace in proportion to work (every bucket run).
 */
#ifndef LS_BASE_LOG_H
#define LS_BASE_LOG_H

#include <stdbool.h>

typedef enum ls_log_level {
    LS_LOG_ERROR,
    LS_LOG_WARN,
    LS_LOG_INFO,
    LS_LOG_DEBUG,
    LS_LOG_TRACE,
    LS_LOG_COUNT
} ls_log_level_t;

const char *ls_log_level_name(ls_log_level_t level);

/* Process-wide level; default warn. */
void ls_log_set_level(ls_log_level_t level);
bool ls_log_is_on(ls_log_level_t level);

/* Rank that the calling thread speaks for; none until set. */
void ls_log_set_rank(unsigned rank);

void ls_log_write(ls_log_level_t level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define ls_log(_level, ...)                        \
    do {                                           \
        if (ls_log_is_on(_level)) {                \
            ls_log_write((_level), __VA_ARGS__);   \
        }                                          \
    } while (0)

#define ls_error(...) ls_log(LS_LOG_ERROR, __VA_ARGS__)
#define ls_warn(...)  ls_log(LS_LOG_WARN, __VA_ARGS__)
#define ls_info(...)  ls_log(LS_LOG_INFO, __VA_ARGS__)
#define ls_debug(...) ls_log(LS_LOG_DEBUG, __VA_ARGS__)
#define ls_trace(...) ls_log(LS_LOG_TRACE, __VA_ARGS__)

#endif

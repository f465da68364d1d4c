/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A unit test is a program: CHECK what must hold, RUN each test, return check_report().
 * Failures are counted and named; a test that runs for longer than its limit is ended by SIGALRM.
 */
#ifndef LS_TESTS_CHECK_H
#define LS_TESTS_CHECK_H

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define CHECK_LIMIT_SECONDS 400 /* slow machines under TSan need 100 for the longest */

static _Atomic int check_failures;
static int         check_passed, check_failed;

#define CHECK(_condition)                                                                  \
    do {                                                                                   \
        if (!(_condition)) {                                                               \
            fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #_condition);     \
            atomic_fetch_add(&check_failures, 1);                                          \
        }                                                                                  \
    } while (0)

#define CHECK_EQ_INT(_got, _expected)                                                         \
    do {                                                                                      \
        const long long check_got = (long long)(_got), check_expected = (long long)(_expected); \
        if (check_got != check_expected) {                                                    \
            fprintf(stderr, "%s:%d: %s is %lld, not %lld\n", __FILE__, __LINE__, #_got,       \
                    check_got, check_expected);                                               \
            atomic_fetch_add(&check_failures, 1);                                             \
        }                                                                                     \
    } while (0)

/* The text must contain the part. */
#define CHECK_STR(_text, _part)                                                               \
    do {                                                                                      \
        if (strstr((_text), (_part)) == NULL) {                                               \
            fprintf(stderr, "%s:%d: '%s' lacks '%s'\n", __FILE__, __LINE__, (_text), (_part)); \
            atomic_fetch_add(&check_failures, 1);                                             \
        }                                                                                     \
    } while (0)

#define RUN(_test)                                                        \
    do {                                                                  \
        atomic_store(&check_failures, 0);                                 \
        alarm(CHECK_LIMIT_SECONDS);                                       \
        _test();                                                          \
        alarm(0);                                                         \
        if (atomic_load(&check_failures) == 0) {                          \
            check_passed++;                                               \
            printf("ok      %s\n", #_test);                               \
        } else {                                                          \
            check_failed++;                                               \
            printf("FAILED  %s\n", #_test);                               \
        }                                                                 \
        fflush(stdout);                                                   \
    } while (0)

/* The closing line that test runners read; the exit code. */
static inline int check_report(void)
{
    printf("%d passed, %d failed\n", check_passed, check_failed);
    return check_failed == 0 ? 0 : 1;
}

#endif

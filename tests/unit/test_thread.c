/* SPDX-License-Identifier: Apache-2.0 */
/* Short slices: taken where the system has them, and nothing else is changed. */
#include "base/thread.h"

#include <linux/sched.h>
#include <linux/sched/types.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/utsname.h>

#include "check.h"

static struct sched_attr attributes(void)
{
    struct sched_attr found = {.size = sizeof(found)};

    CHECK_EQ_INT(syscall(SYS_sched_getattr, 0, &found, sizeof(found), 0), 0);
    return found;
}

static bool system_has_slices(void)
{
    struct utsname name;
    int            major = 0, minor = 0;

    CHECK_EQ_INT(uname(&name), 0);
    CHECK_EQ_INT(sscanf(name.release, "%d.%d", &major, &minor), 2);
    return major > 6 || (major == 6 && minor >= 12);
}

static void test_slices_become_short(void)
{
    const struct sched_attr before = attributes();
    struct sched_attr       after;

    ls_thread_ask_short_slices();
    after = attributes();
    CHECK_EQ_INT(after.sched_policy, before.sched_policy);
    CHECK_EQ_INT(after.sched_nice, before.sched_nice);
    if (system_has_slices()) {
        CHECK(after.sched_runtime < before.sched_runtime);
    }
}

static void test_another_policy_stays(void)
{
    struct sched_attr batch = {.size = sizeof(batch), .sched_policy = SCHED_BATCH};
    struct sched_attr after;

    CHECK_EQ_INT(syscall(SYS_sched_setattr, 0, &batch, 0), 0);
    batch = attributes();
    ls_thread_ask_short_slices();
    after = attributes();
    CHECK_EQ_INT(after.sched_policy, SCHED_BATCH);
    CHECK_EQ_INT(after.sched_runtime, batch.sched_runtime);
}

int main(void)
{
    RUN(test_slices_become_short);
    RUN(test_another_policy_stays);
    return check_report();
}

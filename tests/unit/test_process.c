/* SPDX-License-Identifier: Apache-2.0 */
/* The context of a process where it cannot start: this program is built without MPI. */
#include "check.h"
#include "lockstep.h"

static void test_there_is_no_context_before_the_start(void)
{
    CHECK(ls_process_get() == NULL);
    ls_process_put(NULL);
}

static void test_a_failed_start_leaves_no_context_and_may_be_tried_again(void)
{
    for (int i = 0; i < 2; i++) {
        CHECK(ls_process_start() != LS_OK);
        CHECK(ls_last_error()[0] != '\0');
        CHECK(ls_process_get() == NULL);
    }
}

static void test_stopping_what_has_not_started_does_nothing(void)
{
    ls_process_stop();
    ls_process_stop();
    CHECK(ls_process_get() == NULL);
}

static void test_an_exchange_without_a_context_is_an_error(void)
{
    char all[2] = {0};

    CHECK_EQ_INT(ls_process_allgather(NULL, "x", 1, all), LS_ERR_INVALID);
    CHECK(ls_last_error()[0] != '\0' && all[0] == '\0');
}

int main(void)
{
    RUN(test_an_exchange_without_a_context_is_an_error);
    RUN(test_there_is_no_context_before_the_start);
    RUN(test_a_failed_start_leaves_no_context_and_may_be_tried_again);
    RUN(test_stopping_what_has_not_started_does_nothing);
    return check_report();
}

/* SPDX-License-Identifier: Apache-2.0 */
/* LOCKSTEP_FAULT: what it takes, for whom, and when it happens. */
#include "base/error.h"
#include "base/fault.h"
#include "base/log.h"
#include "check.h"

static ls_status_t parse(const char *text, ls_fault_t *fault_p)
{
    return ls_fault_parse(text, 1, fault_p);
}

static void test_every_site_and_action_is_understood(void)
{
    static const char *const sites[]   = {"start", "request", "send", "receive", "reduce", "callback", "stop"};
    static const char *const actions[] = {"kill", "segv", "exit", "exit0", "stop", "sleep 1.5", "drop", "corrupt", "abort"};
    ls_fault_t               fault;
    char                     text[64];

    for (size_t i = 0; i < sizeof(sites) / sizeof(sites[0]); i++) {
        for (size_t k = 0; k < sizeof(actions) / sizeof(actions[0]); k++) {
            snprintf(text, sizeof(text), "%s:1:7:%s", sites[i], actions[k]);
            CHECK_EQ_INT(parse(text, &fault), LS_OK);
            CHECK(fault.site != LS_FAULT_NONE && fault.action != LS_FAULT_GO_ON);
            CHECK_EQ_INT(fault.step, 7);
        }
    }
}

static void test_what_makes_no_sense_is_refused(void)
{
    static const char *const texts[] = {"send",         "send:1",      "send:1:2",      "send:1:2:",     "nowhere:1:2:kill",
                                        "send:x:2:kill", "send:1:x:kill", "send:1:2:dance", "send:1:2:kill now", "send:1:2:sleep",
                                        "send:1:2:sleep x", "send:1:2:sleep -1"};
    ls_fault_t               fault;

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        CHECK_EQ_INT(parse(texts[i], &fault), LS_ERR_CONFIG);
        CHECK_STR(ls_last_error(), texts[i]);
        CHECK_EQ_INT(fault.site, LS_FAULT_NONE);
    }
}

static void test_faults_of_others_are_none(void)
{
    ls_fault_t fault;

    CHECK_EQ_INT(parse("", &fault), LS_OK);
    CHECK_EQ_INT(fault.site, LS_FAULT_NONE);
    CHECK_EQ_INT(parse("shm-create:1", &fault), LS_OK);
    CHECK_EQ_INT(fault.site, LS_FAULT_NONE);
    CHECK_EQ_INT(parse("send:2:0:kill", &fault), LS_OK);
    CHECK_EQ_INT(fault.site, LS_FAULT_NONE);
}

static void test_it_happens_once_from_its_step_on(void)
{
    ls_fault_t fault;

    ls_log_set_level(LS_LOG_ERROR); /* it warns when it happens */
    CHECK_EQ_INT(parse("send:1:3:drop", &fault), LS_OK);
    for (fault.now = 0; fault.now < 3; fault.now++) {
        CHECK_EQ_INT(ls_fault_at(&fault, LS_FAULT_SEND), LS_FAULT_GO_ON);
    }
    CHECK_EQ_INT(ls_fault_at(&fault, LS_FAULT_RECEIVE), LS_FAULT_GO_ON);
    fault.now = 5;
    CHECK_EQ_INT(ls_fault_at(&fault, LS_FAULT_SEND), LS_FAULT_DROP);
    CHECK_EQ_INT(ls_fault_at(&fault, LS_FAULT_SEND), LS_FAULT_GO_ON);
    ls_log_set_level(LS_LOG_WARN);
}

int main(void)
{
    RUN(test_every_site_and_action_is_understood);
    RUN(test_what_makes_no_sense_is_refused);
    RUN(test_faults_of_others_are_none);
    RUN(test_it_happens_once_from_its_step_on);
    return check_report();
}

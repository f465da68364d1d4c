/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fault.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"

#define WORD_ROOM 64
#define EXIT_CODE 3

static const struct {
    const char     *text;
    ls_fault_site_t site;
} sites[] = {
#define LS_FAULT_SITE_ROW(_name, _text, _help) {_text, _name},
    LS_FAULT_SITE_LIST(LS_FAULT_SITE_ROW)
#undef LS_FAULT_SITE_ROW
};

static const struct {
    const char       *text;
    ls_fault_action_t action;
} actions[] = {
    {"drop", LS_FAULT_DROP},   {"corrupt", LS_FAULT_CORRUPT}, {"kill", LS_FAULT_KILL},  {"segv", LS_FAULT_SEGV},
    {"exit", LS_FAULT_EXIT},   {"exit0", LS_FAULT_EXIT0},     {"stop", LS_FAULT_FREEZE}, {"sleep", LS_FAULT_SLEEP},
    {"abort", LS_FAULT_ABORT},
};

#define NUM_OF(_list) (sizeof(_list) / sizeof((_list)[0]))

static ls_status_t refuse(const char *text)
{
    return ls_error_set(LS_ERR_CONFIG, "LOCKSTEP_FAULT is '%s'; it takes site:rank:step:action, as request:1:5:kill "
                        "(docs/design/faults.md)", text);
}

static bool find_site(const char *word, ls_fault_t *fault)
{
    for (size_t i = 0; i < NUM_OF(sites); i++) {
        if (strcmp(word, sites[i].text) == 0) {
            fault->site = sites[i].site;
        }
    }
    return fault->site != LS_FAULT_NONE;
}

/* "kill", "sleep 5" */
static bool find_action(const char *word, ls_fault_t *fault)
{
    const size_t length = strcspn(word, " ");
    char        *end    = NULL;

    fault->action = LS_FAULT_GO_ON;
    for (size_t i = 0; i < NUM_OF(actions); i++) {
        if (strlen(actions[i].text) == length && strncmp(word, actions[i].text, length) == 0) {
            fault->action = actions[i].action;
        }
    }
    if (fault->action == LS_FAULT_SLEEP) {
        fault->seconds = strtod(word + length, &end);
        return end != word + length && *end == '\0' && fault->seconds >= 0 && fault->seconds < 1e6;
    }
    return fault->action != LS_FAULT_GO_ON && word[length] == '\0';
}

ls_status_t ls_fault_parse(const char *text, uint32_t rank, ls_fault_t *fault_p)
{
    ls_fault_t fault = {.site = LS_FAULT_NONE};
    char       site[WORD_ROOM], action[WORD_ROOM];
    unsigned   who;
    unsigned long long step;

    *fault_p = fault;
    if (text[0] == '\0' || strncmp(text, "shm-", 4) == 0) {
        return LS_OK;
    }
    if (sscanf(text, "%63[^:]:%u:%llu:%63[^\n]", site, &who, &step, action) != 4 || !find_site(site, &fault) ||
        !find_action(action, &fault)) {
        return refuse(text);
    }
    fault.step = step;
    if (who == rank) {
        *fault_p = fault;
    }
    return LS_OK;
}

static void sleep_for(double seconds)
{
    struct timespec left = {.tv_sec = (time_t)seconds, .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9)};

    while (nanosleep(&left, &left) != 0 && errno == EINTR) {
    }
}

ls_fault_action_t ls_fault_do(ls_fault_t *fault)
{
    const ls_fault_action_t action = fault->action;

    if (fault->now < fault->step) {
        return LS_FAULT_GO_ON;
    }
    fault->site = LS_FAULT_NONE;
    ls_warn("LOCKSTEP_FAULT happens now, at step %llu; fault at %.3f", (unsigned long long)fault->now,
            (double)ls_clock_ns() / (double)LS_NS_PER_S);
    switch (action) {
    case LS_FAULT_KILL:
        (void)raise(SIGKILL);
        break;
    case LS_FAULT_SEGV:
        (void)signal(SIGSEGV, SIG_DFL);
        (void)kill(getpid(), SIGSEGV); /* of this process: the engine's thread takes no signals */
        sleep_for(1);
        break;
    case LS_FAULT_EXIT:
        exit(EXIT_CODE);
    case LS_FAULT_EXIT0:
        exit(0);
    case LS_FAULT_FREEZE:
        (void)raise(SIGSTOP); /* this thread at once: sent to the process it may stop a moment later */
        break;
    case LS_FAULT_SLEEP:
        sleep_for(fault->seconds);
        break;
    case LS_FAULT_ABORT:
        abort();
    case LS_FAULT_DROP:
    case LS_FAULT_CORRUPT:
        return action;
    case LS_FAULT_GO_ON:
        break;
    }
    return LS_FAULT_GO_ON;
}

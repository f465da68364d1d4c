/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Faults on purpose: LOCKSTEP_FAULT=site:rank:step:action, so that each fault is a test and not an accident.
 * Without the setting a site costs one comparison.  docs/design/faults.md has the list.
 */
#ifndef LS_BASE_FAULT_H
#define LS_BASE_FAULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lockstep.h"

#define LS_FAULT_SITE_LIST(X)                                              \
    X(LS_FAULT_START, "start", "the engine has started, before ls_start returns")   \
    X(LS_FAULT_REQUEST, "request", "a tensor is handed in")                \
    X(LS_FAULT_SEND, "send", "data is sent to another rank")               \
    X(LS_FAULT_RECEIVE, "receive", "data of another rank was found")       \
    X(LS_FAULT_REDUCE, "reduce", "data of other ranks is being reduced")   \
    X(LS_FAULT_CALLBACK, "callback", "a request is done, before its callback") \
    X(LS_FAULT_STOP, "stop", "all ranks want to stop, before this one does")

typedef enum ls_fault_site {
    LS_FAULT_NONE,
#define LS_FAULT_SITE_ENUM(_name, _text, _help) _name,
    LS_FAULT_SITE_LIST(LS_FAULT_SITE_ENUM)
#undef LS_FAULT_SITE_ENUM
} ls_fault_site_t;

typedef enum ls_fault_action {
    LS_FAULT_GO_ON, /* nothing to do for the caller */
    LS_FAULT_DROP,  /* the caller leaves the message out */
    LS_FAULT_CORRUPT, /* the caller changes a bit of it */
    LS_FAULT_KILL,
    LS_FAULT_SEGV,
    LS_FAULT_EXIT,
    LS_FAULT_EXIT0,
    LS_FAULT_FREEZE,
    LS_FAULT_SLEEP,
    LS_FAULT_ABORT
} ls_fault_action_t;

/* owner: who has the engine's turn */
typedef struct ls_fault {
    ls_fault_site_t   site; /* NONE: no fault, or it has happened */
    ls_fault_action_t action;
    uint64_t          step; /* from which on it may happen */
    uint64_t          now;  /* the engine's step */
    double            seconds;
} ls_fault_t;

/* Text of the setting; a fault of another rank, or one of the shared memory's own, is none here.  LS_ERR_CONFIG. */
ls_status_t ls_fault_parse(const char *text, uint32_t rank, ls_fault_t *fault_p);

/* Does it, once; what is left to the caller is returned. */
ls_fault_action_t ls_fault_do(ls_fault_t *fault);

static inline ls_fault_action_t ls_fault_at(ls_fault_t *fault, ls_fault_site_t site)
{
    return __builtin_expect(fault->site != site, 1) ? LS_FAULT_GO_ON : ls_fault_do(fault);
}

#endif

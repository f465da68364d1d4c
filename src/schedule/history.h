/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the coordinator remembers of names: the order in which they were negotiated, from which sets are
 * adopted, and what was learned from buckets that had to be given up.
 *
 * Learned, per name:
 *   patience  doubles each time a bucket with the name stayed partly filled;
 *   party     names that were missing while others were there get another party than those, and only
 *             names of one party share a bucket: a tensor that depends on the result of another is
 *             put beside it once, and never again; one that was missing twice gets a party of its
 *             own, because tensors given one after the other would else be parted one by one;
 *   changes   a name that keeps coming with another signature is adopted only after it has come unchanged
 *             2, 4, 8, ... times in a row.
 */
#ifndef LS_SCHEDULE_HISTORY_H
#define LS_SCHEDULE_HISTORY_H

#include "base/table.h"
#include "schedule/schedule.h"

#define LS_HISTORY_MAX 65536

typedef struct ls_history_name {
    char          *name; /* NULL: no longer here */
    ls_signature_t signature;
    uint64_t       number; /* broadcast that told to run it */
    uint64_t       after;  /* newest broadcast of which a run was finished, on any rank, when it was handed in */
} ls_history_name_t;

typedef struct ls_lesson {
    uint64_t patience_ns;
    uint64_t party;
    uint32_t changes;
    uint32_t unchanged; /* times in a row */
} ls_lesson_t;

typedef struct ls_history {
    ls_history_name_t *names; /* oldest first, with holes */
    size_t             size, room, num_live;
    size_t             oldest;  /* before it there are only holes */
    ls_table_t         index;   /* name -> position + 1 */
    ls_table_t         lessons; /* name -> ls_lesson_t */
    uint64_t           num_parties;
} ls_history_t; /* zero-initialised: empty */

void ls_history_destroy(ls_history_t *history);

/* The name was negotiated: it becomes the newest. */
ls_status_t ls_history_add(ls_history_t *history, const ls_history_name_t *name);
void        ls_history_remove(ls_history_t *history, const char *name);

/* The name is ready again: its position if a set may be adopted from there on, else SIZE_MAX. */
size_t ls_history_match(ls_history_t *history, const char *name, const ls_signature_t *signature);
/* May this name be part of an adopted set? */
bool ls_history_is_steady(const ls_history_t *history, const char *name);

/* NULL: nothing was learned about it. */
const ls_lesson_t *ls_history_lesson(const ls_history_t *history, const char *name);

ls_status_t ls_history_learn_change(ls_history_t *history, const char *name);
/* Of a bucket that stayed partly filled: is_missing[i] tells which names were missing. */
ls_status_t ls_history_learn_parting(ls_history_t *history, char *const *names, const bool *is_missing,
                                     uint32_t num_names, uint64_t patience_ns);

#endif

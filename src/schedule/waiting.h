/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names on one rank: for each, the items that were handed in and have not run, oldest first.
 *
 * A name is in one of three places: reported to the coordinator (or about to be) for its first item; a
 * slot of an adopted bucket, which counts as filled when the first item fits; or nowhere, then the record
 * is freed, so that names used once cost nothing.
 */
#ifndef LS_SCHEDULE_WAITING_H
#define LS_SCHEDULE_WAITING_H

#include "base/table.h"
#include "schedule/schedule.h"

struct ls_adopted;

typedef struct ls_waiting {
    ls_schedule_item_t *first, *last;
    struct ls_adopted  *adopted; /* the bucket it belongs to, or NULL */
    uint32_t            slot;
    bool                is_listed;   /* among those to report */
    bool                is_reported; /* the coordinator was told of the first item */
    bool                is_marked;   /* by whoever checks a list for doubles */
    struct ls_waiting  *next_listed;
    /* The name failed before this rank gave it: its next items get the error too. */
    uint32_t    num_doomed;
    ls_status_t doom;
    char       *doom_text;
    char        name[];
} ls_waiting_t;

typedef struct ls_waiting_list {
    ls_table_t    names;
    ls_waiting_t *first_listed, *last_listed; /* to report, in the order they came */
    size_t        num_items;
} ls_waiting_list_t; /* zero-initialised: empty */

ls_waiting_t *ls_waiting_find(const ls_waiting_list_t *list, const char *name); /* NULL: unknown */
ls_status_t   ls_waiting_get(ls_waiting_list_t *list, const char *name, ls_waiting_t **waiting_p);

void                ls_waiting_push(ls_waiting_list_t *list, ls_waiting_t *waiting, ls_schedule_item_t *item);
ls_schedule_item_t *ls_waiting_pop(ls_waiting_list_t *list, ls_waiting_t *waiting); /* NULL: none */

/* Put it among those to report, unless it is there, or was reported, or there is nothing to report. */
void ls_waiting_list_for_report(ls_waiting_list_t *list, ls_waiting_t *waiting);
/* Take the next one that is still to report; NULL: none. */
ls_waiting_t *ls_waiting_next_to_report(ls_waiting_list_t *list);

/* One more item of this name is to fail. */
ls_status_t ls_waiting_doom(ls_waiting_t *waiting, ls_status_t status, const char *text);
void        ls_waiting_undoom(ls_waiting_t *waiting, uint32_t num_items);
/* Nothing is to fail any more. */
void ls_waiting_undoom_all(ls_waiting_list_t *list);

/* Free the record if nothing needs it. */
void ls_waiting_release(ls_waiting_list_t *list, ls_waiting_t *waiting);
void ls_waiting_destroy(ls_waiting_list_t *list);

#endif

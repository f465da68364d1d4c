/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Adopted buckets on one rank: run as soon as every slot is filled.
 *
 * A slot has no place for an item: it is filled when the first waiting item of its name fits.  So a
 * bucket needs no memory per item, and the same name handed in again simply waits behind.
 * States: running freely; frozen (the coordinator counts); catching up to `target`, after which the
 * coordinator is told; limited, i.e. not beyond `limit` because it will be given up there.
 */
#ifndef LS_SCHEDULE_ADOPTED_H
#define LS_SCHEDULE_ADOPTED_H

#include "schedule/schedule_int.h"

typedef struct ls_adopted {
    uint32_t            id;
    uint32_t            iteration; /* of the next run */
    uint32_t            num_slots, num_filled;
    uint32_t            limit;  /* the first iteration not to be started */
    uint32_t            target; /* catching up to it */
    uint64_t            round;  /* of the freeze that led to it */
    uint32_t            at;     /* index in schedule->live */
    bool                is_frozen;
    bool                is_catching_up;
    bool                has_given_up; /* the coordinator was asked, and has not decided */
    uint64_t            first_fill_ns, longest_fill_ns, patience_ns;
    ls_waiting_t      **waiting; /* per slot */
    ls_schedule_slot_t *slots;   /* with the agreed signatures */
} ls_adopted_t;

ls_adopted_t *ls_adopted_find(ls_schedule_h schedule, uint32_t id); /* NULL: not live */

/* Makes it and fills it from what waits, but runs nothing yet. */
ls_status_t ls_adopted_create(ls_schedule_h schedule, const ls_message_bucket_t *bucket,
                              const ls_message_name_t *names);
/* Its items wait to be reported. */
void ls_adopted_retire(ls_schedule_h schedule, ls_adopted_t *adopted);
void ls_adopted_destroy_all(ls_schedule_h schedule);

/* A name of the bucket has a new first item. */
void ls_adopted_fill(ls_schedule_h schedule, ls_adopted_t *adopted, uint32_t slot);
/* Run it as often as it may and can. */
void ls_adopted_run(ls_schedule_h schedule, ls_adopted_t *adopted);

void ls_adopted_freeze(ls_schedule_h schedule, ls_adopted_t *adopted, uint64_t round);
void ls_adopted_resume(ls_schedule_h schedule, ls_adopted_t *adopted, const ls_message_t *message);

/* Ask to give up what is partly filled for too long; returns when to look again. */
uint64_t ls_adopted_tick(ls_schedule_h schedule);

void ls_adopted_dump(ls_schedule_h schedule, int fd);

#endif

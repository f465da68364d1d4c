/* SPDX-License-Identifier: Apache-2.0 */
/* The schedule of one rank, seen from inside.  Owner of everything: who has the engine's turn. */
#ifndef LS_SCHEDULE_SCHEDULE_INT_H
#define LS_SCHEDULE_SCHEDULE_INT_H

#include "schedule/coordinator.h"
#include "schedule/messages.h"
#include "schedule/schedule.h"
#include "schedule/waiting.h"

#define LS_SCHEDULE_NUM_ADOPTED (LS_SCHEDULE_NUM_IDS - LS_SCHEDULE_FIRST_ADOPTED)
#define LS_SCHEDULE_NO_LIMIT    UINT32_MAX

struct ls_adopted;

struct ls_schedule {
    ls_schedule_params_t params;
    ls_coordinator_t    *coordinator; /* rank 0 */
    uint64_t             now_ns;      /* of the call that is going on */
    uint64_t             epoch;       /* broadcasts processed */
    uint64_t             finished;    /* newest epoch of which a run was finished */
    uint64_t             num_changes;
    ls_waiting_list_t    waiting;
    uint32_t             num_live;
    struct ls_adopted   *live[LS_SCHEDULE_NUM_ADOPTED];
    struct ls_adopted   *by_id[LS_SCHEDULE_NUM_ADOPTED]; /* index: id - LS_SCHEDULE_FIRST_ADOPTED */

    bool                is_joined;  /* and not all have */
    bool                is_drained; /* the coordinator was told that nothing given before the join is left */
    ls_schedule_item_t *held_first, *held_last; /* handed in after the join, for when all have joined */
    size_t              num_held;

    bool   is_leaving; /* the coordinator was told, with num_left items still held */
    size_t num_left;

    ls_status_t lost; /* not LS_OK: everything fails with lost_text */
    char        lost_text[LS_MESSAGES_TEXT_ROOM];

    ls_blob_t           blob;  /* the message being written */
    ls_schedule_slot_t *slots; /* of a negotiated run */
    size_t              slots_room;
};

/* To the coordinator; fills in the epoch. */
void ls_schedule_send(ls_schedule_h schedule, ls_message_t *message);

/* Cannot go on: tell the engine, fail everything. */
void ls_schedule_break(ls_schedule_h schedule, ls_status_t status, const char *text);

/* answers.c: do what a broadcast says.  LS_ERR_INTERNAL: it makes no sense here, nothing was changed. */
ls_status_t ls_answers_apply(ls_schedule_h schedule, const ls_message_t *message);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The pulse from inside: pulse.c knows, speaks and judges, pulse_tick.c looks and listens. */
#ifndef LS_TRANSPORT_PULSE_INT_H
#define LS_TRANSPORT_PULSE_INT_H

#include <pthread.h>

#include "transport/pulse.h"
#include "transport/pulse_message.h"

#define LS_PULSE_NUM_WATCHED 2 /* leaders before this one in the circle; as many after it hear it */
#define LS_PULSE_WHO_ROOM    192
#define LS_PULSE_LAST_ROOM   192

/* A rank of the same board, as this one sees it. */
typedef struct ls_pulse_neighbour {
    uint32_t rank;
    uint64_t beats;    /* last seen */
    uint64_t heard_ns; /* when they last changed; 0: never */
} ls_pulse_neighbour_t;

/* A leader that this one hears. */
typedef struct ls_pulse_remote {
    uint32_t rank;
    uint64_t since_ns, heard_ns; /* 0: never */
    uint64_t step, age_ns;
    bool     has_left, has_warned;
    char     tensor[LS_FLIGHT_NAME_ROOM];
} ls_pulse_remote_t;

struct ls_pulse {
    /* constant */
    uint32_t           rank, num_ranks, num_slots, slot;
    uint64_t           limit_ns, remote_limit_ns, beat_ns, tick_ns, job;
    ls_pulse_member_t *members;
    uint8_t            key[LS_SIPHASH_KEY_BYTES];
    ls_segment_t       segment;
    ls_pulse_board_t  *board;
    uint32_t          *leaders; /* ascending */
    uint32_t           num_leaders, own_leader;
    int                fd;

    _Atomic uint64_t number; /* of the last datagram sent; any thread */

    /* lock: lock; accusations come from any thread */
    pthread_mutex_t lock;
    _Atomic bool    has_verdict; /* read without it */
    uint32_t        verdict_rank;
    char            verdict[LS_PULSE_TEXT_ROOM];
    unsigned        num_repeats; /* to be sent by this rank */
    _Atomic bool    has_accused; /* read without it */

    /* owner: the thread that ticks */
    uint64_t     ticked_ns, next_beat_ns;
    ls_pulse_neighbour_t *neighbours; /* by slot */
    ls_pulse_remote_t     remotes[LS_PULSE_NUM_WATCHED];
    uint32_t     num_remotes;
    uint64_t    *numbers; /* by rank: of the last datagram heard from it */
};

/* "last step 12, last tensor 'w' 0.3 s ago" */
void ls_pulse_print_last(uint64_t step, const char *tensor, double seconds, char *text, size_t room);
void ls_pulse_print_slot(ls_pulse_h pulse, uint32_t slot, uint64_t now_ns, char *text, size_t room);

void ls_pulse_send_beat(ls_pulse_h pulse, uint64_t now_ns, ls_pulse_kind_t kind);
/* The first verdict counts; num_repeats: how often this rank sends it on. */
void ls_pulse_adopt(ls_pulse_h pulse, uint32_t rank, const char *text, unsigned num_repeats);
void ls_pulse_repeat_verdict(ls_pulse_h pulse);

#endif

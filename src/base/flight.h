/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The flight recorder: the last events of one rank, in a ring that costs a few stores per event.
 *
 * One thread at a time writes; anybody reads at any time, also another process when the writer is dead: the ring lies in
 * memory that the ranks of a node share.  An event is eight words, written one by one, so that a reader gets old
 * or new words but never trouble; what it read counts only if the writer has not come round meanwhile.
 */
#ifndef LS_BASE_FLIGHT_H
#define LS_BASE_FLIGHT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LS_FLIGHT_EVENTS    1024 /* a power of two; one of them may be half written */
#define LS_FLIGHT_WORDS     8
#define LS_FLIGHT_NAME_ROOM 40

/* What happened; text; what the number is (NULL: nothing). */
#define LS_FLIGHT_LIST(X)                              \
    X(LS_FLIGHT_START, "start", "ranks")               \
    X(LS_FLIGHT_STEP, "step", "number")                \
    X(LS_FLIGHT_REQUEST, "request", "bytes")           \
    X(LS_FLIGHT_BEGIN, "begin", "tensors")             \
    X(LS_FLIGHT_WAIT, "wait", NULL)                    \
    X(LS_FLIGHT_DONE, "done", "bytes")                 \
    X(LS_FLIGHT_FAIL, "fail", "status")                \
    X(LS_FLIGHT_CONTROL, "control", "kind")            \
    X(LS_FLIGHT_LOST, "lost", "status")                \
    X(LS_FLIGHT_STOP, "stop", NULL)

typedef enum ls_flight_kind {
#define LS_FLIGHT_ENUM(_name, _text, _value) _name,
    LS_FLIGHT_LIST(LS_FLIGHT_ENUM)
#undef LS_FLIGHT_ENUM
        LS_FLIGHT_KIND_COUNT
} ls_flight_kind_t;

typedef struct ls_flight_event {
    uint64_t         time_ns;
    ls_flight_kind_t kind;
    uint32_t         id; /* bucket, or rank of a control message */
    int64_t          value;
    char             name[LS_FLIGHT_NAME_ROOM]; /* the end of it, where it is longer; terminated */
} ls_flight_event_t;

typedef struct ls_flight_ring {
    _Atomic uint64_t num_written;
    _Atomic uint64_t step; /* of the training, as far as the engine knows */
    _Atomic uint64_t words[LS_FLIGHT_EVENTS][LS_FLIGHT_WORDS];
} ls_flight_ring_t; /* zero-initialised: empty */

/* By the writer.  `name` may be NULL. */
void ls_flight_add(ls_flight_ring_t *ring, ls_flight_kind_t kind, uint64_t now_ns, uint32_t id, int64_t value,
                   const char *name);

/* Event `number`, counted from 0 since the start; false if it is gone, not there yet, or senseless. */
bool ls_flight_read(const ls_flight_ring_t *ring, uint64_t number, ls_flight_event_t *event_p);

/* Numbers [*first_p, *end_p) can be read now. */
void ls_flight_range(const ls_flight_ring_t *ring, uint64_t *first_p, uint64_t *end_p);

/* The newest event that has a tensor's name; false: none. */
bool ls_flight_last_tensor(const ls_flight_ring_t *ring, ls_flight_event_t *event_p);

/* "begin     bucket 2049  'dense/kernel'  tensors 3": without the time. */
void ls_flight_print(const ls_flight_event_t *event, char *text, size_t room);

#endif

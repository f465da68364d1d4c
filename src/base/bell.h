/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bell: one thread sleeps until anybody, in this process or another, rings.
 *
 * The sleeper:                              Anybody else:
 *     key = ls_bell_listen(bell, state);        make the work visible
 *     if (nothing to do)                        ls_bell_ring(bell);
 *         ls_bell_sleep(bell, key, ns);
 *
 * A ring after listen() makes sleep() return at once, so no ring is lost.  Ringing costs a system
 * call only when the owner really sleeps.  The memory may be shared between processes.
 *
 * Who sleeps with nothing begun (idle) cannot use what others send for work to come: a soft ring is counted, and
 * seen by the next look, but wakes only an owner who waits for it.
 */
#ifndef LS_BASE_BELL_H
#define LS_BASE_BELL_H

#include <stdatomic.h>
#include <stdint.h>

typedef struct ls_bell {
    _Atomic uint32_t rings;    /* the futex word */
    _Atomic uint32_t state;    /* awake: nobody need be woken; the owner does not sleep, or somebody looks in its place */
} ls_bell_t;

typedef enum ls_bell_state { LS_BELL_AWAKE, LS_BELL_IDLE, LS_BELL_WAITING } ls_bell_state_t;

void     ls_bell_init(ls_bell_t *bell);
uint32_t ls_bell_listen(ls_bell_t *bell, ls_bell_state_t state);
void     ls_bell_sleep(ls_bell_t *bell, uint32_t key, uint64_t max_ns);
void     ls_bell_ring(ls_bell_t *bell);
void     ls_bell_ring_softly(ls_bell_t *bell);

/* Somebody looks for work in the owner's place: nobody need wake it.  Returns what it was; listen() puts it back, and then
 * one more look is due. */
ls_bell_state_t ls_bell_hush(ls_bell_t *bell);

/*
 * A gate: one thread waits for one event of which it owns the memory, as on its stack.  Opening touches the
 * gate for the last time before the owner can see it open, so both may go at once.  Zero-initialised: closed.
 */
typedef struct ls_gate {
    _Atomic uint32_t state;
} ls_gate_t;

void ls_gate_wait(ls_gate_t *gate);
void ls_gate_open(ls_gate_t *gate);

#endif

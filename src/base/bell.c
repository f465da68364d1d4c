/* SPDX-License-Identifier: Apache-2.0 */
#include "base/bell.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

/* Not FUTEX_PRIVATE: the ringer may be another process. */
static long futex(_Atomic uint32_t *word, int operation, uint32_t value, const struct timespec *limit)
{
    return syscall(SYS_futex, word, operation, value, limit, NULL, 0);
}

enum { GATE_CLOSED, GATE_WAITED_FOR, GATE_OPEN };

void ls_gate_wait(ls_gate_t *gate)
{
    uint32_t state = GATE_CLOSED;

    /* Acquire, against the release of whoever opens: what was written before is seen. */
    atomic_compare_exchange_strong_explicit(&gate->state, &state, GATE_WAITED_FOR, memory_order_acquire,
                                            memory_order_acquire);
    while (atomic_load_explicit(&gate->state, memory_order_acquire) != GATE_OPEN) {
        (void)futex(&gate->state, FUTEX_WAIT, GATE_WAITED_FOR, NULL);
    }
}

void ls_gate_open(ls_gate_t *gate)
{
    /* After this the memory may be anything; waking an address nobody waits at does no harm. */
    if (atomic_exchange_explicit(&gate->state, GATE_OPEN, memory_order_acq_rel) == GATE_WAITED_FOR) {
        (void)futex(&gate->state, FUTEX_WAKE, 1, NULL);
    }
}

void ls_bell_init(ls_bell_t *bell)
{
    atomic_init(&bell->rings, 0);
    atomic_init(&bell->state, LS_BELL_AWAKE);
}

uint32_t ls_bell_listen(ls_bell_t *bell, ls_bell_state_t state)
{
    /* Sequentially consistent, against the same in ring(): either the ringer sees the state, or the
     * sleeper, who looks for work after this, sees the work. */
    atomic_store(&bell->state, state);
    return atomic_load(&bell->rings);
}

ls_bell_state_t ls_bell_hush(ls_bell_t *bell)
{
    return (ls_bell_state_t)atomic_exchange(&bell->state, LS_BELL_AWAKE);
}

void ls_bell_sleep(ls_bell_t *bell, uint32_t key, uint64_t max_ns)
{
    if (max_ns > 0 && atomic_load(&bell->rings) == key) {
        const struct timespec limit = {
            .tv_sec  = (time_t)(max_ns / LS_NS_PER_S),
            .tv_nsec = (long)(max_ns % LS_NS_PER_S),
        };
        /* Interrupted, timed out, word changed: all of them mean "look again". */
        (void)futex(&bell->rings, FUTEX_WAIT, key, &limit);
    }
    atomic_store_explicit(&bell->state, LS_BELL_AWAKE, memory_order_relaxed);
}

static void ring(ls_bell_t *bell, ls_bell_state_t from)
{
    atomic_fetch_add(&bell->rings, 1);
    if (atomic_load(&bell->state) >= from) {
        (void)futex(&bell->rings, FUTEX_WAKE, 1, NULL);
    }
}

void ls_bell_ring(ls_bell_t *bell)
{
    ring(bell, LS_BELL_IDLE);
}

void ls_bell_ring_softly(ls_bell_t *bell)
{
    ring(bell, LS_BELL_WAITING);
}

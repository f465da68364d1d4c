/* SPDX-License-Identifier: Apache-2.0 */
#include "base/flight.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define NAME_WORDS 5 /* behind time, kind and id, value */

_Static_assert(NAME_WORDS * sizeof(uint64_t) == LS_FLIGHT_NAME_ROOM, "the name fills the last words");

static const struct {
    const char *text, *value;
} kinds[LS_FLIGHT_KIND_COUNT] = {
#define LS_FLIGHT_ROW(_name, _text, _value) [_name] = {_text, _value},
    LS_FLIGHT_LIST(LS_FLIGHT_ROW)
#undef LS_FLIGHT_ROW
};

void ls_flight_add(ls_flight_ring_t *ring, ls_flight_kind_t kind, uint64_t now_ns, uint32_t id, int64_t value,
                   const char *name)
{
    const uint64_t    number             = atomic_load_explicit(&ring->num_written, memory_order_relaxed);
    _Atomic uint64_t *words              = ring->words[number % LS_FLIGHT_EVENTS];
    uint64_t          packed[NAME_WORDS] = {0};

    if (name != NULL) {
        const size_t length = strlen(name);
        const size_t kept   = (length < LS_FLIGHT_NAME_ROOM) ? length : LS_FLIGHT_NAME_ROOM - 1;

        memcpy(packed, name + length - kept, kept);
    }
    /* Release and acquire on each word: who sees one of this round also sees that the round before is over. */
    atomic_store_explicit(&words[0], now_ns, memory_order_release);
    atomic_store_explicit(&words[1], ((uint64_t)kind << 32) | id, memory_order_release);
    atomic_store_explicit(&words[2], (uint64_t)value, memory_order_release);
    for (unsigned i = 0; i < NAME_WORDS; i++) {
        atomic_store_explicit(&words[3 + i], packed[i], memory_order_release);
    }
    atomic_store_explicit(&ring->num_written, number + 1, memory_order_release);
}

void ls_flight_range(const ls_flight_ring_t *ring, uint64_t *first_p, uint64_t *end_p)
{
    *end_p   = atomic_load_explicit(&ring->num_written, memory_order_acquire);
    *first_p = (*end_p < LS_FLIGHT_EVENTS) ? 0 : *end_p - (LS_FLIGHT_EVENTS - 1);
}

bool ls_flight_read(const ls_flight_ring_t *ring, uint64_t number, ls_flight_event_t *event_p)
{
    const _Atomic uint64_t *words = ring->words[number % LS_FLIGHT_EVENTS];
    uint64_t                copy[LS_FLIGHT_WORDS], first, end;
    ls_flight_event_t       event;

    ls_flight_range(ring, &first, &end);
    if (number < first || number >= end) {
        return false;
    }
    for (unsigned i = 0; i < LS_FLIGHT_WORDS; i++) {
        copy[i] = atomic_load_explicit(&words[i], memory_order_acquire);
    }
    ls_flight_range(ring, &first, &end);
    event = (ls_flight_event_t){.time_ns = copy[0],
                                .kind    = (ls_flight_kind_t)(copy[1] >> 32),
                                .id      = (uint32_t)copy[1],
                                .value   = (int64_t)copy[2]};
    memcpy(event.name, &copy[3], sizeof(event.name));
    event.name[sizeof(event.name) - 1] = '\0';
    if (number < first || (unsigned)event.kind >= LS_FLIGHT_KIND_COUNT) {
        return false;
    }
    *event_p = event;
    return true;
}

bool ls_flight_last_tensor(const ls_flight_ring_t *ring, ls_flight_event_t *event_p)
{
    uint64_t first, end;

    ls_flight_range(ring, &first, &end);
    while (end > first) {
        if (ls_flight_read(ring, --end, event_p) && event_p->name[0] != '\0') {
            return true;
        }
    }
    return false;
}

void ls_flight_print(const ls_flight_event_t *event, char *text, size_t room)
{
    char name[LS_FLIGHT_NAME_ROOM + 8] = "", value[48] = "";

    if (event->name[0] != '\0') {
        snprintf(name, sizeof(name), "  '%s'", event->name);
    }
    if (kinds[event->kind].value != NULL) {
        snprintf(value, sizeof(value), "  %s %" PRId64, kinds[event->kind].value, event->value);
    }
    snprintf(text, room, "%-8s %5" PRIu32 "%s%s", kinds[event->kind].text, event->id, name, value);
}

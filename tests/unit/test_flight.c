/* SPDX-License-Identifier: Apache-2.0 */
/* The flight recorder: what is kept, what is lost, and a reader beside the writer. */
#include <pthread.h>

#include "base/flight.h"
#include "check.h"

static ls_flight_ring_t ring;

static void test_an_event_comes_back_as_it_was(void)
{
    ls_flight_event_t event;
    char              text[128];

    memset(&ring, 0, sizeof(ring));
    CHECK(!ls_flight_read(&ring, 0, &event));
    ls_flight_add(&ring, LS_FLIGHT_BEGIN, 123, 2049, 3, "dense/kernel");
    CHECK(ls_flight_read(&ring, 0, &event));
    CHECK(event.time_ns == 123 && event.kind == LS_FLIGHT_BEGIN && event.id == 2049 && event.value == 3);
    ls_flight_print(&event, text, sizeof(text));
    CHECK_STR(text, "begin");
    CHECK_STR(text, "2049  'dense/kernel'  tensors 3");
    CHECK(!ls_flight_read(&ring, 1, &event));
}

static void test_of_a_long_name_the_end_is_kept(void)
{
    ls_flight_event_t event;

    memset(&ring, 0, sizeof(ring));
    ls_flight_add(&ring, LS_FLIGHT_REQUEST, 1, 0, 0, "model/very_long_name_of_a_block/attention_17/query/kernel");
    CHECK(ls_flight_read(&ring, 0, &event));
    CHECK_EQ_INT(strlen(event.name), LS_FLIGHT_NAME_ROOM - 1);
    CHECK_STR(event.name, "attention_17/query/kernel");
}

static void test_the_last_thousand_are_kept(void)
{
    ls_flight_event_t event;
    uint64_t          first, end;

    memset(&ring, 0, sizeof(ring));
    for (int i = 0; i < 5000; i++) {
        ls_flight_add(&ring, LS_FLIGHT_DONE, (uint64_t)i, 0, i, i == 4500 ? "w" : NULL);
    }
    ls_flight_range(&ring, &first, &end);
    CHECK_EQ_INT(end, 5000);
    CHECK(end - first >= 1000);
    CHECK(!ls_flight_read(&ring, first - 1, &event));
    CHECK(ls_flight_read(&ring, first, &event));
    CHECK_EQ_INT(event.value, (int64_t)first);
    CHECK(ls_flight_last_tensor(&ring, &event));
    CHECK_EQ_INT(event.value, 4500);
}

static void *write_many(void *arg)
{
    (void)arg;
    for (uint64_t i = 0; i < 200000; i++) {
        ls_flight_add(&ring, LS_FLIGHT_DONE, i, (uint32_t)i, (int64_t)i, (i % 2 == 0) ? "even" : "odd");
    }
    return NULL;
}

/* Events are whole or not there, never mixed. */
static void test_a_reader_beside_the_writer_sees_whole_events(void)
{
    pthread_t         writer;
    ls_flight_event_t event;
    uint64_t          first, end, num_read = 0;

    memset(&ring, 0, sizeof(ring));
    CHECK_EQ_INT(pthread_create(&writer, NULL, write_many, NULL), 0);
    do {
        ls_flight_range(&ring, &first, &end);
        for (uint64_t number = first; number < end; number++) {
            if (ls_flight_read(&ring, number, &event)) {
                num_read++;
                CHECK(event.time_ns == number && (uint64_t)event.value == number && event.id == (uint32_t)number);
                CHECK(strcmp(event.name, (number % 2 == 0) ? "even" : "odd") == 0);
            }
        }
    } while (end < 200000);
    pthread_join(writer, NULL);
    CHECK(num_read > 0);
}

int main(void)
{
    RUN(test_an_event_comes_back_as_it_was);
    RUN(test_of_a_long_name_the_end_is_kept);
    RUN(test_the_last_thousand_are_kept);
    RUN(test_a_reader_beside_the_writer_sees_whole_events);
    return check_report();
}

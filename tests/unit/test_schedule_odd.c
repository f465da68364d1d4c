/* SPDX-License-Identifier: Apache-2.0 */
/* The schedule at its end, with broken messages, without memory. */
#include "schedule_steps.h"

static void test_abort_fails_what_is_held_and_what_comes(void)
{
    const ls_signature_t signature = world_vector(10);
    world_t              world;
    size_t               held, later;

    world_open(&world, 2, 1);
    steps_until_silent(&world, abcd, 2, 10, 1);
    held = world_submit(&world, 0, "a", &signature, 100);
    world_submit(&world, 0, "new", &signature, 100);
    world_settle(&world);
    CHECK(!ls_schedule_is_idle(world.ranks[0].schedule));
    ls_schedule_abort(world.ranks[0].schedule, LS_ERR_RANK_LOST, "rank 1 is gone");
    CHECK(ls_schedule_is_idle(world.ranks[0].schedule));
    later = world_submit(&world, 0, "c", &signature, 101);
    CHECK_EQ_INT(world.results[held].status, LS_ERR_RANK_LOST);
    CHECK_EQ_INT(world.results[held + 1].status, LS_ERR_RANK_LOST);
    CHECK_EQ_INT(world.results[later].status, LS_ERR_RANK_LOST);
    CHECK_STR(world.results[later].text, "rank 1 is gone");
    world_close(&world);
}

static void test_many_names_used_once_leave_nothing_behind(void)
{
    world_t world;
    size_t  live = 0;

    world_open(&world, 2, 1);
    for (long tag = 0; tag < 3000; tag++) {
        char              name[32];
        const char *const names[] = {name};

        snprintf(name, sizeof(name), "barrier.%ld", tag);
        step(&world, names, 1, 1, tag);
        live = (tag == 2) ? ls_mem_live() : live;
    }
    /* The coordinator's history, the test's own notes (one name each), and nothing on the ranks. */
    CHECK(ls_mem_live() - live <= 3000 * 3);
    CHECK(ls_schedule_is_idle(world.ranks[1].schedule));
    world_close(&world);
}

/* Every message of a lively world, cut short at every byte and with bytes changed, to every rank. */
static void feed_broken(world_t *world, const world_packet_t *packet, uint32_t from, uint32_t to)
{
    unsigned char *bytes = malloc(packet->size + 1);

    for (size_t size = 0; size < packet->size; size++) {
        memcpy(bytes, packet->data, size);
        CHECK_EQ_INT(ls_schedule_receive(world->ranks[to].schedule, from, bytes, size, world->now), LS_ERR_INTERNAL);
    }
    memcpy(bytes, packet->data, packet->size);
    bytes[packet->size] = 0;
    CHECK_EQ_INT(ls_schedule_receive(world->ranks[to].schedule, from, bytes, packet->size + 1, world->now),
                 LS_ERR_INTERNAL);
    free(bytes);
}

static void test_truncated_messages_change_nothing(void)
{
    world_t world;

    world_open(&world, 3, 1);
    for (long tag = 0; tag < 8; tag++) {
        give_all(&world, abcd, 4, (tag < 5) ? 10 : 11, tag);
        for (uint32_t r = 0; r < 3; r++) {
            world_tick(&world, r);
        }
        while (world.num_in_flight > 0) {
            for (uint32_t pair = 0; pair < 9; pair++) {
                if (world.ranks[pair / 3].first[pair % 3] != NULL) {
                    feed_broken(&world, world.ranks[pair / 3].first[pair % 3], pair / 3, pair % 3);
                }
            }
            world_deliver(&world);
            world_tick(&world, world_random(&world, 3));
        }
        world_finish(&world);
    }
    for (size_t i = 0; i < world.num_results; i++) {
        CHECK_EQ_INT(world.results[i].status, LS_OK);
    }
    world_close(&world);
}

/* Random bytes, and real messages with bytes changed: anything may be the answer, but no crash. */
static void test_garbage_never_crashes(void)
{
    for (uint64_t seed = 1; seed <= 150; seed++) {
        world_t  world;
        uint32_t to, from;

        ls_log_set_level(LS_LOG_ERROR);
        world_open(&world, 2, seed);
        world_submit(&world, 0, "a", &(ls_signature_t){.count = 1}, 0);
        for (int turn = 0; turn < 150; turn++) {
            unsigned char bytes[128];
            size_t        size = world_random(&world, sizeof(bytes));

            for (size_t i = 0; i < size; i++) {
                bytes[i] = (unsigned char)(world_random(&world, 3) == 0 ? world_random(&world, 256) : 0);
            }
            from = world_random(&world, 3);
            to   = world_random(&world, 2);
            bytes[0] = (unsigned char)(size > 0 ? world_random(&world, 14) : 0);
            if (world.ranks[0].first[to] != NULL && world_random(&world, 2) == 0) {
                const world_packet_t *packet = world.ranks[0].first[to];

                size = packet->size < sizeof(bytes) ? packet->size : sizeof(bytes);
                memcpy(bytes, packet->data, size);
                bytes[world_random(&world, (uint32_t)size)] ^= (unsigned char)(1U << world_random(&world, 8));
                from = 0;
            }
            ls_schedule_receive(world.ranks[to].schedule, from, bytes, size, world.now);
            ls_schedule_tick(world.ranks[to].schedule, world.now);
        }
        for (uint32_t r = 0; r < 2; r++) {
            ls_schedule_abort(world.ranks[r].schedule, LS_ERR_INTERNAL, "over");
            CHECK_EQ_INT(world.ranks[r].num_open, 0);
        }
        while (world.num_in_flight > 0) {
            world_deliver(&world);
        }
        ls_log_set_level(LS_LOG_WARN);
        world_forgive_runs(&world);
        world_close(&world);
    }
}

/* The n-th allocation fails: items end once, nothing leaks. */
static void test_running_out_of_memory_ends_everything_once(void)
{
    for (size_t n = 1; n < 400; n++) {
        world_t world;

        world_open(&world, 2, 1);
        ls_mem_fail_at(n);
        for (long tag = 0; tag < 4; tag++) {
            give_all(&world, abcd, 4, (tag < 3) ? 10 : 11, tag);
            for (uint32_t r = 0; r < 2; r++) {
                world_tick(&world, r);
            }
            while (world.num_in_flight > 0) {
                world_deliver_any(&world); /* may well answer that there is no memory */
                world_tick(&world, world_random(&world, 2));
            }
        }
        ls_mem_fail_at(0);
        for (uint32_t r = 0; r < 2; r++) {
            ls_schedule_abort(world.ranks[r].schedule, LS_ERR_RANK_LOST, "over");
            CHECK_EQ_INT(world.ranks[r].num_open, 0);
        }
        world_forgive_runs(&world);
        world_close(&world);
    }
}

static void test_dump_names_what_waits(void)
{
    const ls_signature_t signature = world_vector(10);
    char                 text[4096] = {0};
    FILE                *file       = tmpfile();
    world_t              world;

    world_open(&world, 2, 1);
    steps_until_silent(&world, abcd, 2, 10, 1);
    world_submit(&world, 0, "a", &signature, 100);
    world_submit(&world, 0, "new", &signature, 100);
    world_settle(&world);
    ls_schedule_dump(world.ranks[0].schedule, world.now, fileno(file));
    rewind(file);
    CHECK(fread(text, 1, sizeof(text) - 1, file) > 0);
    fclose(file);
    CHECK_STR(text, "bucket 2048 iteration 2: 1 of 2 filled");
    CHECK_STR(text, "lacks b");
    CHECK_STR(text, "'new' waits 0.000 s for rank 1");
    for (uint32_t r = 0; r < 2; r++) {
        ls_schedule_abort(world.ranks[r].schedule, LS_ERR_STOPPED, "over");
    }
    world_close(&world);
}

static void test_signatures_print_as_a_person_would_write_them(void)
{
    ls_signature_t signature = {.coll = LS_COLL_ALLREDUCE, .dtype = LS_FLOAT32, .op = LS_MEAN, .prescale = 1.0,
                                .postscale = 1.0, .count = 12, .num_dims = 2, .shape = {3, 4}};
    char           text[128], little[8];

    ls_signature_print(&signature, text, sizeof(text));
    CHECK(strcmp(text, "allreduce mean float32 [3, 4]") == 0);
    ls_signature_print(&signature, little, sizeof(little));
    CHECK(strcmp(little, "allredu") == 0);
    signature.coll = LS_COLL_BARRIER;
    ls_signature_print(&signature, text, sizeof(text));
    CHECK(strcmp(text, "barrier") == 0);
}

int main(void)
{
    RUN(test_abort_fails_what_is_held_and_what_comes);
    RUN(test_many_names_used_once_leave_nothing_behind);
    RUN(test_truncated_messages_change_nothing);
    RUN(test_garbage_never_crashes);
    RUN(test_running_out_of_memory_ends_everything_once);
    RUN(test_dump_names_what_waits);
    RUN(test_signatures_print_as_a_person_would_write_them);
    return check_report();
}

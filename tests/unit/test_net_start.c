/* SPDX-License-Identifier: Apache-2.0 */
/* How a net of threads starts and ends: place, settings, faults, loss. */
#include "net_ranks.h"

/* ---- loss ----------------------------------------------------------------------------------- */

static void body_gone(ls_net_h net, unsigned rank, unsigned num_ranks)
{
    char     text[512];
    uint32_t lost = 99;

    CHECK(!ls_net_find_lost(net, &lost, text, sizeof(text)));
    barrier(net, rank, num_ranks, 1);
    if (rank == 2) {
        ls_net_mark_gone(net, "its script raised KeyError: 'x'");
        ls_net_mark_gone(net, "second");
        return;
    }
    while (!ls_net_find_lost(net, &lost, text, sizeof(text))) {
        step(net);
    }
    CHECK_EQ_INT(lost, 2);
    CHECK_STR(text, "rank 2 (process ");
    CHECK_STR(text, ") is gone: its script raised KeyError: 'x'");
}

static void test_a_rank_that_says_so_is_gone(void)
{
    run_ranks(3, body_gone);
}

static void *leave_at_once(void *arg)
{
    rank_args_t *args = arg;
    ls_net_h     net;
    char         text[512];
    uint32_t     lost;

    CHECK_EQ_INT(ls_net_create_local(args->job, args->rank, &args->config, &net), LS_OK);
    if (args->rank == 1) {
        while (!ls_net_find_lost(net, &lost, text, sizeof(text))) {
            step(net);
        }
        CHECK_STR(text, "because the job had failed");
        for (int i = 0; i < 1000; i++) { /* the memory of the one that left is still there */
            CHECK_EQ_INT(ls_net_send_control(net, 0, text, 100), LS_OK);
        }
    }
    ls_net_destroy(net, args->rank == 1);
    return NULL;
}

static void test_leaving_without_a_barrier_harms_nobody(void)
{
    const ls_config_t config = default_config();
    const size_t      live   = ls_mem_live();
    pthread_t         threads[2];
    ls_local_job_h    job;

    prepare(&config);
    CHECK_EQ_INT(ls_local_job_create(2, &job), LS_OK);
    for (unsigned rank = 0; rank < 2; rank++) {
        all_args[rank].job  = job;
        all_args[rank].rank = rank;
        pthread_create(&threads[rank], NULL, leave_at_once, &all_args[rank]);
    }
    for (unsigned rank = 0; rank < 2; rank++) {
        pthread_join(threads[rank], NULL);
    }
    ls_local_job_destroy(job);
    CHECK_EQ_INT(ls_mem_live(), live);
}

/* ---- place and settings --------------------------------------------------------------------- */

static const char *expected_dims; /* "4,2" */
static uint32_t    expected_nodes, expected_local_size;

static void body_place(ls_net_h net, unsigned rank, unsigned num_ranks)
{
    const ls_net_place_t *place    = ls_net_place(net);
    char                  text[64] = "";

    CHECK_EQ_INT(place->rank, rank);
    CHECK_EQ_INT(place->topology.num_ranks, num_ranks);
    CHECK_EQ_INT(place->topology.num_nodes, expected_nodes);
    if (expected_local_size > 0) {
        CHECK_EQ_INT(place->local_size, expected_local_size);
        CHECK_EQ_INT(place->local_rank, rank % expected_local_size);
        CHECK_EQ_INT(place->topology.node_of[rank], rank / expected_local_size);
    }
    for (uint32_t i = 0; i < place->topology.num_dims; i++) {
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "%u,", place->topology.dims[i]);
    }
    if (strcmp(text, expected_dims) != 0) {
        CHECK_STR(text, "the expected dims");
    }
    CHECK(strlen(place->host) > 0);
    CHECK(!ls_net_has_remote(net));
}

static void check_place(unsigned num_ranks, unsigned node_size, const char *topology, uint32_t nodes,
                        uint32_t local_size, const char *dims)
{
    ls_config_t config = default_config();

    config.node_size = node_size;
    snprintf(config.topology, sizeof(config.topology), "%s", topology);
    expected_nodes      = nodes;
    expected_local_size = local_size;
    expected_dims       = dims;
    prepare(&config);
    run_prepared(num_ranks, body_place);
    CHECK_EQ_INT(all_args[0].status, LS_OK);
}

static void test_topology_is_derived_or_taken_from_the_setting(void)
{
    check_place(1, 0, "", 1, 1, "1,");
    check_place(3, 0, "", 1, 3, "3,");
    check_place(4, 2, "", 2, 2, "2,2,");
    check_place(5, 2, "", 3, 0, "");
    check_place(6, 0, "3x2", 1, 6, "3,2,");
    check_place(8, 4, "2x2x2", 2, 4, "2,2,2,");
    check_place(4, 1, "1x4", 4, 1, "1,4,");
}

static void check_bad_topology(const char *topology, const char *part)
{
    ls_config_t config = default_config();

    snprintf(config.topology, sizeof(config.topology), "%s", topology);
    prepare(&config);
    run_prepared(4, body_place);
    for (unsigned rank = 0; rank < 4; rank++) {
        CHECK_EQ_INT(all_args[rank].status, LS_ERR_CONFIG);
        CHECK_STR(all_args[rank].text, part);
        CHECK_STR(all_args[rank].text, topology);
    }
}

static void test_bad_topology_is_refused_with_the_reason(void)
{
    check_bad_topology("3x2", "makes at least 6 ranks, the job has 4");
    check_bad_topology("3", "makes only 3 ranks, the job has 4");
    check_bad_topology("2x", "is not numbers with x between them");
    check_bad_topology("x2", "is not numbers with x between them");
    check_bad_topology("2*2", "is not numbers with x between them");
    check_bad_topology("-2x-2", "is not numbers with x between them");
    check_bad_topology("0x4", "0 is not between 1 and");
    check_bad_topology("99999999999999999999", "is not between 1 and");
    check_bad_topology("4x1x1x1x1x1x1x1x1", "more than 8 dimensions");
}

static void test_settings_that_differ_are_named(void)
{
    const ls_config_t config = default_config();

    prepare(&config);
    all_args[1].config.fusion_bytes = 12345;
    run_prepared(2, body_place);
    for (unsigned rank = 0; rank < 2; rank++) {
        CHECK_EQ_INT(all_args[rank].status, LS_ERR_CONFIG);
        CHECK_STR(all_args[rank].text, "LOCKSTEP_FUSION_BYTES=12345 on rank 1");
        CHECK_STR(all_args[rank].text, " on rank 0");
    }
}

static void body_bytes_between_nodes(ls_net_h net, unsigned rank, unsigned num_ranks)
{
    const uint32_t peers[3] = {rank ^ 1, rank ^ 2, rank ^ 3}, zeros[3] = {0};
    uint64_t       node_bytes, net_bytes;
    ls_stage_t    *stage;

    (void)num_ranks;
    CHECK_EQ_INT(ls_net_stage(net, 1000, &stage), LS_OK);
    CHECK_EQ_INT(ls_net_send(net, stage, 1000, ls_key_make(1, 0, 0, 0), 1, peers, zeros, 3), LS_OK);
    for (int i = 0; i < 3; i++) {
        ls_message_t message = wait_data(net, peers[i], ls_key_make(1, 0, 0, 0));

        ls_net_release(net, &message);
    }
    ls_net_bytes_sent(net, &node_bytes, &net_bytes);
    CHECK_EQ_INT(node_bytes, 1000);
    CHECK_EQ_INT(net_bytes, 2000);
}

static void test_bytes_are_counted_by_virtual_node(void)
{
    ls_config_t config = default_config();

    config.node_size = 2;
    prepare(&config);
    run_prepared(4, body_bytes_between_nodes);
}

/* ---- failure -------------------------------------------------------------------------------- */

static void body_started(ls_net_h net, unsigned rank, unsigned num_ranks)
{
    ls_mem_fail_at(0); /* only the start is to fail */
    (void)net;
    (void)rank;
    (void)num_ranks;
}

static void check_fault(const char *fault, const char *part)
{
    const ls_config_t config = default_config();

    prepare(&config);
    snprintf(all_args[1].config.fault, sizeof(all_args[1].config.fault), "%s", fault);
    run_prepared(3, body_started);
    for (unsigned rank = 0; rank < 3; rank++) {
        CHECK_EQ_INT(all_args[rank].status, LS_ERR_SYSTEM);
        CHECK_STR(all_args[rank].text, part);
        CHECK_STR(all_args[rank].text, fault);
    }
    CHECK_STR(all_args[0].text, "rank 1: ");
}

static void body_cannot_grow(ls_net_h net, unsigned rank, unsigned num_ranks)
{
    ls_stage_t *stage;

    (void)rank;
    (void)num_ranks;
    CHECK_EQ_INT(ls_net_stage(net, 64 * LS_MIB, &stage), LS_ERR_SYSTEM);
    CHECK_STR(ls_last_error(), "LOCKSTEP_FAULT=shm-grow");
}

static void test_faults_fail_every_rank_with_a_reason(void)
{
    ls_config_t config = default_config();

    check_fault("shm-create", "cannot create shared memory");
    check_fault("shm-map:1", "cannot map shared memory");
    snprintf(config.fault, sizeof(config.fault), "shm-grow");
    prepare(&config);
    run_prepared(2, body_cannot_grow);
    snprintf(config.fault, sizeof(config.fault), "shm-create:7"); /* not a rank of this job */
    prepare(&config);
    run_prepared(2, body_started);
    CHECK_EQ_INT(all_args[0].status, LS_OK);
}

static void test_start_survives_every_failed_allocation(void)
{
    const ls_config_t config = default_config();
    unsigned          failed = 0;

    prepare(&config);
    for (size_t n = 3; n < 45; n++) { /* the first two are the job itself */
        ls_mem_fail_at(n);
        run_prepared(2, body_started);
        ls_mem_fail_at(0);
        CHECK_EQ_INT(all_args[0].status, all_args[1].status);
        if (all_args[0].status != LS_OK) {
            CHECK_EQ_INT(all_args[0].status, LS_ERR_NO_MEMORY);
            failed++;
        } else {
            break;
        }
    }
    CHECK(failed > 10);
}

int main(void)
{
    RUN(test_a_rank_that_says_so_is_gone);
    RUN(test_leaving_without_a_barrier_harms_nobody);
    RUN(test_topology_is_derived_or_taken_from_the_setting);
    RUN(test_bad_topology_is_refused_with_the_reason);
    RUN(test_settings_that_differ_are_named);
    RUN(test_bytes_are_counted_by_virtual_node);
    RUN(test_faults_fail_every_rank_with_a_reason);
    RUN(test_start_survives_every_failed_allocation);
    return check_report();
}

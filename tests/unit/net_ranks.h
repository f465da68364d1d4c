/* SPDX-License-Identifier: Apache-2.0 */
/* A net whose ranks are threads, for the tests that need several ranks. */
#ifndef LS_TESTS_NET_RANKS_H
#define LS_TESTS_NET_RANKS_H

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/mem.h"
#include "check.h"
#include "transport/net_struct.h"

#define MAX_RANKS 8

typedef struct rank_args {
    ls_local_job_h job;
    unsigned       rank, num_ranks;
    ls_config_t    config;
    void (*body)(ls_net_h net, unsigned rank, unsigned num_ranks);
    ls_status_t status;
    char        text[512];
} rank_args_t;

static inline ls_config_t default_config(void)
{
    ls_config_t config;

    CHECK_EQ_INT(ls_config_load(&config), LS_OK);
    config.stage_bytes = LS_MIB; /* quick to clear, and soon too little */
    return config;
}

static inline uint32_t next_random(uint32_t *seed)
{
    *seed = *seed * 1664525U + 1013904223U;
    return *seed >> 8;
}

static inline void step(ls_net_h net)
{
    bool moved = false;

    CHECK_EQ_INT(ls_net_progress(net, &moved), LS_OK);
    if (!moved) {
        sched_yield();
    }
}

static inline ls_message_t wait_control(ls_net_h net)
{
    ls_message_t message;

    while (!ls_net_poll_control(net, &message)) {
        step(net);
    }
    return message;
}

static inline ls_message_t wait_data(ls_net_h net, uint32_t peer, ls_key_t key)
{
    ls_message_t message;

    while (!ls_net_match(net, peer, key, &message)) {
        step(net);
    }
    CHECK_EQ_INT(message.from, peer);
    return message;
}

/* Every rank to every other and back: nobody is through before all are here.  Uses keys of id 4095. */
static inline void barrier(ls_net_h net, unsigned rank, unsigned num_ranks, uint32_t number)
{
    const ls_key_t key = ls_key_make(4095, number, 0, 0);

    for (uint32_t peer = 0; peer < num_ranks; peer++) {
        const uint32_t message = 0;
        ls_stage_t    *stage;

        if (peer != rank) {
            CHECK_EQ_INT(ls_net_stage(net, 0, &stage), LS_OK);
            CHECK_EQ_INT(ls_net_send(net, stage, 0, key, 0, &peer, &message, 1), LS_OK);
        }
    }
    for (uint32_t peer = 0; peer < num_ranks; peer++) {
        if (peer != rank) {
            ls_message_t message = wait_data(net, peer, key);

            CHECK_EQ_INT(message.bytes, 0);
            ls_net_release(net, &message);
        }
    }
    while (ls_net_needs_polling(net)) {
        step(net);
    }
}

static inline void *run_rank(void *arg)
{
    rank_args_t *args = arg;
    ls_net_h     net  = NULL;

    args->status = ls_net_create_local(args->job, args->rank, &args->config, &net);
    if (args->status != LS_OK) {
        snprintf(args->text, sizeof(args->text), "%s", ls_last_error());
        return NULL;
    }
    args->body(net, args->rank, args->num_ranks);
    barrier(net, args->rank, args->num_ranks, 4000);
    ls_net_destroy(net, true);
    return NULL;
}

static rank_args_t all_args[MAX_RANKS];

/* All ranks with the config of all_args, which the caller may change per rank. */
static inline void run_prepared(unsigned num_ranks, void (*body)(ls_net_h, unsigned, unsigned))
{
    const size_t   live = ls_mem_live();
    pthread_t      threads[MAX_RANKS];
    ls_local_job_h job;

    CHECK_EQ_INT(ls_local_job_create(num_ranks, &job), LS_OK);
    for (unsigned rank = 0; rank < num_ranks; rank++) {
        all_args[rank].job       = job;
        all_args[rank].rank      = rank;
        all_args[rank].num_ranks = num_ranks;
        all_args[rank].body      = body;
        all_args[rank].text[0]   = '\0';
        pthread_create(&threads[rank], NULL, run_rank, &all_args[rank]);
    }
    for (unsigned rank = 0; rank < num_ranks; rank++) {
        pthread_join(threads[rank], NULL);
    }
    ls_local_job_destroy(job);
    CHECK_EQ_INT(ls_mem_live(), live);
}

static inline void prepare(const ls_config_t *config)
{
    for (unsigned rank = 0; rank < MAX_RANKS; rank++) {
        all_args[rank].config = *config;
    }
}

static inline void run_ranks(unsigned num_ranks, void (*body)(ls_net_h, unsigned, unsigned))
{
    const ls_config_t config = default_config();

    prepare(&config);
    run_prepared(num_ranks, body);
    for (unsigned rank = 0; rank < num_ranks; rank++) {
        CHECK_EQ_INT(all_args[rank].status, LS_OK);
    }
}

#endif

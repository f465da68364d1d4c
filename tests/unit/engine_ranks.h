/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks that are threads, each with an engine, for the tests of the engine. */
#ifndef LS_TESTS_ENGINE_RANKS_H
#define LS_TESTS_ENGINE_RANKS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "check.h"
#include "lockstep.h"

#define MAX_RANKS 4
#define LARGE     ((uint64_t)16 << 20) /* elements: more than is reduced at once */

typedef struct rank {
    pthread_t        thread;
    ls_local_job_h   job;
    unsigned         index, num_ranks;
    ls_context_h     ctx;
    ls_status_t      started;
    void           (*body)(struct rank *rank);
    _Atomic unsigned num_done; /* of any request */
    ls_status_t      status;   /* of the last one */
    char             message[1024];
    int              fd;
    float            value;
} rank_t;

static inline void *run_rank(void *arg)
{
    rank_t                 *rank   = arg;
    const ls_start_params_t params = {.local_job = rank->job, .local_rank = rank->index};

    rank->started = ls_start(&params, &rank->ctx);
    if (rank->started != LS_OK) {
        snprintf(rank->message, sizeof(rank->message), "%s", ls_last_error());
        return NULL;
    }
    rank->body(rank);
    ls_stop(rank->ctx);
    return NULL;
}

/* Every rank runs `body`, then stops. */
static inline void run_ranks(unsigned num_ranks, void (*body)(rank_t *rank), rank_t ranks[MAX_RANKS])
{
    ls_local_job_h job;

    CHECK_EQ_INT(ls_local_job_create(num_ranks, &job), LS_OK);
    for (unsigned i = 0; i < num_ranks; i++) {
        ranks[i] = (rank_t){.job = job, .index = i, .num_ranks = num_ranks, .body = body};
    }
    for (unsigned i = 0; i < num_ranks; i++) {
        CHECK_EQ_INT(pthread_create(&ranks[i].thread, NULL, run_rank, &ranks[i]), 0);
    }
    for (unsigned i = 0; i < num_ranks; i++) {
        pthread_join(ranks[i].thread, NULL);
    }
    ls_local_job_destroy(job);
}

static inline void on_done(void *arg, ls_status_t status, const char *message)
{
    rank_t *rank = arg;

    rank->status = status;
    snprintf(rank->message, sizeof(rank->message), "%s", message);
    atomic_fetch_add(&rank->num_done, 1);
}


static inline ls_tensor_t vector(const char *name, ls_dtype_t dtype, void *data, uint64_t count)
{
    return (ls_tensor_t){.name = name, .dtype = dtype, .input = data, .output = data, .count = count};
}

static float large[2][LARGE] __attribute__((unused)); /* not every test needs it */

#endif

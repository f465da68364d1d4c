/* SPDX-License-Identifier: Apache-2.0 */
/* What both tests of the mailbox use. */
#ifndef LS_TESTS_MAILBOX_RANKS_H
#define LS_TESTS_MAILBOX_RANKS_H

#include "base/error.h"
#include "base/mem.h"
#include "check.h"
#include "transport/mailbox_int.h"
#include "transport/segment.h"
#include "transport/stage.h"

#define MAX_RANKS 4

static inline ls_config_t small_config(void)
{
    ls_config_t config;

    CHECK_EQ_INT(ls_config_load(&config), LS_OK);
    config.stage_bytes = 256 * LS_KIB;
    return config;
}

/* Ranks 10, 11, ... so that job ranks and local ranks cannot be mixed up unseen. */
static const uint32_t job_ranks[MAX_RANKS] = {10, 11, 13, 17};

static inline ls_status_t create(uint32_t local_rank, uint32_t local_size, bool is_local, const ls_config_t *config,
                          ls_mailbox_h *mailbox_p)
{
    const ls_mailbox_params_t params = {
        .config = config, .rank = job_ranks[local_rank], .local_rank = local_rank, .local_size = local_size,
        .local_ranks = job_ranks, .is_local = is_local,
    };
    return ls_mailbox_create(&params, mailbox_p);
}

static inline ls_status_t send_number(ls_mailbox_h box, ls_stage_pool_h pool, uint32_t to, ls_key_t key,
                               uint32_t number, size_t bytes)
{
    ls_stage_t *stage;
    ls_status_t status = ls_stage_get(pool, bytes, &stage);

    if (status != LS_OK) {
        return status;
    }
    memcpy(stage->data, &number, sizeof(number));
    memcpy((char *)stage->data + bytes - sizeof(number), &number, sizeof(number));
    atomic_store(&stage->head->pending, 1);
    ls_stage_sent(pool, stage);
    return ls_mailbox_ops.send(box, &(ls_send_t){.stage = stage, .bytes = bytes, .peer = to, .key = key,
                                                 .contributors = number});
}

#endif

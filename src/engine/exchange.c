/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes of all ranks for who knows nothing of the engine: readers that open a data set together. */
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/error.h"
#include "lockstep.h"

static _Atomic uint64_t num_calls; /* each has a name of its own; ranks make them in the same order */

typedef struct target {
    void    *all;
    uint64_t bytes; /* of each rank */
} target_t;

static void *room_of(void *arg, const uint64_t *counts, unsigned num_ranks)
{
    const target_t *target = arg;

    for (unsigned i = 0; i < num_ranks; i++) {
        if (counts[i] != target->bytes) {
            return NULL;
        }
    }
    return target->all;
}

ls_status_t ls_process_allgather(void *arg, const void *mine, size_t bytes, void *all)
{
    ls_context_h ctx    = ls_process_get();
    target_t     target = {.all = all, .bytes = bytes};
    char         name[64];
    ls_status_t  status;

    (void)arg;
    if (ctx == NULL) {
        return ls_error_set(LS_ERR_INVALID, "this process is no rank, or not started");
    }
    snprintf(name, sizeof(name), "lockstep.exchange/%" PRIu64, atomic_fetch_add(&num_calls, 1));
    const ls_tensor_t tensor = {.name = name, .dtype = LS_UINT8, .input = mine, .count = bytes};

    status = ls_allgather(ctx, &tensor, room_of, &target);
    ls_process_put(ctx);
    return status;
}

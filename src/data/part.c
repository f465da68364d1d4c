/* SPDX-License-Identifier: Apache-2.0 */
#include "data/part.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"

#define MESSAGE_ROOM 1000

typedef struct outcome {
    int32_t status;
    char    message[MESSAGE_ROOM];
} outcome_t;

unsigned ls_part_ranks(const ls_data_part_t *part)
{
    return part->allgather != NULL && part->size > 1 ? part->size : 1;
}

unsigned ls_part_rank(const ls_data_part_t *part)
{
    return ls_part_ranks(part) > 1 ? part->rank : 0;
}

ls_status_t ls_part_allgather(const ls_data_part_t *part, const void *mine, size_t bytes, void *all)
{
    if (ls_part_ranks(part) == 1) {
        memcpy(all, mine, bytes);
        return LS_OK;
    }
    const ls_status_t status = part->allgather(part->arg, mine, bytes, all);

    return status == LS_OK
               ? LS_OK
               : ls_error_set(status, "the ranks that read together could not exchange %zu bytes: %s", bytes,
                              ls_status_str(status));
}

ls_status_t ls_part_agree(const ls_data_part_t *part, ls_status_t status)
{
    const unsigned ranks = ls_part_ranks(part);
    outcome_t      mine = {.status = status}, *all = NULL;
    ls_status_t    result;

    if (ranks == 1) {
        return status;
    }
    snprintf(mine.message, sizeof(mine.message), "%s", status == LS_OK ? "" : ls_last_error());
    result = ls_mem_alloc(ranks * sizeof(*all), "outcomes of all ranks", (void **)&all);
    if (result != LS_OK) {
        return result;
    }
    result = ls_part_allgather(part, &mine, sizeof(mine), all);
    for (unsigned rank = 0; rank < ranks && result == LS_OK; rank++) {
        if (all[rank].status != LS_OK) {
            all[rank].message[MESSAGE_ROOM - 1] = '\0';
            result =
                ls_error_set((ls_status_t)all[rank].status, "%s (found by rank %u)", all[rank].message, rank);
        }
    }
    ls_mem_free(all);
    return result;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of ranks, as arrays of bool. */
#ifndef LS_SCHEDULE_RANKS_H
#define LS_SCHEDULE_RANKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* "rank 3" or "ranks 1, 3-5": those r with in[r] == wanted and not except[r] (except may be NULL); "no rank".
 * Returns how many. */
uint32_t ls_ranks_print(const bool *in, bool wanted, const bool *except, uint32_t num_ranks, char *text,
                        size_t room);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* What the table of choices and the reading of LOCKSTEP_ALGO need of each other. */
#ifndef LS_ALGO_CHOICE_H
#define LS_ALGO_CHOICE_H

#include <stddef.h>

#include "algo/algo.h"

/* Chunk for an algorithm that is named without one. */
uint64_t ls_choice_default_chunk(const ls_algo_t *algo);

/* The number of rows in `override`; 0 for "". */
size_t ls_choice_parse_count(const char *override);
/* Fill that many rows.  LS_ERR_CONFIG names the row and what would be allowed. */
ls_status_t ls_choice_parse(const char *override, ls_choice_t *rows);

#endif

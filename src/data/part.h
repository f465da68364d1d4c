/* SPDX-License-Identifier: Apache-2.0 */
/* What ranks that open the same data do together.  All functions are collective where part->allgather is
 * given. */
#ifndef LS_DATA_PART_H
#define LS_DATA_PART_H

#include "lockstep_data.h"

/* The ranks that share the work: part->size with allgather, otherwise 1. */
unsigned ls_part_ranks(const ls_data_part_t *part);
unsigned ls_part_rank(const ls_data_part_t *part); /* among these */

/* `mine` of every rank in rank order; with one rank a copy. */
ls_status_t ls_part_allgather(const ls_data_part_t *part, const void *mine, size_t bytes, void *all);

/* LS_OK where every rank gives LS_OK; otherwise status and message of the first rank that failed, on every
 * rank. */
ls_status_t ls_part_agree(const ls_data_part_t *part, ls_status_t status);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the check of plans leaves to look at: whose values ended up in which block of which rank.
 * A value is not a number here but the set of ranks whose inputs are in it, so that a value that is
 * missing or counted twice shows for every input.
 */
#ifndef LS_ALGO_PLAN_CHECK_H
#define LS_ALGO_PLAN_CHECK_H

#include "algo/plan.h"

typedef struct ls_plan_check ls_plan_check_t;

/* Run all plans; what ls_plan_check_all checks is checked on the way. */
ls_status_t ls_plan_check_run(ls_plan_t *const *plans, uint32_t num_ranks, ls_plan_check_t **check_p);
void        ls_plan_check_destroy(ls_plan_check_t *check);

/* At the end: was the block of this rank written, how many ranks' values are in it, is that one's? */
bool     ls_plan_check_is_written(const ls_plan_check_t *check, uint32_t rank, uint32_t block);
uint32_t ls_plan_check_count(const ls_plan_check_t *check, uint32_t rank, uint32_t block);
bool     ls_plan_check_has(const ls_plan_check_t *check, uint32_t rank, uint32_t block, uint32_t source);

#endif

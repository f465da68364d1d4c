/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Folding: how algorithms for a power of two serve any number of ranks.
 *
 * n ranks become p, the largest power of two that is not larger.  Of the first 2(n-p) ranks each odd
 * one hands its value to the even one before it, takes no part, and is given the result at the end.
 * Those that take part are numbered 0 .. p-1 in the order of their ranks.  n = 6, p = 4:
 *   rank  0  1  2  3  4  5
 *   place 0  -  1  -  2  3       rank 1 is folded into 0, rank 3 into 2
 */
#ifndef LS_ALGO_FOLD_H
#define LS_ALGO_FOLD_H

#include "algo/plan.h"

typedef struct ls_fold {
    uint32_t size;      /* p */
    uint32_t extra;     /* n - p */
    uint32_t place;     /* of this rank; meaningless when it is folded */
    uint32_t partner;   /* rank at the other end of the fold; this rank itself: none */
    bool     is_folded; /* hands its value to the partner */
} ls_fold_t;

ls_fold_t ls_fold_make(uint32_t rank, uint32_t num_ranks);
uint32_t  ls_fold_size(uint32_t num_ranks);                      /* p */
uint32_t  ls_fold_rank(const ls_fold_t *fold, uint32_t place);   /* which rank has this place */

/* The steps before and after: all blocks of the plan to the partner, the result back. */
ls_status_t ls_fold_begin(const ls_fold_t *fold, ls_plan_t *plan);
ls_status_t ls_fold_end(const ls_fold_t *fold, ls_plan_t *plan);

#endif

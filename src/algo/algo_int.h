/* SPDX-License-Identifier: Apache-2.0 */
/* The algorithms, one file each, and what several of them say of themselves. */
#ifndef LS_ALGO_ALGO_INT_H
#define LS_ALGO_ALGO_INT_H

#include "algo/algo.h"

extern const ls_algo_t ls_algo_allreduce_flat;
extern const ls_algo_t ls_algo_allreduce_direct;
extern const ls_algo_t ls_algo_allreduce_ring;
extern const ls_algo_t ls_algo_allreduce_recursive_doubling;
extern const ls_algo_t ls_algo_allreduce_halving_doubling;
extern const ls_algo_t ls_algo_allreduce_dims;
extern const ls_algo_t ls_algo_allreduce_two_level;
extern const ls_algo_t ls_algo_broadcast_flat;
extern const ls_algo_t ls_algo_broadcast_binomial;
extern const ls_algo_t ls_algo_broadcast_two_level;
extern const ls_algo_t ls_algo_allgather_direct;
extern const ls_algo_t ls_algo_allgather_ring;
extern const ls_algo_t ls_algo_reduce_scatter_direct;
extern const ls_algo_t ls_algo_reduce_scatter_ring;
extern const ls_algo_t ls_algo_alltoall_direct;
extern const ls_algo_t ls_algo_barrier_dissemination;

uint32_t ls_algo_one_block(const ls_algo_request_t *request);
uint32_t ls_algo_block_per_rank(const ls_algo_request_t *request);
bool     ls_algo_supports_all(const ls_algo_request_t *request);

#endif

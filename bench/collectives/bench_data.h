/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Test data: small integers, so that sums of any type are exact in any order of adding.
 *
 * Element i of rank r is a function of r, i mod BENCH_DATA_PERIOD and a seed.  The period is a
 * prime, so that a block put in the wrong place is wrong; the seed changes between the checks of
 * one run, so that a result left over from before is wrong too.  Exact up to 127 ranks (15 for a
 * float16 product).
 */
#ifndef LS_BENCH_DATA_H
#define LS_BENCH_DATA_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

#include "lockstep.h"

#define BENCH_DATA_PERIOD 251

typedef struct bench_expected {
    ls_dtype_t dtype;
    double     tolerance; /* relative; not 0 where a mean is rounded */
    double     values[BENCH_DATA_PERIOD];
} bench_expected_t;

const char *bench_data_type_name(ls_dtype_t dtype);
const char *bench_data_op_name(ls_op_t op);
bool        bench_data_find_type(const char *name, ls_dtype_t *dtype_p);
bool        bench_data_find_op(const char *name, ls_op_t *op_p);
size_t      bench_data_type_size(ls_dtype_t dtype);
bool        bench_data_has_op(ls_dtype_t dtype, ls_op_t op);

/* MPI_DATATYPE_NULL where MPI has no such type.  A mean is a sum there: MPI has no mean. */
MPI_Datatype bench_data_mpi_type(ls_dtype_t dtype);
MPI_Op       bench_data_mpi_op(ls_dtype_t dtype, ls_op_t op);

/* The weight of a rank in a weighted mean. */
double bench_data_weight(unsigned rank);

void bench_data_fill(void *buffer, uint64_t count, ls_dtype_t dtype, ls_op_t op, unsigned rank,
                     unsigned seed);

/* What one rank gave, and what the reduction of all ranks is. */
void bench_data_expect_rank(ls_dtype_t dtype, ls_op_t op, unsigned rank, unsigned seed,
                            bench_expected_t *expected_p);
void bench_data_expect_reduced(ls_dtype_t dtype, ls_op_t op, unsigned num_ranks, unsigned seed,
                               bench_expected_t *expected_p);

/* Elements that are not as expected; the first stands at `position` in the whole. */
uint64_t bench_data_wrong(const void *buffer, uint64_t count, uint64_t position,
                          const bench_expected_t *expected);

#endif

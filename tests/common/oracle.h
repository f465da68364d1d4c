/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The oracle: what each rank hands in, and what must come out.
 *
 * An input element is a pure function of (seed, rank, index, type, operation), so every rank can work
 * out what all the others gave, and so the expected result, by the naive formula.  Integers, bool, min
 * and max must come out exactly; floats within a bound that counts the roundings a correct engine may
 * make.  With u = half a unit in the last place of the type that is stored or sent:
 *   sum, means   (n + 4) u * (|x0| + ... + |xn-1|)    n-1 additions, the scaling of each input (factor
 *                                                     and product), the scaling of the result (the same)
 *   product      (2n + 4) u * |result|                each input scaled and rounded, each product rounded
 *   min, max     2 u * |result| for each scale that is not 1, and 2 u if the value travels rounded
 */
#ifndef LS_TESTS_ORACLE_H
#define LS_TESTS_ORACLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lockstep.h"

#define ORACLE_MAX_RANKS 64

typedef struct oracle_case {
    ls_dtype_t dtype;
    ls_op_t    op;
    uint64_t   seed;
    uint64_t   count;
    unsigned   num_ranks;
    uint64_t   absent;                     /* bit r: rank r has joined and gives nothing */
    double     prescale, postscale;        /* 0: none */
    double     weights[ORACLE_MAX_RANKS];  /* LS_WEIGHTED_MEAN: by rank; inputs of weight 0 are NaN */
    ls_dtype_t wire;                       /* type float32 travels in; LS_FLOAT32: unchanged */
} oracle_case_t;

/* Which of the elements first .. first+count-1 to look at: those with index % stride == phase. */
typedef struct oracle_range {
    uint64_t first, count;
    unsigned stride, phase;
} oracle_range_t;

size_t      oracle_size(ls_dtype_t dtype);
const char *oracle_dtype_name(ls_dtype_t dtype);
const char *oracle_op_name(ls_op_t op);
bool        oracle_is_float(ls_dtype_t dtype);

/* Does the library take this operation on this type? */
bool oracle_is_allowed(ls_dtype_t dtype, ls_op_t op);

/* Mix of two numbers, the same everywhere; also the tests' source of chance. */
uint64_t oracle_mix(uint64_t a, uint64_t b);
uint64_t oracle_hash(uint64_t seed, const void *data, size_t bytes);

/* The input of `rank`: case->count elements. */
void oracle_fill(const oracle_case_t *what, unsigned rank, void *data);

/* Elements `first` and on of the input of `rank`. */
void oracle_fill_from(const oracle_case_t *what, unsigned rank, uint64_t first, uint64_t count, void *data);

/*
 * result[0] is the reduced element range->first.  True if all are right; else `text` says which is not,
 * what it is and what it should be.
 */
bool oracle_check_reduced(const oracle_case_t *what, const oracle_range_t *range, const void *result,
                          char *text, size_t room);

/* result[0 .. count) must be elements `first` and on of the input of `rank`, bit by bit. */
bool oracle_check_moved(const oracle_case_t *what, unsigned rank, uint64_t first, uint64_t count,
                        const void *result, char *text, size_t room);

#endif

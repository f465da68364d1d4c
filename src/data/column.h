/* SPDX-License-Identifier: Apache-2.0 */
/* Columns of rows of different length (LS_DATA_BYTES), filled row by row. */
#ifndef LS_DATA_COLUMN_H
#define LS_DATA_COLUMN_H

#include "lockstep_data.h"

/* Adds a row of `length` bytes, which the caller puts at *room_p (valid until the next call). */
ls_status_t ls_column_append(ls_data_column_t *column, size_t length, void **room_p);

/* Room for so many more rows and bytes in all; only a matter of speed. */
ls_status_t ls_column_reserve(ls_data_column_t *column, uint64_t rows, uint64_t bytes);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers from text that has no end marker.  A double is the one that strtod() gives, bit for bit.
 *
 * A number is [+-] digits [. digits] [e [+-] digits], or inf, infinity, nan in any case, and fills the text
 * from `text` to `end`.  LS_DECIMAL_SLACK bytes after `end` must be readable: digits are taken eight at a
 * time.
 */
#ifndef LS_DATA_DECIMAL_H
#define LS_DATA_DECIMAL_H

#include <stdbool.h>
#include <stdint.h>

#define LS_DECIMAL_SLACK 8

/* False: it is no number, or (whole numbers) out of range or not whole. */
bool ls_decimal_double(const char *text, const char *end, double *value_p);
bool ls_decimal_int64(const char *text, const char *end, int64_t *value_p);
bool ls_decimal_uint64(const char *text, const char *end, uint64_t *value_p);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The scanner for any processor. */
#include "data/csv_scan_int.h"

typedef struct needles {
    unsigned char kind[256]; /* bits: 1 delimiter, 2 line feed, 4 carriage return, 8 quote, 16 zero */
} needles_t;

static needles_t needles(const ls_csv_marks_t *marks)
{
    needles_t need = {.kind = {[0] = 16, ['\n'] = 2, ['\r'] = 4}};

    need.kind[(unsigned char)marks->delimiter] |= 1;
    need.kind[(unsigned char)marks->quote] |= 8;
    return need;
}

static masks_t classify(const needles_t *need, const char *data, size_t length)
{
    masks_t      m   = {.valid = valid_bits(length)};
    const size_t num = (length < 64) ? length : 64;

    for (size_t i = 0; i < num; i++) {
        const uint64_t kind = need->kind[(unsigned char)data[i]];

        m.delimiter |= (kind & 1) << i;
        m.line_feed |= (kind >> 1 & 1) << i;
        m.cr |= (kind >> 2 & 1) << i;
        m.quote |= (kind >> 3 & 1) << i;
        m.nul |= (kind >> 4) << i;
    }
    return m;
}

#define put_positions ls_csv_scan_put
#define PATH_NAME     "c"
#define PATH_OPS      c_ops
#include "data/csv_scan_body.inc"

const ls_csv_scan_ops_t *ls_csv_scan_c_get(void)
{
    return &c_ops;
}

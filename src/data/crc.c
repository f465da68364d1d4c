/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CRCs eight bytes at a time from eight tables: table[k][b] is the CRC of byte b followed by k zero bytes.
 * Tables and choice of instructions are made at the first call.
 */
#include "data/crc.h"

#include <pthread.h>
#include <string.h>

#include "data/crc_int.h"

#define POLYNOMIAL_32  0xedb88320u /* bits reversed */
#define POLYNOMIAL_32C 0x82f63b78u

typedef uint32_t crc_tables_t[8][256];

static pthread_once_t once = PTHREAD_ONCE_INIT;
static crc_tables_t   tables_32, tables_32c;
static bool           has_32, has_32c, has_32c_wide;

static void fill(uint32_t polynomial, crc_tables_t tables)
{
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t crc = byte;

        for (int bit = 0; bit < 8; bit++) {
            crc = (crc >> 1) ^ ((crc & 1) != 0 ? polynomial : 0);
        }
        tables[0][byte] = crc;
    }
    for (int k = 1; k < 8; k++) {
        for (int byte = 0; byte < 256; byte++) {
            const uint32_t before = tables[k - 1][byte];

            tables[k][byte] = (before >> 8) ^ tables[0][before & 255];
        }
    }
}

static void prepare(void)
{
    fill(POLYNOMIAL_32, tables_32);
    fill(POLYNOMIAL_32C, tables_32c);
    has_32       = ls_crc_x86_has_32();
    has_32c      = ls_crc_x86_has_32c();
    has_32c_wide = ls_crc_x86_has_32c_wide();
}

static uint32_t by_tables(crc_tables_t tables, uint32_t crc, const unsigned char *bytes, size_t count)
{
    crc = ~crc;
    for (; count >= 8; bytes += 8, count -= 8) {
        uint64_t word;

        memcpy(&word, bytes, 8);
        word ^= crc;
        crc = 0;
        for (int k = 0; k < 8; k++) {
            crc ^= tables[7 - k][(word >> (8 * k)) & 255];
        }
    }
    for (; count > 0; bytes++, count--) {
        crc = (crc >> 8) ^ tables[0][(crc ^ *bytes) & 255];
    }
    return ~crc;
}

uint32_t ls_crc_32_plain(uint32_t crc, const void *bytes, size_t count)
{
    pthread_once(&once, prepare);
    return by_tables(tables_32, crc, bytes, count);
}

uint32_t ls_crc_32c_plain(uint32_t crc, const void *bytes, size_t count)
{
    pthread_once(&once, prepare);
    return by_tables(tables_32c, crc, bytes, count);
}

uint32_t ls_crc_32(uint32_t crc, const void *bytes, size_t count)
{
    const size_t folded =
        count & ~(size_t)15; /* the instructions take whole blocks of 16, at least four of them */

    pthread_once(&once, prepare);
    if (has_32 && folded >= 64) {
        crc = ls_crc_x86_32(crc, bytes, folded);
        return by_tables(tables_32, crc, (const unsigned char *)bytes + folded, count - folded);
    }
    return by_tables(tables_32, crc, bytes, count);
}

uint32_t ls_crc_32c(uint32_t crc, const void *bytes, size_t count)
{
    pthread_once(&once, prepare);
    if (has_32c_wide && count >= LS_CRC_WIDE_BYTES) {
        return ls_crc_x86_32c_wide(crc, bytes, count);
    }
    return has_32c ? ls_crc_x86_32c(crc, bytes, count) : by_tables(tables_32c, crc, bytes, count);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Checksums of files: CRC-32 (gzip, zip) and CRC-32C (TFRecord), with the processor's instructions where it
 * has them. */
#ifndef LS_DATA_CRC_H
#define LS_DATA_CRC_H

#include <stddef.h>
#include <stdint.h>

/* The checksum of what `crc` is the checksum of, followed by these bytes; begin with 0. */
uint32_t ls_crc_32(uint32_t crc, const void *bytes, size_t count);
uint32_t ls_crc_32c(uint32_t crc, const void *bytes, size_t count);

/* The same without special instructions: for tests, and for processors that have none. */
uint32_t ls_crc_32_plain(uint32_t crc, const void *bytes, size_t count);
uint32_t ls_crc_32c_plain(uint32_t crc, const void *bytes, size_t count);

/* How TFRecord stores a CRC-32C. */
static inline uint32_t ls_crc_masked(uint32_t crc)
{
    return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

#endif

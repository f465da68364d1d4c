/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LS_DATA_CRC_INT_H
#define LS_DATA_CRC_INT_H

#include <stdbool.h>

#include "data/crc.h"

#define LS_CRC_WIDE_BYTES 256

/* crc_x86.c.  Without the instructions the first three are false and the others are not called. */
bool     ls_crc_x86_has_32(void);
bool     ls_crc_x86_has_32c(void);
bool     ls_crc_x86_has_32c_wide(void);
uint32_t ls_crc_x86_32(uint32_t crc, const unsigned char *bytes, size_t count);
uint32_t ls_crc_x86_32c(uint32_t crc, const unsigned char *bytes, size_t count);
uint32_t ls_crc_x86_32c_wide(uint32_t crc, const unsigned char *bytes,
                             size_t count); /* LS_CRC_WIDE_BYTES or more */

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* SipHash-2-4: 64 bits that only who knows the key can make for a message.  (Aumasson, Bernstein 2012.) */
#ifndef LS_BASE_SIPHASH_H
#define LS_BASE_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

#define LS_SIPHASH_KEY_BYTES 16

uint64_t ls_siphash(const uint8_t key[LS_SIPHASH_KEY_BYTES], const void *data, size_t size);

#endif

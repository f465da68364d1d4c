/* SPDX-License-Identifier: Apache-2.0 */
#include "base/siphash.h"

static uint64_t load64(const uint8_t *bytes)
{
    uint64_t word = 0;

    for (unsigned i = 0; i < 8; i++) {
        word |= (uint64_t)bytes[i] << (8 * i);
    }
    return word;
}

static uint64_t rotate(uint64_t word, unsigned by)
{
    return (word << by) | (word >> (64 - by));
}

static void mix(uint64_t v[4], unsigned rounds)
{
    while (rounds-- > 0) {
        v[0] += v[1];
        v[1] = rotate(v[1], 13) ^ v[0];
        v[0] = rotate(v[0], 32);
        v[2] += v[3];
        v[3] = rotate(v[3], 16) ^ v[2];
        v[0] += v[3];
        v[3] = rotate(v[3], 21) ^ v[0];
        v[2] += v[1];
        v[1] = rotate(v[1], 17) ^ v[2];
        v[2] = rotate(v[2], 32);
    }
}

static void absorb(uint64_t v[4], uint64_t word)
{
    v[3] ^= word;
    mix(v, 2);
    v[0] ^= word;
}

uint64_t ls_siphash(const uint8_t key[LS_SIPHASH_KEY_BYTES], const void *data, size_t size)
{
    const uint8_t *bytes = data;
    const uint64_t k0 = load64(key), k1 = load64(key + 8);
    uint64_t       v[4] = {k0 ^ 0x736F6D6570736575ULL, k1 ^ 0x646F72616E646F6DULL, k0 ^ 0x6C7967656E657261ULL,
                           k1 ^ 0x7465646279746573ULL};
    uint64_t       last = (uint64_t)size << 56;
    size_t         at   = 0;

    for (; at + 8 <= size; at += 8) {
        absorb(v, load64(bytes + at));
    }
    for (unsigned i = 0; at + i < size; i++) {
        last |= (uint64_t)bytes[at + i] << (8 * i);
    }
    absorb(v, last);
    v[2] ^= 0xFF;
    mix(v, 4);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

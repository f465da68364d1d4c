/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Four lanes take 8 bytes each in turn, so that their multiplications overlap; at the end they are folded into one.  The
 * step of a lane is a bijection for a given word, so two buffers that differ in one word never have the same lane.
 */
#include <lockstep.h>
#include <string.h>

#define LANES      4
#define LANE_BYTES sizeof(uint64_t)
#define MULTIPLIER 0x9e3779b97f4a7c15ULL /* odd: 2^64 divided by the golden ratio */

static uint64_t mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * MULTIPLIER;
    return hash ^ (hash >> 29);
}

uint64_t ls_hash(const void *data, size_t size)
{
    const unsigned char *bytes = data;
    uint64_t             lanes[LANES] = {1, 2, 3, 4}, hash = size, word;

    for (; size >= sizeof(lanes); size -= sizeof(lanes), bytes += sizeof(lanes)) {
        for (unsigned i = 0; i < LANES; i++) {
            memcpy(&word, bytes + i * LANE_BYTES, LANE_BYTES);
            lanes[i] = mix(lanes[i], word);
        }
    }
    for (; size > 0; size -= (size < LANE_BYTES) ? size : LANE_BYTES, bytes += LANE_BYTES) {
        word = 0;
        memcpy(&word, bytes, (size < LANE_BYTES) ? size : LANE_BYTES);
        hash = mix(hash, word);
    }
    for (unsigned i = 0; i < LANES; i++) {
        hash = mix(hash, lanes[i]);
    }
    return hash;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The hash of the audit: every byte and the length count, the address does not. */
#include <lockstep.h>
#include <stdint.h>
#include <stdlib.h>

#include "check.h"

#define MAX_SIZE 131

static unsigned char buffer[MAX_SIZE + 16];

static void fill(unsigned char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        bytes[i] = (unsigned char)(i * 37 + 5);
    }
}

static void test_every_bit_counts(void)
{
    for (size_t size = 0; size <= MAX_SIZE; size++) {
        uint64_t before;

        fill(buffer, size);
        before = ls_hash(buffer, size);
        for (size_t bit = 0; bit < 8 * size; bit++) {
            buffer[bit / 8] ^= (unsigned char)(1u << (bit % 8));
            CHECK(ls_hash(buffer, size) != before);
            buffer[bit / 8] ^= (unsigned char)(1u << (bit % 8));
        }
        CHECK(ls_hash(buffer, size) == before);
    }
}

static void test_length_counts(void)
{
    memset(buffer, 0, sizeof(buffer));
    for (size_t size = 0; size < MAX_SIZE; size++) {
        CHECK(ls_hash(buffer, size) != ls_hash(buffer, size + 1));
    }
}

static void test_order_of_words_counts(void)
{
    uint64_t words[8], before;

    for (unsigned i = 0; i < 8; i++) {
        words[i] = i;
    }
    before = ls_hash(words, sizeof(words));
    for (unsigned i = 0; i < 8; i++) {
        for (unsigned k = 0; k < i; k++) {
            words[i] = k, words[k] = i;
            CHECK(ls_hash(words, sizeof(words)) != before);
            words[i] = i, words[k] = k;
        }
    }
}

static void test_address_does_not_count(void)
{
    uint64_t first;

    fill(buffer, MAX_SIZE);
    first = ls_hash(buffer, MAX_SIZE);
    for (size_t offset = 1; offset < 16; offset++) {
        fill(buffer + offset, MAX_SIZE);
        CHECK(ls_hash(buffer + offset, MAX_SIZE) == first);
    }
}

int main(void)
{
    RUN(test_every_bit_counts);
    RUN(test_length_counts);
    RUN(test_order_of_words_counts);
    RUN(test_address_does_not_count);
    return check_report();
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "data/huffman.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static uint32_t entry(unsigned value, unsigned extra)
{
    return (uint32_t)value << 16 | (uint32_t)extra << 8;
}

void ls_huffman_plain(unsigned symbol, uint32_t *entry_p)
{
    *entry_p = entry(symbol, 0);
}

void ls_huffman_literal(unsigned symbol, uint32_t *entry_p)
{
    /* RFC 1951, 3.2.5 */
    static const uint16_t base[29]  = {3,  4,  5,  6,  7,  8,  9,  10, 11,  13,  15,  17,  19,  23, 27,
                                       31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258};
    static const uint8_t  extra[29] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2,
                                       2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};

    if (symbol < 256) {
        *entry_p = LS_HUFFMAN_LITERAL | entry(symbol, 0);
    } else if (symbol == 256) {
        *entry_p = LS_HUFFMAN_END;
    } else if (symbol < 257 + 29) {
        *entry_p = entry(base[symbol - 257], extra[symbol - 257]);
    } else {
        *entry_p = LS_HUFFMAN_INVALID;
    }
}

void ls_huffman_distance(unsigned symbol, uint32_t *entry_p)
{
    if (symbol < 4) {
        *entry_p = entry(symbol + 1, 0);
    } else if (symbol < 30) {
        const unsigned extra = symbol / 2 - 1;

        *entry_p = entry(((2 + symbol % 2) << extra) + 1, extra);
    } else {
        *entry_p = LS_HUFFMAN_INVALID;
    }
}

static unsigned reversed(unsigned code, unsigned bits)
{
    unsigned result = 0;

    for (; bits > 0; bits--, code >>= 1) {
        result = result << 1 | (code & 1);
    }
    return result;
}

/* A code is complete when it uses all sequences of bits; deflate also allows a single code of one bit. */
static const char *check_lengths(const unsigned counts[LS_HUFFMAN_MAX_BITS + 1])
{
    int      left = 1;
    unsigned used = 0;

    for (unsigned bits = 1; bits <= LS_HUFFMAN_MAX_BITS; bits++) {
        left = left * 2 - (int)counts[bits];
        used += counts[bits];
        if (left < 0) {
            return "a Huffman code has more codes than bits allow";
        }
    }
    return left > 0 && !(used == 0 || (used == 1 && counts[1] == 1)) ? "a Huffman code is incomplete" : NULL;
}

/* The bits of the second table for each beginning that needs one. */
static void find_second_bits(const unsigned char *lengths, const uint16_t *codes, unsigned num_symbols,
                             unsigned first_bits, unsigned char *second_bits)
{
    const unsigned mask = (1u << first_bits) - 1;

    memset(second_bits, 0, (size_t)1 << first_bits);
    for (unsigned symbol = 0; symbol < num_symbols; symbol++) {
        unsigned char *bits_p = &second_bits[codes[symbol] & mask];

        if (lengths[symbol] > first_bits && lengths[symbol] - first_bits > *bits_p) {
            *bits_p = (unsigned char)(lengths[symbol] - first_bits);
        }
    }
}

static void spread(uint32_t *table, unsigned table_bits, unsigned code, unsigned code_bits, uint32_t value)
{
    for (unsigned i = code; i < 1u << table_bits; i += 1u << code_bits) {
        table[i] = value;
    }
}

const char *ls_huffman_build(const unsigned char *lengths, unsigned num_symbols,
                             ls_huffman_meaning_fn meaning, unsigned first_bits, uint32_t *table,
                             unsigned room)
{
    unsigned      counts[LS_HUFFMAN_MAX_BITS + 1] = {0}, next_code[LS_HUFFMAN_MAX_BITS + 2] = {0};
    uint16_t      codes[LS_HUFFMAN_MAX_SYMBOLS] = {0};
    unsigned char second_bits[1 << LS_HUFFMAN_LITERAL_BITS];
    unsigned      used = 1u << first_bits;
    const char   *problem;

    for (unsigned symbol = 0; symbol < num_symbols; symbol++) {
        counts[lengths[symbol]]++;
    }
    counts[0] = 0;
    problem   = check_lengths(counts);
    if (problem != NULL) {
        return problem;
    }
    for (unsigned bits = 1; bits <= LS_HUFFMAN_MAX_BITS; bits++) {
        next_code[bits + 1] = (next_code[bits] + counts[bits]) << 1;
    }
    for (unsigned symbol = 0; symbol < num_symbols; symbol++) {
        if (lengths[symbol] != 0) {
            codes[symbol] = (uint16_t)reversed(next_code[lengths[symbol]]++, lengths[symbol]);
        }
    }
    find_second_bits(lengths, codes, num_symbols, first_bits, second_bits);
    for (unsigned i = 0; i < 1u << first_bits; i++) {
        table[i] = LS_HUFFMAN_INVALID;
        if (second_bits[i] > 0) {
            if (used + (1u << second_bits[i]) > room) {
                return "a Huffman code has too many long codes";
            }
            table[i] = LS_HUFFMAN_SECOND | entry(used, second_bits[i]) | first_bits;
            used += 1u << second_bits[i];
        }
    }
    for (unsigned i = 1u << first_bits; i < used; i++) {
        table[i] = LS_HUFFMAN_INVALID;
    }
    for (unsigned symbol = 0; symbol < num_symbols; symbol++) {
        const unsigned bits = lengths[symbol];
        uint32_t       value;

        if (bits == 0) {
            continue;
        }
        meaning(symbol, &value);
        if (bits <= first_bits) {
            spread(table, first_bits, codes[symbol], bits, value | bits);
        } else {
            const uint32_t second = table[codes[symbol] & ((1u << first_bits) - 1)];

            spread(table + LS_HUFFMAN_VALUE(second), LS_HUFFMAN_EXTRA(second), (uint32_t)codes[symbol] >> first_bits,
                   bits - first_bits, value | (bits - first_bits));
        }
    }
    return NULL;
}

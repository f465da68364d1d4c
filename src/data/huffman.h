/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables that decode the Huffman codes of the deflate format: looked up with the next bits of the input;
 * codes longer than the first table lead to a second one.
 *
 * An entry:   bit 31 literal | bits 16-30 value | bits 13-15 kind | bits 8-12 extra bits | bits 0-7 bits of
 * the code
 */
#ifndef LS_DATA_HUFFMAN_H
#define LS_DATA_HUFFMAN_H

#include <stdint.h>

#define LS_HUFFMAN_MAX_SYMBOLS 288
#define LS_HUFFMAN_MAX_BITS    15

/* First tables, and room for the second ones: at most half the symbols lead to one, since it holds at least
 * two. */
#define LS_HUFFMAN_LITERAL_BITS  11
#define LS_HUFFMAN_LITERAL_ROOM  (2048 + 144 * 16)
#define LS_HUFFMAN_DISTANCE_BITS 8
#define LS_HUFFMAN_DISTANCE_ROOM (256 + 16 * 128)
#define LS_HUFFMAN_LENGTHS_BITS  7
#define LS_HUFFMAN_LENGTHS_ROOM  128

#define LS_HUFFMAN_LITERAL 0x80000000u
#define LS_HUFFMAN_KIND    0x0000e000u /* 0: a base value with extra bits */
#define LS_HUFFMAN_INVALID 0x00002000u
#define LS_HUFFMAN_END     0x00004000u
#define LS_HUFFMAN_SECOND  0x00008000u /* value: where the second table begins; extra bits: its bits */

#define LS_HUFFMAN_BITS(_entry)  ((_entry)&255)
#define LS_HUFFMAN_EXTRA(_entry) (((_entry) >> 8) & 31)
#define LS_HUFFMAN_VALUE(_entry) (((_entry) >> 16) & 0x7fff)

/* What symbols mean: entries without the bits of the code. */
typedef void (*ls_huffman_meaning_fn)(unsigned symbol, uint32_t *entry_p);

void ls_huffman_literal(unsigned symbol, uint32_t *entry_p); /* literals, lengths, end */
void ls_huffman_distance(unsigned symbol, uint32_t *entry_p);
void ls_huffman_plain(unsigned symbol, uint32_t *entry_p); /* the symbol itself */

/* lengths[symbol] bits per code, 0: not used.  NULL, or why these are no code. */
const char *ls_huffman_build(const unsigned char *lengths, unsigned num_symbols,
                             ls_huffman_meaning_fn meaning, unsigned first_bits, uint32_t *table,
                             unsigned room);

#endif

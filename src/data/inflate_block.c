/* SPDX-License-Identifier: Apache-2.0 */
/* The blocks of the deflate format: headers (RFC 1951, 3.2.4 to 3.2.7) and contents. */
#include <string.h>

#include "data/inflate_int.h"

#define SYMBOL_BYTES 32 /* more than a symbol takes, and what is read at a time behind it */

static ls_status_t bad(const struct ls_inflate *inflate, const char *reason)
{
    return ls_file_error(inflate->file->path, "", LS_FILE_NOWHERE, ls_inflate_next_bit(inflate) / 8, "%s",
                         reason);
}

static ls_status_t cut_short(const struct ls_inflate *inflate)
{
    return ls_file_error(inflate->file->path, "", LS_FILE_NOWHERE, inflate->end,
                         "the file ends in the middle of compressed data");
}

static bool is_too_far(const struct ls_inflate *inflate)
{
    return ls_inflate_next_bit(inflate) > inflate->end * 8;
}

static void refill(struct ls_inflate *inflate)
{
    uint64_t word;

    memcpy(&word, inflate->in, 8);
    inflate->bits |= word << inflate->num_bits;
    inflate->in += (63 - inflate->num_bits) >> 3;
    inflate->num_bits |= 56;
}

unsigned ls_inflate_block_take(struct ls_inflate *inflate, unsigned count)
{
    refill(inflate);

    const unsigned value = (unsigned)(inflate->bits & ((1u << count) - 1));

    inflate->bits >>= count;
    inflate->num_bits -= count;
    return value;
}

/* ---- headers of blocks
 * ------------------------------------------------------------------------------------------ */

static ls_status_t build(struct ls_inflate *inflate, const unsigned char *lengths, unsigned num_literals,
                         unsigned num_distances)
{
    const char *problem = ls_huffman_build(lengths, num_literals, ls_huffman_literal, LS_HUFFMAN_LITERAL_BITS,
                                           inflate->literals, LS_HUFFMAN_LITERAL_ROOM);

    if (problem == NULL) {
        problem = ls_huffman_build(lengths + num_literals, num_distances, ls_huffman_distance,
                                   LS_HUFFMAN_DISTANCE_BITS, inflate->distances, LS_HUFFMAN_DISTANCE_ROOM);
    }
    return problem == NULL ? LS_OK : bad(inflate, problem);
}

static ls_status_t fixed_header(struct ls_inflate *inflate)
{
    unsigned char lengths[LS_HUFFMAN_MAX_SYMBOLS + 32];

    memset(lengths, 8, 144);
    memset(lengths + 144, 9, 256 - 144);
    memset(lengths + 256, 7, 280 - 256);
    memset(lengths + 280, 8, 288 - 280);
    memset(lengths + 288, 5, 32);
    return build(inflate, lengths, 288, 32);
}

/* The lengths of both codes, themselves coded with the table `codes`. */
static ls_status_t read_lengths(struct ls_inflate *inflate, const uint32_t *codes, unsigned count,
                                unsigned char *lengths)
{
    unsigned have = 0;

    while (have < count) {
        refill(inflate);

        const uint32_t entry  = codes[inflate->bits & ((1u << LS_HUFFMAN_LENGTHS_BITS) - 1)];
        const unsigned symbol = LS_HUFFMAN_VALUE(entry);
        unsigned       repeat = 1, value = symbol;

        if (entry & LS_HUFFMAN_KIND) {
            return bad(inflate, "the code of the code lengths is not one of the block's");
        }
        inflate->bits >>= LS_HUFFMAN_BITS(entry);
        inflate->num_bits -= LS_HUFFMAN_BITS(entry);
        if (symbol == 16) {
            if (have == 0) {
                return bad(inflate, "the first code length repeats the one before");
            }
            value  = lengths[have - 1];
            repeat = 3 + ls_inflate_block_take(inflate, 2);
        } else if (symbol >= 17) {
            value = 0;
            repeat =
                symbol == 17 ? 3 + ls_inflate_block_take(inflate, 3) : 11 + ls_inflate_block_take(inflate, 7);
        }
        if (have + repeat > count) {
            return bad(inflate, "there are too many code lengths");
        }
        memset(lengths + have, (int)value, repeat);
        have += repeat;
    }
    return LS_OK;
}

static ls_status_t dynamic_header(struct ls_inflate *inflate)
{
    static const unsigned char order[19] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
    const unsigned             num_literals                         = ls_inflate_block_take(inflate, 5) + 257;
    const unsigned             num_distances                        = ls_inflate_block_take(inflate, 5) + 1;
    const unsigned             num_lengths                          = ls_inflate_block_take(inflate, 4) + 4;
    unsigned char              lengths[LS_HUFFMAN_MAX_SYMBOLS + 32] = {0};
    uint32_t                   codes[LS_HUFFMAN_LENGTHS_ROOM];
    const char                *problem;
    ls_status_t                status;

    if (num_literals > 286 || num_distances > 30) {
        return bad(inflate, "there are too many codes for lengths or distances");
    }
    for (unsigned i = 0; i < num_lengths; i++) {
        lengths[order[i]] = (unsigned char)ls_inflate_block_take(inflate, 3);
    }
    problem = ls_huffman_build(lengths, 19, ls_huffman_plain, LS_HUFFMAN_LENGTHS_BITS, codes,
                               LS_HUFFMAN_LENGTHS_ROOM);
    if (problem != NULL) {
        return bad(inflate, problem);
    }
    status = read_lengths(inflate, codes, num_literals + num_distances, lengths);
    if (status != LS_OK) {
        return status;
    }
    return lengths[256] == 0 ? bad(inflate, "a block has no code for its end")
                             : build(inflate, lengths, num_literals, num_distances);
}

static ls_status_t stored_header(struct ls_inflate *inflate)
{
    unsigned length, complement;

    ls_inflate_block_take(inflate, inflate->num_bits & 7);
    length     = ls_inflate_block_take(inflate, 16);
    complement = ls_inflate_block_take(inflate, 16);
    if (length != (~complement & 0xffff)) {
        return bad(inflate, "the length of a stored block and its complement do not match");
    }
    /* The bytes follow where the bits end. */
    inflate->in -= inflate->num_bits / 8;
    inflate->bits         = 0;
    inflate->num_bits     = 0;
    inflate->place.stored = length;
    return LS_OK;
}

ls_status_t ls_inflate_block_header(struct ls_inflate *inflate)
{
    ls_status_t status = ls_inflate_fill(inflate, LS_INFLATE_HEADER);
    unsigned    kind;

    if (status != LS_OK) {
        return status;
    }
    inflate->place.block_bit = ls_inflate_next_bit(inflate);
    inflate->place.is_last   = ls_inflate_block_take(inflate, 1) != 0;
    kind                     = ls_inflate_block_take(inflate, 2);
    inflate->place.mode      = kind == 0 ? LS_INFLATE_AT_STORED : LS_INFLATE_AT_CODES;
    status                   = kind == 0   ? stored_header(inflate)
                               : kind == 1 ? fixed_header(inflate)
                               : kind == 2 ? dynamic_header(inflate)
                                           : bad(inflate, "a block has the kind 3, which does not exist");
    return is_too_far(inflate) ? cut_short(inflate) : status;
}

/* ---- contents of blocks
 * ----------------------------------------------------------------------------------------- */

ls_status_t ls_inflate_block_stored(struct ls_inflate *inflate)
{
    unsigned char *const limit = inflate->window + LS_INFLATE_HISTORY + LS_INFLATE_PIECE;

    while (inflate->place.stored > 0 && inflate->out < limit) {
        const ls_status_t status = ls_inflate_fill(inflate, 1);

        if (status != LS_OK) {
            return status;
        }
        if (inflate->in >= inflate->in_end) {
            return cut_short(inflate);
        }
        size_t count = (size_t)(inflate->in_end - inflate->in);

        count = count < inflate->place.stored ? count : inflate->place.stored;
        count = count < (size_t)(limit - inflate->out) ? count : (size_t)(limit - inflate->out);
        memcpy(inflate->out, inflate->in, count);
        inflate->in += count;
        inflate->out += count;
        inflate->place.stored -= (uint32_t)count;
    }
    if (inflate->place.stored == 0) {
        inflate->place.mode = inflate->place.is_last ? LS_INFLATE_AT_END : LS_INFLATE_AT_HEADER;
    }
    return LS_OK;
}

/* May write up to 16 bytes behind the match. */
static inline unsigned char *copy_match(unsigned char *out, size_t distance, unsigned length)
{
    unsigned char *const end  = out + length;
    const unsigned char *from = out - distance;

    if (distance >= 8) {
        do {
            memcpy(out, from, 8);
            memcpy(out + 8, from + 8, 8);
            out += 16;
            from += 16;
        } while (out < end && distance >= 16);
        for (; out < end; out += 8, from += 8) {
            memcpy(out, from, 8);
        }
    } else if (distance == 1) {
        memset(out, *from, length);
    } else {
        while (out < end) {
            *out++ = *from++;
        }
    }
    return end;
}

#define CONSUME(_bits, _num_bits, _count) \
    do {                                  \
        (_bits) >>= (_count);             \
        (_num_bits) -= (_count);          \
    } while (0)

#define REFILL(_in, _bits, _num_bits)          \
    do {                                       \
        uint64_t refill_word;                  \
        memcpy(&refill_word, (_in), 8);        \
        (_bits) |= refill_word << (_num_bits); \
        (_in) += (63 - (_num_bits)) >> 3;      \
        (_num_bits) |= 56;                     \
    } while (0)

/* Symbols until the piece is full, the input nearly empty or the block over.  NULL, or what is wrong. */
static const char *symbols(struct ls_inflate *inflate, const unsigned char *in_limit, bool *is_over_p)
{
    const uint32_t *const literals = inflate->literals, *const distances = inflate->distances;
    unsigned char *const limit    = inflate->window + LS_INFLATE_HISTORY + LS_INFLATE_PIECE;
    const unsigned char *oldest   = inflate->window + LS_INFLATE_HISTORY - inflate->history;
    const unsigned char *in       = inflate->in;
    unsigned char       *out      = inflate->out;
    uint64_t             bits     = inflate->bits;
    unsigned             num_bits = inflate->num_bits;
    const char          *problem  = NULL;

    while (out < limit && in < in_limit) {
        REFILL(in, bits, num_bits);
        uint32_t entry = literals[bits & ((1u << LS_HUFFMAN_LITERAL_BITS) - 1)];

        /* Literals come in runs. */
        if (entry & LS_HUFFMAN_LITERAL) {
            CONSUME(bits, num_bits, LS_HUFFMAN_BITS(entry));
            *out++ = (unsigned char)LS_HUFFMAN_VALUE(entry);
            entry  = literals[bits & ((1u << LS_HUFFMAN_LITERAL_BITS) - 1)];
            if (entry & LS_HUFFMAN_LITERAL) {
                CONSUME(bits, num_bits, LS_HUFFMAN_BITS(entry));
                *out++ = (unsigned char)LS_HUFFMAN_VALUE(entry);
                entry  = literals[bits & ((1u << LS_HUFFMAN_LITERAL_BITS) - 1)];
                if (entry & LS_HUFFMAN_LITERAL) {
                    CONSUME(bits, num_bits, LS_HUFFMAN_BITS(entry));
                    *out++ = (unsigned char)LS_HUFFMAN_VALUE(entry);
                    continue;
                }
            }
            REFILL(in, bits, num_bits);
        }
        if (entry & LS_HUFFMAN_SECOND) {
            CONSUME(bits, num_bits, LS_HUFFMAN_LITERAL_BITS);
            entry = literals[LS_HUFFMAN_VALUE(entry) + (bits & ((1u << LS_HUFFMAN_EXTRA(entry)) - 1))];
            if (entry & LS_HUFFMAN_LITERAL) {
                CONSUME(bits, num_bits, LS_HUFFMAN_BITS(entry));
                *out++ = (unsigned char)LS_HUFFMAN_VALUE(entry);
                continue;
            }
        }
        CONSUME(bits, num_bits, LS_HUFFMAN_BITS(entry));
        if (entry & LS_HUFFMAN_KIND) {
            *is_over_p = (entry & LS_HUFFMAN_END) != 0;
            problem    = *is_over_p ? NULL : "this is no code of a literal or length";
            break;
        }
        const unsigned length =
            LS_HUFFMAN_VALUE(entry) + (unsigned)(bits & ((1u << LS_HUFFMAN_EXTRA(entry)) - 1));

        CONSUME(bits, num_bits, LS_HUFFMAN_EXTRA(entry));
        entry = distances[bits & ((1u << LS_HUFFMAN_DISTANCE_BITS) - 1)];
        if (entry & LS_HUFFMAN_SECOND) {
            CONSUME(bits, num_bits, LS_HUFFMAN_DISTANCE_BITS);
            entry = distances[LS_HUFFMAN_VALUE(entry) + (bits & ((1u << LS_HUFFMAN_EXTRA(entry)) - 1))];
        }
        CONSUME(bits, num_bits, LS_HUFFMAN_BITS(entry));
        if (entry & LS_HUFFMAN_KIND) {
            problem = "this is no code of a distance";
            break;
        }
        const size_t distance =
            LS_HUFFMAN_VALUE(entry) + (size_t)(bits & ((1u << LS_HUFFMAN_EXTRA(entry)) - 1));

        CONSUME(bits, num_bits, LS_HUFFMAN_EXTRA(entry));
        if (distance > (size_t)(out - oldest)) {
            problem = "a match reaches back before the beginning of the data";
            break;
        }
        out = copy_match(out, distance, length);
    }
    inflate->in       = inflate->input + (in - inflate->input);
    inflate->out      = out;
    inflate->bits     = bits;
    inflate->num_bits = num_bits;
    return problem;
}

ls_status_t ls_inflate_block_coded(struct ls_inflate *inflate)
{
    unsigned char *const limit   = inflate->window + LS_INFLATE_HISTORY + LS_INFLATE_PIECE;
    bool                 is_over = false;

    while (inflate->out < limit && !is_over) {
        const ls_status_t status = ls_inflate_fill(inflate, LS_INFLATE_HEADER);

        if (status != LS_OK) {
            return status;
        }
        /* At the end of the data the zeros behind it may be decoded, and are then found out. */
        const bool           is_end   = inflate->next_offset == inflate->end;
        const unsigned char *in_limit = inflate->in_end + (is_end ? SYMBOL_BYTES : -SYMBOL_BYTES);
        const char          *problem  = symbols(inflate, in_limit, &is_over);

        if (is_too_far(inflate)) {
            return cut_short(inflate);
        }
        if (problem != NULL) {
            return bad(inflate, problem);
        }
    }
    if (is_over) {
        inflate->place.mode = inflate->place.is_last ? LS_INFLATE_AT_END : LS_INFLATE_AT_HEADER;
    }
    return LS_OK;
}

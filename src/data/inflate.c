/* SPDX-License-Identifier: Apache-2.0 */
#include "data/inflate.h"

#include <string.h>

#include "base/mem.h"
#include "data/inflate_int.h"

struct ls_inflate_mark {
    ls_inflate_place_t place;
    size_t             history;
    unsigned char      window[];
};

static uint64_t input_offset(const struct ls_inflate *inflate)
{
    return inflate->next_offset - (uint64_t)(inflate->in_end - inflate->in);
}

uint64_t ls_inflate_next_bit(const struct ls_inflate *inflate)
{
    return input_offset(inflate) * 8 - inflate->num_bits;
}

ls_status_t ls_inflate_fill(struct ls_inflate *inflate, size_t needed)
{
    const size_t rest = inflate->in_end > inflate->in ? (size_t)(inflate->in_end - inflate->in) : 0;
    ls_status_t  status;

    if (rest >= needed || inflate->next_offset == inflate->end) {
        return LS_OK;
    }
    memmove(inflate->input, inflate->in - LS_INFLATE_KEPT, LS_INFLATE_KEPT + rest);
    inflate->in = inflate->input + LS_INFLATE_KEPT;

    const uint64_t left = inflate->end - inflate->next_offset;
    const size_t   more = left < LS_INFLATE_INPUT - rest ? (size_t)left : LS_INFLATE_INPUT - rest;

    inflate->in_end = inflate->in + rest;
    status          = ls_file_read(inflate->file, inflate->next_offset, more, inflate->in_end);
    if (status != LS_OK) {
        return status;
    }
    inflate->next_offset += more;
    inflate->in_end += more;
    memset(inflate->in_end, 0, LS_INFLATE_ZEROS);
    return LS_OK;
}

static void go_to_bit(struct ls_inflate *inflate, uint64_t bit)
{
    inflate->next_offset = bit / 8;
    inflate->in = inflate->in_end = inflate->input + LS_INFLATE_KEPT;
    inflate->bits                 = 0;
    inflate->num_bits             = 0;
    memset(inflate->in_end, 0, LS_INFLATE_ZEROS);
}

ls_status_t ls_inflate_create(const ls_file_t *file, uint64_t offset, uint64_t end, ls_inflate_h *inflate_p)
{
    struct ls_inflate *inflate = NULL;
    const ls_status_t  status  = ls_mem_alloc(sizeof(*inflate), "inflate", (void **)&inflate);

    if (status == LS_OK) {
        inflate->file = file;
        inflate->end  = end;
        ls_inflate_restart(inflate, offset);
        *inflate_p = inflate;
    }
    return status;
}

void ls_inflate_destroy(ls_inflate_h inflate)
{
    ls_mem_free(inflate);
}

void ls_inflate_restart(ls_inflate_h inflate, uint64_t offset)
{
    go_to_bit(inflate, offset * 8);
    inflate->place   = (ls_inflate_place_t){.mode = LS_INFLATE_AT_HEADER, .bit = offset * 8};
    inflate->out     = inflate->window + LS_INFLATE_HISTORY;
    inflate->history = 0;
}

/* The end of the last piece becomes the history of the next. */
static void slide(struct ls_inflate *inflate)
{
    const size_t have = inflate->history + (size_t)(inflate->out - (inflate->window + LS_INFLATE_HISTORY));
    const size_t keep = have < LS_INFLATE_HISTORY ? have : LS_INFLATE_HISTORY;

    memmove(inflate->window + LS_INFLATE_HISTORY - keep, inflate->out - keep, keep);
    inflate->out     = inflate->window + LS_INFLATE_HISTORY;
    inflate->history = keep;
}

ls_status_t ls_inflate_more(ls_inflate_h inflate, const unsigned char **bytes_p, size_t *count_p)
{
    unsigned char *const limit  = inflate->window + LS_INFLATE_HISTORY + LS_INFLATE_PIECE;
    ls_status_t          status = LS_OK;

    slide(inflate);
    while (status == LS_OK && inflate->out < limit && inflate->place.mode != LS_INFLATE_AT_END) {
        status = inflate->place.mode == LS_INFLATE_AT_HEADER   ? ls_inflate_block_header(inflate)
                 : inflate->place.mode == LS_INFLATE_AT_STORED ? ls_inflate_block_stored(inflate)
                                                               : ls_inflate_block_coded(inflate);
    }
    if (status != LS_OK) {
        return status;
    }
    inflate->place.bit = ls_inflate_next_bit(inflate);
    *bytes_p           = inflate->window + LS_INFLATE_HISTORY;
    *count_p           = (size_t)(inflate->out - *bytes_p);
    return LS_OK;
}

uint64_t ls_inflate_end(ls_inflate_h inflate)
{
    return (ls_inflate_next_bit(inflate) + 7) / 8;
}

ls_status_t ls_inflate_mark(ls_inflate_h inflate, ls_inflate_mark_h *mark_p)
{
    struct ls_inflate_mark *mark = NULL;
    ls_status_t             status;

    slide(inflate);
    status = ls_mem_alloc(sizeof(*mark) + inflate->history, "place in compressed data", (void **)&mark);
    if (status == LS_OK) {
        mark->place   = inflate->place;
        mark->history = inflate->history;
        memcpy(mark->window, inflate->window + LS_INFLATE_HISTORY - inflate->history, inflate->history);
        *mark_p = mark;
    }
    return status;
}

ls_status_t ls_inflate_go_back(ls_inflate_h inflate, ls_inflate_mark_h mark)
{
    ls_status_t status = LS_OK;

    go_to_bit(inflate, mark->place.block_bit);
    status = ls_inflate_fill(inflate, LS_INFLATE_HEADER);
    if (status == LS_OK && mark->place.mode == LS_INFLATE_AT_CODES) {
        ls_inflate_block_take(inflate, (unsigned)(mark->place.block_bit & 7));
        status = ls_inflate_block_header(inflate); /* for its tables */
    }
    if (status != LS_OK) {
        return status;
    }
    go_to_bit(inflate, mark->place.bit);
    status = ls_inflate_fill(inflate, LS_INFLATE_HEADER);
    if (status != LS_OK) {
        return status;
    }
    ls_inflate_block_take(inflate, (unsigned)(mark->place.bit & 7));
    if (mark->place.mode == LS_INFLATE_AT_STORED) { /* its bytes are read without `bits` */
        inflate->in -= inflate->num_bits / 8;
        inflate->bits     = 0;
        inflate->num_bits = 0;
    }
    inflate->place   = mark->place;
    inflate->history = mark->history;
    inflate->out     = inflate->window + LS_INFLATE_HISTORY;
    memcpy(inflate->window + LS_INFLATE_HISTORY - mark->history, mark->window, mark->history);
    return LS_OK;
}

void ls_inflate_forget(ls_inflate_mark_h mark)
{
    ls_mem_free(mark);
}

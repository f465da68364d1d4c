/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inflates the deflate format (RFC 1951) piece by piece from a file, and can remember places to go on from
 * later.
 *
 * Our own, because readers must begin in the middle of a compressed file (each rank its part, shuffled rows)
 * with bounded memory, and be there wherever Lockstep is installed.
 */
#ifndef LS_DATA_INFLATE_H
#define LS_DATA_INFLATE_H

#include "data/file.h"

typedef struct ls_inflate      *ls_inflate_h;
typedef struct ls_inflate_mark *ls_inflate_mark_h;

/* Deflated data in bytes [offset, end) of the file, which must stay open.  Nothing is read yet. */
ls_status_t ls_inflate_create(const ls_file_t *file, uint64_t offset, uint64_t end, ls_inflate_h *inflate_p);
void        ls_inflate_destroy(ls_inflate_h inflate);

/* The next piece, valid until the next call; *count_p is 0 at the end of the deflated data. */
ls_status_t ls_inflate_more(ls_inflate_h inflate, const unsigned char **bytes_p, size_t *count_p);

/* Where in the file the deflated data ended (its last byte is before); after *count_p was 0. */
uint64_t ls_inflate_end(ls_inflate_h inflate);

/* Begins anew at another place of the same file. */
void ls_inflate_restart(ls_inflate_h inflate, uint64_t offset);

/* The place before the next piece; ls_inflate_go_back() may be called any number of times. */
ls_status_t ls_inflate_mark(ls_inflate_h inflate, ls_inflate_mark_h *mark_p);
ls_status_t ls_inflate_go_back(ls_inflate_h inflate, ls_inflate_mark_h mark);
void        ls_inflate_forget(ls_inflate_mark_h mark);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Letters: messages that have come and that nobody has asked for yet.
 * A table by sender and key; of two letters with the same key the older is found first.
 */
#ifndef LS_TRANSPORT_LETTER_H
#define LS_TRANSPORT_LETTER_H

#include <stdbool.h>

#include "transport/transport.h"

typedef struct ls_letter {
    ls_key_t         key;
    uint32_t         from;
    uint32_t         contributors;
    void            *data;
    size_t           bytes;
    ls_stage_head_t *head; /* counted down when it has been read; NULL: the place is empty */
    uint32_t         segment; /* of the sender's memory; LS_MAILBOX_OWN_SEGMENT: an answer */
    uint64_t         offset;
} ls_letter_t;

typedef struct ls_letter_table {
    ls_letter_t *letters;
    size_t       room; /* a power of two, or 0 */
    size_t       count;
} ls_letter_table_t; /* zero-initialised: empty */

/* Make sure that the next put has room. */
ls_status_t ls_letter_reserve(ls_letter_table_t *table);
void        ls_letter_put(ls_letter_table_t *table, const ls_letter_t *letter);

/* Take it out; false if it is not there. */
bool ls_letter_take(ls_letter_table_t *table, uint32_t from, ls_key_t key, ls_letter_t *letter_p);
void ls_letter_destroy(ls_letter_table_t *table);

#endif

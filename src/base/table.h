/* SPDX-License-Identifier: Apache-2.0 */
/* From name to pointer: an open-addressing hash table that copies its keys. */
#ifndef LS_BASE_TABLE_H
#define LS_BASE_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "lockstep.h"

typedef struct ls_table_entry {
    char    *name; /* NULL: free */
    uint64_t hash;
    void    *value;
} ls_table_entry_t;

typedef struct ls_table {
    ls_table_entry_t *entries;
    size_t            room; /* power of two, or 0 */
    size_t            count;
} ls_table_t; /* zero-initialised: empty */

void       *ls_table_get(const ls_table_t *table, const char *name); /* NULL: absent */
ls_status_t ls_table_put(ls_table_t *table, const char *name, void *value);
void       *ls_table_remove(ls_table_t *table, const char *name); /* the value, or NULL */
void        ls_table_destroy(ls_table_t *table);                  /* the values are the caller's */

/* Visit all: start with *cursor = 0; NULL at the end.  No put or remove in between. */
ls_table_entry_t *ls_table_next(const ls_table_t *table, size_t *cursor);

#endif

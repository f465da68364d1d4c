/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/letter.h"

#include "base/mem.h"

#define FIRST_ROOM 256

/* Keys differ in few bits at known places; a multiplication spreads them into the upper half. */
static size_t home_of(const ls_letter_table_t *table, uint32_t from, ls_key_t key)
{
    const uint64_t mixed = (key ^ ((uint64_t)from << 32)) * 0x9E3779B97F4A7C15ULL;

    return (size_t)(mixed >> 32) & (table->room - 1);
}

void ls_letter_put(ls_letter_table_t *table, const ls_letter_t *letter)
{
    size_t at = home_of(table, letter->from, letter->key);

    while (table->letters[at].head != NULL) {
        at = (at + 1) & (table->room - 1);
    }
    table->letters[at] = *letter;
    table->count++;
}

ls_status_t ls_letter_reserve(ls_letter_table_t *table)
{
    ls_letter_table_t larger = {.room = (table->room == 0) ? FIRST_ROOM : 2 * table->room};
    ls_status_t       status;
    void             *mem;
    size_t            gap = 0;

    if (2 * (table->count + 1) <= table->room) {
        return LS_OK;
    }
    status = ls_mem_alloc(larger.room * sizeof(*larger.letters), "letters", &mem);
    if (status != LS_OK) {
        return status;
    }
    larger.letters = mem;
    /* Starting behind a gap, letters with the same key come out in the order in which they were put. */
    while (table->count > 0 && table->letters[gap].head != NULL) {
        gap++;
    }
    for (size_t i = 0; i < table->room; i++) {
        const ls_letter_t *letter = &table->letters[(gap + i) & (table->room - 1)];

        if (letter->head != NULL) {
            ls_letter_put(&larger, letter);
        }
    }
    ls_mem_free(table->letters);
    *table = larger;
    return LS_OK;
}

/* Letters behind the hole move up, so that no search stops early. */
static void close_hole(ls_letter_table_t *table, size_t hole)
{
    const size_t mask = table->room - 1;

    for (size_t at = (hole + 1) & mask; table->letters[at].head != NULL; at = (at + 1) & mask) {
        const size_t home = home_of(table, table->letters[at].from, table->letters[at].key);

        if (((at - home) & mask) >= ((at - hole) & mask)) {
            table->letters[hole] = table->letters[at];
            hole                 = at;
        }
    }
    table->letters[hole].head = NULL;
}

bool ls_letter_take(ls_letter_table_t *table, uint32_t from, ls_key_t key, ls_letter_t *letter_p)
{
    size_t at;

    if (table->count == 0) {
        return false;
    }
    at = home_of(table, from, key);
    while (table->letters[at].head != NULL) {
        if (table->letters[at].key == key && table->letters[at].from == from) {
            *letter_p = table->letters[at];
            close_hole(table, at);
            table->count--;
            return true;
        }
        at = (at + 1) & (table->room - 1);
    }
    return false;
}

void ls_letter_destroy(ls_letter_table_t *table)
{
    ls_mem_free(table->letters);
    *table = (ls_letter_table_t){0};
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "base/table.h"

#include <string.h>

#include "base/mem.h"

#define FIRST_ROOM 64

/* FNV-1a: short names, and no need to withstand an attacker (ranks of one job trust each other). */
static uint64_t hash_name(const char *name)
{
    uint64_t hash = 0xcbf29ce484222325ULL;

    for (; *name != '\0'; name++) {
        hash = (hash ^ (uint8_t)*name) * 0x100000001b3ULL;
    }
    return hash;
}

static size_t find(const ls_table_t *table, const char *name, uint64_t hash)
{
    size_t at = hash & (table->room - 1);

    while (table->entries[at].name != NULL &&
           (table->entries[at].hash != hash || strcmp(table->entries[at].name, name) != 0)) {
        at = (at + 1) & (table->room - 1);
    }
    return at;
}

void *ls_table_get(const ls_table_t *table, const char *name)
{
    return (table->room == 0) ? NULL : table->entries[find(table, name, hash_name(name))].value;
}

static ls_status_t grow(ls_table_t *table)
{
    ls_table_t        larger = {.room = (table->room == 0) ? FIRST_ROOM : 2 * table->room, .count = table->count};
    void             *mem;
    const ls_status_t status = ls_mem_alloc(larger.room * sizeof(*larger.entries), "table", &mem);

    if (status != LS_OK) {
        return status;
    }
    larger.entries = mem;
    for (size_t i = 0; i < table->room; i++) {
        if (table->entries[i].name != NULL) {
            larger.entries[find(&larger, table->entries[i].name, table->entries[i].hash)] = table->entries[i];
        }
    }
    ls_mem_free(table->entries);
    *table = larger;
    return LS_OK;
}

ls_status_t ls_table_put(ls_table_t *table, const char *name, void *value)
{
    const uint64_t hash = hash_name(name);
    ls_status_t    status;
    size_t         at;
    char          *copy;

    if (2 * (table->count + 1) > table->room && (status = grow(table)) != LS_OK) {
        return status;
    }
    at = find(table, name, hash);
    if (table->entries[at].name == NULL) {
        status = ls_mem_strdup(name, "table name", &copy);
        if (status != LS_OK) {
            return status;
        }
        table->entries[at].name = copy;
        table->entries[at].hash = hash;
        table->count++;
    }
    table->entries[at].value = value;
    return LS_OK;
}

/* Backward shift: entries behind the hole move up, so that no search stops early. */
static void close_hole(ls_table_t *table, size_t hole)
{
    const size_t mask = table->room - 1;
    size_t       at   = hole;

    for (;;) {
        size_t home;

        at = (at + 1) & mask;
        if (table->entries[at].name == NULL) {
            break;
        }
        home = table->entries[at].hash & mask;
        if (((at - home) & mask) >= ((at - hole) & mask)) {
            table->entries[hole] = table->entries[at];
            hole                 = at;
        }
    }
    table->entries[hole] = (ls_table_entry_t){0};
}

void *ls_table_remove(ls_table_t *table, const char *name)
{
    size_t at;
    void  *value;

    if (table->room == 0) {
        return NULL;
    }
    at = find(table, name, hash_name(name));
    if (table->entries[at].name == NULL) {
        return NULL;
    }
    value = table->entries[at].value;
    ls_mem_free(table->entries[at].name);
    table->count--;
    close_hole(table, at);
    return value;
}

void ls_table_destroy(ls_table_t *table)
{
    for (size_t i = 0; i < table->room; i++) {
        ls_mem_free(table->entries[i].name);
    }
    ls_mem_free(table->entries);
    *table = (ls_table_t){0};
}

ls_table_entry_t *ls_table_next(const ls_table_t *table, size_t *cursor)
{
    while (*cursor < table->room) {
        ls_table_entry_t *entry = &table->entries[(*cursor)++];

        if (entry->name != NULL) {
            return entry;
        }
    }
    return NULL;
}

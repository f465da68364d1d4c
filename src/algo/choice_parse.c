/* SPDX-License-Identifier: Apache-2.0 */
/* Reading LOCKSTEP_ALGO: rows "collective:from-to:algorithm[:chunk]", separated by commas. */
#include <stdio.h>
#include <string.h>

#include "algo/choice.h"
#include "base/config.h"
#include "base/error.h"
#include "base/mem.h"

#define ROW_ROOM  LS_CONFIG_TEXT_ROOM
#define LIST_ROOM 256

/* Smaller ones could number more chunks than a message's key can tell apart. */
#define MIN_CHUNK (1 * LS_KIB)
#define MAX_CHUNK (1024 * LS_MIB)

size_t ls_choice_parse_count(const char *override)
{
    size_t count = override[0] != '\0';

    for (; *override != '\0'; override++) {
        count += (*override == ',');
    }
    return count;
}

static ls_status_t parse_coll(const char *row, const char *name, ls_coll_t *coll_p)
{
    char   list[LIST_ROOM] = "";
    size_t used            = 0;

    for (unsigned coll = 0; coll < LS_COLL_COUNT; coll++) {
        const char *known = ls_algo_coll_name((ls_coll_t)coll);

        if (strcmp(name, known) == 0) {
            *coll_p = (ls_coll_t)coll;
            return LS_OK;
        }
        used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s", used > 0 ? ", " : "", known);
    }
    return ls_error_set(LS_ERR_CONFIG, "LOCKSTEP_ALGO row '%s': unknown collective '%s'; known are %s", row,
                        name, list);
}

static ls_status_t parse_algo(const char *row, const char *name, ls_choice_t *choice)
{
    char   list[LIST_ROOM] = "";
    size_t used            = 0;

    choice->algo = ls_algo_find(choice->coll, name);
    if (choice->algo != NULL) {
        return LS_OK;
    }
    for (const ls_algo_t *const *algo = ls_algo_list; *algo != NULL; algo++) {
        if ((*algo)->coll == choice->coll) {
            used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s", used > 0 ? ", " : "",
                                     (*algo)->name);
        }
    }
    return ls_error_set(LS_ERR_CONFIG, "LOCKSTEP_ALGO row '%s': unknown algorithm '%s'; %s has %s", row, name,
                        ls_algo_coll_name(choice->coll), list);
}

/* `range` is cut at the '-'. */
static ls_status_t parse_range(const char *row, char *range, ls_choice_t *choice)
{
    char  *to = range;
    size_t min, max;

    strsep(&to, "-");
    if (to == NULL || !ls_config_parse_size(range, &min) || !ls_config_parse_size(to, &max) || min >= max) {
        return ls_error_set(LS_ERR_CONFIG,
                            "LOCKSTEP_ALGO row '%s': a range is two sizes, the smaller first, as 64k-inf",
                            row);
    }
    choice->min_bytes = min;
    choice->max_bytes = max == SIZE_MAX ? LS_CHOICE_NO_LIMIT : max;
    return LS_OK;
}

static ls_status_t parse_chunk(const char *row, const char *chunk, ls_choice_t *choice)
{
    size_t bytes;

    if (chunk == NULL) {
        choice->chunk_bytes = ls_choice_default_chunk(choice->algo);
        return LS_OK;
    }
    if (!ls_config_parse_size(chunk, &bytes) || bytes < MIN_CHUNK || bytes > MAX_CHUNK) {
        return ls_error_set(LS_ERR_CONFIG, "LOCKSTEP_ALGO row '%s': a chunk is a size of 1k to 1g, not '%s'",
                            row, chunk);
    }
    choice->chunk_bytes = bytes;
    return LS_OK;
}

static ls_status_t parse_row(const char *row, ls_choice_t *choice_p)
{
    char        text[ROW_ROOM];
    char       *rest   = text;
    ls_choice_t choice = {.nodes = LS_NODES_ANY};
    char       *coll, *range, *algo, *chunk;
    ls_status_t status;

    strcpy(text, row);
    coll  = strsep(&rest, ":");
    range = strsep(&rest, ":");
    algo  = strsep(&rest, ":");
    chunk = strsep(&rest, ":");
    if (algo == NULL || rest != NULL) {
        return ls_error_set(LS_ERR_CONFIG,
                            "LOCKSTEP_ALGO row '%s': a row is collective:from-to:algorithm[:chunk], as "
                            "allreduce:64k-inf:ring",
                            row);
    }
    status = parse_coll(row, coll, &choice.coll);
    if (status == LS_OK) {
        status = parse_range(row, range, &choice);
    }
    if (status == LS_OK) {
        status = parse_algo(row, algo, &choice);
    }
    if (status == LS_OK) {
        status = parse_chunk(row, chunk, &choice);
    }
    if (status == LS_OK) {
        *choice_p = choice;
    }
    return status;
}

ls_status_t ls_choice_parse(const char *override, ls_choice_t *rows)
{
    const size_t count = ls_choice_parse_count(override);

    for (size_t i = 0; i < count; i++) {
        const size_t length = strcspn(override, ",");
        char         row[ROW_ROOM];
        ls_status_t  status;

        if (length >= sizeof(row)) {
            return ls_error_set(LS_ERR_CONFIG, "LOCKSTEP_ALGO row %zu is longer than %zu characters", i + 1,
                                sizeof(row) - 1);
        }
        memcpy(row, override, length);
        row[length] = '\0';
        status      = parse_row(row, &rows[i]);
        if (status != LS_OK) {
            return status;
        }
        override += length + (override[length] == ',');
    }
    return LS_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "schedule/history.h"

#include "base/clock.h"
#include "base/mem.h"

#define LONGEST_PATIENCE (60 * LS_NS_PER_S)
#define MAX_CHANGE_SHIFT 10

void ls_history_destroy(ls_history_t *history)
{
    size_t            cursor = 0;
    ls_table_entry_t *entry;

    for (size_t i = 0; i < history->size; i++) {
        ls_mem_free(history->names[i].name);
    }
    while ((entry = ls_table_next(&history->lessons, &cursor)) != NULL) {
        ls_mem_free(entry->value);
    }
    ls_mem_free(history->names);
    ls_table_destroy(&history->index);
    ls_table_destroy(&history->lessons);
    *history = (ls_history_t){0};
}

static size_t position(const ls_history_t *history, const char *name)
{
    return (size_t)(uintptr_t)ls_table_get(&history->index, name) - 1; /* SIZE_MAX: absent */
}

static void forget(ls_history_t *history, size_t at)
{
    ls_table_remove(&history->index, history->names[at].name);
    ls_mem_free(history->names[at].name);
    history->names[at].name = NULL;
    history->num_live--;
}

void ls_history_remove(ls_history_t *history, const char *name)
{
    const size_t at = position(history, name);

    if (at != SIZE_MAX) {
        forget(history, at);
    }
}

/* Close the holes.  The names are in the table already, so that putting them cannot fail. */
static ls_status_t squeeze(ls_history_t *history)
{
    size_t      size   = 0;
    ls_status_t status = LS_OK;

    for (size_t i = 0; i < history->size && status == LS_OK; i++) {
        if (history->names[i].name != NULL) {
            const ls_history_name_t moved = history->names[i];

            history->names[i].name  = NULL;
            history->names[size++]  = moved;
            status = ls_table_put(&history->index, moved.name, (void *)(uintptr_t)size);
        }
    }
    history->size   = size;
    history->oldest = 0;
    return status;
}

static ls_status_t need_room(ls_history_t *history)
{
    const size_t more = (history->room == 0) ? 64 : 2 * history->room;
    void        *mem  = history->names;
    ls_status_t  status;

    if (history->size < history->room) {
        return LS_OK;
    }
    if (history->num_live < history->room / 2) {
        return squeeze(history);
    }
    status = ls_mem_resize(&mem, history->room * sizeof(*history->names), more * sizeof(*history->names), "history");
    if (status == LS_OK) {
        history->names = mem;
        history->room  = more;
    }
    return status;
}

static void drop_oldest(ls_history_t *history)
{
    while (history->names[history->oldest].name == NULL) {
        history->oldest++;
    }
    forget(history, history->oldest);
}

ls_status_t ls_history_add(ls_history_t *history, const ls_history_name_t *name)
{
    char       *copy;
    ls_status_t status;

    ls_history_remove(history, name->name);
    if (history->num_live == LS_HISTORY_MAX) {
        drop_oldest(history);
    }
    status = need_room(history);
    if (status != LS_OK) {
        return status;
    }
    status = ls_mem_strdup(name->name, "history", &copy);
    if (status != LS_OK) {
        return status;
    }
    status = ls_table_put(&history->index, name->name, (void *)(uintptr_t)(history->size + 1));
    if (status != LS_OK) {
        ls_mem_free(copy);
        return status;
    }
    history->names[history->size]        = *name;
    history->names[history->size++].name = copy;
    history->num_live++;
    return LS_OK;
}

const ls_lesson_t *ls_history_lesson(const ls_history_t *history, const char *name)
{
    return ls_table_get(&history->lessons, name);
}

bool ls_history_is_steady(const ls_history_t *history, const char *name)
{
    const ls_lesson_t *lesson = ls_history_lesson(history, name);
    uint32_t           shift;

    if (lesson == NULL || lesson->changes == 0) {
        return true;
    }
    shift = (lesson->changes - 1 > MAX_CHANGE_SHIFT) ? MAX_CHANGE_SHIFT : lesson->changes - 1;
    return lesson->unchanged >= (1U << shift);
}

size_t ls_history_match(ls_history_t *history, const char *name, const ls_signature_t *signature)
{
    const size_t at     = position(history, name);
    ls_lesson_t *lesson = ls_table_get(&history->lessons, name);
    bool         is_equal;

    if (at == SIZE_MAX) {
        return SIZE_MAX;
    }
    is_equal = ls_signature_equal(&history->names[at].signature, signature);
    if (lesson != NULL) {
        lesson->unchanged = is_equal ? lesson->unchanged + 1 : 0;
    }
    return (is_equal && ls_history_is_steady(history, name)) ? at : SIZE_MAX;
}

static ls_status_t get_lesson(ls_history_t *history, const char *name, ls_lesson_t **lesson_p)
{
    ls_lesson_t *lesson = ls_table_get(&history->lessons, name);
    void        *mem;
    ls_status_t  status;

    if (lesson == NULL) {
        status = ls_mem_alloc(sizeof(*lesson), "lesson", &mem);
        if (status != LS_OK) {
            return status;
        }
        lesson = mem;
        status = ls_table_put(&history->lessons, name, lesson);
        if (status != LS_OK) {
            ls_mem_free(lesson);
            return status;
        }
    }
    *lesson_p = lesson;
    return LS_OK;
}

ls_status_t ls_history_learn_change(ls_history_t *history, const char *name)
{
    ls_lesson_t      *lesson;
    const ls_status_t status = get_lesson(history, name, &lesson);

    if (status == LS_OK) {
        lesson->changes++;
        lesson->unchanged = 0;
    }
    return status;
}

ls_status_t ls_history_learn_parting(ls_history_t *history, char *const *names, const bool *is_missing,
                                     uint32_t num_names, uint64_t patience_ns)
{
    const uint64_t party = history->num_parties + 1;
    ls_lesson_t   *lesson;
    ls_status_t    status = LS_OK;

    history->num_parties += 2;
    for (uint32_t i = 0; i < num_names; i++) {
        status = get_lesson(history, names[i], &lesson);
        if (status != LS_OK) {
            return status;
        }
        lesson->patience_ns = (patience_ns > LONGEST_PATIENCE / 2) ? LONGEST_PATIENCE : 2 * patience_ns;
        /* All names of a bucket were of one party, so that new numbers lose nothing.  What was missing came
         * after those that were there, but perhaps one by one: missing again, each goes its own way. */
        lesson->party = (is_missing[i] && lesson->party != 0) ? ++history->num_parties : party + is_missing[i];
    }
    return status;
}

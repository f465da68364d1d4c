/* SPDX-License-Identifier: Apache-2.0 */
#include "schedule/waiting.h"

#include <string.h>

#include "base/mem.h"

ls_waiting_t *ls_waiting_find(const ls_waiting_list_t *list, const char *name)
{
    return ls_table_get(&list->names, name);
}

ls_status_t ls_waiting_get(ls_waiting_list_t *list, const char *name, ls_waiting_t **waiting_p)
{
    const size_t  length  = strlen(name) + 1;
    ls_waiting_t *waiting = ls_waiting_find(list, name);
    void         *mem;
    ls_status_t   status;

    if (waiting == NULL) {
        status = ls_mem_alloc(sizeof(*waiting) + length, "waiting name", &mem);
        if (status != LS_OK) {
            return status;
        }
        waiting = mem;
        memcpy(waiting->name, name, length);
        status = ls_table_put(&list->names, name, waiting);
        if (status != LS_OK) {
            ls_mem_free(waiting);
            return status;
        }
    }
    *waiting_p = waiting;
    return LS_OK;
}

void ls_waiting_push(ls_waiting_list_t *list, ls_waiting_t *waiting, ls_schedule_item_t *item)
{
    item->next = NULL;
    if (waiting->first == NULL) {
        waiting->first = item;
    } else {
        waiting->last->next = item;
    }
    waiting->last = item;
    list->num_items++;
}

ls_schedule_item_t *ls_waiting_pop(ls_waiting_list_t *list, ls_waiting_t *waiting)
{
    ls_schedule_item_t *item = waiting->first;

    if (item != NULL) {
        waiting->first       = item->next;
        waiting->is_reported = false;
        item->next           = NULL;
        list->num_items--;
    }
    return item;
}

static void append_listed(ls_waiting_list_t *list, ls_waiting_t *waiting)
{
    if (waiting->is_listed) {
        return;
    }
    waiting->is_listed   = true;
    waiting->next_listed = NULL;
    if (list->first_listed == NULL) {
        list->first_listed = waiting;
    } else {
        list->last_listed->next_listed = waiting;
    }
    list->last_listed = waiting;
}

void ls_waiting_list_for_report(ls_waiting_list_t *list, ls_waiting_t *waiting)
{
    if (!waiting->is_reported && waiting->first != NULL) {
        append_listed(list, waiting);
    }
}

/* What happened since it was listed may have made the report needless. */
ls_waiting_t *ls_waiting_next_to_report(ls_waiting_list_t *list)
{
    ls_waiting_t *waiting;

    while ((waiting = list->first_listed) != NULL) {
        list->first_listed = waiting->next_listed;
        waiting->is_listed = false;
        if (waiting->first != NULL && waiting->adopted == NULL && !waiting->is_reported) {
            return waiting;
        }
        ls_waiting_release(list, waiting);
    }
    return NULL;
}

ls_status_t ls_waiting_doom(ls_waiting_t *waiting, ls_status_t status, const char *text)
{
    char             *copy;
    const ls_status_t copied = ls_mem_strdup(text, "doom", &copy);

    if (copied == LS_OK) {
        ls_mem_free(waiting->doom_text);
        waiting->doom      = status;
        waiting->doom_text = copy;
        waiting->num_doomed++;
    }
    return copied;
}

void ls_waiting_undoom(ls_waiting_t *waiting, uint32_t num_items)
{
    waiting->num_doomed -= num_items;
    if (waiting->num_doomed == 0) {
        ls_mem_free(waiting->doom_text);
        waiting->doom_text = NULL;
    }
}

/* A record that only held the doom is listed, so that the next report frees it: not here, because
 * nothing may leave the table while it is being walked. */
void ls_waiting_undoom_all(ls_waiting_list_t *list)
{
    size_t            cursor = 0;
    ls_table_entry_t *entry;

    while ((entry = ls_table_next(&list->names, &cursor)) != NULL) {
        ls_waiting_t *waiting = entry->value;

        if (waiting->num_doomed > 0) {
            ls_waiting_undoom(waiting, waiting->num_doomed);
            append_listed(list, waiting);
        }
    }
}

void ls_waiting_release(ls_waiting_list_t *list, ls_waiting_t *waiting)
{
    if (waiting->first == NULL && waiting->adopted == NULL && !waiting->is_listed &&
        waiting->num_doomed == 0) {
        ls_table_remove(&list->names, waiting->name);
        ls_mem_free(waiting);
    }
}

void ls_waiting_destroy(ls_waiting_list_t *list)
{
    size_t            cursor = 0;
    ls_table_entry_t *entry;

    while ((entry = ls_table_next(&list->names, &cursor)) != NULL) {
        ls_waiting_t *waiting = entry->value;

        ls_mem_free(waiting->doom_text);
        ls_mem_free(waiting);
    }
    ls_table_destroy(&list->names);
    *list = (ls_waiting_list_t){0};
}

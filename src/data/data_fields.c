/* SPDX-License-Identifier: Apache-2.0 */
#include "data/data_fields.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"

#define LIST_ROOM 1024

static ls_status_t no_such_field(const ls_data_info_t *info, const char *name, const char *path)
{
    char   list[LIST_ROOM] = "";
    size_t used            = 0;

    for (unsigned i = 0; i < info->num_fields && used < LIST_ROOM; i++) {
        used += (size_t)snprintf(list + used, LIST_ROOM - used, "%s'%s'", i > 0 ? ", " : "",
                                 info->fields[i].name);
    }
    return ls_error_set(LS_ERR_INVALID, "%s: there is no field '%s'; there are %s", path, name, list);
}

/* By its name or, if no field has that name, its number. */
static ls_status_t find(const ls_data_info_t *info, const char *name, const char *path, unsigned *field_p)
{
    char               *rest;
    const unsigned long number = strtoul(name, &rest, 10);

    for (unsigned i = 0; i < info->num_fields; i++) {
        if (strcmp(info->fields[i].name, name) == 0) {
            *field_p = i;
            return LS_OK;
        }
    }
    if (*name >= '0' && *name <= '9' && *rest == '\0' && number < info->num_fields) {
        *field_p = (unsigned)number;
        return LS_OK;
    }
    return no_such_field(info, name, path);
}

ls_status_t ls_data_fields_choose(const ls_data_info_t *info, const ls_data_options_t *options,
                                  const char *path, ls_data_fields_t *fields_p)
{
    const unsigned   count  = options->columns != NULL ? options->num_columns : info->num_fields;
    ls_data_field_t *list   = NULL;
    unsigned        *chosen = NULL;
    ls_status_t      status = ls_mem_alloc(count * sizeof(*list), "fields", (void **)&list);

    if (status == LS_OK) {
        status = ls_mem_alloc(count * sizeof(*chosen), "fields", (void **)&chosen);
    }
    for (unsigned i = 0; i < count && status == LS_OK; i++) {
        chosen[i] = i;
        if (options->columns != NULL) {
            status = find(info, options->columns[i], path, &chosen[i]);
        }
        if (status == LS_OK) {
            list[i] = info->fields[chosen[i]];
        }
    }
    if (status != LS_OK) {
        ls_mem_free(list);
        ls_mem_free(chosen);
        return status;
    }
    fields_p->info            = *info;
    fields_p->info.num_fields = count;
    fields_p->info.fields     = list;
    fields_p->chosen          = chosen;
    fields_p->all             = info->fields;
    return LS_OK;
}

void ls_data_fields_clear(ls_data_fields_t *fields)
{
    ls_mem_free((void *)(uintptr_t)fields->info.fields);
    ls_mem_free(fields->chosen);
    *fields = (ls_data_fields_t){0};
}

static bool is_same(const ls_data_field_t *one, const ls_data_field_t *other)
{
    return strcmp(one->name, other->name) == 0 && one->type == other->type &&
           one->num_dims == other->num_dims &&
           memcmp(one->shape, other->shape, one->num_dims * sizeof(one->shape[0])) == 0;
}

ls_status_t ls_data_fields_agree(const ls_data_info_t *info, const ls_data_info_t *other, const char *path,
                                 const char *other_path)
{
    if (info->num_fields != other->num_fields) {
        return ls_error_set(LS_ERR_INVALID,
                            "%s: %u fields, but %u in %s, which is to be one data set with it", other_path,
                            other->num_fields, info->num_fields, path);
    }
    for (unsigned i = 0; i < info->num_fields; i++) {
        const ls_data_field_t *field = &other->fields[i];

        if (!is_same(&info->fields[i], field)) {
            return ls_error_set(LS_ERR_INVALID,
                                "%s: field '%s' (%s, %u dimensions, %" PRIu64
                                " bytes a row) differs from '%s' (%s, %u dimensions, %" PRIu64
                                " bytes a row) in %s, which is to be one data set with it",
                                other_path, field->name, ls_data_type_name(field->type), field->num_dims,
                                field->row_bytes, info->fields[i].name,
                                ls_data_type_name(info->fields[i].type), info->fields[i].num_dims,
                                info->fields[i].row_bytes, path);
        }
        if (field->num_rows != other->fields[0].num_rows) {
            return ls_error_set(LS_ERR_INVALID,
                                "%s: field '%s' has %" PRIu64 " rows, field '%s' %" PRIu64
                                ": such a file cannot be one of several",
                                other_path, field->name, field->num_rows, other->fields[0].name,
                                other->fields[0].num_rows);
        }
    }
    return LS_OK;
}

void ls_data_fields_set_rows(ls_data_fields_t *fields, uint64_t num_rows)
{
    ls_data_field_t *list = (ls_data_field_t *)(uintptr_t)fields->info.fields;

    for (unsigned i = 0; i < fields->info.num_fields; i++) {
        list[i].num_rows = num_rows;
    }
}

ls_status_t ls_data_fields_enough(const ls_data_fields_t *fields, unsigned ranks, const char *path)
{
    for (unsigned i = 0; i < fields->info.num_fields; i++) {
        const ls_data_field_t *field = &fields->info.fields[i];

        if (field->num_rows == 0) {
            return ls_error_set(LS_ERR_INVALID, "%s: field '%s' has no rows", path, field->name);
        }
        if (field->num_rows < ranks) {
            return ls_error_set(LS_ERR_INVALID,
                                "%s: field '%s' has %" PRIu64 " rows, fewer than the %u ranks that read it",
                                path, field->name, field->num_rows, ranks);
        }
    }
    return LS_OK;
}

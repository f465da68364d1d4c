/* SPDX-License-Identifier: Apache-2.0 */
#include "data/options.h"

#include <string.h>

#include "base/error.h"
#include "base/mem.h"

/* One block of memory for the list and its texts, so that it is freed at once. */
static ls_status_t copy_texts(const char *const *texts, unsigned count, const char *what,
                              const char *const **copy_p)
{
    size_t      bytes = count * sizeof(char *);
    char      **list  = NULL, *at;
    ls_status_t status;

    *copy_p = NULL;
    if (texts == NULL) {
        return LS_OK;
    }
    for (unsigned i = 0; i < count; i++) {
        if (texts[i] == NULL) {
            return ls_error_set(LS_ERR_INVALID, "%s %u is NULL", what, i);
        }
        bytes += strlen(texts[i]) + 1;
    }
    status = ls_mem_alloc(bytes, "options of a data set", (void **)&list);
    if (status != LS_OK) {
        return status;
    }
    at = (char *)(list + count);
    for (unsigned i = 0; i < count; i++) {
        list[i] = at;
        at      = stpcpy(at, texts[i]) + 1;
    }
    *copy_p = (const char *const *)list;
    return LS_OK;
}

static ls_status_t copy_types(const ls_data_options_t *options, ls_data_options_t *copy)
{
    void       *types  = NULL;
    ls_status_t status = LS_OK;

    copy->types = NULL;
    if (options->types != NULL) {
        status = ls_mem_alloc(options->num_types * sizeof(ls_data_type_t), "options of a data set", &types);
        if (status == LS_OK) {
            memcpy(types, options->types, options->num_types * sizeof(ls_data_type_t));
            copy->types = types;
        }
    }
    return status;
}

ls_status_t ls_options_copy(const ls_data_options_t *options, ls_data_options_t *copy_p)
{
    static const ls_data_options_t usual;
    ls_data_options_t              copy   = *(options != NULL ? options : &usual);
    char                          *format = NULL;
    ls_status_t                    status = LS_OK;

    options      = options != NULL ? options : &usual;
    copy.format  = NULL;
    copy.columns = copy.missing = NULL;
    copy.types                  = NULL;
    copy.part.size              = copy.part.size > 0 ? copy.part.size : 1;
    if (copy.part.rank >= copy.part.size) {
        return ls_error_set(LS_ERR_INVALID, "rank %u is not one of %u ranks", copy.part.rank, copy.part.size);
    }
    if (options->format != NULL) {
        status      = ls_mem_strdup(options->format, "options of a data set", &format);
        copy.format = format;
    }
    if (status == LS_OK) {
        status = copy_texts(options->columns, options->num_columns, "column", &copy.columns);
    }
    if (status == LS_OK) {
        status =
            copy_texts(options->missing, options->num_missing, "text for a missing value", &copy.missing);
    }
    if (status == LS_OK) {
        status = copy_types(options, &copy);
    }
    if (status != LS_OK) {
        ls_options_clear(&copy);
        return status;
    }
    *copy_p = copy;
    return LS_OK;
}

void ls_options_clear(ls_data_options_t *copy)
{
    ls_mem_free((void *)(uintptr_t)copy->format);
    ls_mem_free((void *)(uintptr_t)copy->columns);
    ls_mem_free((void *)(uintptr_t)copy->missing);
    ls_mem_free((void *)(uintptr_t)copy->types);
    copy->format  = NULL;
    copy->columns = copy->missing = NULL;
    copy->types                   = NULL;
}

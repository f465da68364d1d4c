/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

static _Atomic size_t live_count;
static _Atomic size_t fail_countdown;

static int must_fail(void)
{
    size_t left = atomic_load(&fail_countdown);

    while (left > 0) {
        if (atomic_compare_exchange_weak(&fail_countdown, &left, left - 1)) {
            return left == 1;
        }
    }
    return 0;
}

ls_status_t ls_mem_alloc(size_t size, const char *tag, void **mem_p)
{
    const size_t whole_lines = (size + LS_CACHE_LINE) & ~((size_t)LS_CACHE_LINE - 1);
    void        *mem;

    if (size > SIZE_MAX / 2 || must_fail() ||
        (mem = aligned_alloc(LS_CACHE_LINE, whole_lines)) == NULL) {
        return ls_error_set(LS_ERR_NO_MEMORY, "no memory for %zu bytes (%s)", size, tag);
    }
    memset(mem, 0, size);
    atomic_fetch_add(&live_count, 1);
    *mem_p = mem;
    return LS_OK;
}

ls_status_t ls_mem_resize(void **mem_p, size_t old_size, size_t new_size, const char *tag)
{
    void             *grown = NULL;
    const ls_status_t status = ls_mem_alloc(new_size, tag, &grown);

    if (status != LS_OK) {
        return status;
    }
    if (*mem_p != NULL) {
        memcpy(grown, *mem_p, old_size < new_size ? old_size : new_size);
        ls_mem_free(*mem_p);
    }
    *mem_p = grown;
    return LS_OK;
}

ls_status_t ls_mem_strdup(const char *text, const char *tag, char **copy_p)
{
    const size_t      size = strlen(text) + 1;
    void             *copy = NULL;
    const ls_status_t status = ls_mem_alloc(size, tag, &copy);

    if (status == LS_OK) {
        memcpy(copy, text, size);
        *copy_p = copy;
    }
    return status;
}

void ls_mem_free(void *mem)
{
    if (mem != NULL) {
        atomic_fetch_sub(&live_count, 1);
        free(mem);
    }
}

size_t ls_mem_live(void)
{
    return atomic_load(&live_count);
}

void ls_mem_fail_at(size_t n)
{
    atomic_store(&fail_countdown, n);
}

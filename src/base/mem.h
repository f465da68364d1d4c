/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Heap memory with a tag: what is not returned is reported by name, and tests can make the n-th
 * allocation fail (torture mode).
 */
#ifndef LS_BASE_MEM_H
#define LS_BASE_MEM_H

#include <stddef.h>

#include "lockstep.h"

#define LS_CACHE_LINE 64
#define LS_KIB        1024UL
#define LS_MIB        (1024UL * 1024UL)

/* Zeroed, aligned to a cache line.  LS_ERR_NO_MEMORY names tag and size.  size 0 gives a valid pointer. */
ls_status_t ls_mem_alloc(size_t size, const char *tag, void **mem_p);

/* Like realloc; the new part is zeroed.  *mem_p is unchanged on failure. */
ls_status_t ls_mem_resize(void **mem_p, size_t old_size, size_t new_size, const char *tag);

ls_status_t ls_mem_strdup(const char *text, const char *tag, char **copy_p);

void ls_mem_free(void *mem); /* NULL is allowed */

/* Allocations not yet freed, in the whole process. */
size_t ls_mem_live(void);

/* Fail the n-th allocation from now (1 = the next), once; 0 switches it off. */
void ls_mem_fail_at(size_t n);

#endif

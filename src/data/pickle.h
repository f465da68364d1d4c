/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pickles in which CIFAR-10 and CIFAR-100 are handed out, and nothing else: a dictionary with an array of
 * bytes and lists of small numbers.  Nothing is executed: an unknown name or instruction is an error.
 */
#ifndef LS_DATA_PICKLE_H
#define LS_DATA_PICKLE_H

#include "data/file.h"

#define LS_PICKLE_MAX_LISTS 8

typedef struct ls_pickle_list {
    char           key[24];
    unsigned char *values; /* owned; NULL: not all its items are numbers from 0 to 255 */
    uint64_t       count;
} ls_pickle_list_t;

typedef struct ls_pickle {
    uint64_t         data_offset; /* in the file, of the array under the key "data"; 0: there is none */
    uint64_t         rows, columns;
    ls_pickle_list_t lists[LS_PICKLE_MAX_LISTS];
    unsigned         num_lists;
} ls_pickle_t;

ls_status_t ls_pickle_read(const ls_file_t *file, ls_pickle_t *pickle_p);
void        ls_pickle_clear(ls_pickle_t *pickle);

/* NULL if there is no such list of numbers. */
const ls_pickle_list_t *ls_pickle_find(const ls_pickle_t *pickle, const char *key);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The elements of a string tensor, filled without a copy.  The C API can only copy into them; their form
 * (tensorflow/core/platform/ctstring_internal.h, the same since TensorFlow 2.4) is part of every operator
 * that was ever compiled, and is compared with what the C API makes when the library is loaded.
 */
#ifndef LS_TF_TSTRING_H
#define LS_TF_TSTRING_H

#include <stdbool.h>
#include <stddef.h>

#define LS_TSTRING_BYTES 24

/* Does this TensorFlow have strings of this form? */
bool ls_tstring_is_known(void);

/* To be called before many strings are made and freed: the memory of a batch is then kept for the next. */
void ls_tstring_keep_memory(void);

/* The string, which must be empty, gets this length; returns where its bytes are to be put, NULL: no memory.
 */
void *ls_tstring_room(void *string, size_t length);

#endif

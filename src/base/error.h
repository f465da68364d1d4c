/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How errors travel: a status says what kind, a message in the thread says which.
 * The function that detects the error calls ls_error_set(); callers pass the status on.
 */
#ifndef LS_BASE_ERROR_H
#define LS_BASE_ERROR_H

#include "lockstep.h"

/* Remember the message for ls_last_error() of this thread, and return `status`. */
ls_status_t ls_error_set(ls_status_t status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The same for a failed system call: appends the text of errno. */
ls_status_t ls_error_set_errno(const char *format, ...) __attribute__((format(printf, 1, 2)));

void ls_error_clear(void);

#endif

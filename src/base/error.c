/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define MESSAGE_ROOM 4096

static _Thread_local char last_message[MESSAGE_ROOM];

const char *ls_status_str(ls_status_t status)
{
    switch (status) {
#define STATUS_CASE(_name, _value, _text) \
    case _name:                           \
        return _text;
        LS_STATUS_LIST(STATUS_CASE)
#undef STATUS_CASE
    }
    return "unknown status";
}

const char *ls_last_error(void)
{
    return last_message;
}

ls_status_t ls_error_set(ls_status_t status, const char *format, ...)
{
    char    text[MESSAGE_ROOM]; /* the arguments may point into last_message */
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    memcpy(last_message, text, sizeof(text));
    return status;
}

ls_status_t ls_error_set_errno(const char *format, ...)
{
    const int code = errno;
    char      text[MESSAGE_ROOM / 2];
    va_list   args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    return ls_error_set(code == ENOMEM ? LS_ERR_NO_MEMORY : LS_ERR_SYSTEM, "%s: %s", text,
                        strerror(code));
}

void ls_error_clear(void)
{
    last_message[0] = '\0';
}

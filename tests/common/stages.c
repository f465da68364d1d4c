/* SPDX-License-Identifier: Apache-2.0 */
#include "common/stages.h"

#include <stdbool.h>
#include <stdio.h>

/* The number in the first line of the dump that fits `format`, which has one; 0: none fits. */
static size_t dumped_number(ls_context_h ctx, const char *format)
{
    FILE  *file = tmpfile();
    char   line[512];
    size_t number = 0;
    bool   found  = false;

    ls_dump(ctx, fileno(file));
    rewind(file);
    while (!found && fgets(line, sizeof(line), file) != NULL) {
        found = sscanf(line, format, &number) == 1;
    }
    fclose(file);
    return found ? number : 0;
}

size_t stages_taken(ls_context_h ctx)
{
    return dumped_number(ctx, "net: %*u stages in %zu bytes");
}

size_t stages_answered(ls_context_h ctx)
{
    return dumped_number(ctx, "net: answered in place %zu");
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "common/stages.h"

#include <stdio.h>

size_t stages_taken(ls_context_h ctx)
{
    FILE  *file = tmpfile();
    char   line[512];
    size_t num_stages, bytes = 0;

    ls_dump(ctx, fileno(file));
    rewind(file);
    while (bytes == 0 && fgets(line, sizeof(line), file) != NULL) {
        if (sscanf(line, "net: %zu stages in %zu bytes", &num_stages, &bytes) != 2) {
            bytes = 0;
        }
    }
    fclose(file);
    return bytes;
}

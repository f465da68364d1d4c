/* SPDX-License-Identifier: Apache-2.0 */
#include "data/progress.h"

#include <inttypes.h>

#include "base/error.h"

ls_status_t ls_progress_report(const ls_data_options_t *options, const char *path, uint64_t done,
                               uint64_t total)
{
    if (options->progress == NULL || options->progress(options->progress_arg, path, done, total) == 0) {
        return LS_OK;
    }
    return ls_error_set(LS_ERR_STOPPED, "%s: stopped on request after %" PRIu64 " of %" PRIu64, path, done,
                        total);
}

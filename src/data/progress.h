/* SPDX-License-Identifier: Apache-2.0 */
/* Says how far long work is; every few MiB, not at each row. */
#ifndef LS_DATA_PROGRESS_H
#define LS_DATA_PROGRESS_H

#include "lockstep_data.h"

/* LS_ERR_STOPPED if the caller wants no more. */
ls_status_t ls_progress_report(const ls_data_options_t *options, const char *path, uint64_t done,
                               uint64_t total);

#endif

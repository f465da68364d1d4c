/* SPDX-License-Identifier: Apache-2.0 */
/* A copy of the caller's options that lasts as long as the data set is open. */
#ifndef LS_DATA_OPTIONS_H
#define LS_DATA_OPTIONS_H

#include "lockstep_data.h"

/* `options` may be NULL: the usual ones.  part.size is at least 1 in the copy. */
ls_status_t ls_options_copy(const ls_data_options_t *options, ls_data_options_t *copy_p);
void        ls_options_clear(ls_data_options_t *copy);

#endif

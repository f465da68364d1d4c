/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NaN and infinity in gradients (LOCKSTEP_NAN).  After a reduction all ranks have them, and nobody knows from where; so each
 * rank looks at what it gives, when that is packed or reduced (fuse/bucket.h): the values are in registers then, and looking
 * costs next to nothing.  What a rank without rows hands in is not read, and not looked at.
 */
#ifndef LS_ENGINE_UNFINITE_H
#define LS_ENGINE_UNFINITE_H

#include "engine/request.h"

/* Shall this tensor be looked at? */
bool ls_unfinite_is_wanted(ls_context_h ctx, const ls_tensor_t *tensor);

/* Element `at` of what was handed in is not finite. */
void ls_unfinite_say(const ls_request_t *request, uint64_t at, bool is_nan);

#endif

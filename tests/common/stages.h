/* SPDX-License-Identifier: Apache-2.0 */
/* What a rank's dump tells of its messages and the memory for them. */
#ifndef LS_TESTS_COMMON_STAGES_H
#define LS_TESTS_COMMON_STAGES_H

#include <stddef.h>

#include "lockstep.h"

/* Bytes of shared memory that the rank has taken for stages; 0: the dump does not say. */
size_t stages_taken(ls_context_h ctx);

/* Messages over which the rank has written its reply, to send it back in the same stage. */
size_t stages_answered(ls_context_h ctx);

#endif

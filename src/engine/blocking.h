/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LS_ENGINE_BLOCKING_H
#define LS_ENGINE_BLOCKING_H

#include "engine/request.h"

/* Hand over a request without callback and sleep until the engine has finished it. */
void ls_blocking_hand_over(ls_context_h ctx, ls_request_t *request);

#endif

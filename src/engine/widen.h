/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The mean of 8-bit integers: their sum does not fit into 8 bits, so such a request is computed in int32
 * and narrowed at the end.  Rare, and kept apart from the path of all others.
 */
#ifndef LS_ENGINE_WIDEN_H
#define LS_ENGINE_WIDEN_H

#include "engine/request.h"

/* The type that a tensor of this signature is computed in. */
ls_dtype_t ls_widen_dtype(const ls_signature_t *signature);

/* Change the request if it is one of those.  output_count: elements that the caller's output has. */
ls_status_t ls_widen_request(ls_request_t *request, uint64_t output_count);

/* Bring the result of a widened request to the caller's output. */
void ls_widen_narrow(const ls_request_t *request);

#endif

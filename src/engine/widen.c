/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/widen.h"

#include "base/mem.h"

ls_dtype_t ls_widen_dtype(const ls_signature_t *signature)
{
    const bool is_narrow = signature->dtype == LS_INT8 || signature->dtype == LS_UINT8;

    return (is_narrow && signature->op == LS_MEAN) ? LS_INT32 : signature->dtype;
}

ls_status_t ls_widen_request(ls_request_t *request, uint64_t output_count)
{
    const ls_signature_t *signature = &request->item.signature;
    const bool            is_signed = signature->dtype == LS_INT8;
    int32_t              *wide;
    ls_status_t           status;
    void                 *mem;

    if (ls_widen_dtype(signature) == signature->dtype) {
        return LS_OK;
    }
    status = ls_mem_alloc(signature->count * sizeof(*wide), "widened tensor", &mem);
    if (status != LS_OK) {
        return status;
    }
    wide = mem;
    for (uint64_t i = 0; i < signature->count; i++) {
        wide[i] = is_signed ? ((const int8_t *)request->input)[i] : ((const uint8_t *)request->input)[i];
    }
    request->widened      = wide;
    request->narrow       = request->output;
    request->narrow_count = output_count;
    request->input        = wide;
    request->output       = wide;
    return LS_OK;
}

void ls_widen_narrow(const ls_request_t *request)
{
    /* int8 and uint8 alike: the mean of values fits where they fitted. */
    for (uint64_t i = 0; i < request->narrow_count; i++) {
        ((uint8_t *)request->narrow)[i] = (uint8_t)request->widened[i];
    }
}

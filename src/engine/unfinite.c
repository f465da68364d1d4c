/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NaN and infinity in gradients.  After a reduction all ranks have them, and nobody knows from where; so each rank looks at
 * what it hands in, in the thread that hands it in, while its memory is warm.
 */
#include <inttypes.h>
#include <string.h>

#include "base/log.h"
#include "device/dtype.h"
#include "device/finite.h"
#include "device/kernel.h"
#include "engine/engine_int.h"

#define PREFIX    "gradient/"
#define MAX_LINES 8 /* one bad step is bad in every variable that comes after */

static bool is_gradient(const ls_tensor_t *tensor)
{
    return ls_dtype_is_float(tensor->dtype) && strncmp(tensor->name, PREFIX, sizeof(PREFIX) - 1) == 0;
}

/* A rank without rows has weight 0: what it computed on a row that it was lent is not read. */
static bool is_read(const ls_reduce_t *reduce)
{
    return reduce == NULL || reduce->op != LS_WEIGHTED_MEAN || reduce->weight > 0;
}

void ls_unfinite_look(ls_context_h ctx, const ls_tensor_t *tensor, const ls_reduce_t *reduce)
{
    unsigned line;
    uint64_t at;
    bool     is_nan = false;

    if (ctx->config.nan == LS_NAN_OFF || !is_gradient(tensor) || !is_read(reduce) ||
        atomic_load_explicit(&ctx->expects_unfinite, memory_order_relaxed) ||
        atomic_load_explicit(&ctx->num_unfinite, memory_order_relaxed) >= MAX_LINES ||
        ls_kernel_is_finite(tensor->dtype, tensor->input, tensor->count)) {
        return;
    }
    line = atomic_fetch_add_explicit(&ctx->num_unfinite, 1, memory_order_relaxed);
    if (line >= MAX_LINES) {
        return;
    }
    at = ls_finite_first_bad(tensor->dtype, tensor->input, tensor->count, &is_nan);
    ls_warn("gradient of '%s' on rank %u (%s) is not finite: element %" PRIu64 " is %s%s",
            tensor->name + sizeof(PREFIX) - 1, ctx->place.rank, ctx->place.host, at, is_nan ? "NaN" : "infinite",
            line + 1 < MAX_LINES ? "" : "; further ones are not shown");
}

void ls_expect_unfinite(ls_context_h ctx)
{
    atomic_store_explicit(&ctx->expects_unfinite, true, memory_order_relaxed);
}

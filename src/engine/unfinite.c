/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/unfinite.h"

#include <inttypes.h>
#include <string.h>

#include "base/log.h"
#include "device/dtype.h"
#include "engine/engine_int.h"

#define PREFIX    "gradient/"
#define MAX_LINES 8 /* one bad step is bad in every variable that comes after */

static bool is_gradient(const ls_tensor_t *tensor)
{
    return ls_dtype_is_float(tensor->dtype) && strncmp(tensor->name, PREFIX, sizeof(PREFIX) - 1) == 0;
}

bool ls_unfinite_is_wanted(ls_context_h ctx, const ls_tensor_t *tensor)
{
    return ctx->config.nan != LS_NAN_OFF && is_gradient(tensor) &&
           !atomic_load_explicit(&ctx->expects_unfinite, memory_order_relaxed) &&
           atomic_load_explicit(&ctx->num_unfinite, memory_order_relaxed) < MAX_LINES;
}

void ls_unfinite_say(const ls_request_t *request, uint64_t at, bool is_nan)
{
    const ls_context_h ctx  = request->watcher;
    const unsigned     line = atomic_fetch_add_explicit(&ctx->num_unfinite, 1, memory_order_relaxed);

    if (line >= MAX_LINES) {
        return;
    }
    ls_warn("gradient of '%s' on rank %u (%s) is not finite: element %" PRIu64 " is %s%s",
            request->name + sizeof(PREFIX) - 1, ctx->place.rank, ctx->place.host, at, is_nan ? "NaN" : "infinite",
            line + 1 < MAX_LINES ? "" : "; further ones are not shown");
}

void ls_expect_unfinite(ls_context_h ctx)
{
    atomic_store_explicit(&ctx->expects_unfinite, true, memory_order_relaxed);
}

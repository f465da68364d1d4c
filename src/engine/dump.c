/* SPDX-License-Identifier: Apache-2.0 */
/* The engine's state for people, and its counters. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "engine/engine_int.h"

static void dump_work(ls_context_h ctx, const ls_work_t *work, int fd)
{
    const ls_run_t *run = work->is_in_meta ? &work->meta : &work->run;

    dprintf(fd, "  bucket %u round %u: %s %s, %u tensors, %llu bytes, chunk %u of %u, open %.3f s\n", work->id,
            work->iteration, ls_algo_coll_name(work->signature.coll), run->algo->name, work->num_slots,
            (unsigned long long)work->num_bytes, run->num_finished, run->geometry.num_chunks,
            (double)(ctx->now_ns - work->begin_ns) / 1e9);
    for (uint32_t slot = 0; slot < work->num_slots; slot++) {
        dprintf(fd, "    %s\n", (work->requests[slot] == NULL) ? "(nothing given)" : work->requests[slot]->name);
    }
}

void ls_dump_write(ls_context_h ctx, int fd)
{
    ls_counters_t counters;

    ls_counters(ctx, &counters);
    dprintf(fd, "lockstep rank %u of %u on %s, process state:\n", ctx->place.rank, ctx->place.topology.num_ranks,
            ctx->place.host);
    if (ctx->is_lost) {
        dprintf(fd, "  the job is lost: %s\n", ctx->lost_message);
    }
    for (const ls_work_t *work = ctx->works.active; work != NULL; work = work->next) {
        dump_work(ctx, work, fd);
    }
    ls_schedule_dump(ctx->schedule, ctx->now_ns, fd);
    ls_net_dump(ctx->net, fd);
#define PRINT_COUNTER(_name, _help) dprintf(fd, "  %-20s %14llu  %s\n", #_name, (unsigned long long)counters._name, _help);
    LS_COUNTER_LIST(PRINT_COUNTER)
#undef PRINT_COUNTER
}

void ls_counters(ls_context_h ctx, ls_counters_t *counters_p)
{
#define COPY_COUNTER(_name, _help) counters_p->_name = atomic_load_explicit(&ctx->counters._name, memory_order_relaxed);
    LS_COUNTER_LIST(COPY_COUNTER)
#undef COPY_COUNTER
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Between run.c, which takes passes through the plan, and run_step.c, which executes its steps. */
#ifndef LS_ENGINE_RUN_INT_H
#define LS_ENGINE_RUN_INT_H

#include "engine/run.h"

/* The key of a pass's messages, but for their number. */
static inline ls_key_t ls_run_key(const ls_run_t *run, const ls_pass_t *pass)
{
    return ls_key_make(run->id, run->iteration, run->first_chunk + pass->chunk, 0);
}

/* Execute one step, whose messages are here, on `count` elements. */
ls_status_t ls_run_step(ls_run_t *run, ls_pass_t *pass, const ls_step_t *step, uint64_t count);

/* Give back the messages that the pass has of the first `num_peers` peers of its step. */
void ls_run_release(ls_run_t *run, ls_pass_t *pass, uint32_t num_peers);

#endif

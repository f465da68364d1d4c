/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/writes.h"

/* Less cannot be timed. */
#define TRIAL_BYTES    4096U
#define FIRST_INTERVAL 4U
#define LAST_INTERVAL  128U

bool ls_writes_wants_trial(ls_writes_t *writes, uint64_t bytes)
{
    if (bytes < TRIAL_BYTES) {
        return false;
    }
    if (writes->until_trial > 0) {
        writes->until_trial--;
        return false;
    }
    return true;
}

void ls_writes_learn(ls_writes_t *writes, uint64_t cached_ns, uint64_t streamed_ns)
{
    const uint32_t percent = writes->is_streaming ? writes->cached_percent : writes->stream_percent;
    const bool     answer  = 100 * cached_ns > percent * streamed_ns;

    if (answer != writes->is_streaming || writes->interval == 0) {
        writes->interval = FIRST_INTERVAL;
    } else if (writes->interval < LAST_INTERVAL) {
        writes->interval *= 2;
    }
    writes->is_streaming = answer;
    writes->until_trial  = writes->interval;
}

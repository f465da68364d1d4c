/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The flight recorder on disk: one file per rank, and a summary of the node by the first survivor that comes to it.
 *
 *   lockstep-flight-<job>/rank-1.txt      the engine's state, then the last events, oldest first
 *   lockstep-flight-<job>/summary-0.txt   all ranks of rank 0's node: where each was, then their events in one row
 *
 * Readable by the job's user only.  A rank that was killed cannot write: the survivor writes its file, from the
 * memory they share.  What cannot be written is left out, with one warning: nothing may fail because of it.
 */
#ifndef LS_ENGINE_FLIGHT_FILE_H
#define LS_ENGINE_FLIGHT_FILE_H

#include "lockstep.h"

/* Engine thread: the own file with the engine's state; the files of the lost and the summary where they are ours. */
void ls_flight_file_write(ls_context_h ctx, const char *reason);

/* Any thread, when the engine's may be stuck: what the recorder has, without the engine's state. */
void ls_flight_file_write_rings(ls_context_h ctx, const char *reason);

#endif

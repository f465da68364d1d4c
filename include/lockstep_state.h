/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Snapshots on disk: a list of pieces of memory under a name in a folder, whole or not there at all.
 *
 *     ls_state_part_t parts[] = {{ .data = weights, .size = 4096 }, { .data = text, .size = 12 }};
 *     ls_state_write("/scratch/job", "snapshot-000017", parts, 2);
 *
 *     ls_state_h state;
 *     if (ls_state_open("/scratch/job", "snapshot-000017", &state) == LS_OK) {
 *         const void *weights = ls_state_part(state, 0, &size);
 *         ls_state_close(state);
 *     }
 *
 * Two files: NAME.data holds the parts, NAME.manifest their sizes and hashes, and a hash of itself.  Each is written under
 * another name, brought to the disk (fsync) and renamed; the manifest comes last.  So whatever happens in between - a kill,
 * a full disk, a power cut - what was there before is untouched, and a name that has a manifest has all of its data.
 * Reading checks every size and every hash before it gives anything out, and executes nothing.
 *
 * Needs no MPI and no ls_start().  Threads: each function may be called by any thread, a state by one at a time.
 */
#ifndef LOCKSTEP_STATE_H
#define LOCKSTEP_STATE_H

#include "lockstep.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ls_state_part {
    const void *data; /* NULL with size 0 */
    uint64_t    size;
} ls_state_part_t;

typedef struct ls_state *ls_state_h;

/*
 * Write a snapshot.  `name` has no '/'; an older one of the same name is given up first.  On any error nothing of the new
 * one stays, and ls_last_error() names the file, the byte and the reason.  Files are readable by their owner only.
 */
LS_API ls_status_t ls_state_write(const char *folder, const char *name, const ls_state_part_t *parts, unsigned num_parts);

/* Open for reading.  LS_ERR_INVALID: it is not whole, and the message says what is wrong with it. */
LS_API ls_status_t ls_state_open(const char *folder, const char *name, ls_state_h *state_p);
LS_API void        ls_state_close(ls_state_h state); /* NULL is allowed */

/* The parts lie in memory until the state is closed, each at a multiple of 64 bytes. */
LS_API unsigned    ls_state_num_parts(ls_state_h state);
LS_API const void *ls_state_part(ls_state_h state, unsigned index, uint64_t *size_p);

/* Remove a snapshot: first what makes it whole.  What is not there is no error. */
LS_API void ls_state_remove(const char *folder, const char *name);

#ifdef __cplusplus
}
#endif

#endif

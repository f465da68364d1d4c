/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The manifest is text:
 *
 *     lockstep-state 1
 *     data 8320
 *     part 0 4096 91b2c3d4e5f60718      offset, bytes, hash; one line per part
 *     part 4096 12 00a1b2c3d4e5f607
 *     end 2 7c1d0b5e93f2a846            number of parts, hash of all lines before this one
 */
#ifndef LS_STATE_STATE_INT_H
#define LS_STATE_STATE_INT_H

#include "lockstep_state.h"

#define LS_STATE_HEAD      "lockstep-state 1\n"
#define LS_STATE_ALIGN     64u
#define LS_STATE_MAX_PARTS (1u << 20)
#define LS_STATE_PATH_ROOM 4096

static inline uint64_t ls_state_aligned(uint64_t offset)
{
    return (offset + LS_STATE_ALIGN - 1) / LS_STATE_ALIGN * LS_STATE_ALIGN;
}

/* folder/name + ending.  LS_ERR_INVALID: too long, or the name is none. */
ls_status_t ls_state_path(const char *folder, const char *name, const char *ending, char path[LS_STATE_PATH_ROOM]);

#endif

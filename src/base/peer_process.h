/* SPDX-License-Identifier: Apache-2.0 */
/* Another process of this machine: does it still run?  Its start time tells it from a later one with its number. */
#ifndef LS_BASE_PEER_PROCESS_H
#define LS_BASE_PEER_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

/* When the process began, in the kernel's ticks. */
#define LS_PEER_PROCESS_ENDED   0
#define LS_PEER_PROCESS_UNKNOWN UINT64_MAX /* /proc cannot be read now */

typedef struct ls_peer_process {
    int64_t  pid;
    uint64_t started;
} ls_peer_process_t;

uint64_t ls_peer_process_start(int64_t pid);

/* True when it is over: gone, a zombie, or its number is another's. */
bool ls_peer_process_has_ended(const ls_peer_process_t *process);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* How the scheduler of the system treats a thread. */
#ifndef LS_BASE_THREAD_H
#define LS_BASE_THREAD_H

/*
 * Ask for short slices for the calling thread: it works seldom and briefly, and what it waits for others wait for too.
 * From Linux 6.12 on a thread with a shorter slice takes the core from one with a longer as soon as it is woken; it gets
 * no larger share of the core, and needs no rights.  Older systems take no notice.
 */
void ls_thread_ask_short_slices(void);

#endif

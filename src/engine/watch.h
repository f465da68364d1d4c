/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The watch: a small thread that keeps the pulse going while the engine works and the script computes, and that ends
 * the process when a rank is lost and nobody else does.
 *
 *   a rank is lost --> the engine fails everything, once, with the verdict --> the script gets the error and ends
 *                 `--> after LOCKSTEP_GRACE_S it has not come to a collective: the watch ends the process
 *
 * A process that finds itself given up by the others (it was frozen and woke up) ends at once.
 */
#ifndef LS_ENGINE_WATCH_H
#define LS_ENGINE_WATCH_H

#include "lockstep.h"
#include "transport/pulse.h"

/* Exit code of a process that the watch ends. */
#define LS_WATCH_EXIT_CODE 70

typedef struct ls_watch *ls_watch_h;

/* Takes the pulse, also on failure. */
ls_status_t ls_watch_start(ls_context_h ctx, ls_pulse_h pulse, ls_watch_h *watch_p);
void        ls_watch_stop(ls_watch_h watch, bool is_orderly); /* NULL is allowed */

/* ---- engine thread ------------------------------------------------------------------------------ */

/* A rank is lost: `text`, of LS_PULSE_TEXT_ROOM, says which and why. */
bool ls_watch_find_lost(ls_watch_h watch, uint32_t *rank_p, char *text);

/* Must this rank tell others in control messages, too?  Who found it out does, which is fastest, and one of each node. */
bool ls_watch_must_tell(ls_watch_h watch, uint32_t lost);

/* The job is lost because a rank is: from now on the process has its time of grace.  True if the caller shall say so:
 * one of the two threads does. */
bool ls_watch_note_lost(ls_watch_h watch);

/* The script has got the error. */
void ls_watch_note_noticed(ls_watch_h watch);

/* ---- any thread ---------------------------------------------------------------------------------- */

/* This process exits without stopping. */
void ls_watch_note_exit(ls_watch_h watch, const char *reason);

ls_pulse_h ls_watch_pulse(ls_watch_h watch);

#endif

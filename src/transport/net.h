/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The net: one rank's view of all the others.  Knows who sits where, picks the transport for each
 * peer, owns the stages.  Two ways to make one: net_mpi (processes of an MPI job) and net_local
 * (threads of this process).  All functions by who has the engine's turn unless said otherwise.
 */
#ifndef LS_TRANSPORT_NET_H
#define LS_TRANSPORT_NET_H

#include "algo/algo.h"
#include "base/bell.h"
#include "base/config.h"
#include "transport/pulse.h"
#include "transport/transport.h"

typedef struct ls_net *ls_net_h;

typedef struct ls_net_place {
    uint32_t      rank;
    uint32_t      local_rank, local_size;
    const char   *host;
    const char   *description; /* "shared memory", "MPI (Open MPI 4.1.4)", ... for the start line */
    ls_topology_t topology;    /* node_of and dims valid until destroy */
} ls_net_place_t;

/* Collective over the job.  LS_ERR_CONFIG when job-wide settings differ: names setting and ranks. */
ls_status_t ls_net_create_mpi(const ls_config_t *config, ls_net_h *net_p);
ls_status_t ls_net_create_local(ls_local_job_h job, unsigned rank, const ls_config_t *config,
                                ls_net_h *net_p);

/* A rank of threads that has failed before it came to create: tell the others, who wait for it. Returns `status`. */
ls_status_t ls_net_refuse_local(ls_local_job_h job, unsigned rank, ls_status_t status);

/* The caller has made sure that no rank still needs this one (a barrier), or that the job is lost
 * (is_orderly false: no MPI call that could wait for others). */
void ls_net_destroy(ls_net_h net, bool is_orderly);

const ls_net_place_t *ls_net_place(ls_net_h net);

/* The pulse of the job, from now on the caller's, to be destroyed after the net.  NULL: there is none. */
ls_pulse_h ls_net_take_pulse(ls_net_h net);

/* The bell that wakes this engine: rung by other ranks' sends; ring it too for local work. Any thread. */
ls_bell_t *ls_net_bell(ls_net_h net);

/* ---- data ----------------------------------------------------------------------------------- */

/* A stage of at least `bytes`; its data is not cleared.  Grows the pool when all are in use. */
ls_status_t ls_net_stage(ls_net_h net, size_t bytes, ls_stage_t **stage_p);
void        ls_net_unstage(ls_net_h net, ls_stage_t *stage); /* give back unsent */

/* Has so much been sent and not yet read that a sender who awaits nothing should pause? */
bool ls_net_is_overdrawn(ls_net_h net);

/* Send stage->data[0 .. bytes) to each peer with key | messages[i].  Takes the stage. */
ls_status_t ls_net_send(ls_net_h net, ls_stage_t *stage, size_t bytes, ls_key_t key,
                        uint32_t contributors, const uint32_t *peers, const uint32_t *messages,
                        uint32_t num_peers);
ls_status_t ls_net_expect(ls_net_h net, uint32_t peer, ls_key_t key, size_t bytes);
bool        ls_net_match(ls_net_h net, uint32_t peer, ls_key_t key, ls_message_t *message_p);
void        ls_net_release(ls_net_h net, ls_message_t *message);

/* May this rank write over the bytes of the message (it is their only reader) and give them back to their sender? */
bool ls_net_can_answer(ls_net_h net, const ls_message_t *message);

/* Give back the message, with bytes that may be others; instead of ls_net_release. */
ls_status_t ls_net_answer(ls_net_h net, const ls_message_t *message, ls_key_t key, uint32_t contributors);

/* ---- control -------------------------------------------------------------------------------- */

/* Any size, copied; in order per pair.  To itself is allowed.  Comes out of poll whole; the message
 * is valid until ls_net_release. */
ls_status_t ls_net_send_control(ls_net_h net, uint32_t peer, const void *data, size_t bytes);
bool        ls_net_poll_control(ls_net_h net, ls_message_t *message_p);

/* ---- time ----------------------------------------------------------------------------------- */

ls_status_t ls_net_progress(ls_net_h net, bool *moved_p);

/* Messages to ranks of this node wait for room there. */
bool ls_net_has_unsent(ls_net_h net);

/* Something is outstanding that no bell announces. */
bool ls_net_needs_polling(ls_net_h net);

/* Did control messages come that nobody has taken? */
bool ls_net_has_control(ls_net_h net);

/* True if ranks sit on other nodes: control messages then come without a bell, so an idle engine must
 * look from time to time. */
bool ls_net_has_remote(ls_net_h net);

/* May other threads than the engine's call these functions, one at a time?  Not where MPI is among the ways. */
bool ls_net_is_for_any_thread(ls_net_h net);

/* A rank of this node that has left without stopping, with a sentence that says so; false if none.  Where there is
 * a pulse, that knows more. */
bool ls_net_find_lost(ls_net_h net, uint32_t *rank_p, char *text, size_t room);

/* Say that this rank leaves without stopping: its peers find it lost at once.  Any thread, atexit. */
void ls_net_mark_gone(ls_net_h net, const char *reason);

/* Bytes sent so far to ranks of this node and of others. */
void ls_net_bytes_sent(ls_net_h net, uint64_t *node_p, uint64_t *net_p);

void ls_net_dump(ls_net_h net, int fd);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work: a bucket that the schedule said to run, until its requests are finished.
 *
 * Most buckets go straight to their run.  A weighted mean first exchanges the weights, an all-gather or
 * all-to-all the lengths: a small all-gather of 8-byte words under the same key (the meta run).
 * Finished work of an adopted bucket is kept by its id, so that a replayed bucket allocates nothing; with the bucket it
 * goes.  Ids of negotiated runs come round too late to be of use again.
 */
#ifndef LS_ENGINE_WORK_H
#define LS_ENGINE_WORK_H

#include "algo/algo.h"
#include "base/config.h"
#include "engine/request.h"
#include "engine/run.h"
#include "schedule/schedule.h"
#include "transport/net.h"

typedef struct ls_work {
    ls_run_t        run;
    ls_run_t        meta;
    bool            has_run, has_meta; /* initialised */
    bool            is_in_meta;
    bool            is_replay;
    bool            is_retired; /* its bucket was given up while it was under way */
    uint32_t        id, iteration;
    uint64_t        epoch; /* for ls_schedule_finished */
    uint64_t        cycle; /* of ls_waiting_t, in which its bucket ran last */
    ls_signature_t  signature; /* of the first slot */
    uint32_t        num_slots;
    ls_request_t  **requests;   /* per slot; NULL: this rank gives nothing */
    ls_part_t      *parts;      /* per slot */
    uint64_t       *meta_words; /* the own words, then all ranks' */
    uint32_t        num_meta_words;
    ls_part_t       meta_part;
    uint64_t        num_bytes; /* on the wire, for counters and trace */
    void          **temporary; /* outputs that no caller provides, per slot */
    ls_status_t     status;    /* a failure of this rank alone, told to its caller at the end */
    uint64_t        begin_ns, moved_ns, warned_ns;
    struct ls_work *next; /* list of active work */
} ls_work_t;

typedef struct ls_plan_entry {
    const ls_algo_t *algo;
    uint32_t         root;
    ls_plan_t       *plan;
} ls_plan_entry_t;

/* Everything the engine needs to turn schedule runs into work. */
typedef struct ls_work_pool {
    const ls_config_t       *config;
    const ls_net_place_t    *place;
    const ls_choice_table_t *choices;
    ls_work_t               *active; /* oldest first */
    uint64_t                 num_begun;
    ls_work_t              **idle;   /* by bucket id */
    ls_plan_entry_t         *plans;
    uint32_t                 num_plans, plans_room;
    void                    *scratch;
    ls_run_shared_t          shared;
} ls_work_pool_t;

ls_status_t ls_work_pool_init(ls_work_pool_t *pool, const ls_config_t *config, ls_net_h net,
                              const ls_choice_table_t *choices);
void        ls_work_pool_clear(ls_work_pool_t *pool);

/* Begin; the work is put on the list of active ones.  On failure the requests stay the caller's. */
ls_status_t ls_work_begin(ls_work_pool_t *pool, const ls_schedule_run_t *run, uint64_t now_ns, ls_work_t **work_p);

/* LS_OK: complete; LS_IN_PROGRESS; or failed. */
ls_status_t ls_work_progress(ls_work_pool_t *pool, ls_work_t *work, bool *moved_p);

/* Take it off the active list, and keep it for the next time if there may be one. */
void ls_work_end(ls_work_pool_t *pool, ls_work_t *work);

/* The bucket of this id was given up. */
void ls_work_forget(ls_work_pool_t *pool, uint32_t id);

/* The plan of an algorithm, made once. */
ls_status_t ls_work_get_plan(ls_work_pool_t *pool, const ls_algo_t *algo, uint32_t root, const ls_plan_t **plan_p);

/* work_data.c: cut the data and set up the run; the meta words, where there are any, are known. */
ls_status_t ls_work_prepare_data(ls_work_pool_t *pool, ls_work_t *work);

/* The run is complete: bring to the caller what was computed elsewhere. */
void ls_work_finish_data(const ls_work_pool_t *pool, ls_work_t *work);

/* work_meta.c */
bool        ls_work_needs_meta(const ls_work_t *work);
ls_status_t ls_work_prepare_meta(ls_work_pool_t *pool, ls_work_t *work);

#endif

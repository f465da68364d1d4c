/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A job for tests: one body, run by every rank.
 *
 * The same body runs with ranks as threads of this process (job_run_threads) and as processes of an
 * MPI job (job_run_mpi).  What a body finds wrong it says with JOB_CHECK; a run returns how often that
 * happened in this process.  At the end the hashes of all results of all ranks are put together into one
 * number, by which two runs can be compared (job_results).
 */
#ifndef LS_TESTS_JOB_H
#define LS_TESTS_JOB_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "lockstep.h"
#include "oracle.h"

#define JOB_MAX_RANKS    ORACLE_MAX_RANKS
#define JOB_MESSAGE_ROOM 1024

#if defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define JOB_IS_SANITIZED true
#endif
#elif defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define JOB_IS_SANITIZED true
#endif
#ifndef JOB_IS_SANITIZED
#define JOB_IS_SANITIZED false
#endif

/* What ranks that are threads share besides the library. */
typedef struct job_shared {
    _Atomic unsigned num_entered;
} job_shared_t;

typedef struct job {
    ls_context_h     ctx;
    unsigned         rank, size;
    job_shared_t    *shared;   /* NULL: ranks are processes */
    ls_dtype_t       wire;     /* what LOCKSTEP_WIRE makes of float32 */
    uint64_t         common;   /* hash of the results that must be equal on all ranks */
    uint64_t         own;      /* hash of all results */
    bool             is_lost;  /* the body has broken the job: nothing more can be asked of it */
    _Atomic unsigned failures; /* any thread */
} job_t;

typedef void (*job_body_fn)(job_t *job, void *arg);

/* Number of failed checks of all ranks of this process. */
int job_run_threads(unsigned num_ranks, job_body_fn body, void *arg);
int job_run_mpi(job_body_fn body, void *arg);

/* Hash of all results of all ranks of the last run, as rank 0 saw it. */
uint64_t job_results(void);

/* Does this process hold rank 0, i.e. should it print?  After a run. */
bool job_has_rank_0(void);

__attribute__((format(printf, 4, 5))) void job_fail(job_t *job, const char *file, int line,
                                                    const char *format, ...);

/* JOB_CHECK(job, condition, "what is wrong, with %s", values) */
#define JOB_CHECK(_job, _condition, ...)                         \
    do {                                                         \
        if (!(_condition)) {                                     \
            job_fail((_job), __FILE__, __LINE__, __VA_ARGS__);   \
        }                                                        \
    } while (0)

/* All ranks must have seen the same results so far (job->common); `what` is said if not. */
void job_check_same(job_t *job, const char *what);

/* Add a result that all ranks must have alike, or one that is this rank's own. */
void job_add_common(job_t *job, const void *data, size_t bytes);
void job_add_own(job_t *job, const void *data, size_t bytes);

/* One word from every rank, through the library itself.  words[r] is rank r's. */
void job_gather_words(job_t *job, const char *name, uint64_t word, uint64_t *words);

/* ---- requests on their way ------------------------------------------------------------------ */

typedef struct job_batch {
    pthread_mutex_t lock;
    pthread_cond_t  changed;
    unsigned        num_open; /* lock */
} job_batch_t;

typedef struct job_request {
    job_batch_t *batch;
    ls_status_t  status;
    unsigned     num_done; /* how often `done` ran */
    char         message[JOB_MESSAGE_ROOM];
} job_request_t;

void job_batch_init(job_batch_t *batch);
void job_batch_wait(job_batch_t *batch); /* until all of its requests have ended */
void job_batch_destroy(job_batch_t *batch);

/* Before the asynchronous call; if the call refuses, give the request back. */
void job_request_open(job_request_t *request, job_batch_t *batch);
void job_request_refused(job_request_t *request, ls_status_t status);

/* The ls_done_fn; arg is the job_request_t. */
void job_request_done(void *arg, ls_status_t status, const char *message);

/* ---- odds and ends -------------------------------------------------------------------------- */

uint64_t job_now_ns(void);
void    *job_alloc(size_t bytes); /* ends the program if there is no memory */

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include "job.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

/* A broken engine fails everywhere: the first lines say enough. */
#define MAX_FAILURES_SAID 20

typedef struct rank_thread {
    pthread_t      thread;
    ls_local_job_h local_job;
    unsigned       rank;
    job_shared_t  *shared;
    job_body_fn    body;
    void          *arg;
    int            num_failures;
} rank_thread_t;

/* Of the last run.  Written by the thread of rank 0, read after the run. */
static uint64_t last_results;
static bool     has_rank_0;

void job_fail(job_t *job, const char *file, int line, const char *format, ...)
{
    const unsigned before = atomic_fetch_add(&job->failures, 1);
    char           text[2 * JOB_MESSAGE_ROOM];
    va_list        args;

    if (before >= MAX_FAILURES_SAID) {
        return;
    }
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    fprintf(stderr, "%s:%d: rank %u of %u: %s%s\n", file, line, job->rank, job->size, text,
            before + 1 == MAX_FAILURES_SAID ? " (what follows is not printed)" : "");
}

uint64_t job_now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000ULL + (uint64_t)now.tv_nsec;
}

void *job_alloc(size_t bytes)
{
    void *memory = malloc(bytes > 0 ? bytes : 1);

    if (memory == NULL) {
        perror("malloc");
        abort();
    }
    return memory;
}

/* ---- results -------------------------------------------------------------------------------- */

typedef struct gather {
    job_t      *job;
    const char *name;
    uint64_t   *words;
} gather_t;

static void *words_room(void *arg, const uint64_t *counts, unsigned num_ranks)
{
    gather_t *gather = arg;

    JOB_CHECK(gather->job, num_ranks == gather->job->size, "%s: parts of %u ranks", gather->name, num_ranks);
    for (unsigned rank = 0; rank < num_ranks; rank++) {
        if (counts[rank] != 1) {
            job_fail(gather->job, __FILE__, __LINE__, "%s: rank %u gives %llu words", gather->name, rank,
                     (unsigned long long)counts[rank]);
            return NULL;
        }
    }
    return gather->words;
}

void job_gather_words(job_t *job, const char *name, uint64_t word, uint64_t *words)
{
    gather_t          gather = {.job = job, .name = name, .words = words};
    const ls_tensor_t tensor = {.name = name, .dtype = LS_INT64, .input = &word, .count = 1};
    ls_status_t       status;

    memset(words, 0, job->size * sizeof(*words));
    status = ls_allgather(job->ctx, &tensor, words_room, &gather);
    JOB_CHECK(job, status == LS_OK, "%s: %s: %s", name, ls_status_str(status), ls_last_error());
}

void job_check_same(job_t *job, const char *what)
{
    uint64_t words[JOB_MAX_RANKS];

    job_gather_words(job, "job/same", job->common, words);
    for (unsigned rank = 0; rank < job->size; rank++) {
        JOB_CHECK(job, words[rank] == job->common, "%s: results differ from those of rank %u", what, rank);
    }
}

void job_add_common(job_t *job, const void *data, size_t bytes)
{
    job->common = oracle_hash(job->common, data, bytes);
}

void job_add_own(job_t *job, const void *data, size_t bytes)
{
    job->own = oracle_hash(job->own, data, bytes);
}

static void gather_results(job_t *job)
{
    uint64_t words[JOB_MAX_RANKS];

    job_gather_words(job, "job/results", oracle_mix(job->common, job->own), words);
    if (job->rank == 0) {
        last_results = oracle_hash(0, words, job->size * sizeof(words[0]));
    }
}

uint64_t job_results(void)
{
    return last_results;
}

bool job_has_rank_0(void)
{
    return has_rank_0;
}

/* ---- running -------------------------------------------------------------------------------- */

static ls_dtype_t wire_type(void)
{
    const char *wire = getenv("LOCKSTEP_WIRE");

    wire = wire != NULL ? wire : "";
    return strcasecmp(wire, "bfloat16") == 0  ? LS_BFLOAT16
           : strcasecmp(wire, "float16") == 0 ? LS_FLOAT16
                                              : LS_FLOAT32;
}

static int run_rank(const ls_start_params_t *params, job_shared_t *shared, job_body_fn body, void *arg)
{
    job_t             job = {.shared = shared, .wire = wire_type()};
    const ls_status_t status = ls_start(params, &job.ctx);

    if (status != LS_OK) {
        fprintf(stderr, "ls_start: %s: %s\n", ls_status_str(status), ls_last_error());
        return 1;
    }
    job.rank = ls_rank(job.ctx);
    job.size = ls_size(job.ctx);
    if (job.size > JOB_MAX_RANKS) {
        fprintf(stderr, "these tests take up to %d ranks\n", JOB_MAX_RANKS);
        abort();
    }
    if (job.rank == 0) {
        has_rank_0 = true;
    }
    body(&job, arg);
    if (!job.is_lost) {
        gather_results(&job);
    }
    ls_stop(job.ctx);
    return (int)atomic_load(&job.failures);
}

static void *rank_main(void *arg)
{
    rank_thread_t          *self = arg;
    const ls_start_params_t params = {.local_job = self->local_job, .local_rank = self->rank};

    self->num_failures = run_rank(&params, self->shared, self->body, self->arg);
    return NULL;
}

int job_run_threads(unsigned num_ranks, job_body_fn body, void *arg)
{
    rank_thread_t  ranks[JOB_MAX_RANKS];
    job_shared_t   shared = {0};
    ls_local_job_h local_job;
    int            num_failures = 0;

    if (ls_local_job_create(num_ranks, &local_job) != LS_OK) {
        fprintf(stderr, "ls_local_job_create: %s\n", ls_last_error());
        return 1;
    }
    for (unsigned rank = 0; rank < num_ranks; rank++) {
        ranks[rank] = (rank_thread_t){.local_job = local_job, .rank = rank, .shared = &shared,
                                      .body = body, .arg = arg};
        if (pthread_create(&ranks[rank].thread, NULL, rank_main, &ranks[rank]) != 0) {
            perror("pthread_create");
            abort();
        }
    }
    for (unsigned rank = 0; rank < num_ranks; rank++) {
        pthread_join(ranks[rank].thread, NULL);
        num_failures += ranks[rank].num_failures;
    }
    ls_local_job_destroy(local_job);
    return num_failures;
}

int job_run_mpi(job_body_fn body, void *arg)
{
    return run_rank(NULL, NULL, body, arg);
}

/* ---- requests ------------------------------------------------------------------------------- */

void job_batch_init(job_batch_t *batch)
{
    pthread_mutex_init(&batch->lock, NULL);
    pthread_cond_init(&batch->changed, NULL);
    batch->num_open = 0;
}

void job_batch_wait(job_batch_t *batch)
{
    pthread_mutex_lock(&batch->lock);
    while (batch->num_open > 0) {
        pthread_cond_wait(&batch->changed, &batch->lock);
    }
    pthread_mutex_unlock(&batch->lock);
}

void job_batch_destroy(job_batch_t *batch)
{
    pthread_cond_destroy(&batch->changed);
    pthread_mutex_destroy(&batch->lock);
}

void job_request_open(job_request_t *request, job_batch_t *batch)
{
    request->batch = batch;
    request->status = LS_IN_PROGRESS;
    request->num_done = 0;
    request->message[0] = '\0';
    pthread_mutex_lock(&batch->lock);
    batch->num_open++;
    pthread_mutex_unlock(&batch->lock);
}

static void request_close(job_request_t *request, ls_status_t status, const char *message)
{
    job_batch_t *batch = request->batch;

    pthread_mutex_lock(&batch->lock);
    request->status = status;
    snprintf(request->message, sizeof(request->message), "%s", message);
    batch->num_open--;
    pthread_cond_broadcast(&batch->changed);
    pthread_mutex_unlock(&batch->lock);
}

void job_request_refused(job_request_t *request, ls_status_t status)
{
    request_close(request, status, ls_last_error());
}

void job_request_done(void *arg, ls_status_t status, const char *message)
{
    job_request_t *request = arg;

    request->num_done++;
    request_close(request, status, message);
}

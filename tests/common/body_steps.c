/* SPDX-License-Identifier: Apache-2.0 */
/* Many equal steps, as training makes them: nothing may be said any more, and nothing may grow. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bodies.h"
#include "trial.h"

#define TENSORS_PER_STEP 20
#define WARM_UP_STEPS    200
#define CHECK_PERIOD     100
#define MEMORY_SLACK_KIB 1024

/* What this process holds. */
typedef struct usage {
    long          memory_kib; /* its own, not the shared */
    unsigned      num_fds, num_threads;
    unsigned      num_shared; /* mappings of shared memory, named or not */
    ls_counters_t counters;
} usage_t;

static unsigned count_entries(const char *path)
{
    DIR     *directory = opendir(path);
    unsigned num_entries = 0;

    if (directory != NULL) {
        while (readdir(directory) != NULL) {
            num_entries++;
        }
        closedir(directory);
    }
    return num_entries;
}

static unsigned count_shared_mappings(void)
{
    FILE    *maps = fopen("/proc/self/maps", "r");
    char     line[512];
    unsigned num_mappings = 0;

    if (maps != NULL) {
        while (fgets(line, sizeof(line), maps) != NULL) {
            num_mappings += strstr(line, "/dev/shm/") != NULL || strstr(line, "/memfd:") != NULL;
        }
        fclose(maps);
    }
    return num_mappings;
}

/* Memory of this process alone.  Shared memory has its room from the start: pages of it that are touched late
 * are no growth, and more of it would be another mapping. */
static long read_memory_kib(void)
{
    FILE *status = fopen("/proc/self/status", "r");
    char  line[256];
    long  kib = 0;

    if (status != NULL) {
        while (fgets(line, sizeof(line), status) != NULL && sscanf(line, "RssAnon: %ld", &kib) != 1) {
        }
        fclose(status);
    }
    return kib;
}

/* Ranks that are threads hold the same things: one of them looks, or they would count each other's looking. */
static usage_t read_usage(job_t *job)
{
    usage_t usage = {0};

    if (job->shared == NULL || job->rank == 0) {
        usage = (usage_t){.memory_kib = read_memory_kib(), .num_fds = count_entries("/proc/self/fd"),
                          .num_threads = count_entries("/proc/self/task"),
                          .num_shared = count_shared_mappings()};
    }
    ls_counters(job->ctx, &usage.counters);
    return usage;
}

static void check_flat(job_t *job, const usage_t *before, const usage_t *after, unsigned num_steps)
{
    const ls_counters_t *was = &before->counters, *is = &after->counters;

    JOB_CHECK(job, JOB_IS_SANITIZED || after->memory_kib <= before->memory_kib + MEMORY_SLACK_KIB,
              "memory grew from %ld to %ld KiB", before->memory_kib, after->memory_kib);
    JOB_CHECK(job, after->num_fds <= before->num_fds, "open files grew from %u to %u", before->num_fds,
              after->num_fds);
    JOB_CHECK(job, after->num_threads <= before->num_threads, "threads grew from %u to %u",
              before->num_threads, after->num_threads);
    JOB_CHECK(job, after->num_shared <= before->num_shared, "shared mappings grew from %u to %u",
              before->num_shared, after->num_shared);
    JOB_CHECK(job, is->requests - was->requests == (uint64_t)num_steps * TENSORS_PER_STEP,
              "%llu requests counted in %u steps", (unsigned long long)(is->requests - was->requests),
              num_steps);
    JOB_CHECK(job, is->control_messages == was->control_messages, "%llu control messages in %u equal steps",
              (unsigned long long)(is->control_messages - was->control_messages), num_steps);
    JOB_CHECK(job, is->buckets_negotiated == was->buckets_negotiated, "%llu buckets negotiated in %u equal steps",
              (unsigned long long)(is->buckets_negotiated - was->buckets_negotiated), num_steps);
    JOB_CHECK(job, is->buckets_replayed - was->buckets_replayed >= num_steps, "%llu buckets replayed in %u steps",
              (unsigned long long)(is->buckets_replayed - was->buckets_replayed), num_steps);
    JOB_CHECK(job, is->requests_failed == 0, "%llu requests failed", (unsigned long long)is->requests_failed);
}

typedef struct step_room {
    float         values[TENSORS_PER_STEP][256];
    char          names[TENSORS_PER_STEP][32];
    job_request_t requests[TENSORS_PER_STEP];
    job_batch_t   batch;
} step_room_t;

static float input_of(unsigned rank, unsigned step, unsigned tensor)
{
    return (float)(rank + 1) * (float)(tensor + 1) + (float)(step % 7);
}

static void check_step(job_t *job, const step_room_t *room, unsigned step, uint64_t count)
{
    for (unsigned i = 0; i < TENSORS_PER_STEP; i++) {
        float sum = 0; /* of small whole numbers: exact, but for a wire type */

        for (unsigned rank = 0; rank < job->size; rank++) {
            sum += input_of(rank, step, i);
        }
        for (uint64_t at = 0; at < count; at++) {
            const float got = room->values[i][at];

            JOB_CHECK(job, got == sum || job->wire != LS_FLOAT32, "step %u: %s[%llu] is %g, not %g", step,
                      room->names[i], (unsigned long long)at, (double)got, (double)sum);
        }
    }
}

/* The order turns from step to step, and is another one on each rank. */
static void run_step(job_t *job, step_room_t *room, unsigned step)
{
    const uint64_t count = sizeof(room->values[0]) / sizeof(float);

    for (unsigned i = 0; i < TENSORS_PER_STEP; i++) {
        for (uint64_t at = 0; at < count; at++) {
            room->values[i][at] = input_of(job->rank, step, i);
        }
    }
    for (unsigned turn = 0; turn < TENSORS_PER_STEP; turn++) {
        const unsigned    i = (turn + step + job->rank * 3) % TENSORS_PER_STEP;
        const ls_tensor_t tensor = {.name = room->names[i], .dtype = LS_FLOAT32, .input = room->values[i],
                                    .output = room->values[i], .count = count};
        ls_status_t       status;

        job_request_open(&room->requests[i], &room->batch);
        status = ls_allreduce_async(job->ctx, &tensor, NULL, job_request_done, &room->requests[i]);
        if (status != LS_OK) {
            job_request_refused(&room->requests[i], status);
        }
    }
    job_batch_wait(&room->batch);
    for (unsigned i = 0; i < TENSORS_PER_STEP; i++) {
        JOB_CHECK(job, room->requests[i].status == LS_OK, "step %u: %s: %s", step, room->names[i],
                  room->requests[i].message);
    }
    if (step % CHECK_PERIOD == 0) {
        check_step(job, room, step, count);
        job_add_common(job, room->values, sizeof(room->values));
    }
}

void body_steps(job_t *job, void *arg)
{
    const body_params_t *params = arg;
    const unsigned       num_steps = params->num_steps != 0 ? params->num_steps : 10000;
    step_room_t         *room = job_alloc(sizeof(*room));
    usage_t              before, after;

    job_batch_init(&room->batch);
    for (unsigned i = 0; i < TENSORS_PER_STEP; i++) {
        snprintf(room->names[i], sizeof(room->names[i]), "steps/%u", i);
    }
    for (unsigned step = 0; step < WARM_UP_STEPS; step++) {
        run_step(job, room, step);
    }
    before = read_usage(job);
    for (unsigned step = 0; step < num_steps && atomic_load(&job->failures) == 0; step++) {
        run_step(job, room, WARM_UP_STEPS + step);
    }
    after = read_usage(job);
    check_flat(job, &before, &after, num_steps);
    job_batch_destroy(&room->batch);
    free(room);
    job_check_same(job, "steps");
}

/* One by one, so that nothing is fused and each name wants a bucket of its own. */
void body_many(job_t *job, void *arg)
{
    const body_params_t *params = arg;
    const unsigned       num_names = params->num_steps != 0 ? params->num_steps : 2500;

    for (unsigned repeat = 0; repeat < 3; repeat++) {
        for (unsigned i = 0; i < num_names && atomic_load(&job->failures) == 0; i++) {
            int64_t           value = (int64_t)i + job->rank, sum = 0;
            const int64_t     n = job->size;
            char              name[32];
            const ls_tensor_t tensor = {.name = name, .dtype = LS_INT64, .input = &value, .output = &sum,
                                        .count = 1};
            ls_status_t       status;

            snprintf(name, sizeof(name), "many/%u", i);
            status = ls_allreduce(job->ctx, &tensor, NULL);
            JOB_CHECK(job, status == LS_OK, "%s: %s: %s", name, ls_status_str(status), ls_last_error());
            JOB_CHECK(job, sum == n * (int64_t)i + n * (n - 1) / 2, "%s is %lld in round %u", name,
                      (long long)sum, repeat);
            job_add_common(job, &sum, sizeof(sum));
        }
    }
    job_check_same(job, "many");
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trains for a long time under bad conditions, and looks whether anything grows.
 *
 *     mpirun -n 4 soak_job SECONDS [SEED]
 *
 * Each step reduces some of the tensors, in another order on each rank, and takes their means from the weights.  Which
 * tensors, and how long they are, changes now and then for all ranks alike: the schedule has to be agreed anew.  Ranks are
 * late at random, by little often and by seconds seldom.  Now and then the hash of the weights is compared.
 *
 * It begins with many short phases: memory for a size of message is taken when it is first needed, and must not look like
 * growth.  After that, and a fifth of the time, the memory, descriptors, threads and shared memory of the process are noted; at the end they must
 * be the same, the process's own memory to 2 MiB.  Prints a line per rank: "flat" or "grown", with the numbers; exit code 0 or 5.
 *
 * Shared memory is claimed whole when a rank makes it, so what counts is what is mapped, and that may not grow by a page.  Its pages come
 * into the memory of another rank (RssShmem) one by one, when that rank first reads a message that lies there: 0 <= touched <= mapped.  This
 * number goes up slowly towards its bound, whenever a stage is the first time as full; it is shown, and means no memory.
 */
#include <dirent.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/stages.h"
#include "lockstep.h"

#define NUM_TENSORS  24
#define MAX_COUNT    40000
#define AUDIT_STEPS  50
#define PHASE_STEPS  400       /* between two changes of what is reduced */
#define WARM_PHASES  300
#define WARM_STEPS   8          /* of each: enough for its tensors to be adopted and replayed */
#define MEMORY_KIB   (2 * 1024) /* that the process may be larger by: allocators keep what is freed */
#define CODE_GROWN   5
#define CODE_FAILED  4

typedef struct usage {
    long memory_kib, taken_kib, mapped_kib, touched_kib, descriptors, threads; /* taken: for messages; mapped: all that is shared */
} usage_t;

static ls_context_h ctx;
static float        weights[NUM_TENSORS][MAX_COUNT], grads[NUM_TENSORS][MAX_COUNT];
static uint64_t     common, own; /* states of two generators: equal on all ranks, and different */

static double now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static uint64_t draw(uint64_t *state, uint64_t below)
{
    uint64_t mixed = (*state += 0x9e3779b97f4a7c15ULL);

    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9ULL;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebULL;
    return (mixed ^ (mixed >> 31)) % below;
}

static void must(ls_status_t status)
{
    if (status != LS_OK) {
        fprintf(stderr, "rank %u: %s\n", ls_rank(ctx), ls_last_error());
        exit(CODE_FAILED);
    }
}

/* A number of a line "Name:  123" of /proc/self/status. */
static long status_number(const char *name)
{
    char  line[256];
    long  number = 0;
    FILE *file   = fopen("/proc/self/status", "r");

    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        if (strncmp(line, name, strlen(name)) == 0) {
            number = strtol(line + strlen(name), NULL, 10);
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return number;
}

/* All shared mappings of the process, those of MPI too; not the files that are its programs. */
static long mapped_kib(void)
{
    char          line[1024], rights[8];
    unsigned long from, to, bytes = 0;
    FILE         *file = fopen("/proc/self/maps", "r");

    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        if (sscanf(line, "%lx-%lx %7s", &from, &to, rights) == 3 && rights[3] == 's') {
            bytes += to - from;
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return (long)(bytes / 1024);
}

static usage_t measure(void)
{
    usage_t usage   = {.memory_kib = status_number("RssAnon:"), .taken_kib = (long)(stages_taken(ctx) / 1024),
                       .mapped_kib = mapped_kib(), .touched_kib = status_number("RssShmem:"),
                       .threads = status_number("Threads:")};
    DIR    *listing = opendir("/proc/self/fd");

    while (readdir(listing) != NULL) {
        usage.descriptors++;
    }
    closedir(listing);
    return usage;
}

/* Mostly nothing; often a little; seldom a straggler. */
static void be_late(void)
{
    const uint64_t chance = draw(&own, 10000);

    if (chance < 3) {
        usleep((useconds_t)(500000 + draw(&own, 2000000)));
    } else if (chance < 2000) {
        usleep((useconds_t)draw(&own, 5000));
    }
}

static void shuffle(unsigned order[NUM_TENSORS], unsigned count)
{
    for (unsigned i = count; i > 1; i--) {
        const unsigned other = (unsigned)draw(&own, i), kept = order[i - 1];

        order[i - 1] = order[other];
        order[other] = kept;
    }
}

/* What this phase reduces; the same on all ranks. */
static unsigned choose(unsigned chosen[NUM_TENSORS], unsigned counts[NUM_TENSORS])
{
    unsigned number = 0;

    for (unsigned i = 0; i < NUM_TENSORS; i++) {
        counts[i] = 1 + (unsigned)draw(&common, draw(&common, 4) == 0 ? MAX_COUNT : 500);
        if (draw(&common, 4) != 0) {
            chosen[number++] = i;
        }
    }
    return number;
}

/* Names carry the phase: a tensor of another length is another tensor. */
static void step(unsigned long phase, const unsigned *chosen, unsigned number, const unsigned *counts)
{
    ls_tensor_t tensors[NUM_TENSORS];
    char        names[NUM_TENSORS][32];
    unsigned    order[NUM_TENSORS];

    memcpy(order, chosen, number * sizeof(*order));
    shuffle(order, number);
    for (unsigned i = 0; i < number; i++) {
        const unsigned tensor = order[i];

        snprintf(names[i], sizeof(names[i]), "w%u/%lu", tensor, phase % 3);
        for (unsigned k = 0; k < counts[tensor]; k++) {
            grads[tensor][k] = (float)draw(&own, 2001) / 1000.0f - 1.0f;
        }
        tensors[i] = (ls_tensor_t){.name = names[i], .dtype = LS_FLOAT32, .input = grads[tensor], .output = grads[tensor],
                                   .count = counts[tensor]};
    }
    be_late();
    must(ls_allreduce_group(ctx, tensors, number, &(ls_reduce_t){.op = LS_MEAN}));
    for (unsigned i = 0; i < number; i++) {
        for (unsigned k = 0; k < counts[chosen[i]]; k++) {
            weights[chosen[i]][k] -= 0.01f * grads[chosen[i]][k];
        }
    }
}

static void audit(unsigned long number)
{
    const int64_t hash = (int64_t)ls_hash(weights, sizeof(weights));
    int64_t       both[2] = {hash, ~hash};
    ls_tensor_t   tensor  = {.name = "audit", .dtype = LS_INT64, .input = both, .output = both, .count = 2};

    must(ls_allreduce(ctx, &tensor, &(ls_reduce_t){.op = LS_MAX}));
    if (both[0] != ~both[1]) {
        fprintf(stderr, "rank %u: the weights differ after step %lu\n", ls_rank(ctx), number);
        exit(CODE_FAILED);
    }
}

static void warm_up(void)
{
    unsigned chosen[NUM_TENSORS], counts[NUM_TENSORS];

    for (unsigned phase = 0; phase < WARM_PHASES; phase++) {
        const unsigned number = choose(chosen, counts);

        for (unsigned i = 0; i < WARM_STEPS; i++) {
            step(phase, chosen, number, counts);
        }
    }
}

/* Rank 0's clock decides for all. */
static bool is_over(double begin, double seconds, double *elapsed_p)
{
    double      elapsed = now_s() - begin;
    ls_tensor_t tensor  = {.name = "clock", .dtype = LS_FLOAT64, .input = &elapsed, .output = &elapsed, .count = 1};

    must(ls_broadcast(ctx, &tensor, 0));
    *elapsed_p = elapsed;
    return elapsed >= seconds;
}

static bool report(const usage_t *before, const usage_t *after, unsigned long steps, unsigned long audits)
{
    const bool is_flat = after->memory_kib <= before->memory_kib + MEMORY_KIB && after->taken_kib <= before->taken_kib &&
                         after->mapped_kib <= before->mapped_kib && after->touched_kib <= after->mapped_kib &&
                         after->descriptors <= before->descriptors && after->threads <= before->threads;

    printf("rank %u: %s: %lu steps, %lu audits, %zu answers; memory %ld to %ld KiB, shared: taken %ld to %ld KiB, mapped %ld to %ld KiB, "
           "touched %ld to %ld KiB; descriptors %ld to %ld, threads %ld to %ld\n", ls_rank(ctx), is_flat ? "flat" : "grown", steps,
           audits, stages_answered(ctx), before->memory_kib, after->memory_kib, before->taken_kib, after->taken_kib,
           before->mapped_kib, after->mapped_kib, before->touched_kib, after->touched_kib, before->descriptors,
           after->descriptors, before->threads, after->threads);
    fflush(stdout);
    return is_flat;
}

int main(int argc, char **argv)
{
    const double  seconds = argc > 1 ? strtod(argv[1], NULL) : 10;
    usage_t       before = {0}, after;
    unsigned      chosen[NUM_TENSORS], counts[NUM_TENSORS], number = 0;
    unsigned long steps = 0;
    double        begin, elapsed;
    bool          is_flat, is_noted = false, is_at_end = false;

    must(ls_start(NULL, &ctx));
    common = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    own    = common + 1000 * (ls_rank(ctx) + 1);
    begin  = now_s();
    warm_up();
    while (!is_at_end) {
        if (steps % PHASE_STEPS == 0) {
            number = choose(chosen, counts);
        }
        step(steps / PHASE_STEPS, chosen, number, counts);
        steps++;
        if (steps % AUDIT_STEPS == 0) {
            audit(steps);
            is_at_end = is_over(begin, seconds, &elapsed);
            if (!is_noted && elapsed > seconds / 5) {
                is_noted = true;
                before   = measure();
            }
        }
    }
    after   = measure();
    is_flat = report(&before, &after, steps, steps / AUDIT_STEPS);
    ls_stop(ctx);
    return is_flat ? 0 : CODE_GROWN;
}

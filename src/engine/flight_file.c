/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/flight_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "engine/engine_int.h"

#define PATH_ROOM         (LS_CONFIG_TEXT_ROOM + 64)
#define LINE_ROOM         256
#define SUMMARY_EVENTS    100 /* of each rank */
#define NOBODY            UINT32_MAX

/* ---- the directory -------------------------------------------------------------------------------- */

/* Ranks that are threads share a working directory with a program that did not ask: only where it is told to. */
static bool find_path(ls_context_h ctx, char path[PATH_ROOM])
{
    if (strcmp(ctx->config.flight_dir, "off") == 0 || (ctx->watch == NULL && ctx->config.flight_dir[0] == '\0')) {
        return false;
    }
    if (ctx->config.flight_dir[0] != '\0') {
        snprintf(path, PATH_ROOM, "%s", ctx->config.flight_dir);
    } else {
        snprintf(path, PATH_ROOM, "lockstep-flight-%08x", (unsigned)ls_pulse_job(ls_watch_pulse(ctx->watch)));
    }
    return true;
}

/* -1: none.  A directory that another user has put there is not used. */
static int open_directory(ls_context_h ctx, char path[PATH_ROOM])
{
    struct stat state;
    int         fd;

    if (mkdir(path, 0700) != 0 && errno != EEXIST) {
        ls_warn("cannot make %s for the flight recorder: %s (LOCKSTEP_FLIGHT_DIR)", path, strerror(errno));
        return -1;
    }
    fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0 && (fstat(fd, &state) != 0 || state.st_uid != geteuid())) {
        close(fd);
        fd = -1;
    }
    if (fd < 0) {
        ls_warn("rank %u does not write its flight recorder: %s is not a directory of this user (LOCKSTEP_FLIGHT_DIR)",
                ctx->place.rank, path);
    }
    return fd;
}

static int open_file(int directory, const char *kind, uint32_t rank)
{
    char name[64];

    snprintf(name, sizeof(name), "%s-%u.txt", kind, rank);
    return openat(directory, name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
}

/* ---- one rank ------------------------------------------------------------------------------------- */

static void describe(ls_context_h ctx, uint32_t rank, char *text, size_t room)
{
    if (ctx->watch != NULL) {
        ls_pulse_describe(ls_watch_pulse(ctx->watch), rank, text, room);
    } else {
        snprintf(text, room, "rank %u", rank);
    }
}

static const ls_flight_ring_t *ring_of(ls_context_h ctx, uint32_t rank)
{
    return (rank == ctx->place.rank) ? ctx->flight
           : (ctx->watch == NULL)    ? NULL
                                     : ls_pulse_flight(ls_watch_pulse(ctx->watch), rank);
}

static void write_events(FILE *file, const ls_flight_ring_t *ring, uint64_t now_ns)
{
    uint64_t first, end;

    ls_flight_range(ring, &first, &end);
    fprintf(file, "step %llu; %llu events, the last %llu follow; seconds are before the writing of this file\n",
            (unsigned long long)atomic_load(&ring->step), (unsigned long long)end, (unsigned long long)(end - first));
    for (uint64_t number = first; number < end; number++) {
        ls_flight_event_t event;
        char              line[LINE_ROOM];

        if (ls_flight_read(ring, number, &event)) {
            ls_flight_print(&event, line, sizeof(line));
            fprintf(file, "%14.6f  %s\n", (double)(int64_t)(event.time_ns - now_ns) / 1e9, line);
        }
    }
}

/* A stream into memory first: the file is written in few calls, and a child of fork() has nothing to write twice. */
static void write_rank(ls_context_h ctx, int directory, uint32_t rank, const char *reason, bool with_state)
{
    const ls_flight_ring_t *ring = ring_of(ctx, rank);
    const int               fd   = (ring == NULL) ? -1 : open_file(directory, "rank", rank);
    char                    who[LINE_ROOM], *text = NULL;
    size_t                  size = 0;
    FILE                   *file = (fd < 0) ? NULL : open_memstream(&text, &size);

    if (file != NULL) {
        describe(ctx, rank, who, sizeof(who));
        fprintf(file, "lockstep flight recorder of %s, %u ranks\nwritten because: %s\n\n", who,
                ctx->place.topology.num_ranks, reason);
        write_events(file, ring, ls_clock_ns());
        fprintf(file, "\n");
        fclose(file);
        (void)!write(fd, text, size); /* what a full disk does not take is lost */
        free(text);
        if (with_state) {
            ls_dump_write(ctx, fd);
        }
    }
    if (fd >= 0) {
        close(fd);
    }
}

/* ---- the node -------------------------------------------------------------------------------------- */

typedef struct row {
    uint32_t          rank;
    ls_flight_event_t event;
} row_t;

static int compare_rows(const void *a, const void *b)
{
    const uint64_t x = ((const row_t *)a)->event.time_ns, y = ((const row_t *)b)->event.time_ns;

    return (x > y) - (x < y);
}

static size_t collect(ls_context_h ctx, uint32_t rank, row_t *rows)
{
    const ls_flight_ring_t *ring = ring_of(ctx, rank);
    uint64_t                first, end;
    size_t                  num = 0;

    if (ring == NULL) {
        return 0;
    }
    ls_flight_range(ring, &first, &end);
    first = (end - first > SUMMARY_EVENTS) ? end - SUMMARY_EVENTS : first;
    for (uint64_t number = first; number < end; number++) {
        rows[num].rank = rank;
        num += ls_flight_read(ring, number, &rows[num].event) ? 1 : 0;
    }
    return num;
}

static void print_last(ls_context_h ctx, uint32_t rank, uint64_t now_ns, int fd)
{
    const ls_flight_ring_t *ring  = ring_of(ctx, rank);
    ls_flight_event_t       event = {0};
    char                    who[LINE_ROOM], line[LINE_ROOM] = "nothing yet";
    uint64_t                first, end;

    if (ring == NULL) {
        return;
    }
    describe(ctx, rank, who, sizeof(who));
    ls_flight_range(ring, &first, &end);
    if (end > first && ls_flight_read(ring, end - 1, &event)) {
        ls_flight_print(&event, line, sizeof(line));
    }
    dprintf(fd, "%s: step %llu, last event %.3f s ago: %s\n", who, (unsigned long long)atomic_load(&ring->step),
            (event.time_ns == 0) ? 0.0 : (double)(int64_t)(now_ns - event.time_ns) / 1e9, line);
}

static void write_summary(ls_context_h ctx, int directory, const char *reason)
{
    const uint32_t num_ranks = ctx->place.topology.num_ranks;
    const uint64_t now_ns    = ls_clock_ns();
    const int      fd        = open_file(directory, "summary", ls_pulse_leader(ls_watch_pulse(ctx->watch)));
    size_t         num_rows  = 0;
    void          *mem;

    if (fd < 0) {
        return;
    }
    dprintf(fd, "the job was lost: %s\n\n", reason);
    for (uint32_t rank = 0; rank < num_ranks; rank++) {
        print_last(ctx, rank, now_ns, fd);
    }
    if (ls_mem_alloc(ctx->place.local_size * SUMMARY_EVENTS * sizeof(row_t) + sizeof(row_t), "summary", &mem) == LS_OK) {
        row_t *rows = mem;

        for (uint32_t rank = 0, seen = 0; rank < num_ranks && seen < ctx->place.local_size; rank++) {
            seen += (ring_of(ctx, rank) != NULL) ? 1 : 0;
            num_rows += collect(ctx, rank, rows + num_rows);
        }
        qsort(rows, num_rows, sizeof(*rows), compare_rows);
        dprintf(fd, "\nthe last events of each, in one row; seconds before now\n");
        for (size_t i = 0; i < num_rows; i++) {
            char line[LINE_ROOM];

            ls_flight_print(&rows[i].event, line, sizeof(line));
            dprintf(fd, "%14.6f  rank %-5u %s\n", (double)(int64_t)(rows[i].event.time_ns - now_ns) / 1e9,
                    rows[i].rank, line);
        }
        ls_mem_free(mem);
    }
    close(fd);
}

/* ---- both ------------------------------------------------------------------------------------------ */

static void write_all(ls_context_h ctx, const char *reason, bool with_state)
{
    char     path[PATH_ROOM], verdict[LS_PULSE_TEXT_ROOM];
    uint32_t lost = NOBODY;
    int      directory;

    if (!find_path(ctx, path) || (directory = open_directory(ctx, path)) < 0) {
        return;
    }
    write_rank(ctx, directory, ctx->place.rank, reason, with_state);
    if (ctx->watch != NULL && (!with_state || ctx->is_lost)) {
        (void)ls_watch_find_lost(ctx->watch, &lost, verdict);
        if (lost != ctx->place.rank && ls_pulse_claim_summary(ls_watch_pulse(ctx->watch))) {
            if (lost != NOBODY) {
                write_rank(ctx, directory, lost, reason, false);
            }
            write_summary(ctx, directory, reason);
        }
    }
    close(directory);
}

void ls_flight_file_write(ls_context_h ctx, const char *reason)
{
    write_all(ctx, reason, true);
}

void ls_flight_file_write_rings(ls_context_h ctx, const char *reason)
{
    write_all(ctx, reason, false);
}

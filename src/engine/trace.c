/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/mem.h"

#define PATH_ROOM 512

/* Written out at this size, and at the end. */
#define WRITE_BYTES 65536

/* A stream into memory, not into the file: a child of fork() that exits writes out the streams it has inherited,
 * and would write what its parent writes too. */
struct ls_trace {
    FILE    *file;
    char    *text;
    size_t   size;
    int      fd;
    unsigned rank;
};

/* What cannot be written is lost: a trace is not worth a failure. */
static void write_out(ls_trace_h trace)
{
    size_t done = 0;

    fflush(trace->file);
    while (done < trace->size) {
        const ssize_t written = write(trace->fd, trace->text + done, trace->size - done);

        if (written < 0 && errno != EINTR) {
            break;
        }
        done += (written > 0) ? (size_t)written : 0;
    }
    rewind(trace->file);
}

/* Bytes beyond ASCII are written as the characters they are in Latin-1: valid JSON whatever the name holds. */
static void put_json_text(FILE *file, const char *text)
{
    fputc('"', file);
    for (; *text != '\0'; text++) {
        const unsigned char byte = (unsigned char)*text;

        if (byte == '"' || byte == '\\') {
            fputc('\\', file);
        }
        if (byte < 0x20 || byte > 0x7E) {
            fprintf(file, "\\u%04x", byte);
        } else {
            fputc(byte, file);
        }
    }
    fputc('"', file);
}

ls_status_t ls_trace_create(const char *directory, unsigned rank, const char *host, ls_trace_h *trace_p)
{
    char        path[PATH_ROOM];
    ls_trace_h  trace;
    ls_status_t status;
    void       *mem;

    if (mkdir(directory, 0777) != 0 && errno != EEXIST) {
        return ls_error_set_errno("cannot make the trace directory %s (LOCKSTEP_TRACE)", directory);
    }
    status = ls_mem_alloc(sizeof(*trace), "trace", &mem);
    if (status != LS_OK) {
        return status;
    }
    trace       = mem;
    trace->rank = rank;
    snprintf(path, sizeof(path), "%s/rank-%u.json", directory, rank);
    trace->fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (trace->fd < 0) {
        status = ls_error_set_errno("cannot write the trace %s (LOCKSTEP_TRACE)", path);
        goto err_free;
    }
    trace->file = open_memstream(&trace->text, &trace->size);
    if (trace->file == NULL) {
        status = ls_error_set_errno("cannot keep a trace");
        goto err_close;
    }
    fprintf(trace->file, "[\n{\"ph\":\"M\",\"pid\":%u,\"name\":\"process_name\",\"args\":{\"name\":", rank);
    put_json_text(trace->file, host);
    fprintf(trace->file, "}}");
    *trace_p = trace;
    return LS_OK;

err_close:
    close(trace->fd);
err_free:
    ls_mem_free(trace);
    return status;
}

void ls_trace_add(ls_trace_h trace, const ls_trace_span_t *span)
{
    if (trace == NULL) {
        return;
    }
    fprintf(trace->file, ",\n{\"ph\":\"X\",\"pid\":%u,\"tid\":\"%s\",\"ts\":%.3f,\"dur\":%.3f,\"name\":", trace->rank,
            span->row, (double)span->begin_ns / 1e3, (double)(span->end_ns - span->begin_ns) / 1e3);
    put_json_text(trace->file, span->name);
    fprintf(trace->file, ",\"args\":{\"bytes\":%llu", (unsigned long long)span->bytes);
    if (span->detail != NULL) {
        fprintf(trace->file, ",\"detail\":");
        put_json_text(trace->file, span->detail);
    }
    fprintf(trace->file, "}}");
    if (ftello(trace->file) >= WRITE_BYTES) {
        write_out(trace);
    }
}

void ls_trace_destroy(ls_trace_h trace)
{
    if (trace != NULL) {
        fprintf(trace->file, "\n]\n");
        write_out(trace);
        fclose(trace->file);
        free(trace->text);
        close(trace->fd);
        ls_mem_free(trace);
    }
}

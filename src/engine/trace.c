/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/trace.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/mem.h"

#define PATH_ROOM 512

struct ls_trace {
    FILE    *file;
    unsigned rank;
};

static void put_json_text(FILE *file, const char *text)
{
    fputc('"', file);
    for (; *text != '\0'; text++) {
        const unsigned char byte = (unsigned char)*text;

        if (byte == '"' || byte == '\\') {
            fputc('\\', file);
        }
        if (byte < 0x20) {
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
    trace->file = fopen(path, "we");
    if (trace->file == NULL) {
        ls_mem_free(trace);
        return ls_error_set_errno("cannot write the trace %s (LOCKSTEP_TRACE)", path);
    }
    fprintf(trace->file, "[\n{\"ph\":\"M\",\"pid\":%u,\"name\":\"process_name\",\"args\":{\"name\":", rank);
    put_json_text(trace->file, host);
    fprintf(trace->file, "}}");
    *trace_p = trace;
    return LS_OK;
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
}

void ls_trace_destroy(ls_trace_h trace)
{
    if (trace != NULL) {
        fprintf(trace->file, "\n]\n");
        fclose(trace->file);
        ls_mem_free(trace);
    }
}

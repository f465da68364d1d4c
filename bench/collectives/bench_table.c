/* SPDX-License-Identifier: Apache-2.0 */
#include "bench_table.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>

#define HEADER_ROOM 4096

static void json_text(FILE *json, const char *text)
{
    fputc('"', json);
    for (const unsigned char *c = (const unsigned char *)text; *c != '\0'; c++) {
        if (*c == '"' || *c == '\\') {
            fprintf(json, "\\%c", *c);
        } else if (*c < 0x20) {
            fprintf(json, "\\u%04x", *c);
        } else {
            fputc(*c, json);
        }
    }
    fputc('"', json);
}

bool bench_table_open(bench_table_t *report, bool is_printing, const char *json_path)
{
    *report = (bench_table_t){.out = is_printing ? stdout : NULL};
    if (!is_printing || json_path == NULL) {
        return true;
    }
    report->json = fopen(json_path, "w");
    if (report->json == NULL) {
        return false;
    }
    fputs("{\"header\": {", report->json);
    return true;
}

void bench_table_header(bench_table_t *report, const char *key, const char *format, ...)
{
    char    value[HEADER_ROOM];
    va_list args;

    if (report->out == NULL) {
        return;
    }
    va_start(args, format);
    vsnprintf(value, sizeof(value), format, args);
    va_end(args);
    fprintf(report->out, "# %-10s %s\n", key, value);
    if (report->json != NULL) {
        fputs((report->num_headers > 0) ? ",\n  " : "\n  ", report->json);
        json_text(report->json, key);
        fputs(": ", report->json);
        json_text(report->json, value);
    }
    report->num_headers++;
}

void bench_table_begin(bench_table_t *report, const char *name, const char *legend,
                       const bench_column_t *columns, unsigned num_columns)
{
    report->columns     = columns;
    report->num_columns = num_columns;
    report->num_rows    = 0;
    if (report->out == NULL) {
        return;
    }
    fprintf(report->out, "#\n# %s\n# %s\n#", name, legend);
    for (unsigned i = 0; i < num_columns; i++) {
        /* The '#' takes the place of the first column's first character. */
        const int width = columns[i].width - ((i == 0) ? 1 : 0);

        fprintf(report->out, "%s%*s", columns[i].has_bar ? " | " : " ", width, columns[i].title);
    }
    fputc('\n', report->out);
    if (report->json != NULL) {
        fputs((report->num_tables == 0) ? "},\n\"tables\": [\n" : ",\n", report->json);
        fputs("  {\"name\": ", report->json);
        json_text(report->json, name);
        fputs(", \"rows\": [", report->json);
    }
    report->num_tables++;
}

static void json_cell(FILE *json, const bench_column_t *column, const bench_cell_t *cell)
{
    json_text(json, (column->key != NULL) ? column->key : column->title);
    fputs(": ", json);
    if (cell->text != NULL) {
        json_text(json, cell->text);
    } else if (isfinite(cell->number)) {
        fprintf(json, "%.10g", cell->number);
    } else {
        fputs("null", json);
    }
}

void bench_table_row(bench_table_t *report, const bench_cell_t *cells)
{
    if (report->out == NULL) {
        return;
    }
    for (unsigned i = 0; i < report->num_columns; i++) {
        const bench_column_t *column = &report->columns[i];

        fputs(column->has_bar ? " | " : " ", report->out);
        if (cells[i].text != NULL) {
            fprintf(report->out, "%*s", column->width, cells[i].text);
        } else if (isfinite(cells[i].number)) {
            fprintf(report->out, "%*.*f", column->width, column->digits, cells[i].number);
        } else {
            fprintf(report->out, "%*s", column->width, "-");
        }
    }
    fputc('\n', report->out);
    fflush(report->out);
    if (report->json != NULL) {
        fputs((report->num_rows > 0) ? ",\n    {" : "\n    {", report->json);
        for (unsigned i = 0; i < report->num_columns; i++) {
            fputs((i > 0) ? ", " : "", report->json);
            json_cell(report->json, &report->columns[i], &cells[i]);
        }
        fputc('}', report->json);
    }
    report->num_rows++;
}

void bench_table_end(bench_table_t *report)
{
    if (report->json != NULL) {
        fputs("]}", report->json);
    }
}

bool bench_table_close(bench_table_t *report, uint64_t num_wrong)
{
    bool is_written = true;

    if (report->out != NULL && num_wrong == 0) {
        fputs("# OK\n", report->out);
    } else if (report->out != NULL) {
        fprintf(report->out, "# FAILED: %" PRIu64 " wrong values\n", num_wrong);
    }
    if (report->json != NULL) {
        fputs((report->num_tables == 0) ? "},\n\"tables\": [" : "", report->json);
        fprintf(report->json, "],\n\"wrong\": %" PRIu64 ", \"ok\": %s}\n", num_wrong,
                (num_wrong == 0) ? "true" : "false");
        is_written   = !ferror(report->json);
        is_written   = (fclose(report->json) == 0) && is_written;
        report->json = NULL;
    }
    return is_written;
}

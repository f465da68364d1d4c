/* SPDX-License-Identifier: Apache-2.0 */
#include "bench_options.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "bench_collective.h"
#include "bench_data.h"

enum { OPT_JSON = 256, OPT_IN_PLACE, OPT_INFLIGHT, OPT_NO_MPI, OPT_CASE, OPT_MULTI_NODE };

static const struct option long_options[] = {
    {"help", no_argument, NULL, 'h'},
    {"json", required_argument, NULL, OPT_JSON},
    {"in-place", no_argument, NULL, OPT_IN_PLACE},
    {"inflight", required_argument, NULL, OPT_INFLIGHT},
    {"no-mpi", no_argument, NULL, OPT_NO_MPI},
    {"case", required_argument, NULL, OPT_CASE},
    {"multi-node", no_argument, NULL, OPT_MULTI_NODE},
    {NULL, 0, NULL, 0},
};

static const struct {
    const char *name;
    unsigned    bits;
} cases[] = {
    {.name = "sweep", .bits = BENCH_CASE_SWEEP}, {.name = "resnet50", .bits = BENCH_CASE_RESNET50},
    {.name = "late", .bits = BENCH_CASE_LATE},   {.name = "busy", .bits = BENCH_CASE_BUSY},
    {.name = "all", .bits = BENCH_CASE_ALL},
};

void bench_options_usage(FILE *out)
{
    fputs("usage: mpirun -n RANKS bench_collectives [options]\n"
          "Times Lockstep's collectives beside the same calls of the installed MPI and memcpy.\n"
          "\n"
          "  -b SIZE          smallest size in bytes (4); K, M and G are powers of 1024\n"
          "  -e SIZE          largest size in bytes (64M)\n"
          "  -f FACTOR        each size is the one before times this (4)\n"
          "  -n COUNT         timed iterations (as many as fit into 0.3 s, 5 to 2000; more time in\n"
          "                   the cases other than sweep)\n"
          "  -w COUNT         iterations before the clock counts (5)\n"
          "  -o OP            sum, mean, weighted_mean, min, max, product (sum)\n"
          "  -t TYPE          float16, bfloat16, float32, float64, int8, uint8, int32, int64,\n"
          "                   bool (float32)\n"
          "  -c COLLECTIVE    allreduce, broadcast, allgather, reduce_scatter, alltoall\n"
          "                   (allreduce)\n"
          "  --in-place       the output is the input\n"
          "  --inflight K     hand over K tensors of each size at once; times are per tensor (1)\n"
          "  --no-mpi         do not time MPI\n"
          "  --case CASE      sweep: one row per size (the default); resnet50: the gradients of a\n"
          "                   ResNet-50 step; late: CPU time spent waiting for a late rank;\n"
          "                   busy: beside one busy loop per rank; all: all of them\n"
          "  --multi-node     ask MPI for MPI_THREAD_MULTIPLE, which several nodes need\n"
          "  --json FILE      write everything printed to FILE as JSON too\n"
          "  --help           this text\n"
          "\n"
          "Exit code: 0 all values right, 1 a wrong value or a failure, 2 a bad command line.\n",
          out);
}

static bool parse_count(const char *flag, const char *text, unsigned low, unsigned high, unsigned *value_p,
                        char *error)
{
    char *end = NULL;

    errno                     = 0;
    const unsigned long value = strtoul(text, &end, 10);

    if (errno != 0 || end == text || *end != '\0' || text[0] == '-' || value < low || value > high) {
        snprintf(error, BENCH_ERROR_ROOM, "%s: '%s' is not a number from %u to %u", flag, text, low, high);
        return false;
    }
    *value_p = (unsigned)value;
    return true;
}

static bool parse_size(const char *flag, const char *text, uint64_t *bytes_p, char *error)
{
    static const char suffixes[] = "KMG";
    char             *end        = NULL;
    unsigned          shift      = 0;

    errno                    = 0;
    unsigned long long value = strtoull(text, &end, 10);

    if (end != text && *end != '\0' && end[1] == '\0') {
        const char *suffix = strchr(suffixes, *end & ~0x20);

        if (suffix != NULL && *suffix != '\0') {
            shift = 10U * (unsigned)(suffix - suffixes + 1);
            end++;
        }
    }
    if (errno != 0 || end == text || *end != '\0' || text[0] == '-' || value == 0 ||
        value > (1ULL << 40 >> shift)) {
        snprintf(error, BENCH_ERROR_ROOM, "%s: '%s' is not a size like 4, 64K, 16M or 1G", flag, text);
        return false;
    }
    *bytes_p = (uint64_t)value << shift;
    return true;
}

static bool parse_case(const char *text, unsigned *bits_p, char *error)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (strcmp(text, cases[i].name) == 0) {
            *bits_p = cases[i].bits;
            return true;
        }
    }
    snprintf(error, BENCH_ERROR_ROOM, "--case: '%s' is not sweep, resnet50, late, busy or all", text);
    return false;
}

static bool parse_words(int flag, const char *text, bench_options_t *options, char *error)
{
    switch (flag) {
    case 'o':
        if (bench_data_find_op(text, &options->op)) {
            return true;
        }
        snprintf(error, BENCH_ERROR_ROOM, "-o: '%s' is not an operation; see --help", text);
        return false;
    case 't':
        if (bench_data_find_type(text, &options->dtype)) {
            return true;
        }
        snprintf(error, BENCH_ERROR_ROOM, "-t: '%s' is not a type; see --help", text);
        return false;
    default:
        if (bench_collective_find(text) != NULL) {
            options->collective = text;
            return true;
        }
        snprintf(error, BENCH_ERROR_ROOM, "-c: '%s' is not a collective; see --help", text);
        return false;
    }
}

static bool parse_switch(int flag, bench_options_t *options)
{
    switch (flag) {
    case 'h':
        options->help = true;
        return true;
    case OPT_IN_PLACE:
        options->in_place = true;
        return true;
    case OPT_NO_MPI:
        options->with_mpi = false;
        return true;
    case OPT_MULTI_NODE:
        options->multi_node = true;
        return true;
    case OPT_JSON:
        options->json_path = optarg;
        return true;
    default:
        return false;
    }
}

static bool parse_flag(int flag, bench_options_t *options, char *error)
{
    uint64_t factor;

    switch (flag) {
    case 'b':
        return parse_size("-b", optarg, &options->min_bytes, error);
    case 'e':
        return parse_size("-e", optarg, &options->max_bytes, error);
    case 'f':
        if (!parse_size("-f", optarg, &factor, error)) {
            return false;
        }
        options->factor = factor;
        return true;
    case 'n':
        return parse_count("-n", optarg, 1, 1000000, &options->iterations, error);
    case 'w':
        return parse_count("-w", optarg, 0, 1000000, &options->warmup, error);
    case OPT_INFLIGHT:
        return parse_count("--inflight", optarg, 1, BENCH_INFLIGHT_MAX, &options->inflight, error);
    case OPT_CASE:
        return parse_case(optarg, &options->cases, error);
    default:
        return parse_words(flag, optarg, options, error);
    }
}

/* What no flag can see by itself. */
static bool check_together(const bench_options_t *options, char *error)
{
    const bench_collective_t *collective = bench_collective_find(options->collective);

    if (options->factor < 2) {
        snprintf(error, BENCH_ERROR_ROOM, "-f: the factor must be 2 or more");
        return false;
    }
    if (options->min_bytes > options->max_bytes) {
        snprintf(error, BENCH_ERROR_ROOM, "-b: the smallest size is above the largest (-e)");
        return false;
    }
    if (options->in_place && !collective->has_in_place) {
        snprintf(error, BENCH_ERROR_ROOM, "--in-place: %s has no in-place form", collective->name);
        return false;
    }
    if (!bench_data_has_op(options->dtype, options->op)) {
        snprintf(error, BENCH_ERROR_ROOM, "-o: type %s has no operation %s",
                 bench_data_type_name(options->dtype), bench_data_op_name(options->op));
        return false;
    }
    return true;
}

bool bench_options_parse(int argc, char **argv, bench_options_t *options_p, char error[BENCH_ERROR_ROOM])
{
    bench_options_t options = {
        .min_bytes  = 4,
        .max_bytes  = 64U << 20,
        .factor     = 4,
        .warmup     = 5,
        .inflight   = 1,
        .op         = LS_SUM,
        .dtype      = LS_FLOAT32,
        .collective = "allreduce",
        .cases      = BENCH_CASE_SWEEP,
        .with_mpi   = true,
    };
    int flag;

    opterr = 0;
    while ((flag = getopt_long(argc, argv, ":b:e:f:n:w:o:t:c:h", long_options, NULL)) != -1) {
        if (flag == ':') {
            snprintf(error, BENCH_ERROR_ROOM, "%s needs a value", argv[optind - 1]);
            return false;
        }
        if (flag == '?') {
            snprintf(error, BENCH_ERROR_ROOM, "'%s' is not an option; see --help", argv[optind - 1]);
            return false;
        }
        if (!parse_switch(flag, &options) && !parse_flag(flag, &options, error)) {
            return false;
        }
    }
    if (optind < argc) {
        snprintf(error, BENCH_ERROR_ROOM, "'%s' is not an option; see --help", argv[optind]);
        return false;
    }
    if (!options.help && !check_together(&options, error)) {
        return false;
    }
    *options_p = options;
    return true;
}

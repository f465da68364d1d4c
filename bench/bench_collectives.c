/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Times Lockstep's collectives beside those of the installed MPI, in one run.  See README.md here.
 *
 *   mpirun -n 2 --bind-to core build/openmpi/bench/bench_collectives --case all
 *
 * Everything is handed over by the main thread through the asynchronous API: what is timed is what
 * a training program sees, from just before the call to the moment its callback runs.
 */
#include <errno.h>
#include <mpi.h>
#include <sched.h>
#include <string.h>

#include "collectives/bench_job.h"
#include "collectives/bench_latch.h"

#define PROBE_COUNT  1024
#define COMMAND_ROOM 1024
#define MODEL_ROOM   256
#define EXIT_USAGE   2

static void cpu_model(char *model_p, size_t room)
{
    FILE *file = fopen("/proc/cpuinfo", "r");
    char  line[MODEL_ROOM];

    snprintf(model_p, room, "unknown");
    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        const char *value = strchr(line, ':');

        if (strncmp(line, "model name", 10) == 0 && value != NULL) {
            snprintf(model_p, room, "%.*s", (int)strcspn(value + 2, "\n"), value + 2);
            break;
        }
    }
    if (file != NULL) {
        fclose(file);
    }
}

/* What bytes really travelled by, not what was asked for: one small all-reduce tells. */
static const char *transport_in_use(ls_context_h ctx)
{
    static float  numbers[PROBE_COUNT];
    ls_tensor_t   tensor = {.name   = "bench.probe",
                            .dtype  = LS_FLOAT32,
                            .input  = numbers,
                            .output = numbers,
                            .count  = PROBE_COUNT};
    ls_counters_t counters;

    bench_latch_must(ls_allreduce(ctx, &tensor, NULL), "the first all-reduce");
    ls_counters(ctx, &counters);
    if (counters.bytes_sent_node > 0 && counters.bytes_sent_net > 0) {
        return "inside the node, and MPI between nodes";
    }
    if (counters.bytes_sent_net > 0) {
        return "MPI between nodes";
    }
    return (counters.bytes_sent_node > 0) ? "inside the node" : "none";
}

static void print_header(bench_job_t *job, int argc, char **argv)
{
    char        command[COMMAND_ROOM] = "", library[MPI_MAX_LIBRARY_VERSION_STRING];
    char        model[MODEL_ROOM];
    size_t      used      = 0;
    int         length    = 0;
    const char *transport = transport_in_use(job->ctx);
    cpu_set_t   cpus;

    for (int i = 0; i < argc && used < sizeof(command); i++) {
        used += (size_t)snprintf(command + used, sizeof(command) - used, "%s%s", (i > 0) ? " " : "", argv[i]);
    }
    MPI_Get_library_version(library, &length);
    library[strcspn(library, "\n")] = '\0';
    cpu_model(model, sizeof(model));
    CPU_ZERO(&cpus);
    sched_getaffinity(0, sizeof(cpus), &cpus);

    bench_table_header(&job->report, "version", "lockstep %s", ls_version());
    bench_table_header(&job->report, "command", "%s", command);
    bench_table_header(&job->report, "ranks", "%u", job->num_ranks);
    bench_table_header(&job->report, "nodes", "%u", ls_num_nodes(job->ctx));
    bench_table_header(&job->report, "host", "%s", ls_host(job->ctx));
    bench_table_header(&job->report, "mpi", "%s", library);
    bench_table_header(&job->report, "cpu", "%s, rank 0 may use %d", model, CPU_COUNT(&cpus));
    bench_table_header(&job->report, "transport", "%s", transport);
    bench_table_header(&job->report, "inflight", "%u%s", job->options->inflight,
                       job->options->in_place ? ", in place" : "");
}

static void run_cases(bench_job_t *job)
{
    static const struct {
        unsigned bit;
        void (*run)(bench_job_t *job);
    } cases[] = {
        {.bit = BENCH_CASE_SWEEP, .run = bench_sweep_run},
        {.bit = BENCH_CASE_RESNET50, .run = bench_resnet50_run},
        {.bit = BENCH_CASE_LATE, .run = bench_late_run},
        {.bit = BENCH_CASE_BUSY, .run = bench_busy_run},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (job->options->cases & cases[i].bit) {
            cases[i].run(job);
        }
    }
}

static int run(const bench_options_t *options, int argc, char **argv)
{
    bench_job_t job = {.options = options};

    bench_latch_must(ls_start(NULL, &job.ctx), "start");
    job.rank      = ls_rank(job.ctx);
    job.num_ranks = ls_size(job.ctx);
    if (!bench_table_open(&job.report, job.rank == 0, options->json_path)) {
        bench_latch_die("--json %s: %s", options->json_path, strerror(errno));
    }
    print_header(&job, argc, argv);
    run_cases(&job);
    if (!bench_table_close(&job.report, job.num_wrong)) {
        bench_latch_die("--json %s: %s", options->json_path, strerror(errno));
    }
    ls_stop(job.ctx);
    return (job.num_wrong == 0) ? 0 : 1;
}

int main(int argc, char **argv)
{
    char            error[BENCH_ERROR_ROOM] = "";
    bench_options_t options                 = {0};
    const bool      is_good                 = bench_options_parse(argc, argv, &options, error);
    const int       wanted   = options.multi_node ? MPI_THREAD_MULTIPLE : MPI_THREAD_SERIALIZED;
    int             provided = 0, rank = 0, code = 0;

    if (is_good && !options.help && (options.cases & BENCH_CASE_BUSY)) {
        bench_busy_prepare();
    }
    MPI_Init_thread(&argc, &argv, wanted, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (!is_good) {
        code = EXIT_USAGE;
        if (rank == 0) {
            fprintf(stderr, "bench_collectives: %s\n", error);
        }
    } else if (options.help) {
        if (rank == 0) {
            bench_options_usage(stdout);
        }
    } else if (provided < wanted) {
        bench_latch_die("this MPI does not let a second thread call it (level %d of %d)", provided, wanted);
    } else {
        code = run(&options, argc, argv);
    }
    MPI_Finalize();
    return code;
}

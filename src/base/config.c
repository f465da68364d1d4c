/* SPDX-License-Identifier: Apache-2.0 */
#include "base/config.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "base/mem.h"

#define PREFIX        "LOCKSTEP_"
#define VARIABLE_ROOM 64
#define MAX_CHOICES   6

typedef enum setting_type {
    SETTING_TEXT,
    SETTING_BOOL,
    SETTING_UINT,
    SETTING_SECONDS,
    SETTING_SIZE,
    SETTING_CHOICE
} setting_type_t;

typedef struct setting {
    const char    *name;
    const char    *value; /* default */
    setting_type_t type;
    bool           is_job_wide; /* must be equal on all ranks */
    size_t         offset;
    const char    *choices[MAX_CHOICES];
    const char    *help;
} setting_t;

static const setting_t settings[] = {
    {.name = "ALGO", .value = "", .type = SETTING_TEXT, .is_job_wide = true,
     .offset = offsetof(ls_config_t, algo),
     .help = "algorithms that replace the built-in choice, as collective:from-to:algorithm[:chunk], "
             "separated by commas; example: allreduce:64k-inf:ring"},
    {.name = "TOPOLOGY", .value = "", .type = SETTING_TEXT, .is_job_wide = true,
     .offset = offsetof(ls_config_t, topology),
     .help = "dimensions of the job, innermost first, as 4x2x2: reduced one after another; empty: "
             "ranks of a node, then nodes"},
    {.name = "NODE_SIZE", .value = "0", .type = SETTING_UINT, .is_job_wide = true,
     .offset = offsetof(ls_config_t, node_size),
     .help = "cut each host into virtual nodes of this many ranks, for tests; 0: a host is a node"},
    {.name = "FUSION_BYTES", .value = "1m", .type = SETTING_SIZE, .is_job_wide = true,
     .offset = offsetof(ls_config_t, fusion_bytes),
     .help = "largest bucket of several tensors; a larger tensor is a bucket of its own"},
    {.name = "WIRE", .value = "none", .type = SETTING_CHOICE, .is_job_wide = true,
     .offset = offsetof(ls_config_t, wire), .choices = {"none", "bfloat16", "float16"},
     .help = "type in which float32 travels in an all-reduce; anything but none rounds"},
    {.name = "SHM", .value = "on", .type = SETTING_BOOL, .is_job_wide = true,
     .offset = offsetof(ls_config_t, shm),
     .help = "shared memory between the ranks of a node; off: everything goes through MPI"},
    {.name = "STAGE_BYTES", .value = "16m", .type = SETTING_SIZE, .is_job_wide = true,
     .offset = offsetof(ls_config_t, stage_bytes),
     .help = "shared memory per rank at start; more is taken when needed"},
    {.name = "SPIN_US", .value = "50", .type = SETTING_UINT, .is_job_wide = false,
     .offset = offsetof(ls_config_t, spin_us),
     .help = "microseconds for which a waiting engine looks for work before it sleeps"},
    {.name = "GUEST_BYTES", .value = "64k", .type = SETTING_SIZE, .is_job_wide = false,
     .offset = offsetof(ls_config_t, guest_bytes),
     .help = "largest bucket that the thread which hands in its last tensor reduces itself, instead of waking the engine "
             "(ranks of one node only); 0: the engine does everything"},
    {.name = "PATIENCE_MS", .value = "200", .type = SETTING_UINT, .is_job_wide = true,
     .offset = offsetof(ls_config_t, patience_ms),
     .help = "milliseconds after which a bucket that is only partly handed in is cut up and agreed anew"},
    {.name = "STALL_WARN_S", .value = "10", .type = SETTING_SECONDS, .is_job_wide = true,
     .offset = offsetof(ls_config_t, stall_warn_s),
     .help = "seconds after which a tensor that waits for other ranks is reported"},
    {.name = "STALL_ABORT_S", .value = "600", .type = SETTING_SECONDS, .is_job_wide = true,
     .offset = offsetof(ls_config_t, stall_abort_s),
     .help = "seconds after which such a tensor becomes an error on every rank"},
    {.name = "HEARTBEAT_S", .value = "5", .type = SETTING_SECONDS, .is_job_wide = true,
     .offset = offsetof(ls_config_t, heartbeat_s),
     .help = "seconds within which a rank that is dead or frozen is found and the job ended; a rank that only "
             "computes for long is not: its heartbeat goes on"},
    {.name = "GRACE_S", .value = "3", .type = SETTING_SECONDS, .is_job_wide = false,
     .offset = offsetof(ls_config_t, grace_s),
     .help = "seconds for which a process may go on computing when a rank is lost; then it is ended; ten times as "
             "long if it has got the error"},
    {.name = "INTERFACE", .value = "", .type = SETTING_TEXT, .is_job_wide = false,
     .offset = offsetof(ls_config_t, interface),
     .help = "address or network interface for heartbeats between hosts; empty: that of the default route"},
    {.name = "FLIGHT_DIR", .value = "", .type = SETTING_TEXT, .is_job_wide = false,
     .offset = offsetof(ls_config_t, flight_dir),
     .help = "directory for the last 1,000 events of each rank, written when the job is lost or SIGUSR1 comes; off: "
             "none; empty: lockstep-flight-<job> in the working directory"},
    {.name = "SIMD", .value = "auto", .type = SETTING_TEXT, .is_job_wide = false,
     .offset = offsetof(ls_config_t, simd),
     .help = "instructions the kernels use: auto, avx512, avx2 or c; all give the same bits"},
    {.name = "LOG", .value = "warn", .type = SETTING_CHOICE, .is_job_wide = false,
     .offset = offsetof(ls_config_t, log), .choices = {"error", "warn", "info", "debug", "trace"},
     .help = "how much is written to standard error"},
    {.name = "TRACE", .value = "", .type = SETTING_TEXT, .is_job_wide = false,
     .offset = offsetof(ls_config_t, trace),
     .help = "directory for one Chrome trace per rank; empty: no trace"},
    {.name = "STATUS_DIR", .value = "", .type = SETTING_TEXT, .is_job_wide = false,
     .offset = offsetof(ls_config_t, status_dir),
     .help = "directory in which each rank keeps its progress for lockstep run; empty: none is kept"},
    {.name = "RECORD", .value = "", .type = SETTING_TEXT, .is_job_wide = false,
     .offset = offsetof(ls_config_t, record),
     .help = "directory for the losses of each step and the last weights, for lockstep verify; empty: no record"},
    {.name = "RECORD_STEPS", .value = "0", .type = SETTING_UINT, .is_job_wide = true,
     .offset = offsetof(ls_config_t, record_steps),
     .help = "steps after which a recorded run ends; 0: at the end of the script"},
    {.name = "RECORD_NUDGE", .value = "off", .type = SETTING_BOOL, .is_job_wide = true,
     .offset = offsetof(ls_config_t, record_nudge),
     .help = "a recorded run changes its weights in their last bit after each step: lockstep verify sees from it how far "
             "rounding alone takes this script"},
    {.name = "DUMP_SIGNAL", .value = "on", .type = SETTING_BOOL, .is_job_wide = false,
     .offset = offsetof(ls_config_t, dump_signal),
     .help = "SIGUSR1 writes the engine's state to standard error; a handler that was there before is "
             "called too"},
    {.name = "FAULT", .value = "", .type = SETTING_TEXT, .is_job_wide = false,
     .offset = offsetof(ls_config_t, fault),
     .help = "fault injected for tests: site:rank:step:action, see docs/design/faults.md; or shm-create, shm-map or "
             "shm-grow, optionally :rank"},
    {.name = "BATCH", .value = "global", .type = SETTING_CHOICE, .is_job_wide = true,
     .offset = offsetof(ls_config_t, batch), .choices = {"global", "per-rank"},
     .help = "what the script's batch size means: the batch of all ranks together, each computing its slice; "
             "or that of each rank (weak scaling: fewer steps per epoch)"},
    {.name = "SHARD", .value = "on", .type = SETTING_CHOICE, .is_job_wide = true,
     .offset = offsetof(ls_config_t, shard), .choices = {"on", "off"},
     .help = "off: the script gives each rank its own data, batches are not cut"},
    {.name = "STEP_ARGS", .value = "auto", .type = SETTING_CHOICE, .is_job_wide = true,
     .offset = offsetof(ls_config_t, step_args), .choices = {"auto", "whole", "cut"},
     .help = "arrays that the script gives to a tf.function which trains; auto: each rank computes its rows of them where all "
             "that leaves the function is known to be the same then; cut: without that proof; whole: all ranks compute all rows"},
    {.name = "LOSS", .value = "auto", .type = SETTING_CHOICE, .is_job_wide = true,
     .offset = offsetof(ls_config_t, loss), .choices = {"auto", "mean", "sum"},
     .help = "what a hand-written loss does with the samples of a batch; auto: batches stay whole where it is not known to be a "
             "mean over them; Keras losses are recognised"},
    {.name = "DROPOUT", .value = "differ", .type = SETTING_CHOICE, .is_job_wide = true,
     .offset = offsetof(ls_config_t, dropout), .choices = {"differ", "exact"},
     .help = "exact: each sample has the dropout mask that it would have in one process"},
    {.name = "SYNC_BATCHNORM", .value = "off", .type = SETTING_BOOL, .is_job_wide = true,
     .offset = offsetof(ls_config_t, sync_batchnorm),
     .help = "batch normalisation over the whole batch instead of each rank's slice"},
    {.name = "SPARSE", .value = "auto", .type = SETTING_CHOICE, .is_job_wide = true,
     .offset = offsetof(ls_config_t, sparse), .choices = {"auto", "gather", "sum", "dense"},
     .help = "sparse gradients: gathered as they are, gathered after summing equal rows, or made dense; auto: "
             "what gives the numbers of one process with the fewest bytes"},
    {.name = "AUDIT_STEPS", .value = "200", .type = SETTING_UINT, .is_job_wide = true,
     .offset = offsetof(ls_config_t, audit_steps),
     .help = "steps between two comparisons of the weights of all ranks; 0: never"},
    {.name = "LR_SCALE", .value = "off", .type = SETTING_BOOL, .is_job_wide = true,
     .offset = offsetof(ls_config_t, lr_scale),
     .help = "with LOCKSTEP_BATCH=per-rank: multiply the learning rate by the number of ranks"},
    {.name = "LR_WARMUP_STEPS", .value = "0", .type = SETTING_UINT, .is_job_wide = true,
     .offset = offsetof(ls_config_t, lr_warmup_steps),
     .help = "steps over which LOCKSTEP_LR_SCALE takes effect little by little"},
    {.name = "STATE", .value = "", .type = SETTING_TEXT, .is_job_wide = true,
     .offset = offsetof(ls_config_t, state),
     .help = "directory for snapshots, from which a job that is started again goes on; empty: none are written"},
    {.name = "SNAPSHOT_S", .value = "300", .type = SETTING_SECONDS, .is_job_wide = true,
     .offset = offsetof(ls_config_t, snapshot_s),
     .help = "seconds between two snapshots into LOCKSTEP_STATE"},
    {.name = "SNAPSHOT_SIGNAL", .value = "TERM,USR2", .type = SETTING_TEXT, .is_job_wide = true,
     .offset = offsetof(ls_config_t, snapshot_signal),
     .help = "signals that write a snapshot into LOCKSTEP_STATE at the next step and end the job with code 75; off: none"},
    {.name = "NAN", .value = "warn", .type = SETTING_CHOICE, .is_job_wide = true,
     .offset = offsetof(ls_config_t, nan), .choices = {"off", "warn", "stop", "skip"},
     .help = "what to do about a gradient that is not finite: say which variable and rank, end the job, or leave the "
             "step out on all ranks"},
    {.name = "SUMMARY", .value = "on", .type = SETTING_BOOL, .is_job_wide = false,
     .offset = offsetof(ls_config_t, summary),
     .help = "one line about the job at its start and one at its end, from rank 0"},
    {.name = "LOG_DIR", .value = "lockstep-logs", .type = SETTING_TEXT, .is_job_wide = false,
     .offset = offsetof(ls_config_t, log_dir),
     .help = "directory for what the ranks other than 0 print; - leaves their output where it is"},
};

#define NUM_SETTINGS (sizeof(settings) / sizeof(settings[0]))

bool ls_config_parse_size(const char *text, size_t *size_p)
{
    char  *end;
    double number, unit = 1;

    if (strcasecmp(text, "inf") == 0) {
        *size_p = SIZE_MAX;
        return true;
    }
    if (!isdigit((unsigned char)text[0])) {
        return false;
    }
    number = strtod(text, &end);
    switch (tolower((unsigned char)*end)) {
    case 'g':
        unit *= 1024;
        __attribute__((fallthrough));
    case 'm':
        unit *= 1024;
        __attribute__((fallthrough));
    case 'k':
        unit *= 1024;
        end++;
        break;
    default:
        break;
    }
    if (*end != '\0' || !isfinite(number) || number * unit >= 0x1p62) {
        return false;
    }
    *size_p = (size_t)(number * unit);
    return true;
}

static bool parse_bool(const char *text, bool *value_p)
{
    static const char *const words[2][4] = {{"off", "0", "no", "false"}, {"on", "1", "yes", "true"}};

    for (int value = 0; value < 2; value++) {
        for (int i = 0; i < 4; i++) {
            if (strcasecmp(text, words[value][i]) == 0) {
                *value_p = (value != 0);
                return true;
            }
        }
    }
    return false;
}

static bool parse_uint(const char *text, unsigned *value_p)
{
    char         *end;
    unsigned long value;

    if (!isdigit((unsigned char)text[0])) {
        return false;
    }
    errno = 0;
    value = strtoul(text, &end, 10);
    if (*end != '\0' || errno != 0 || value > UINT32_MAX) {
        return false;
    }
    *value_p = (unsigned)value;
    return true;
}

static bool parse_seconds(const char *text, double *value_p)
{
    char        *end;
    const double value = strtod(text, &end);

    if (end == text || *end != '\0' || !(value > 0) || value > 1e9) {
        return false;
    }
    *value_p = value;
    return true;
}

static bool parse_choice(const setting_t *setting, const char *text, unsigned *value_p)
{
    for (unsigned i = 0; i < MAX_CHOICES && setting->choices[i] != NULL; i++) {
        if (strcasecmp(text, setting->choices[i]) == 0) {
            *value_p = i;
            return true;
        }
    }
    return false;
}

static bool parse_text(const char *text, char *copy)
{
    if (strlen(text) >= LS_CONFIG_TEXT_ROOM) {
        return false;
    }
    strcpy(copy, text);
    return true;
}

static bool setting_parse(const setting_t *setting, const char *text, ls_config_t *config)
{
    void *field = (char *)config + setting->offset;

    switch (setting->type) {
    case SETTING_TEXT:
        return parse_text(text, field);
    case SETTING_BOOL:
        return parse_bool(text, field);
    case SETTING_UINT:
        return parse_uint(text, field);
    case SETTING_SECONDS:
        return parse_seconds(text, field);
    case SETTING_SIZE:
        return ls_config_parse_size(text, field);
    case SETTING_CHOICE:
        return parse_choice(setting, text, field);
    }
    return false;
}

/* What a value may be, for error messages and the table. */
static void setting_describe(const setting_t *setting, char *text, size_t room)
{
    static const char *const types[] = {
        [SETTING_TEXT] = "text of up to 255 characters", [SETTING_BOOL] = "on or off",
        [SETTING_UINT] = "a whole number",    [SETTING_SECONDS] = "seconds, more than 0",
        [SETTING_SIZE] = "bytes, as 64k, 4m, 1g", [SETTING_CHOICE] = "one of",
    };
    size_t used = (size_t)snprintf(text, room, "%s", types[setting->type]);

    for (unsigned i = 0; i < MAX_CHOICES && setting->choices[i] != NULL; i++) {
        used += (size_t)snprintf(text + used, room - used, "%s %s", i == 0 ? "" : ",",
                                 setting->choices[i]);
    }
}

static const char *setting_variable(const setting_t *setting, char variable[VARIABLE_ROOM])
{
    snprintf(variable, VARIABLE_ROOM, PREFIX "%s", setting->name);
    return variable;
}

ls_status_t ls_config_load(ls_config_t *config_p)
{
    ls_config_t config = {0};

    for (size_t i = 0; i < NUM_SETTINGS; i++) {
        char        variable[VARIABLE_ROOM], allowed[LS_CONFIG_TEXT_ROOM];
        const char *text = getenv(setting_variable(&settings[i], variable));

        if (text == NULL || text[0] == '\0') {
            text = settings[i].value;
        }
        if (!setting_parse(&settings[i], text, &config)) {
            setting_describe(&settings[i], allowed, sizeof(allowed));
            return ls_error_set(LS_ERR_CONFIG, "%s is '%s'; it takes %s", variable, text, allowed);
        }
    }
    *config_p = config;
    return LS_OK;
}

static void setting_value(const setting_t *setting, const ls_config_t *config, char *text, size_t room)
{
    const void *field = (const char *)config + setting->offset;

    switch (setting->type) {
    case SETTING_TEXT:
        snprintf(text, room, "%s", (const char *)field);
        break;
    case SETTING_BOOL:
        snprintf(text, room, "%s", *(const bool *)field ? "on" : "off");
        break;
    case SETTING_UINT:
        snprintf(text, room, "%u", *(const unsigned *)field);
        break;
    case SETTING_SECONDS:
        snprintf(text, room, "%g", *(const double *)field);
        break;
    case SETTING_SIZE:
        snprintf(text, room, "%zu", *(const size_t *)field);
        break;
    case SETTING_CHOICE:
        snprintf(text, room, "%s", setting->choices[*(const unsigned *)field]);
        break;
    }
}

bool ls_config_text(const char *name, char *text, size_t room)
{
    ls_config_t config;

    if (ls_config_load(&config) != LS_OK) {
        return false;
    }
    for (size_t i = 0; i < NUM_SETTINGS; i++) {
        if (strcmp(settings[i].name, name) == 0) {
            setting_value(&settings[i], &config, text, room);
            return true;
        }
    }
    (void)ls_error_set(LS_ERR_CONFIG, "there is no setting %s%s", PREFIX, name);
    return false;
}

void ls_config_job_text(const ls_config_t *config, char *text, size_t room)
{
    size_t used = 0;

    text[0] = '\0';
    for (size_t i = 0; i < NUM_SETTINGS && used < room; i++) {
        char value[LS_CONFIG_TEXT_ROOM];

        if (settings[i].is_job_wide) {
            setting_value(&settings[i], config, value, sizeof(value));
            used += (size_t)snprintf(text + used, room - used, PREFIX "%s=%s\n", settings[i].name, value);
        }
    }
}

ls_status_t ls_config_print(int fd, bool with_values)
{
    ls_config_t       config;
    const ls_status_t status = ls_config_load(&config);

    if (status != LS_OK) {
        return status;
    }
    dprintf(fd, with_values ? "| setting | value | from |\n|---|---|---|\n"
                            : "| setting | default | takes | what it does |\n|---|---|---|---|\n");
    for (size_t i = 0; i < NUM_SETTINGS; i++) {
        char variable[VARIABLE_ROOM], text[LS_CONFIG_TEXT_ROOM];

        setting_variable(&settings[i], variable);
        if (with_values) {
            const char *given = getenv(variable);

            setting_value(&settings[i], &config, text, sizeof(text));
            dprintf(fd, "| %s | %s | %s |\n", variable, text,
                    given != NULL && given[0] != '\0' ? "environment" : "default");
        } else {
            setting_describe(&settings[i], text, sizeof(text));
            dprintf(fd, "| `%s` | %s | %s | %s%s |\n", variable,
                    settings[i].value[0] == '\0' ? "(empty)" : settings[i].value, text,
                    settings[i].help, settings[i].is_job_wide ? " (same on all ranks)" : "");
        }
    }
    return LS_OK;
}

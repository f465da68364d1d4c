/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Settings.  A setting is one row of the list in config.c: name, type, default as a string, help.
 * The environment variable is LOCKSTEP_<NAME>.  Nothing else in the library calls getenv().
 */
#ifndef LS_BASE_CONFIG_H
#define LS_BASE_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log.h"
#include "lockstep.h"

#define LS_CONFIG_TEXT_ROOM 256

typedef enum ls_wire { LS_WIRE_NONE, LS_WIRE_BFLOAT16, LS_WIRE_FLOAT16 } ls_wire_t;

typedef enum ls_nan { LS_NAN_OFF, LS_NAN_WARN, LS_NAN_STOP, LS_NAN_SKIP } ls_nan_t;

typedef struct ls_config {
    char     algo[LS_CONFIG_TEXT_ROOM];
    char     topology[LS_CONFIG_TEXT_ROOM];
    char     simd[LS_CONFIG_TEXT_ROOM];
    char     trace[LS_CONFIG_TEXT_ROOM]; /* directory; "" is off */
    char     fault[LS_CONFIG_TEXT_ROOM];
    char     interface[LS_CONFIG_TEXT_ROOM];
    char     flight_dir[LS_CONFIG_TEXT_ROOM];
    char     status_dir[LS_CONFIG_TEXT_ROOM];
    char     record[LS_CONFIG_TEXT_ROOM];
    unsigned wire;                       /* ls_wire_t */
    unsigned log;                        /* ls_log_level_t */
    unsigned node_size;
    unsigned spin_us;
    unsigned patience_ms;
    double   heartbeat_s;
    double   grace_s;
    unsigned record_steps;
    double   stall_warn_s;
    double   stall_abort_s;
    size_t   fusion_bytes;
    size_t   stage_bytes;
    size_t   guest_bytes;
    bool     shm;
    bool     dump_signal;
    bool     record_nudge;
    /* of the front ends in Python; read through ls_setting() */
    unsigned batch;
    unsigned shard;
    unsigned step_args;
    unsigned loss;
    unsigned dropout;
    unsigned sparse;
    unsigned audit_steps;
    unsigned lr_warmup_steps;
    bool     sync_batchnorm;
    bool     lr_scale;
    bool     summary;
    unsigned nan; /* ls_nan_t */
    double   snapshot_s;
    char     state[LS_CONFIG_TEXT_ROOM];
    char     snapshot_signal[LS_CONFIG_TEXT_ROOM];
    char     log_dir[LS_CONFIG_TEXT_ROOM];
} ls_config_t;

/* Read the environment.  LS_ERR_CONFIG names the variable, the value and what it takes. */
ls_status_t ls_config_load(ls_config_t *config_p);

/* One setting by its name without LOCKSTEP_, as text.  False: LS_ERR_CONFIG was set. */
bool ls_config_text(const char *name, char *text, size_t room);

/* The settings that must be equal on all ranks, as text "NAME=value\n..."; for comparing ranks. */
void ls_config_job_text(const ls_config_t *config, char *text, size_t room);

/* Markdown table for docs/env.md; with_values: what is in force and where it came from instead. */
ls_status_t ls_config_print(int fd, bool with_values);

/* "64k", "1.5m", "2g", "123", "inf" (SIZE_MAX).  False if it is not a size. */
bool ls_config_parse_size(const char *text, size_t *size_p);

#endif

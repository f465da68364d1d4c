/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lockstep: tensors handed in by any thread, given back reduced across all ranks.
 *
 *     ls_context_h ctx;
 *     ls_start(NULL, &ctx);
 *     ls_tensor_t grad = { .name = "dense/kernel", .dtype = LS_FLOAT32,
 *                          .input = g, .output = g, .count = 4096 };
 *     ls_allreduce(ctx, &grad, &(ls_reduce_t){ .op = LS_MEAN });
 *     ls_stop(ctx);
 *
 * How it works, in four sentences.  A request carries a name; the first time the ranks hand in a
 * name they agree on its type, shape and operation, and from the second round on they repeat what
 * they agreed without a word of control traffic.  Requests may come from any thread, and in
 * another order on each rank.  The work is done by one engine thread per context, or, where that
 * sleeps and little is to be done, by the thread that hands in; `done` is called when the output
 * holds the result.  Where ranks disagree, or one is gone, every rank gets an error whose message
 * names the tensor, the ranks and what each of them had.
 *
 * Threads: every function may be called from any thread, except inside a callback, where only the
 * *_async functions and the queries are allowed.
 * Memory: name and shape are copied; input and output belong to the library until `done` runs.
 */
#ifndef LOCKSTEP_H
#define LOCKSTEP_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LS_API __attribute__((visibility("default")))

/* ---- status -------------------------------------------------------------------------------- */

/* Code, value, text.  One list gives the enum, ls_status_str() and the table in docs. */
#define LS_STATUS_LIST(X)                                                                    \
    X(LS_OK, 0, "ok")                                                                        \
    X(LS_IN_PROGRESS, 1, "in progress")                                                      \
    X(LS_ERR_INVALID, -1, "invalid argument")                                                \
    X(LS_ERR_RANK_LOST, -2, "a rank is gone")                                                \
    X(LS_ERR_MISMATCH, -3, "ranks disagree about a tensor")                                  \
    X(LS_ERR_STALL, -4, "a rank did not take part in time")                                  \
    X(LS_ERR_NO_MEMORY, -5, "out of memory")                                                 \
    X(LS_ERR_CONFIG, -6, "bad setting")                                                      \
    X(LS_ERR_MPI, -7, "MPI failed")                                                          \
    X(LS_ERR_SYSTEM, -8, "a system call failed")                                             \
    X(LS_ERR_STOPPED, -9, "the engine has stopped")                                          \
    X(LS_ERR_UNSUPPORTED, -10, "not supported")                                              \
    X(LS_ERR_INTERNAL, -11, "internal error")

typedef enum ls_status {
#define LS_STATUS_ENUM(_name, _value, _text) _name = _value,
    LS_STATUS_LIST(LS_STATUS_ENUM)
#undef LS_STATUS_ENUM
} ls_status_t;

/* Text of a status; never NULL. */
LS_API const char *ls_status_str(ls_status_t status);

/* Message of the last error that a function of this library returned in the calling thread;
 * "" when there was none.  Valid until the thread's next call. */
LS_API const char *ls_last_error(void);

/* ---- types --------------------------------------------------------------------------------- */

typedef enum ls_dtype {
    LS_FLOAT16,
    LS_BFLOAT16,
    LS_FLOAT32,
    LS_FLOAT64,
    LS_INT8,
    LS_UINT8,
    LS_INT32,
    LS_INT64,
    LS_BOOL,
    LS_DTYPE_COUNT
} ls_dtype_t;

/*
 * float16 and bfloat16 are added in float32.  Integers wrap; an integer mean rounds toward zero.
 * bool: sum and max are "or", product and min are "and", a mean is refused.
 */
typedef enum ls_op {
    LS_SUM,
    LS_MEAN,          /* over the ranks that gave something (see ls_join) */
    LS_WEIGHTED_MEAN, /* sum(weight * x) / sum(weight); 0 where all weights are 0 */
    LS_MIN,
    LS_MAX,
    LS_PRODUCT,
    LS_OP_COUNT
} ls_op_t;

typedef struct ls_context *ls_context_h;

/*
 * One tensor of one request.  `name` is how ranks recognise it: the same name must be given by
 * every rank.  `shape` is only compared and printed; NULL stands for a vector of `count`.
 * `output` may equal `input`, otherwise the two must not overlap.
 */
typedef struct ls_tensor {
    const char    *name;
    ls_dtype_t     dtype;
    unsigned       num_dims; /* of shape; 0 with shape == NULL */
    const int64_t *shape;
    const void    *input;
    void          *output;
    uint64_t       count; /* elements of input */
} ls_tensor_t;

/* How to reduce.  Zero-initialised scales mean "no scaling"; scales and weights need a float type. */
typedef struct ls_reduce {
    ls_op_t op;
    double  weight;    /* LS_WEIGHTED_MEAN only: this rank's weight, >= 0; weight 0: input is not read */
    double  prescale;  /* multiplies each input before the reduction */
    double  postscale; /* multiplies the result */
} ls_reduce_t;

/*
 * Runs when a request has ended: on the engine thread, or in a thread that hands in a request,
 * before that call returns, so the caller must hold no lock which `done` takes
 * (LOCKSTEP_GUEST_BYTES=0: always on the engine thread).  `message` is "" or says what went wrong;
 * it is valid only during the call.  Must not block: the blocking calls below answer LS_ERR_INVALID
 * here, and ls_stop does nothing.  May hand in more, and may call ls_dump.
 */
typedef void (*ls_done_fn)(void *arg, ls_status_t status, const char *message);

/*
 * Runs where `done` does when the lengths of all ranks' parts are known: counts[r] elements
 * come from rank r.  Returns room for all of them, or NULL to fail the request.
 */
typedef void *(*ls_output_fn)(void *arg, const uint64_t *counts, unsigned num_ranks);

/* ---- start and stop ------------------------------------------------------------------------ */

/* A job whose ranks are threads of this process: for tests, and for programs without MPI. */
typedef struct ls_local_job *ls_local_job_h;

LS_API ls_status_t ls_local_job_create(unsigned num_ranks, ls_local_job_h *job_p);
LS_API void ls_local_job_destroy(ls_local_job_h job); /* after ls_stop of all its ranks */

typedef struct ls_start_params {
    ls_local_job_h local_job;  /* NULL: ranks are the processes of the MPI job */
    unsigned       local_rank; /* this thread's rank in local_job */
} ls_start_params_t;

/*
 * Join the job.  Collective: returns when all ranks have called it.  `params` may be NULL.
 * Under MPI: initialises MPI unless the program did; a program that did must have asked for
 * MPI_THREAD_MULTIPLE when there is more than one node.  Settings are read from LOCKSTEP_*.
 */
LS_API ls_status_t ls_start(const ls_start_params_t *params, ls_context_h *ctx_p);

/*
 * Leave the job.  Collective: waits until every rank stops, then fails what is still open.
 * Not LS_OK where the job did not end well, also when it was this rank that stopped too early: exit with a
 * code that says so, because a launcher may look only at the rank that ends first.
 * A process that exits without it counts as lost: the other ranks get LS_ERR_RANK_LOST.
 */
LS_API ls_status_t ls_stop(ls_context_h ctx);

/*
 * The one context that all parts of a process share (operators, Python).  Starting again, and stopping
 * again, do nothing.  ls_process_get() is NULL before the start, after the stop, and in a forked child;
 * ls_process_stop() waits for every ls_process_put(), so do not keep the context while you wait.
 */
LS_API ls_status_t ls_process_start(void);
LS_API ls_status_t ls_process_stop(void);
LS_API ls_context_h ls_process_get(void);
LS_API void ls_process_put(ls_context_h ctx); /* NULL is allowed */

/* The `bytes` at `mine` of every rank, in rank order, at `all`.  All ranks make these calls in the same order, and with
 * as many bytes.  `arg` is not used: it makes this an ls_data_allgather_fn. */
LS_API ls_status_t ls_process_allgather(void *arg, const void *mine, size_t bytes, void *all);

LS_API unsigned ls_rank(ls_context_h ctx);
LS_API unsigned ls_size(ls_context_h ctx);
LS_API unsigned ls_local_rank(ls_context_h ctx);
LS_API unsigned ls_local_size(ls_context_h ctx);
LS_API unsigned ls_num_nodes(ls_context_h ctx);
LS_API const char *ls_host(ls_context_h ctx);
LS_API const char *ls_transport(ls_context_h ctx); /* how ranks reach each other, in words */
LS_API const char *ls_version(void);

/* The training step this rank is at, from 1 up, for messages and the flight recorder.  Not needed: without it the
 * engine counts how often the same tensors came. */
LS_API void ls_step(ls_context_h ctx, uint64_t step);
/* Gradients that are not finite are nothing to report: the program scales its loss, and looks at them itself. */
LS_API void ls_expect_unfinite(ls_context_h ctx);
/* What the MPI that this library runs with calls itself, and the file it was loaded from; both "" without MPI.
 * Neither starts MPI. */
LS_API const char *ls_mpi_version(void);
LS_API const char *ls_mpi_path(void);

/* ---- collectives, asynchronous ------------------------------------------------------------- */

/*
 * All return LS_OK when the request was taken, and then `done` runs exactly once.  Any other
 * status means it was not taken: `done` will not run, ls_last_error() says why.
 * `reduce` NULL means a plain sum.
 */
LS_API ls_status_t ls_allreduce_async(ls_context_h ctx, const ls_tensor_t *tensor,
                                      const ls_reduce_t *reduce, ls_done_fn done, void *arg);

/* A set that completes together: `done` runs once, when all are reduced or one has failed. */
LS_API ls_status_t ls_allreduce_group_async(ls_context_h ctx, const ls_tensor_t *tensors,
                                            unsigned num_tensors, const ls_reduce_t *reduce,
                                            ls_done_fn done, void *arg);

/* `input` of `root` to `output` of every rank; `input` of the others is not read. */
LS_API ls_status_t ls_broadcast_async(ls_context_h ctx, const ls_tensor_t *tensor, unsigned root,
                                      ls_done_fn done, void *arg);

/*
 * The ranks' inputs one after another in rank order; their counts may differ (the first
 * dimension of `shape`, the others must agree).  The room comes from `output_fn`.
 */
LS_API ls_status_t ls_allgather_async(ls_context_h ctx, const ls_tensor_t *tensor,
                                      ls_output_fn output_fn, ls_done_fn done, void *arg);

/*
 * Reduce, then each rank keeps its block: count / n elements, the first (count mod n) ranks one
 * more.  `output` has room for that block; ls_block_count() tells its length.
 */
LS_API ls_status_t ls_reduce_scatter_async(ls_context_h ctx, const ls_tensor_t *tensor,
                                           const ls_reduce_t *reduce, ls_done_fn done, void *arg);
LS_API uint64_t ls_block_count(uint64_t count, unsigned num_ranks, unsigned rank);

/* send_counts[r] elements of `input` go to rank r; what comes is ordered by rank. */
LS_API ls_status_t ls_alltoall_async(ls_context_h ctx, const ls_tensor_t *tensor,
                                     const uint64_t *send_counts, ls_output_fn output_fn,
                                     ls_done_fn done, void *arg);

LS_API ls_status_t ls_barrier_async(ls_context_h ctx, const char *name, ls_done_fn done, void *arg);

/*
 * This rank has no more data: until every rank has joined it takes part in the others' requests
 * with nothing (zero weight; not counted in a mean).  `done` runs when all have joined.
 */
LS_API ls_status_t ls_join_async(ls_context_h ctx, ls_done_fn done, void *arg);

/* ---- collectives, blocking: the same, returning what `done` would have been given ----------- */

LS_API ls_status_t ls_allreduce(ls_context_h ctx, const ls_tensor_t *tensor,
                                const ls_reduce_t *reduce);
LS_API ls_status_t ls_allreduce_group(ls_context_h ctx, const ls_tensor_t *tensors,
                                      unsigned num_tensors, const ls_reduce_t *reduce);
LS_API ls_status_t ls_broadcast(ls_context_h ctx, const ls_tensor_t *tensor, unsigned root);
LS_API ls_status_t ls_allgather(ls_context_h ctx, const ls_tensor_t *tensor,
                                ls_output_fn output_fn, void *arg);
LS_API ls_status_t ls_reduce_scatter(ls_context_h ctx, const ls_tensor_t *tensor,
                                     const ls_reduce_t *reduce);
LS_API ls_status_t ls_alltoall(ls_context_h ctx, const ls_tensor_t *tensor,
                               const uint64_t *send_counts, ls_output_fn output_fn, void *arg);
LS_API ls_status_t ls_barrier(ls_context_h ctx, const char *name);
LS_API ls_status_t ls_join(ls_context_h ctx);

/* ---- looking inside ------------------------------------------------------------------------ */

/* Counters since start.  One list gives the struct and the names. */
#define LS_COUNTER_LIST(X)                                                                     \
    X(requests, "requests taken")                                                              \
    X(requests_failed, "requests that ended with an error")                                    \
    X(bytes_in, "bytes of tensors handed in")                                                  \
    X(bytes_sent_node, "bytes sent inside the node")                                           \
    X(bytes_sent_net, "bytes sent to other nodes")                                             \
    X(buckets_replayed, "buckets run from the agreed schedule")                                \
    X(buckets_negotiated, "buckets run after a negotiation")                                   \
    X(control_messages, "control messages sent")                                               \
    X(schedule_changes, "buckets adopted or given up")                                         \
    X(sleeps, "times the engine thread slept")                                                 \
    X(ns_copy, "nanoseconds packing and storing")                                              \
    X(ns_reduce, "nanoseconds reducing")                                                       \
    X(ns_wait, "nanoseconds in which buckets were open and nothing could be done")             \
    X(ns_open, "nanoseconds in which requests were open")                                      \
    X(ns_exposed, "of these, those after the last request of a step was given: no computing hid them")

typedef struct ls_counters {
#define LS_COUNTER_FIELD(_name, _help) uint64_t _name;
    LS_COUNTER_LIST(LS_COUNTER_FIELD)
#undef LS_COUNTER_FIELD
} ls_counters_t;

LS_API void ls_counters(ls_context_h ctx, ls_counters_t *counters_p);

/*
 * Write the engine's whole state (open buckets, which tensors wait for which ranks) to `fd`.
 * Also written to standard error on SIGUSR1 (LOCKSTEP_DUMP_SIGNAL), and by the rank that finds the job lost
 * because a rank is gone or did not take part in time.
 */
LS_API void ls_dump(ls_context_h ctx, int fd);

/* Log lines of this process go to `fd` instead of standard error, which a program may have turned elsewhere. */
LS_API void ls_log_to(int fd);

/* Print the table of settings as Markdown (docs/env.md), or with their values, to `fd`. */
LS_API ls_status_t ls_print_settings(int fd, int with_values);

/*
 * The value of setting LOCKSTEP_<name> as text of at most `room` characters, the final 0 included;
 * LS_ERR_CONFIG when there is no such setting, or one in the environment is wrong.
 */
LS_API ls_status_t ls_setting(const char *name, char *text, size_t room);

/* A 64-bit hash of memory, about as fast as it can be read: to see whether ranks have the same. */
LS_API uint64_t ls_hash(const void *data, size_t size);

/* Print the table of algorithm choices, as LOCKSTEP_ALGO changes it, to `fd`. */
LS_API ls_status_t ls_print_choices(int fd);

#ifdef __cplusplus
}
#endif

#endif

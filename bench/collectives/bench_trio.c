/* SPDX-License-Identifier: Apache-2.0 */
#include "bench_trio.h"

#include <stdlib.h>
#include <string.h>

#include "bench_data.h"

#define SLACK_PER_RANK 8U /* bytes: uneven blocks of an all-to-all may sum up to n - 1 elements more */

void bench_trio_alloc(const bench_job_t *job, size_t max_bytes, unsigned num_tensors,
                      bench_buffers_t *buffers_p)
{
    const size_t stride = (max_bytes + (size_t)SLACK_PER_RANK * job->num_ranks + 63) / 64 * 64;
    const size_t bytes  = stride * num_tensors;

    *buffers_p = (bench_buffers_t){
        .num_tensors = num_tensors,
        .stride      = stride,
        .input       = bench_job_alloc(bytes),
        .output      = job->options->in_place ? NULL : bench_job_alloc(bytes),
        .copy_from   = bench_job_alloc(bytes),
        .copy_to     = bench_job_alloc(bytes),
    };
}

void bench_trio_free(bench_buffers_t *buffers)
{
    free(buffers->input);
    free(buffers->output);
    free(buffers->copy_from);
    free(buffers->copy_to);
}

/* Like the gradients of a model: a name of its own for each tensor, the same at each iteration. */
static void name_request(bench_request_t *request, size_t bytes, unsigned index)
{
    snprintf(request->name, sizeof(request->name), "bench.%s.%zu.%u", request->collective->name, bytes,
             index);
}

void bench_trio_create(const bench_job_t *job, const bench_buffers_t *buffers, const char *collective,
                       uint64_t count, bench_trio_t *trio)
{
    *trio = (bench_trio_t){
        .requests    = calloc(buffers->num_tensors, sizeof(*trio->requests)),
        .num_tensors = buffers->num_tensors,
        .bytes       = count * bench_data_type_size(job->options->dtype),
        .copy_from   = buffers->copy_from,
        .copy_to     = buffers->copy_to,
        .stride      = buffers->stride,
    };
    if (trio->requests == NULL) {
        bench_latch_die("out of memory for %u requests", buffers->num_tensors);
    }
    for (unsigned i = 0; i < trio->num_tensors; i++) {
        bench_request_t *request = &trio->requests[i];
        char            *input   = buffers->input + i * buffers->stride;
        char            *output  = job->options->in_place ? input : buffers->output + i * buffers->stride;

        *request = (bench_request_t){
            .collective = bench_collective_find(collective),
            .ctx        = job->ctx,
            .rank       = job->rank,
            .num_ranks  = job->num_ranks,
            .op         = job->options->op,
            .dtype      = job->options->dtype,
            .total      = count,
            .input      = input,
            .output     = output,
            .latch      = &trio->latch,
        };
        name_request(request, trio->bytes, i);
        bench_collective_prepare(request);
    }
}

void bench_trio_destroy(bench_trio_t *trio)
{
    for (unsigned i = 0; i < trio->num_tensors; i++) {
        bench_collective_release(&trio->requests[i]);
    }
    free(trio->requests);
}

/* ---- the three ways: microseconds per tensor -------------------------------------------------- */

static double per_tensor_us(const bench_trio_t *trio, uint64_t start_ns, uint64_t end_ns)
{
    return (double)(end_ns - start_ns) / 1e3 / trio->num_tensors;
}

static double run_ours(void *arg)
{
    bench_trio_t *trio = arg;

    bench_latch_reset(&trio->latch, trio->num_tensors);

    const uint64_t start_ns = bench_latch_now_ns();

    for (unsigned i = 0; i < trio->num_tensors; i++) {
        bench_request_t *request = &trio->requests[i];

        bench_latch_must(request->collective->post(request), request->name);
    }
    bench_latch_wait(&trio->latch);
    return per_tensor_us(trio, start_ns, trio->latch.done_ns);
}

static double run_mpi(void *arg)
{
    bench_trio_t  *trio     = arg;
    const uint64_t start_ns = bench_latch_now_ns();

    for (unsigned i = 0; i < trio->num_tensors; i++) {
        trio->requests[i].collective->mpi(&trio->requests[i]);
    }
    return per_tensor_us(trio, start_ns, bench_latch_now_ns());
}

static double run_memcpy(void *arg)
{
    bench_trio_t  *trio     = arg;
    const uint64_t start_ns = bench_latch_now_ns();

    for (unsigned i = 0; i < trio->num_tensors; i++) {
        memcpy(trio->copy_to + i * trio->stride, trio->copy_from + i * trio->stride, trio->bytes);
        /* The compiler must not see that nobody reads the copy. */
        __asm__ volatile("" : : "r"(trio->copy_to) : "memory");
    }
    return per_tensor_us(trio, start_ns, bench_latch_now_ns());
}

/* ---- check and measure ------------------------------------------------------------------------ */

uint64_t bench_trio_check(bench_trio_t *trio, unsigned seed)
{
    uint64_t wrong = 0;

    for (unsigned i = 0; i < trio->num_tensors; i++) {
        bench_collective_init(&trio->requests[i], seed + i);
    }
    run_ours(trio);
    for (unsigned i = 0; i < trio->num_tensors; i++) {
        wrong += trio->requests[i].collective->wrong(&trio->requests[i], seed + i);
    }
    return bench_job_total(wrong);
}

void bench_trio_measure(bench_trio_t *trio, const bench_limits_t *limits, bool with_mpi,
                        bench_runner_t runners[BENCH_WAYS])
{
    const bool has_mpi = with_mpi && bench_collective_has_mpi(&trio->requests[0]);

    for (unsigned i = 0; i < trio->num_tensors; i++) {
        const bench_request_t *request = &trio->requests[i];

        if (request->input == request->output) {
            memset(request->input, 0, trio->bytes);
        }
    }
    runners[BENCH_OURS]   = (bench_runner_t){.once = run_ours, .arg = trio};
    runners[BENCH_MPI]    = (bench_runner_t){.once = has_mpi ? run_mpi : NULL, .arg = trio};
    runners[BENCH_MEMCPY] = (bench_runner_t){.once = run_memcpy, .arg = trio};
    bench_measure(limits, runners, BENCH_WAYS);
}

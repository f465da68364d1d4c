/* SPDX-License-Identifier: Apache-2.0 */
#include "bench_job.h"

#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "bench_latch.h"

#define ALIGNMENT ((size_t)64)

void *bench_job_alloc(size_t bytes)
{
    const size_t rounded = (bytes + ALIGNMENT) / ALIGNMENT * ALIGNMENT;
    void        *memory  = aligned_alloc(ALIGNMENT, rounded);

    if (memory == NULL) {
        bench_latch_die("out of memory for a buffer of %zu bytes", rounded);
    }
    /* Not 0, and written: pages that were never written are all the same page of zeros. */
    memset(memory, 1, rounded);
    return memory;
}

uint64_t bench_job_total(uint64_t mine)
{
    uint64_t total = mine;

    MPI_Allreduce(MPI_IN_PLACE, &total, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    return total;
}

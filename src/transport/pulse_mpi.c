/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Putting up the pulse: the leader of each node makes a board and its ranks map it; where that fails for one, each
 * rank of the node gets a board of its own.  Leaders open a socket if there are several boards.  Rank 0 draws the
 * secret, which travels through MPI only.
 */
#include "transport/pulse_mpi.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "base/peer_process.h"
#include "transport/status_mpi.h"

/* What rank 0 draws for the job. */
typedef struct job_secret {
    uint8_t  key[LS_SIPHASH_KEY_BYTES];
    uint64_t job;
    int32_t  is_drawn;
} job_secret_t;

/* Where the ranks of the node find the board. */
typedef struct board_address {
    int64_t  pid, fd;
    uint64_t bytes;
} board_address_t;

static ls_status_t draw_secret(const ls_pulse_mpi_t *job, job_secret_t *secret_p)
{
    job_secret_t secret = {0};
    ls_status_t  status;

    if (job->rank == 0) {
        secret.is_drawn = getrandom(secret.key, sizeof(secret.key), 0) == (ssize_t)sizeof(secret.key) &&
                          getrandom(&secret.job, sizeof(secret.job), 0) == (ssize_t)sizeof(secret.job);
    }
    status = ls_status_from_mpi(MPI_Bcast(&secret, sizeof(secret), MPI_BYTE, 0, job->comm));
    if (status == LS_OK && !secret.is_drawn) {
        status = ls_error_set(LS_ERR_SYSTEM, "the system gives rank 0 no random numbers for the job's secret");
    }
    *secret_p = secret;
    return status;
}

/* True on all ranks of the node, or on none. */
static ls_status_t agree(MPI_Comm comm, bool is_good, bool *all_good_p)
{
    int               mine = is_good ? 1 : 0, all = 0;
    const ls_status_t status = ls_status_from_mpi(MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, comm));

    *all_good_p = all != 0;
    return status;
}

static ls_status_t open_board(const ls_pulse_mpi_t *job, ls_segment_t *segment_p, bool *is_shared_p)
{
    const size_t    bytes   = ls_pulse_board_bytes(job->local_size);
    board_address_t address = {0};
    ls_segment_t    segment = {.fd = -1};
    ls_status_t     mine    = LS_OK, status;

    if (job->local_rank == 0) {
        mine = ls_segment_create_shared(bytes, &segment);
        if (mine == LS_OK) {
            ls_pulse_board_init(segment.base, job->local_size);
            address = (board_address_t){.pid = getpid(), .fd = segment.fd, .bytes = segment.bytes};
        }
    }
    status = ls_status_from_mpi(MPI_Bcast(&address, sizeof(address), MPI_BYTE, 0, job->local));
    if (status == LS_OK && job->local_rank != 0) {
        mine = (address.bytes != bytes) ? LS_ERR_SYSTEM : ls_segment_open(address.pid, address.fd, bytes, &segment);
        mine = (mine == LS_OK && !ls_pulse_board_is_valid(segment.base, job->local_size)) ? LS_ERR_INTERNAL : mine;
    }
    if (status == LS_OK) {
        status = agree(job->local, mine == LS_OK, is_shared_p);
    }
    if (status != LS_OK || !*is_shared_p) {
        ls_segment_destroy(&segment);
    }
    *segment_p = segment;
    return status;
}

static ls_status_t open_own_board(ls_segment_t *segment_p)
{
    const ls_status_t status = ls_segment_create_heap(ls_pulse_board_bytes(1), segment_p);

    if (status == LS_OK) {
        ls_pulse_board_init(segment_p->base, 1);
    }
    return status;
}

/* Are there several boards, and are all ranks on one host? */
static ls_status_t look_around(const ls_pulse_mpi_t *job, uint32_t leader, bool *needs_link_p, bool *is_one_host_p)
{
    static const uint8_t zero_key[LS_SIPHASH_KEY_BYTES] = {0};
    const uint64_t       host    = ls_siphash(zero_key, job->host, strlen(job->host));
    const uint64_t       mine[4] = {leader, ~(uint64_t)leader, host, ~host};
    uint64_t             most[4] = {0};
    const ls_status_t    status =
        ls_status_from_mpi(MPI_Allreduce(mine, most, 4, MPI_UINT64_T, MPI_MAX, job->comm));

    *needs_link_p  = most[0] != ~most[1]; /* largest and smallest differ */
    *is_one_host_p = most[2] == ~most[3];
    return status;
}

static void introduce(const ls_pulse_mpi_t *job, bool is_shared, ls_pulse_member_t *member_p)
{
    memset(member_p, 0, sizeof(*member_p)); /* it travels with its gaps */
    member_p->pid     = getpid();
    member_p->started = ls_peer_process_start(getpid());
    member_p->leader  = is_shared ? job->node_leader : job->rank;
    member_p->slot    = is_shared ? job->local_rank : 0;
    snprintf(member_p->host, sizeof(member_p->host), "%.*s", LS_PULSE_HOST_ROOM - 1, job->host);
}

/* The socket of a leader; a job goes on without, less watched. */
static void open_link(const ls_pulse_mpi_t *job, bool is_one_host, ls_pulse_member_t *member, int *fd_p)
{
    if (member->leader == job->rank &&
        ls_pulse_link_open(is_one_host, job->config->interface, fd_p, &member->address) != LS_OK) {
        ls_warn("%s; the ranks of this node are not watched from other nodes", ls_last_error());
    }
}

ls_status_t ls_pulse_create_mpi(const ls_pulse_mpi_t *job, ls_pulse_h *pulse_p)
{
    ls_pulse_params_t params = {.rank     = job->rank, .num_ranks = job->num_ranks, .members = job->members, .fd = -1,
                                .limit_ns = (uint64_t)(job->config->heartbeat_s * 1e9), .segment = {.fd = -1}};
    const int         bytes  = (int)sizeof(ls_pulse_member_t);
    ls_pulse_member_t mine;
    job_secret_t      secret;
    bool              is_shared = false, needs_link = false, is_one_host = false;
    ls_status_t       status = draw_secret(job, &secret), local = LS_OK;

    if (status == LS_OK) {
        status = open_board(job, &params.segment, &is_shared);
    }
    if (status != LS_OK) {
        return status;
    }
    local = is_shared ? LS_OK : open_own_board(&params.segment);
    introduce(job, is_shared, &mine);
    status = look_around(job, mine.leader, &needs_link, &is_one_host);
    if (status == LS_OK && needs_link) {
        open_link(job, is_one_host, &mine, &params.fd);
    }
    if (status == LS_OK) {
        status = ls_status_from_mpi(
            MPI_Allgather(&mine, bytes, MPI_BYTE, job->members, bytes, MPI_BYTE, job->comm));
    }
    status = (status == LS_OK) ? local : status;
    if (status == LS_OK) {
        memcpy(params.key, secret.key, sizeof(params.key));
        params.job = secret.job;
        status     = ls_pulse_create(&params, pulse_p);
    }
    if (status != LS_OK) {
        ls_segment_destroy(&params.segment);
        if (params.fd >= 0) {
            close(params.fd);
        }
    }
    return status;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A net over the processes of an MPI job: ls_net_create_mpi().
 *
 * A list of steps, each taken by every rank; after each the ranks compare how it went (settle), so that
 * they go on together or fail together, with the message of the rank where it went wrong.  The last step
 * makes the net; after it MPI is used only where some peer is not reached through shared memory.
 */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "base/mem.h"
#include "transport/mpi_session.h"
#include "transport/mpi_transport.h"
#include "transport/net_int.h"
#include "transport/pulse_mpi.h"
#include "transport/status_mpi.h"

#define JOB_TEXT_ROOM    4096
#define REASON_ROOM      1024
#define DESCRIPTION_ROOM 128

typedef struct boot {
    const ls_config_t    *config;
    ls_mpi_session_t     *session;
    MPI_Comm              local; /* the ranks of this virtual node, ascending */
    int                   rank, size, local_rank, local_size;
    char                  host[MPI_MAX_PROCESSOR_NAME + 1];
    ls_mailbox_address_t *addresses; /* by local rank; one allocation with the next lists */
    uint32_t             *node_of, *leader_of; /* by rank; leader: smallest rank of the node */
    uint32_t             *local_ranks;
    uint32_t              num_nodes;
    ls_pulse_member_t    *members;
    ls_pulse_h            pulse;
    ls_mailbox_h          mailbox;
    ls_mpi_transport_h    transport;
    ls_net_h              net; /* owns session, pulse, mailbox and transport once it is there */
} boot_t;

/* ---- agreement ------------------------------------------------------------------------------ */

/*
 * How did it go on all ranks of `comm`?  *worst_p is LS_OK or the lowest status of any rank; the message
 * of the first rank that has it goes to `reason` on every rank.  Returns whether MPI could tell.
 */
static ls_status_t agree(const boot_t *boot, MPI_Comm comm, ls_status_t mine, ls_status_t *worst_p,
                         char reason[REASON_ROOM])
{
    struct {
        int status, rank;
    } own = {.status = (int)mine}, worst = {0};
    ls_status_t status;

    if (mine != LS_OK) {
        snprintf(reason, REASON_ROOM, "rank %d (%s): %.*s", boot->rank, boot->host, REASON_ROOM / 2,
                 ls_last_error());
    }
    status = ls_status_from_mpi(MPI_Comm_rank(comm, &own.rank));
    if (status == LS_OK) {
        status = ls_status_from_mpi(MPI_Allreduce(&own, &worst, 1, MPI_2INT, MPI_MINLOC, comm));
    }
    if (status == LS_OK && worst.status != LS_OK) {
        status = ls_status_from_mpi(MPI_Bcast(reason, REASON_ROOM, MPI_CHAR, worst.rank, comm));
        reason[REASON_ROOM - 1] = '\0';
    }
    *worst_p = (ls_status_t)worst.status;
    return status;
}

/* The same status and message on every rank of the job; *is_broken_p: MPI itself failed. */
static ls_status_t settle(const boot_t *boot, ls_status_t mine, bool *is_broken_p)
{
    char        reason[REASON_ROOM] = "";
    ls_status_t worst               = LS_OK;

    if (boot->size == 1) {
        return mine;
    }
    if (agree(boot, boot->session->comm, mine, &worst, reason) != LS_OK) {
        *is_broken_p = true;
        return (mine != LS_OK) ? mine : ls_error_set(LS_ERR_MPI, "starting the job: %s", ls_last_error());
    }
    return (worst == LS_OK) ? LS_OK : ls_error_set(worst, "%s", reason);
}

/* ---- steps ---------------------------------------------------------------------------------- */

/* All memory first: from here on a rank that lacks some cannot leave others in a collective call. */
static ls_status_t prepare(boot_t *boot)
{
    const size_t      size   = (size_t)boot->size;
    void             *mem    = NULL;
    const ls_status_t status = ls_mem_alloc(
        size * (sizeof(*boot->addresses) + sizeof(*boot->members) + 3 * sizeof(uint32_t)), "ranks of the job", &mem);

    if (status == LS_OK) {
        boot->addresses   = mem;
        boot->members     = (ls_pulse_member_t *)(boot->addresses + size);
        boot->node_of     = (uint32_t *)(boot->members + size);
        boot->leader_of   = boot->node_of + size;
        boot->local_ranks = boot->leader_of + size;
    }
    return status;
}

/* The first line in which two texts of "NAME=value\n" differ; both have the same names. */
static ls_status_t compare_texts(const char *mine, const char *first)
{
    while (*mine != '\0' && *first != '\0') {
        const int mine_length = (int)strcspn(mine, "\n"), first_length = (int)strcspn(first, "\n");
        const int name_length = (int)strcspn(mine, "=");

        if (mine_length != first_length || memcmp(mine, first, (size_t)mine_length) != 0) {
            return ls_error_set(LS_ERR_CONFIG, "%.*s is '%.*s' here and '%.*s' on rank 0; all ranks must "
                                "have the same", name_length, mine, mine_length - name_length - 1,
                                mine + name_length + 1, first_length - name_length - 1,
                                first + name_length + 1);
        }
        mine += mine_length + 1;
        first += first_length + 1;
    }
    return LS_OK;
}

static ls_status_t compare_settings(boot_t *boot)
{
    char        mine[JOB_TEXT_ROOM] = "", first[JOB_TEXT_ROOM];
    ls_status_t status;

    ls_config_job_text(boot->config, mine, sizeof(mine));
    memcpy(first, mine, sizeof(first));
    status = ls_status_from_mpi(MPI_Bcast(first, sizeof(first), MPI_CHAR, 0, boot->session->comm));
    return (status != LS_OK) ? status : compare_texts(mine, first);
}

/* The ranks that MPI says can share memory, cut into virtual nodes: boot->local. */
static ls_status_t split_nodes(boot_t *boot)
{
    MPI_Comm    host;
    int         host_rank = 0, part = 0;
    ls_status_t status = ls_status_from_mpi(MPI_Comm_split_type(
        boot->session->comm, MPI_COMM_TYPE_SHARED, boot->rank, MPI_INFO_NULL, &host));

    if (status != LS_OK) {
        return status;
    }
    status = ls_status_from_mpi(MPI_Comm_rank(host, &host_rank));
    if (boot->config->node_size > 0) {
        part = (int)((unsigned)host_rank / boot->config->node_size);
    }
    if (status == LS_OK) {
        status = ls_status_from_mpi(MPI_Comm_split(host, part, host_rank, &boot->local));
    }
    if (status == LS_OK) {
        status = ls_status_from_mpi(MPI_Comm_free(&host));
    }
    if (status == LS_OK) {
        status = ls_status_from_mpi(MPI_Comm_rank(boot->local, &boot->local_rank));
    }
    return (status != LS_OK) ? status : ls_status_from_mpi(MPI_Comm_size(boot->local, &boot->local_size));
}

static ls_status_t find_nodes(boot_t *boot)
{
    uint32_t    leader = (uint32_t)boot->rank, num_local = 0;
    ls_status_t status = split_nodes(boot);

    if (status == LS_OK) {
        status = ls_status_from_mpi(MPI_Bcast(&leader, 1, MPI_UINT32_T, 0, boot->local));
    }
    if (status == LS_OK) {
        status = ls_status_from_mpi(MPI_Allgather(&leader, 1, MPI_UINT32_T, boot->leader_of, 1, MPI_UINT32_T,
                                                  boot->session->comm));
    }
    if (status != LS_OK) {
        return status;
    }
    for (uint32_t r = 0; r < (uint32_t)boot->size; r++) {
        /* A leader is the smallest rank of its node, so its node has its number before others need it. */
        boot->node_of[r] = (boot->leader_of[r] == r) ? boot->num_nodes++ : boot->node_of[boot->leader_of[r]];
        if (boot->leader_of[r] == leader) {
            boot->local_ranks[num_local++] = r;
        }
    }
    return LS_OK;
}

/* A job of one rank has nobody to watch. */
static ls_status_t open_pulse(boot_t *boot)
{
    const ls_pulse_mpi_t job = {
        .config      = boot->config,
        .comm        = boot->session->comm,
        .local       = boot->local,
        .rank        = (uint32_t)boot->rank,
        .num_ranks   = (uint32_t)boot->size,
        .local_rank  = (uint32_t)boot->local_rank,
        .local_size  = (uint32_t)boot->local_size,
        .node_leader = boot->leader_of[boot->rank],
        .host        = boot->host,
        .members     = boot->members,
    };

    return (boot->size == 1) ? LS_OK : ls_pulse_create_mpi(&job, &boot->pulse);
}

static ls_status_t create_mailbox(boot_t *boot)
{
    const ls_mailbox_params_t params = {
        .config      = boot->config,
        .rank        = (uint32_t)boot->rank,
        .local_rank  = (uint32_t)boot->local_rank,
        .local_size  = (uint32_t)boot->local_size,
        .local_ranks = boot->local_ranks,
    };

    return ls_mailbox_create(&params, &boot->mailbox);
}

/* Only called when every rank of the node has a mailbox. */
static ls_status_t connect_mailbox(boot_t *boot, ls_status_t *connected_p)
{
    const int            bytes   = (int)sizeof(ls_mailbox_address_t);
    ls_mailbox_address_t address = {0};
    ls_status_t          status;

    ls_mailbox_get_address(boot->mailbox, &address);
    status = ls_status_from_mpi(
        MPI_Allgather(&address, bytes, MPI_BYTE, boot->addresses, bytes, MPI_BYTE, boot->local));
    if (status == LS_OK) {
        *connected_p = ls_mailbox_connect(boot->mailbox, boot->addresses);
    }
    return status;
}

/* Shared memory for the whole node or for none of its ranks: a peer that looked for this rank in its
 * mailbox would wait for ever if this rank sent through MPI. */
static ls_status_t share_memory(boot_t *boot)
{
    char        reason[REASON_ROOM] = "";
    ls_status_t mine = create_mailbox(boot), worst = LS_OK;
    ls_status_t status = agree(boot, boot->local, mine, &worst, reason);

    if (status == LS_OK && worst == LS_OK) {
        status = connect_mailbox(boot, &mine);
        if (status == LS_OK) {
            status = agree(boot, boot->local, mine, &worst, reason);
        }
    }
    if (status == LS_OK && worst == LS_OK) {
        return LS_OK;
    }
    ls_mailbox_destroy(boot->mailbox);
    boot->mailbox = NULL;
    if (status == LS_OK && boot->local_rank == 0) {
        ls_warn("no shared memory on %s (%s): its ranks use MPI, which is slower", boot->host, reason);
    }
    return status;
}

static ls_status_t open_local(boot_t *boot)
{
    ls_status_t status = LS_OK;

    if (boot->config->shm && boot->local_size > 1) {
        status = share_memory(boot);
    }
    return (status != LS_OK) ? status : ls_status_from_mpi(MPI_Comm_free(&boot->local));
}

/* The same answer on every rank: with one node it depends on what the node agreed on. */
static bool needs_mpi(const boot_t *boot)
{
    return boot->num_nodes > 1 || (boot->local_size > 1 && boot->mailbox == NULL);
}

/* From now on only the engine thread calls MPI for us, while the program may call it from its own. */
static ls_status_t check_threads(boot_t *boot)
{
    int         level  = MPI_THREAD_MULTIPLE;
    ls_status_t status = LS_OK;

    if (!boot->session->is_ours) {
        status = ls_status_from_mpi(MPI_Query_thread(&level));
    }
    if (status == LS_OK && needs_mpi(boot) && level < MPI_THREAD_MULTIPLE) {
        status = ls_error_set(LS_ERR_CONFIG, "the program started MPI for use by one thread at a time, but "
                              "between nodes lockstep calls MPI from a thread of its own: start MPI with "
                              "MPI_Init_thread(..., MPI_THREAD_MULTIPLE, ...), or lockstep before MPI");
    }
    return status;
}

static ls_status_t create_transport(boot_t *boot)
{
    return needs_mpi(boot) ? ls_mpi_transport_create(boot->session->comm, &boot->transport) : LS_OK;
}

static void describe(const boot_t *boot, char text[DESCRIPTION_ROOM])
{
    char name[DESCRIPTION_ROOM];

    if (boot->transport != NULL) {
        ls_mpi_session_library(name, sizeof(name));
        snprintf(text, DESCRIPTION_ROOM, "%sMPI (%.96s)", boot->mailbox != NULL ? "shared memory + " : "",
                 name);
    } else {
        snprintf(text, DESCRIPTION_ROOM, "%s", boot->mailbox != NULL ? "shared memory" : "one rank");
    }
}

static ls_status_t create_net(boot_t *boot)
{
    char                 description[DESCRIPTION_ROOM];
    const ls_net_parts_t parts = {
        .rank         = (uint32_t)boot->rank,
        .num_ranks    = (uint32_t)boot->size,
        .host         = boot->host,
        .description  = description,
        .node_of      = boot->node_of,
        .config       = boot->config,
        .mailbox      = boot->mailbox,
        .pulse        = boot->pulse,
        .remote_ops   = boot->transport != NULL ? &ls_mpi_transport_ops : NULL,
        .remote       = boot->transport,
        .finalize     = ls_mpi_session_close,
        .finalize_arg = boot->session,
    };

    describe(boot, description);
    return ls_net_create(&parts, &boot->net);
}

/* ---- all together --------------------------------------------------------------------------- */

static ls_status_t (*const steps[])(boot_t *boot) = {
    prepare, compare_settings, find_nodes, open_pulse, open_local, check_threads, create_transport, create_net,
};

static ls_status_t boot_init(boot_t *boot)
{
    int         length = 0;
    ls_status_t status = ls_status_from_mpi(MPI_Comm_rank(boot->session->comm, &boot->rank));

    if (status == LS_OK) {
        status = ls_status_from_mpi(MPI_Comm_size(boot->session->comm, &boot->size));
    }
    if (status == LS_OK) {
        status = ls_status_from_mpi(MPI_Get_processor_name(boot->host, &length));
    }
    ls_log_set_rank((unsigned)boot->rank);
    return status;
}

static void boot_undo(boot_t *boot, bool is_orderly)
{
    if (boot->net != NULL) {
        ls_net_destroy(boot->net, is_orderly);
        return;
    }
    ls_mpi_transport_ops.destroy(boot->transport);
    ls_mailbox_destroy(boot->mailbox);
    ls_mpi_session_close(boot->session, is_orderly);
    ls_pulse_destroy(boot->pulse);
}

/* Inside one node no MPI call is made from here on, so the program may use any thread level. */
static ls_status_t leave_mpi(boot_t *boot)
{
    return needs_mpi(boot) ? LS_OK : ls_status_from_mpi(MPI_Comm_free(&boot->session->comm));
}

ls_status_t ls_net_create_mpi(const ls_config_t *config, ls_net_h *net_p)
{
    boot_t      boot      = {.config = config, .local = MPI_COMM_NULL};
    bool        is_broken = false;
    ls_status_t status    = ls_mpi_session_open(&boot.session);

    if (status != LS_OK) {
        return status;
    }
    status = boot_init(&boot);
    if (status != LS_OK) {
        boot_undo(&boot, false);
        return status;
    }
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]) && status == LS_OK; i++) {
        status = settle(&boot, steps[i](&boot), &is_broken);
    }
    if (status == LS_OK) {
        status = leave_mpi(&boot);
    }
    ls_mem_free(boot.addresses);
    if (status != LS_OK) {
        boot_undo(&boot, !is_broken);
        return status;
    }
    *net_p = boot.net;
    return LS_OK;
}

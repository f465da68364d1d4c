/* SPDX-License-Identifier: Apache-2.0 */
/* A job whose ranks are threads of this process: mailboxes in heap memory, agreement under a lock. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/mem.h"
#include "transport/net_int.h"

#define TEXT_ROOM     1024
#define SETTINGS_ROOM 4096
#define HOST_ROOM     256

struct ls_local_job {
    unsigned        num_ranks;
    pthread_mutex_t lock;
    pthread_cond_t  all_here;
    /* lock: lock */
    unsigned              num_waiting;
    uint64_t              round;
    ls_status_t           status; /* of this round: that of the lowest rank that failed */
    unsigned              failed_rank;
    char                  text[TEXT_ROOM];
    ls_status_t           last_status; /* of the round before: what its ranks are told */
    char                  last_text[TEXT_ROOM];
    char                  settings[SETTINGS_ROOM]; /* of the first rank to come */
    unsigned              settings_rank;
    /* Each rank writes its own place before an agreement and reads the others' after it. */
    ls_mailbox_address_t *addresses;
};

ls_status_t ls_local_job_create(unsigned num_ranks, ls_local_job_h *job_p)
{
    ls_local_job_h job;
    ls_status_t    status;
    void          *mem;

    if (num_ranks == 0) {
        return ls_error_set(LS_ERR_INVALID, "a job needs at least one rank");
    }
    status = ls_mem_alloc(sizeof(*job), "local job", &mem);
    if (status != LS_OK) {
        return status;
    }
    job    = mem;
    status = ls_mem_alloc(num_ranks * sizeof(*job->addresses), "addresses", &mem);
    if (status != LS_OK) {
        ls_mem_free(job);
        return status;
    }
    job->addresses = mem;
    job->num_ranks = num_ranks;
    pthread_mutex_init(&job->lock, NULL);
    pthread_cond_init(&job->all_here, NULL);
    *job_p = job;
    return LS_OK;
}

void ls_local_job_destroy(ls_local_job_h job)
{
    if (job != NULL) {
        pthread_cond_destroy(&job->all_here);
        pthread_mutex_destroy(&job->lock);
        ls_mem_free(job->addresses);
        ls_mem_free(job);
    }
}

/* ---- agreement ------------------------------------------------------------------------------ */

/*
 * Wait until all ranks have come here.  Where one brings a failure, all get it: the rank itself as it
 * was, the others with its number before the message.
 */
static ls_status_t agree(ls_local_job_h job, unsigned rank, ls_status_t status)
{
    ls_status_t result;
    uint64_t    round;

    pthread_mutex_lock(&job->lock);
    round = job->round;
    if (status != LS_OK && (job->status == LS_OK || rank < job->failed_rank)) {
        job->status      = status;
        job->failed_rank = rank;
        snprintf(job->text, sizeof(job->text), "rank %u: %s", rank, ls_last_error());
    }
    if (++job->num_waiting == job->num_ranks) {
        job->last_status = job->status;
        memcpy(job->last_text, job->text, sizeof(job->text));
        job->num_waiting = 0;
        job->status      = LS_OK;
        job->settings[0] = '\0';
        job->round++;
        pthread_cond_broadcast(&job->all_here);
    }
    while (job->round == round) {
        pthread_cond_wait(&job->all_here, &job->lock);
    }
    result = job->last_status;
    if (status == LS_OK && result != LS_OK) {
        ls_error_set(result, "%s", job->last_text);
    }
    pthread_mutex_unlock(&job->lock);
    return status != LS_OK ? status : result;
}

/* The lines at which two settings texts first differ; false if they are equal. */
static bool find_difference(const char **a, const char **b)
{
    while (**a != '\0' || **b != '\0') {
        const size_t length_a = strcspn(*a, "\n"), length_b = strcspn(*b, "\n");

        if (length_a != length_b || strncmp(*a, *b, length_a) != 0) {
            return true;
        }
        *a += length_a + ((*a)[length_a] == '\n');
        *b += length_b + ((*b)[length_b] == '\n');
    }
    return false;
}

static ls_status_t compare_settings(ls_local_job_h job, unsigned rank, const ls_config_t *config)
{
    char        own_text[SETTINGS_ROOM];
    const char *own = own_text, *other = job->settings;
    ls_status_t status = LS_OK;

    ls_config_job_text(config, own_text, sizeof(own_text));
    pthread_mutex_lock(&job->lock);
    if (job->settings[0] == '\0') {
        memcpy(job->settings, own_text, sizeof(own_text));
        job->settings_rank = rank;
    } else if (find_difference(&own, &other)) {
        status = ls_error_set(LS_ERR_CONFIG, "settings differ: %.*s on rank %u, %.*s on rank %u",
                              (int)strcspn(own, "\n"), own, rank, (int)strcspn(other, "\n"), other,
                              job->settings_rank);
    }
    pthread_mutex_unlock(&job->lock);
    return status;
}

/* ---- create --------------------------------------------------------------------------------- */

static ls_status_t open_mailbox(ls_local_job_h job, unsigned rank, const ls_config_t *config,
                                const uint32_t *all_ranks, ls_mailbox_h *mailbox_p)
{
    const ls_mailbox_params_t params = {
        .config = config, .rank = rank, .local_rank = rank, .local_size = job->num_ranks,
        .local_ranks = all_ranks, .is_local = true,
    };
    ls_status_t status = compare_settings(job, rank, config);

    if (status == LS_OK) {
        status = ls_mailbox_create(&params, mailbox_p);
    }
    if (status == LS_OK) {
        ls_mailbox_get_address(*mailbox_p, &job->addresses[rank]);
    }
    return status;
}

/* Three agreements: nobody connects to what was not created, uses what was not connected, or waits for
 * a rank that has no net. */
static ls_status_t start_rank(ls_local_job_h job, unsigned rank, const ls_config_t *config,
                              uint32_t *all_ranks, uint32_t *node_of, ls_net_h *net_p)
{
    char           host[HOST_ROOM] = "";
    ls_net_h       net             = NULL;
    ls_mailbox_h   mailbox         = NULL;
    ls_net_parts_t parts           = {
                  .rank = rank, .num_ranks = job->num_ranks, .host = host, .description = "threads of one process",
                  .node_of = node_of, .config = config, .mailbox_serves_all = true,
    };
    ls_status_t status;

    if (gethostname(host, sizeof(host) - 1) != 0) {
        snprintf(host, sizeof(host), "localhost");
    }
    status = agree(job, rank, open_mailbox(job, rank, config, all_ranks, &mailbox));
    if (status == LS_OK) {
        status = agree(job, rank, ls_mailbox_connect(mailbox, job->addresses));
    }
    if (status == LS_OK) {
        parts.mailbox = mailbox;
        status        = agree(job, rank, ls_net_create(&parts, &net));
    }
    if (status == LS_OK) {
        *net_p = net;
    } else if (net != NULL) {
        ls_net_destroy(net, true);
    } else {
        ls_mailbox_destroy(mailbox);
    }
    return status;
}

ls_status_t ls_net_create_local(ls_local_job_h job, unsigned rank, const ls_config_t *config,
                                ls_net_h *net_p)
{
    uint32_t   *all_ranks, *node_of;
    ls_status_t status;
    void       *mem;

    if (rank >= job->num_ranks) {
        return ls_error_set(LS_ERR_INVALID, "rank %u is not in a job of %u ranks", rank, job->num_ranks);
    }
    status = ls_mem_alloc(2 * job->num_ranks * sizeof(*all_ranks), "ranks", &mem);
    if (status != LS_OK) {
        return agree(job, rank, status);
    }
    all_ranks = mem;
    node_of   = all_ranks + job->num_ranks;
    for (uint32_t i = 0; i < job->num_ranks; i++) {
        all_ranks[i] = i;
        node_of[i]   = (config->node_size == 0) ? 0 : i / config->node_size;
    }
    status = start_rank(job, rank, config, all_ranks, node_of, net_p);
    ls_mem_free(mem);
    return status;
}

ls_status_t ls_net_refuse_local(ls_local_job_h job, unsigned rank, ls_status_t status)
{
    return (rank < job->num_ranks) ? agree(job, rank, status) : status;
}

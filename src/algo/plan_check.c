/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Running the plans of all ranks without a network.
 *
 * Each rank goes on until a step needs a message that is not there; when no rank can go on, either all
 * have ended or they wait for ever.  Between each two ranks there is one queue of messages.  A value is
 * a set of ranks (bits); REDUCE unites sets and refuses sets that meet.
 */
#include "algo/plan_check.h"

#include <string.h>

#include "base/error.h"
#include "base/mem.h"

#define WORD_BITS 64U

typedef struct message {
    struct message *next;
    uint32_t        block, num_blocks;
    uint32_t        number;
    uint64_t        sets[]; /* num_blocks sets */
} message_t;

typedef struct message_queue {
    message_t *first, *last;
} message_queue_t;

struct ls_plan_check {
    ls_plan_t *const *plans; /* only while running */
    uint32_t          num_ranks, num_blocks;
    uint32_t          set_words;  /* of one set */
    uint64_t         *sets;       /* [rank][block][set_words] */
    uint8_t          *is_written; /* [rank][block] */
    uint32_t         *at;         /* [rank]: next step */
    message_queue_t  *queues;     /* [from][to] */
};

static uint64_t *set_of(const ls_plan_check_t *check, uint32_t rank, uint32_t block)
{
    return check->sets + ((size_t)rank * check->num_blocks + block) * check->set_words;
}

static message_queue_t *queue_of(const ls_plan_check_t *check, uint32_t from, uint32_t to)
{
    return &check->queues[(size_t)from * check->num_ranks + to];
}

/* ---- one step ------------------------------------------------------------------------------- */

static ls_status_t put_message(ls_plan_check_t *check, uint32_t rank, const ls_step_t *step, uint32_t peer,
                               uint32_t number)
{
    const size_t     bytes = (size_t)step->num_blocks * check->set_words * sizeof(uint64_t);
    message_queue_t *queue = queue_of(check, rank, peer);
    message_t       *message;
    void            *mem;
    ls_status_t      status = ls_mem_alloc(sizeof(*message) + bytes, "plan check message", &mem);

    if (status != LS_OK) {
        return status;
    }
    message             = mem;
    message->block      = step->block;
    message->num_blocks = step->num_blocks;
    message->number     = number;
    if (bytes > 0) {
        memcpy(message->sets, set_of(check, rank, step->block), bytes);
    }
    if (queue->last == NULL) {
        queue->first = message;
    } else {
        queue->last->next = message;
    }
    queue->last = message;
    return LS_OK;
}

static void drop_message(message_queue_t *queue)
{
    message_t *message = queue->first;

    queue->first = message->next;
    if (queue->first == NULL) {
        queue->last = NULL;
    }
    ls_mem_free(message);
}

/* Unite the message's sets into the rank's; LS_ERR_INTERNAL where they meet. */
static ls_status_t unite(ls_plan_check_t *check, uint32_t rank, const message_t *message, uint32_t from)
{
    for (uint32_t b = 0; b < message->num_blocks; b++) {
        uint64_t       *own   = set_of(check, rank, message->block + b);
        const uint64_t *their = message->sets + (size_t)b * check->set_words;

        for (uint32_t w = 0; w < check->set_words; w++) {
            if ((own[w] & their[w]) != 0) {
                return ls_error_set(LS_ERR_INTERNAL,
                                    "rank %u, step %u: block %u from rank %u counts rank %u twice",
                                    rank, check->at[rank], message->block + b, from,
                                    w * WORD_BITS + (uint32_t)__builtin_ctzll(own[w] & their[w]));
            }
            own[w] |= their[w];
        }
    }
    return LS_OK;
}

static ls_status_t take_message(ls_plan_check_t *check, uint32_t rank, const ls_step_t *step, uint32_t from,
                                uint32_t number)
{
    message_queue_t *queue   = queue_of(check, from, rank);
    const message_t *message = queue->first;
    ls_status_t      status  = LS_OK;

    if (message->number != number) {
        return ls_error_set(LS_ERR_INTERNAL, "rank %u, step %u: expects message %u of rank %u, not %u",
                            rank, check->at[rank], number, from, message->number);
    }
    if (message->num_blocks != step->num_blocks ||
        (step->num_blocks > 0 && message->block != step->block)) {
        return ls_error_set(LS_ERR_INTERNAL,
                            "rank %u, step %u: expects %u blocks at %u from rank %u, not %u at %u",
                            rank, check->at[rank], step->num_blocks, step->block, from, message->num_blocks,
                            message->block);
    }
    if (step->kind == LS_STEP_REDUCE) {
        status = unite(check, rank, message, from);
    } else if (step->num_blocks > 0) {
        memcpy(set_of(check, rank, step->block), message->sets,
               (size_t)step->num_blocks * check->set_words * sizeof(uint64_t));
    }
    if (status == LS_OK) {
        drop_message(queue);
    }
    return status;
}

/* The engine scales a result when a REDUCE is final: that must be when all values are in, not before. */
static ls_status_t check_final(const ls_plan_check_t *check, uint32_t rank, const ls_step_t *step)
{
    for (uint32_t b = step->block; b < step->block + step->num_blocks; b++) {
        const uint32_t count = ls_plan_check_count(check, rank, b);

        if (step->is_final != (count == check->num_ranks)) {
            return ls_error_set(LS_ERR_INTERNAL,
                                "rank %u, step %u: block %u has the values of %u of %u ranks and is %s", rank,
                                check->at[rank], b, count, check->num_ranks,
                                step->is_final ? "marked final" : "not marked final");
        }
    }
    return LS_OK;
}

/* The rank that the step waits for, or num_ranks. */
static uint32_t waits_for(const ls_plan_check_t *check, uint32_t rank, const ls_step_t *step)
{
    const uint32_t *peers = check->plans[rank]->peers; /* NULL while no step has any */

    if (step->kind == LS_STEP_REDUCE || step->kind == LS_STEP_STORE) {
        for (uint32_t i = step->first_peer; i < step->first_peer + step->num_peers; i++) {
            if (queue_of(check, peers[i], rank)->first == NULL) {
                return peers[i];
            }
        }
    }
    return check->num_ranks;
}

static ls_status_t run_step(ls_plan_check_t *check, uint32_t rank, const ls_step_t *step)
{
    const ls_plan_t *plan   = check->plans[rank];
    ls_status_t      status = LS_OK;

    for (uint32_t i = step->first_peer; i < step->first_peer + step->num_peers && status == LS_OK; i++) {
        const uint32_t peer = plan->peers[i], number = plan->messages[i];

        status = step->kind == LS_STEP_SEND ? put_message(check, rank, step, peer, number)
                                            : take_message(check, rank, step, peer, number);
    }
    if (status == LS_OK && step->kind == LS_STEP_REDUCE) {
        status = check_final(check, rank, step);
    }
    if (step->kind != LS_STEP_SEND && step->num_blocks > 0) {
        memset(check->is_written + (size_t)rank * check->num_blocks + step->block, 1, step->num_blocks);
    }
    return status;
}

/* ---- all steps ------------------------------------------------------------------------------ */

static ls_status_t run_rank(ls_plan_check_t *check, uint32_t rank, bool *moved_p)
{
    const ls_plan_t *plan = check->plans[rank];

    while (check->at[rank] < plan->num_steps &&
           waits_for(check, rank, &plan->steps[check->at[rank]]) == check->num_ranks) {
        const ls_status_t status = run_step(check, rank, &plan->steps[check->at[rank]]);

        if (status != LS_OK) {
            return status;
        }
        check->at[rank]++;
        *moved_p = true;
    }
    return LS_OK;
}

static ls_status_t run_all(ls_plan_check_t *check)
{
    bool moved = true;

    while (moved) {
        moved = false;
        for (uint32_t rank = 0; rank < check->num_ranks; rank++) {
            const ls_status_t status = run_rank(check, rank, &moved);

            if (status != LS_OK) {
                return status;
            }
        }
    }
    return LS_OK;
}

/* Every rank is at its end and no message is left. */
static ls_status_t check_end(const ls_plan_check_t *check)
{
    for (uint32_t rank = 0; rank < check->num_ranks; rank++) {
        const ls_plan_t *plan = check->plans[rank];

        if (check->at[rank] < plan->num_steps) {
            return ls_error_set(LS_ERR_INTERNAL, "rank %u, step %u: waits for ever for rank %u", rank,
                                check->at[rank],
                                waits_for(check, rank, &plan->steps[check->at[rank]]));
        }
    }
    for (uint32_t from = 0; from < check->num_ranks; from++) {
        for (uint32_t to = 0; to < check->num_ranks; to++) {
            if (queue_of(check, from, to)->first != NULL) {
                return ls_error_set(LS_ERR_INTERNAL, "rank %u does not take message %u of rank %u", to,
                                    queue_of(check, from, to)->first->number, from);
            }
        }
    }
    return LS_OK;
}

static ls_status_t check_plans(ls_plan_t *const *plans, uint32_t num_ranks)
{
    for (uint32_t rank = 0; rank < num_ranks; rank++) {
        if (!plans[rank]->is_sealed || plans[rank]->rank != rank || plans[rank]->num_ranks != num_ranks ||
            plans[rank]->num_blocks != plans[0]->num_blocks) {
            return ls_error_set(LS_ERR_INTERNAL, "plan %u is not sealed, of another rank or of another job",
                                rank);
        }
    }
    return LS_OK;
}

static ls_status_t check_alloc(ls_plan_check_t *check)
{
    const size_t n      = check->num_ranks;
    const size_t blocks = n * check->num_blocks;
    void        *mem[4] = {NULL};
    const size_t sizes[4] = {blocks * check->set_words * sizeof(uint64_t), blocks, n * sizeof(uint32_t),
                             n * n * sizeof(message_queue_t)};

    for (int i = 0; i < 4; i++) {
        const ls_status_t status = ls_mem_alloc(sizes[i], "plan check", &mem[i]);

        if (status != LS_OK) {
            while (i-- > 0) {
                ls_mem_free(mem[i]);
            }
            return status;
        }
    }
    check->sets       = mem[0];
    check->is_written = mem[1];
    check->at         = mem[2];
    check->queues     = mem[3];
    return LS_OK;
}

ls_status_t ls_plan_check_run(ls_plan_t *const *plans, uint32_t num_ranks, ls_plan_check_t **check_p)
{
    ls_plan_check_t *check;
    void            *mem;
    ls_status_t      status = check_plans(plans, num_ranks);

    if (status == LS_OK) {
        status = ls_mem_alloc(sizeof(*check), "plan check", &mem);
    }
    if (status != LS_OK) {
        return status;
    }
    check             = mem;
    check->plans      = plans;
    check->num_ranks  = num_ranks;
    check->num_blocks = plans[0]->num_blocks;
    check->set_words  = (num_ranks + WORD_BITS - 1) / WORD_BITS;

    status = check_alloc(check);
    if (status != LS_OK) {
        goto err_free_check;
    }
    for (uint32_t rank = 0; rank < num_ranks; rank++) {
        for (uint32_t b = 0; b < check->num_blocks; b++) {
            set_of(check, rank, b)[rank / WORD_BITS] = 1ULL << (rank % WORD_BITS);
        }
    }
    status = run_all(check);
    if (status == LS_OK) {
        status = check_end(check);
    }
    if (status != LS_OK) {
        goto err_destroy_check;
    }
    *check_p = check;
    return LS_OK;

err_destroy_check:
    ls_plan_check_destroy(check);
    return status;
err_free_check:
    ls_mem_free(check);
    return status;
}

void ls_plan_check_destroy(ls_plan_check_t *check)
{
    if (check == NULL) {
        return;
    }
    for (size_t i = 0; i < (size_t)check->num_ranks * check->num_ranks; i++) {
        while (check->queues[i].first != NULL) {
            drop_message(&check->queues[i]);
        }
    }
    ls_mem_free(check->sets);
    ls_mem_free(check->is_written);
    ls_mem_free(check->at);
    ls_mem_free(check->queues);
    ls_mem_free(check);
}

bool ls_plan_check_is_written(const ls_plan_check_t *check, uint32_t rank, uint32_t block)
{
    return check->is_written[(size_t)rank * check->num_blocks + block] != 0;
}

uint32_t ls_plan_check_count(const ls_plan_check_t *check, uint32_t rank, uint32_t block)
{
    const uint64_t *set   = set_of(check, rank, block);
    uint32_t        count = 0;

    for (uint32_t w = 0; w < check->set_words; w++) {
        count += (uint32_t)__builtin_popcountll(set[w]);
    }
    return count;
}

bool ls_plan_check_has(const ls_plan_check_t *check, uint32_t rank, uint32_t block, uint32_t source)
{
    return (set_of(check, rank, block)[source / WORD_BITS] >> (source % WORD_BITS) & 1) != 0;
}

ls_status_t ls_plan_check_all(ls_plan_t *const *plans, uint32_t num_ranks)
{
    ls_plan_check_t  *check;
    const ls_status_t status = ls_plan_check_run(plans, num_ranks, &check);

    if (status == LS_OK) {
        ls_plan_check_destroy(check);
    }
    return status;
}

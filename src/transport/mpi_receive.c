/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/mpi_receive.h"

#define SMALLEST_BLOCK 256UL

ls_status_t ls_mpi_receive_get(ls_mpi_receive_set_t *set, size_t bytes, ls_mpi_receive_t **receive_p)
{
    uint32_t          size_class = 0;
    ls_mpi_receive_t *receive;
    void             *mem;
    ls_status_t       status;

    while ((SMALLEST_BLOCK << size_class) < bytes) {
        size_class++;
    }
    receive = set->pool[size_class];
    if (receive != NULL) {
        set->pool[size_class] = receive->next;
    } else {
        status = ls_mem_alloc(sizeof(*receive) + (SMALLEST_BLOCK << size_class) + sizeof(ls_mpi_trailer_t),
                              "mpi receive", &mem);
        if (status != LS_OK) {
            return status;
        }
        receive             = mem;
        receive->size_class = size_class;
        receive->next_all   = set->all;
        set->all            = receive;
    }
    receive->bytes = bytes;
    *receive_p     = receive;
    return LS_OK;
}

void ls_mpi_receive_put(ls_mpi_receive_set_t *set, ls_mpi_receive_t *receive)
{
    receive->next                  = set->pool[receive->size_class];
    set->pool[receive->size_class] = receive;
}

ls_mpi_receive_t **ls_mpi_receive_find(ls_mpi_receive_set_t *set, uint32_t peer, ls_key_t key)
{
    const uint64_t     hash = (key ^ ((uint64_t)peer << 32)) * 0x9E3779B97F4A7C15ULL;
    ls_mpi_receive_t **link = &set->chains[(hash >> 40) & (LS_MPI_RECEIVE_CHAINS - 1)];

    while (*link != NULL && ((*link)->key != key || (*link)->peer != peer)) {
        link = &(*link)->next;
    }
    return link;
}

void ls_mpi_receive_free_all(ls_mpi_receive_set_t *set)
{
    ls_mpi_receive_t *next;

    for (ls_mpi_receive_t *receive = set->all; receive != NULL; receive = next) {
        next = receive->next_all;
        if (!receive->is_posted) {
            ls_mem_free(receive);
        }
    }
    *set = (ls_mpi_receive_set_t){.all = NULL};
}

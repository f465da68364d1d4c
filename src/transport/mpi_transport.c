/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Everything outstanding is in one array that MPI_Testsome looks at: an operation ends there, and only
 * there.  The arrays grow to what is outstanding at once; after that nothing is allocated.
 */
#include "transport/mpi_transport.h"

#include <limits.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "transport/mpi_control.h"
#include "transport/mpi_receive.h"
#include "transport/status_mpi.h"

#define TAG_CHUNK_BITS   3
#define TAG_MESSAGE_BITS 8
#define TAG_BITS         (LS_KEY_ID_BITS + TAG_CHUNK_BITS + TAG_MESSAGE_BITS)

#define NO_KEY          0  /* bucket id 0: no message has it */
#define FIRST_ROOM      64 /* operations */
#define DESTROY_WAIT_NS (200 * LS_NS_PER_MS)

_Static_assert(sizeof(ls_mpi_trailer_t) <= LS_STAGE_TRAILER, "the trailer fits behind a stage");

/* What request i is about: a send (stage) or a receive. */
typedef struct operation {
    ls_stage_head_t  *stage;
    ls_mpi_receive_t *receive;
    uint32_t          peer;
} operation_t;

typedef struct ls_mpi_transport {
    MPI_Comm     comm;
    /* Outstanding operations; four arrays of the same room. */
    MPI_Request *requests;
    operation_t *operations;
    int         *indices;
    MPI_Status  *statuses;
    size_t       num_active, room;

    ls_mpi_receive_set_t receives;
    ls_mpi_control_t     control;
} transport_t;

/* ---- operations ----------------------------------------------------------------------------- */

static ls_status_t array_grow(void *array_p, size_t old_size, size_t new_size)
{
    void       *mem;
    ls_status_t status;

    memcpy(&mem, array_p, sizeof(mem)); /* a pointer to any type */
    status = ls_mem_resize(&mem, old_size, new_size, "mpi operations");
    memcpy(array_p, &mem, sizeof(mem));
    return status;
}

/* Room for one more operation, so that nothing can fail once MPI has it. */
static ls_status_t operations_reserve(transport_t *transport)
{
    const size_t old_room = transport->room;
    const size_t room     = (old_room == 0) ? FIRST_ROOM : 2 * old_room;
    const struct {
        void  *array_p;
        size_t size;
    } arrays[] = {
        {.array_p = &transport->requests, .size = sizeof(*transport->requests)},
        {.array_p = &transport->operations, .size = sizeof(*transport->operations)},
        {.array_p = &transport->indices, .size = sizeof(*transport->indices)},
        {.array_p = &transport->statuses, .size = sizeof(*transport->statuses)},
    };

    if (transport->num_active < old_room) {
        return LS_OK;
    }
    for (size_t i = 0; i < sizeof(arrays) / sizeof(arrays[0]); i++) {
        const ls_status_t status =
            array_grow(arrays[i].array_p, old_room * arrays[i].size, room * arrays[i].size);

        if (status != LS_OK) {
            return status; /* the arrays that are larger now do no harm */
        }
    }
    transport->room = room;
    return LS_OK;
}

static uint32_t key_check(ls_key_t key)
{
    /* Not the message number: one stage goes to several peers under different ones. */
    return (uint32_t)(((key >> LS_KEY_MESSAGE_BITS) * 0x9E3779B97F4A7C15ULL) >> 32);
}

static int key_tag(ls_key_t key)
{
    const uint32_t chunk   = ls_key_chunk(key) & ((1U << TAG_CHUNK_BITS) - 1);
    const uint32_t message = ls_key_message(key) & ((1U << TAG_MESSAGE_BITS) - 1);

    return (int)((((ls_key_id(key) << TAG_CHUNK_BITS) | chunk) << TAG_MESSAGE_BITS) | message);
}

static ls_status_t check_message(ls_key_t key, size_t bytes)
{
    if (bytes > (size_t)INT_MAX - sizeof(ls_mpi_trailer_t)) {
        return ls_error_set(LS_ERR_UNSUPPORTED, "a message of %zu bytes is longer than MPI counts", bytes);
    }
    if (ls_key_id(key) == 0) {
        return ls_error_set(LS_ERR_INTERNAL, "bucket id 0 was used for data; it stands for control");
    }
    return LS_OK;
}

/* Bytes of the MPI message and its tag; puts the trailer behind the data. */
static ls_status_t send_prepare(const ls_send_t *send, size_t *length_p, int *tag_p)
{
    const ls_mpi_trailer_t trailer = {.contributors = send->contributors, .check = key_check(send->key)};
    unsigned char         *end     = (unsigned char *)send->stage->data + send->bytes;
    ls_status_t            status;

    if (send->is_control) {
        *length_p = send->bytes;
        *tag_p    = LS_MPI_CONTROL_TAG;
        return (send->bytes <= LS_MPI_CONTROL_ROOM)
                   ? LS_OK
                   : ls_error_set(LS_ERR_INTERNAL, "a control message has %zu bytes, more than %zu",
                                  send->bytes, (size_t)LS_MPI_CONTROL_ROOM);
    }
    status = check_message(send->key, send->bytes);
    if (status == LS_OK) {
        /* MPI may be reading the stage for another peer: then the trailer is there, and stays untouched. */
        if (memcmp(end, &trailer, sizeof(trailer)) != 0) {
            memcpy(end, &trailer, sizeof(trailer));
        }
        *length_p = send->bytes + sizeof(trailer);
        *tag_p    = key_tag(send->key);
    }
    return status;
}

static ls_status_t transport_send(void *self, const ls_send_t *send)
{
    transport_t *transport = self;
    size_t       length    = 0;
    int          tag       = 0;
    ls_status_t  status    = send_prepare(send, &length, &tag);

    if (status == LS_OK) {
        status = operations_reserve(transport);
    }
    if (status != LS_OK) {
        return status;
    }
    status = ls_status_from_mpi(MPI_Isend(send->stage->data, (int)length, MPI_BYTE, (int)send->peer, tag,
                                          transport->comm, &transport->requests[transport->num_active]));
    if (status != LS_OK) {
        return ls_error_set(status, "cannot send %zu bytes to rank %u: %s", send->bytes, send->peer,
                            ls_last_error());
    }
    transport->operations[transport->num_active++] =
        (operation_t){.stage = send->stage->head, .peer = send->peer};
    return LS_OK;
}

static ls_status_t transport_expect(void *self, uint32_t peer, ls_key_t key, size_t bytes)
{
    transport_t      *transport = self;
    ls_mpi_receive_t *receive, **link;
    ls_status_t       status = check_message(key, bytes);

    if (status == LS_OK) {
        status = operations_reserve(transport);
    }
    if (status == LS_OK) {
        status = ls_mpi_receive_get(&transport->receives, bytes, &receive);
    }
    if (status != LS_OK) {
        return status;
    }
    status = ls_status_from_mpi(MPI_Irecv(receive->data, (int)(bytes + sizeof(ls_mpi_trailer_t)), MPI_BYTE,
                                          (int)peer, key_tag(key), transport->comm,
                                          &transport->requests[transport->num_active]));
    if (status != LS_OK) {
        ls_mpi_receive_put(&transport->receives, receive);
        return ls_error_set(status, "cannot receive from rank %u: %s", peer, ls_last_error());
    }
    receive->key       = key;
    receive->peer      = peer;
    receive->is_posted = true;
    link               = ls_mpi_receive_find(&transport->receives, peer, key);
    receive->next      = *link;
    *link              = receive;
    transport->operations[transport->num_active++] = (operation_t){.receive = receive, .peer = peer};
    return LS_OK;
}

static bool transport_match(void *self, uint32_t peer, ls_key_t key, ls_message_t *message_p)
{
    ls_mpi_receive_t **link    = ls_mpi_receive_find(&((transport_t *)self)->receives, peer, key);
    ls_mpi_receive_t  *receive = *link;
    ls_mpi_trailer_t   trailer;

    if (receive == NULL || receive->is_posted) {
        return false;
    }
    *link = receive->next;
    memcpy(&trailer, receive->data + receive->bytes, sizeof(trailer));
    *message_p = (ls_message_t){
        .data = receive->data, .bytes = receive->bytes, .from = peer,
        .contributors = trailer.contributors, .token = receive,
    };
    return true;
}

static void transport_release(void *self, ls_message_t *message)
{
    transport_t *transport = self;

    if (!ls_mpi_control_release(&transport->control, message)) {
        ls_mpi_receive_put(&transport->receives, message->token);
    }
    message->token = NULL;
}

/* ---- progress ------------------------------------------------------------------------------- */

static ls_status_t receive_check(const ls_mpi_receive_t *receive, const MPI_Status *mpi_status)
{
    ls_mpi_trailer_t trailer;
    int              length = 0;
    ls_status_t      status = ls_status_from_mpi(MPI_Get_count(mpi_status, MPI_BYTE, &length));

    if (status != LS_OK) {
        return status;
    }
    if (length < 0 || (size_t)length != receive->bytes + sizeof(trailer)) {
        return ls_error_set(LS_ERR_INTERNAL, "rank %u sent %d bytes where %zu were expected (bucket %u, "
                            "chunk %u, message %u)", receive->peer, length - (int)sizeof(trailer),
                            receive->bytes, ls_key_id(receive->key), ls_key_chunk(receive->key),
                            ls_key_message(receive->key));
    }
    memcpy(&trailer, receive->data + receive->bytes, sizeof(trailer));
    if (trailer.check != key_check(receive->key)) {
        return ls_error_set(LS_ERR_INTERNAL, "rank %u sent another message than the expected one (bucket "
                            "%u, chunk %u, message %u)", receive->peer, ls_key_id(receive->key),
                            ls_key_chunk(receive->key), ls_key_message(receive->key));
    }
    return LS_OK;
}

static ls_status_t receive_finish(ls_mpi_receive_t *receive, const MPI_Status *mpi_status, int code)
{
    ls_status_t status = ls_status_from_mpi(code);

    status = (status == LS_OK) ? receive_check(receive, mpi_status)
                               : ls_error_set(status, "receiving %zu bytes from rank %u: %s", receive->bytes,
                                              receive->peer, ls_last_error());
    if (status != LS_OK) {
        receive->key = NO_KEY; /* never handed out */
    }
    receive->is_posted = false;
    return status;
}

static ls_status_t send_finish(const operation_t *operation, int code)
{
    const ls_status_t status = ls_status_from_mpi(code);

    if (status != LS_OK) {
        return ls_error_set(status, "sending to rank %u: %s", operation->peer, ls_last_error());
    }
    atomic_fetch_sub(&operation->stage->pending, 1);
    return LS_OK;
}

/* MPI has set the requests that ended to null. */
static void operations_compact(transport_t *transport)
{
    size_t kept = 0;

    for (size_t i = 0; i < transport->num_active; i++) {
        if (transport->requests[i] != MPI_REQUEST_NULL) {
            transport->requests[kept]     = transport->requests[i];
            transport->operations[kept++] = transport->operations[i];
        }
    }
    transport->num_active = kept;
}

static ls_status_t operations_test(transport_t *transport, bool *moved_p)
{
    int         num_done = 0, error_class = MPI_SUCCESS, code;
    ls_status_t status = LS_OK;

    if (transport->num_active == 0) {
        return LS_OK;
    }
    code = MPI_Testsome((int)transport->num_active, transport->requests, &num_done, transport->indices,
                        transport->statuses);
    if (code != MPI_SUCCESS) {
        (void)MPI_Error_class(code, &error_class); /* on failure the code is reported as it is */
        if (error_class != MPI_ERR_IN_STATUS) {
            return ls_status_from_mpi(code);
        }
    }
    if (num_done <= 0) { /* or MPI_UNDEFINED */
        return LS_OK;
    }
    for (int i = 0; i < num_done && status == LS_OK; i++) {
        const operation_t *operation = &transport->operations[transport->indices[i]];
        const int own_code = (code == MPI_SUCCESS) ? MPI_SUCCESS : transport->statuses[i].MPI_ERROR;

        status = (operation->stage != NULL)
                     ? send_finish(operation, own_code)
                     : receive_finish(operation->receive, &transport->statuses[i], own_code);
    }
    operations_compact(transport);
    *moved_p = true;
    return status;
}

static ls_status_t transport_progress(void *self, bool *moved_p)
{
    transport_t      *transport = self;
    const ls_status_t status    = operations_test(transport, moved_p);

    return (status != LS_OK) ? status : ls_mpi_control_progress(&transport->control, moved_p);
}

static bool transport_poll_control(void *self, ls_message_t *message_p)
{
    return ls_mpi_control_poll(&((transport_t *)self)->control, message_p);
}

static bool transport_needs_polling(void *self)
{
    return ((const transport_t *)self)->num_active > 0;
}

/* ---- create, destroy ------------------------------------------------------------------------ */

static ls_status_t check_tags(MPI_Comm comm)
{
    const int   needed = (1 << TAG_BITS) - 1;
    int        *largest = NULL, is_set = 0;
    ls_status_t status = ls_status_from_mpi(MPI_Comm_get_attr(comm, MPI_TAG_UB, &largest, &is_set));

    if (status == LS_OK && (!is_set || *largest < needed)) {
        status = ls_error_set(LS_ERR_UNSUPPORTED, "this MPI's tags end at %d; lockstep needs %d",
                              is_set ? *largest : 0, needed);
    }
    return status;
}

ls_status_t ls_mpi_transport_create(MPI_Comm comm, ls_mpi_transport_h *transport_p)
{
    transport_t *transport;
    void        *mem;
    ls_status_t  status = check_tags(comm);

    if (status != LS_OK) {
        return status;
    }
    status = ls_mem_alloc(sizeof(*transport), "mpi transport", &mem);
    if (status != LS_OK) {
        return status;
    }
    transport       = mem;
    transport->comm = comm;
    status          = ls_mpi_control_open(&transport->control, comm);
    if (status != LS_OK) {
        ls_mem_free(transport);
        return status;
    }
    *transport_p = transport;
    return LS_OK;
}

/* Receives are cancelled, sends get a moment to end: their receivers have them, or are lost. */
static void operations_drain(transport_t *transport)
{
    const uint64_t deadline = ls_clock_ns() + DESTROY_WAIT_NS;

    for (size_t i = 0; i < transport->num_active; i++) {
        if (transport->operations[i].receive != NULL) {
            (void)MPI_Cancel(&transport->requests[i]); /* one that cannot be cancelled stays active */
        }
    }
    while (transport->num_active > 0 && ls_clock_ns() < deadline) {
        for (size_t i = 0; i < transport->num_active; i++) {
            int is_done = 0;

            (void)MPI_Test(&transport->requests[i], &is_done, MPI_STATUS_IGNORE);
            if (is_done && transport->operations[i].receive != NULL) {
                transport->operations[i].receive->is_posted = false;
            }
        }
        operations_compact(transport);
    }
    if (transport->num_active > 0) {
        ls_debug("%zu messages were still on their way when MPI was left", transport->num_active);
    }
}

static void transport_destroy(void *self)
{
    transport_t *transport    = self;
    int          is_finalized = 0;

    if (transport == NULL) {
        return;
    }
    (void)MPI_Finalized(&is_finalized); /* cannot fail */
    if (!is_finalized) {
        operations_drain(transport);
    }
    ls_mpi_control_close(&transport->control, !is_finalized);
    ls_mpi_receive_free_all(&transport->receives);
    ls_mem_free(transport->requests);
    ls_mem_free(transport->operations);
    ls_mem_free(transport->indices);
    ls_mem_free(transport->statuses);
    ls_mem_free(transport);
}

const ls_transport_ops_t ls_mpi_transport_ops = {
    .name          = "MPI",
    .send          = transport_send,
    .expect        = transport_expect,
    .match         = transport_match,
    .release       = transport_release,
    .poll_control  = transport_poll_control,
    .progress      = transport_progress,
    .needs_polling = transport_needs_polling,
    .destroy       = transport_destroy,
};

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The coordinator, on rank 0: hears what every rank reports, tells all of them the same in one order.
 * Speaks only through params->ops->send, also to its own rank.
 */
#ifndef LS_SCHEDULE_COORDINATOR_H
#define LS_SCHEDULE_COORDINATOR_H

#include "schedule/messages.h"
#include "schedule/schedule.h"

typedef struct ls_coordinator ls_coordinator_t;

/* `params` must outlive it. */
ls_status_t ls_coordinator_create(const ls_schedule_params_t *params, ls_coordinator_t **coordinator_p);
void        ls_coordinator_destroy(ls_coordinator_t *coordinator); /* NULL is allowed */

/* LS_ERR_INTERNAL: the message makes no sense, nothing was changed.  Other failures are final. */
ls_status_t ls_coordinator_receive(ls_coordinator_t *coordinator, uint32_t from, const ls_message_t *message,
                                   uint64_t now_ns);

/* Send what became ready together; look for stalls.  *next_p: when it wants to be called again. */
ls_status_t ls_coordinator_tick(ls_coordinator_t *coordinator, uint64_t now_ns, uint64_t *next_p);

void ls_coordinator_dump(const ls_coordinator_t *coordinator, uint64_t now_ns, int fd);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The sockets of the heartbeat: UDP, bound to one address. */
#ifndef LS_TRANSPORT_PULSE_LINK_H
#define LS_TRANSPORT_PULSE_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lockstep.h"

/* As it travels to the other ranks; family 0: none. */
typedef struct ls_pulse_address {
    uint16_t family; /* 4 or 6 */
    uint16_t port;
    uint8_t  bytes[16];
} ls_pulse_address_t;

/*
 * Open a socket on the address that this job should use: loopback when all of it is on one host, else the address
 * or interface named by `interface`; "": the address from which the default route begins, else the first one that
 * is up and not loopback.
 */
ls_status_t ls_pulse_link_open(bool is_one_host, const char *interface, int *fd_p, ls_pulse_address_t *address_p);

/* One more socket on the same address, any port: to send from.  -1: impossible. */
int ls_pulse_link_open_sender(const ls_pulse_address_t *address);

/* What cannot be sent is lost, as datagrams are. */
void ls_pulse_link_send(int fd, const ls_pulse_address_t *to, const void *data, size_t size);

/* Bytes of the next datagram (cut at room), or -1: none is there. */
int64_t ls_pulse_link_receive(int fd, void *data, size_t room);

#endif

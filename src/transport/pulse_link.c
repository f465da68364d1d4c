/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/pulse_link.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"

/* Addresses of documentation (RFC 5737, 3849): nobody has them, so the way there is the default route. */
#define ANYWHERE_4 "192.0.2.1"
#define ANYWHERE_6 "2001:db8::1"

static bool from_sockaddr(const struct sockaddr *from, ls_pulse_address_t *to_p)
{
    *to_p = (ls_pulse_address_t){0};
    if (from != NULL && from->sa_family == AF_INET) {
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)(const void *)from;

        to_p->family = 4;
        to_p->port   = ntohs(v4->sin_port);
        memcpy(to_p->bytes, &v4->sin_addr, 4);
    } else if (from != NULL && from->sa_family == AF_INET6) {
        const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)(const void *)from;

        to_p->family = 6;
        to_p->port   = ntohs(v6->sin6_port);
        memcpy(to_p->bytes, &v6->sin6_addr, 16);
    }
    return to_p->family != 0;
}

static socklen_t to_sockaddr(const ls_pulse_address_t *from, struct sockaddr_storage *to_p)
{
    memset(to_p, 0, sizeof(*to_p));
    if (from->family == 4) {
        struct sockaddr_in *v4 = (struct sockaddr_in *)(void *)to_p;

        v4->sin_family = AF_INET;
        v4->sin_port   = htons(from->port);
        memcpy(&v4->sin_addr, from->bytes, 4);
        return sizeof(*v4);
    }
    {
        struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)(void *)to_p;

        v6->sin6_family = AF_INET6;
        v6->sin6_port   = htons(from->port);
        memcpy(&v6->sin6_addr, from->bytes, 16);
        return sizeof(*v6);
    }
}

static bool parse(const char *text, ls_pulse_address_t *address_p)
{
    *address_p = (ls_pulse_address_t){0};
    if (inet_pton(AF_INET, text, address_p->bytes) == 1) {
        address_p->family = 4;
    } else if (inet_pton(AF_INET6, text, address_p->bytes) == 1) {
        address_p->family = 6;
    }
    return address_p->family != 0;
}

/* The own address of the way to `text`; nothing is sent by a connect of this kind. */
static bool find_source(const char *text, ls_pulse_address_t *address_p)
{
    ls_pulse_address_t      there;
    struct sockaddr_storage storage;
    socklen_t               size;
    bool                    found = false;
    int                     fd;

    if (!parse(text, &there)) {
        return false;
    }
    there.port = 9;
    size       = to_sockaddr(&there, &storage);
    fd         = socket(storage.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return false;
    }
    if (connect(fd, (const struct sockaddr *)&storage, size) == 0) {
        size  = sizeof(storage);
        found = getsockname(fd, (struct sockaddr *)&storage, &size) == 0 &&
                from_sockaddr((const struct sockaddr *)&storage, address_p);
    }
    close(fd);
    return found;
}

/* Those of one link only mean nothing to other hosts. */
static bool is_link_local(const struct sockaddr *address)
{
    return address->sa_family == AF_INET6 &&
           IN6_IS_ADDR_LINKLOCAL(&((const struct sockaddr_in6 *)(const void *)address)->sin6_addr);
}

/* The first address of interface `name` ("": of any that is up and not loopback), IPv4 before IPv6. */
static bool find_interface(const char *name, ls_pulse_address_t *address_p)
{
    struct ifaddrs *list;
    bool            found = false;

    if (getifaddrs(&list) != 0) {
        return false;
    }
    for (int pass = 0; pass < 2 && !found; pass++) {
        for (const struct ifaddrs *one = list; one != NULL && !found; one = one->ifa_next) {
            const bool is_wanted = (name[0] == '\0') ? (one->ifa_flags & IFF_LOOPBACK) == 0
                                                     : strcmp(one->ifa_name, name) == 0;

            found = is_wanted && (one->ifa_flags & IFF_UP) != 0 && one->ifa_addr != NULL &&
                    one->ifa_addr->sa_family == (pass == 0 ? AF_INET : AF_INET6) && !is_link_local(one->ifa_addr) &&
                    from_sockaddr(one->ifa_addr, address_p);
        }
    }
    freeifaddrs(list);
    return found;
}

static bool choose(bool is_one_host, const char *interface, ls_pulse_address_t *address_p)
{
    if (interface[0] != '\0') {
        return parse(interface, address_p) || find_interface(interface, address_p);
    }
    if (is_one_host) {
        return parse("127.0.0.1", address_p);
    }
    return find_source(ANYWHERE_4, address_p) || find_source(ANYWHERE_6, address_p) || find_interface("", address_p);
}

static int open_on(const ls_pulse_address_t *address, ls_pulse_address_t *bound_p)
{
    ls_pulse_address_t      any_port = *address;
    struct sockaddr_storage storage;
    socklen_t               size;
    int                     fd;

    any_port.port = 0;
    size          = to_sockaddr(&any_port, &storage);
    fd            = socket(storage.ss_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return -1;
    }
    if (bind(fd, (const struct sockaddr *)&storage, size) == 0) {
        size = sizeof(storage);
        if (getsockname(fd, (struct sockaddr *)&storage, &size) == 0 &&
            from_sockaddr((const struct sockaddr *)&storage, bound_p)) {
            return fd;
        }
    }
    close(fd);
    return -1;
}

ls_status_t ls_pulse_link_open(bool is_one_host, const char *interface, int *fd_p, ls_pulse_address_t *address_p)
{
    ls_pulse_address_t address;
    int                fd;

    if (!choose(is_one_host, interface, &address)) {
        return ls_error_set(interface[0] != '\0' ? LS_ERR_CONFIG : LS_ERR_SYSTEM,
                            "no address for the heartbeat%s%s: set LOCKSTEP_INTERFACE to an address or interface of "
                            "this host that the others can reach", interface[0] != '\0' ? " on " : "", interface);
    }
    fd = open_on(&address, address_p);
    if (fd < 0) {
        return ls_error_set_errno("cannot open a socket for the heartbeat (see LOCKSTEP_INTERFACE)");
    }
    *fd_p = fd;
    return LS_OK;
}

int ls_pulse_link_open_sender(const ls_pulse_address_t *address)
{
    ls_pulse_address_t bound;

    return open_on(address, &bound);
}

void ls_pulse_link_send(int fd, const ls_pulse_address_t *to, const void *data, size_t size)
{
    struct sockaddr_storage storage;
    const socklen_t         length = to_sockaddr(to, &storage);

    (void)sendto(fd, data, size, MSG_NOSIGNAL | MSG_DONTWAIT, (const struct sockaddr *)&storage, length);
}

int64_t ls_pulse_link_receive(int fd, void *data, size_t room)
{
    ssize_t size;

    do {
        size = recv(fd, data, room, MSG_DONTWAIT);
    } while (size < 0 && (errno == EINTR || errno == ECONNREFUSED)); /* the second tells of an earlier send */
    return size;
}

#include "job/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void tb_address_put(struct tb_writer *w, const struct tb_address *address)
{
    tb_put_u8(w, address->family);
    tb_put_u8(w, address->prefix);
    tb_put_u32(w, address->port);
    tb_put_u32(w, address->scope);
    tb_put_bytes(w, address->bytes, address->family == 4 ? 4 : 16);
}

int tb_address_get(struct tb_reader *r, struct tb_address *address)
{
    *address = (struct tb_address){.family = tb_get_u8(r)};
    address->prefix = tb_get_u8(r);
    uint32_t port = tb_get_u32(r);
    address->port = (uint16_t)port;
    address->scope = tb_get_u32(r);
    size_t length = 0;
    const void *bytes = tb_get_bytes(r, &length);
    if (r->error != TB_OK)
        return r->error;
    bool good = (address->family == 4 && length == 4 && address->prefix <= 32) ||
                (address->family == 6 && length == 16 && address->prefix <= 128);
    if (!good || port > UINT16_MAX) {
        r->error = TB_ERR_PROTOCOL;
        return tb_error(TB_ERR_PROTOCOL, "a network address in a control message makes no sense");
    }
    memcpy(address->bytes, bytes, length);
    return TB_OK;
}

void tb_address_print(const struct tb_address *address, char *text, size_t size)
{
    char plain[INET6_ADDRSTRLEN] = "?";
    if (address->family == 4) {
        inet_ntop(AF_INET, address->bytes, plain, sizeof plain);
        snprintf(text, size, "%s:%u", plain, (unsigned)address->port);
    } else {
        inet_ntop(AF_INET6, address->bytes, plain, sizeof plain);
        snprintf(text, size, "[%s]:%u", plain, (unsigned)address->port);
    }
}

socklen_t tb_address_socket(const struct tb_address *address, struct sockaddr_storage *to)
{
    memset(to, 0, sizeof *to);
    if (address->family == 4) {
        struct sockaddr_in *in = (struct sockaddr_in *)to;
        in->sin_family = AF_INET;
        in->sin_port = htons(address->port);
        memcpy(&in->sin_addr, address->bytes, 4);
        return sizeof *in;
    }
    struct sockaddr_in6 *in = (struct sockaddr_in6 *)to;
    in->sin6_family = AF_INET6;
    in->sin6_port = htons(address->port);
    in->sin6_scope_id = address->scope;
    memcpy(&in->sin6_addr, address->bytes, 16);
    return sizeof *in;
}

bool tb_address_same_subnet(const struct tb_address *a, const struct tb_address *b)
{
    if (a->family != b->family)
        return false;
    unsigned bits = a->prefix < b->prefix ? a->prefix : b->prefix;
    for (unsigned i = 0; i < bits; i++)
        if (((a->bytes[i / 8] ^ b->bytes[i / 8]) >> (7 - i % 8)) & 1)
            return false;
    return bits > 0;
}

int tb_ports_parse(const char *text, uint16_t *low, uint16_t *high)
{
    char *end;
    errno = 0;
    unsigned long first = strtoul(text, &end, 10), last = first;
    bool good = end != text && errno == 0 && *text != '-';
    if (good && *end == '-' && end[1] >= '0' && end[1] <= '9')
        last = strtoul(end + 1, &end, 10);
    if (!good || *end != 0 || first > 65535 || last > 65535 || last < first)
        return tb_error(TB_ERR_ARGUMENT, "ports=%s is neither 0, a port nor a range such as 20000-20100", text);
    *low = (uint16_t)first;
    *high = (uint16_t)last;
    return TB_OK;
}

/* -1: errno says why. */
static int listen_at(uint16_t port)
{
    struct tb_address any = {.family = 6, .port = port};
    struct sockaddr_storage name;
    int off = 0, on = 1, fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) < 0) {
        if (fd >= 0)
            close(fd);
        any.family = 4;
        fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    }
    if (fd < 0)
        return -1;
    socklen_t length = tb_address_socket(&any, &name);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, (struct sockaddr *)&name, length) == 0 && listen(fd, SOMAXCONN) == 0)
        return fd;
    int why = errno;
    close(fd);
    errno = why;
    return -1;
}

int tb_ports_listen(const char *text, uint16_t *port)
{
    struct sockaddr_in6 name = {0}; /* the port is at the same place in both families */
    socklen_t length = sizeof name;
    uint16_t low, high;
    int fd = -1;
    errno = EINVAL;
    if (tb_ports_parse(text, &low, &high) != TB_OK)
        return -1;
    for (uint32_t at = low; at <= high && fd < 0; at++)
        fd = listen_at((uint16_t)at);
    if (fd >= 0 && getsockname(fd, (struct sockaddr *)&name, &length) == 0)
        *port = ntohs(name.sin6_port);
    return fd;
}

int tb_address_parse(const char *text, struct tb_address *address)
{
    const char *colon = strrchr(text, ':');
    char plain[INET6_ADDRSTRLEN + 2], *end = NULL;
    unsigned long port = colon != NULL ? strtoul(colon + 1, &end, 10) : 0;
    size_t length = colon != NULL ? (size_t)(colon - text) : 0;
    *address = (struct tb_address){.port = (uint16_t)port};
    if (length > 0 && length < sizeof plain && port > 0 && port <= UINT16_MAX && *end == 0) {
        bool six = text[0] == '[' && text[length - 1] == ']';
        snprintf(plain, sizeof plain, "%.*s", (int)(six ? length - 2 : length), text + six);
        address->family = six ? 6 : 4;
        if (inet_pton(six ? AF_INET6 : AF_INET, plain, address->bytes) == 1)
            return TB_OK;
    }
    return tb_error(TB_ERR_ARGUMENT, "\"%s\" is no address and port", text);
}

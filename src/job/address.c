#include "job/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

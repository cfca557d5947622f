#include "launch/host_names.h"

#include <netdb.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- this host --------------------------------------------------------------------------------------------------- */

static bool is_host_name(const char *name)
{
    char own[256] = "";
    if (gethostname(own, sizeof own - 1) < 0)
        return false;
    size_t length = strcspn(own, ".");
    return strcmp(name, own) == 0 || (strlen(name) == length && memcmp(name, own, length) == 0);
}

bool tb_host_names_is_here(const char *name)
{
    static const char *const names[] = {"localhost", "127.0.0.1", "::1"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return is_host_name(name);
}

static bool is_our_name(const char *name)
{
    return strcmp(name, "localhost") == 0 || is_host_name(name);
}

/* Whether it leads to this machine: only what is our own can be bound to. */
static bool is_our_address(const char *text)
{
    struct addrinfo *found = NULL;
    bool ours = false;
    if (getaddrinfo(text, NULL, &(struct addrinfo){.ai_socktype = SOCK_DGRAM}, &found) != 0)
        return false;
    for (const struct addrinfo *at = found; at != NULL && !ours; at = at->ai_next) {
        int fd = socket(at->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        ours = fd >= 0 && bind(fd, at->ai_addr, at->ai_addrlen) == 0;
        if (fd >= 0)
            close(fd);
    }
    freeaddrinfo(found);
    return ours;
}

/* A name that this machine has too may be meant for another one, which the address then tells. In a lab the addresses
 * of the file mean nothing. */
static bool is_this_host(const struct tb_grid_host *host, bool in_lab)
{
    if (!is_our_name(host->name))
        return false;
    if (host->address == NULL || in_lab)
        return true;
    char own[256] = "";
    size_t length = strcspn(host->address, ".");
    if (gethostname(own, sizeof own - 1) == 0 && strlen(own) == length && memcmp(host->address, own, length) == 0)
        return true; /* with its domain, where the machine itself does not know that */
    return is_our_name(host->address) || is_our_address(host->address);
}

uint32_t tb_host_names_find_here(const struct tb_grid *grid, const bool *missing, bool in_lab)
{
    for (uint32_t i = 0; i < grid->host_count; i++)
        if (!missing[i] && is_this_host(&grid->hosts[i], in_lab))
            return i;
    return TB_GRID_NONE;
}

/* ---- other hosts ------------------------------------------------------------------------------------------------- */

void tb_host_names_add_address(struct tb_host *host, const char *text)
{
    struct addrinfo wanted = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG}, *found = NULL;
    if (host->address_count == 0 || getaddrinfo(text, NULL, &wanted, &found) != 0)
        return;
    for (const struct addrinfo *at = found; at != NULL && host->address_count < TB_HOST_ADDRESS_LIMIT;
         at = at->ai_next) {
        struct tb_address address = {.port = host->addresses[0].port};
        if (at->ai_family == AF_INET) {
            address.family = 4;
            address.prefix = 32;
            memcpy(address.bytes, &((const struct sockaddr_in *)at->ai_addr)->sin_addr, 4);
        } else if (at->ai_family == AF_INET6) {
            address.family = 6;
            address.prefix = 128;
            memcpy(address.bytes, &((const struct sockaddr_in6 *)at->ai_addr)->sin6_addr, 16);
        } else {
            continue;
        }
        bool known = false;
        for (uint32_t i = 0; i < host->address_count; i++)
            known = known || (host->addresses[i].family == address.family &&
                              memcmp(host->addresses[i].bytes, address.bytes, sizeof address.bytes) == 0);
        if (!known)
            host->addresses[host->address_count++] = address;
    }
    freeaddrinfo(found);
}

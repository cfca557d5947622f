/* How a host gets something to the others. */
#include "job/job.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define ROUTE_BYTES_LEAST 25u /* of one route in a frame */

int tb_host_routes_encode(const struct tb_host_routes *routes, struct tb_writer *w)
{
    tb_put_u32(w, routes->version);
    tb_put_u32(w, routes->kind_count);
    for (uint32_t i = 0; i < routes->kind_count; i++) {
        const struct tb_host_route *route = &routes->routes[i];
        tb_put_u8(w, route->means);
        tb_put_u8(w, route->hop_count);
        tb_put_u8(w, route->near);
        tb_put_u8(w, route->open);
        tb_put_u8(w, route->relays);
        for (uint32_t k = 0; k < route->hop_count; k++)
            tb_put_u32(w, route->hops[k]);
        tb_put_u64(w, route->latency);
        tb_put_u64(w, route->bandwidth);
        tb_put_u32(w, route->loss);
    }
    return w->error;
}

static bool take_route(struct tb_reader *r, struct tb_host_route *route, uint32_t host_count)
{
    *route = (struct tb_host_route){.means = tb_get_u8(r)};
    route->hop_count = tb_get_u8(r);
    route->near = tb_get_u8(r);
    route->open = tb_get_u8(r);
    route->relays = tb_get_u8(r);
    bool good = route->means <= TB_HOST_ROUTE_RELAYED && route->hop_count <= TB_HOST_ROUTES_HOPS_LIMIT &&
                route->near <= 1 && route->open <= 1 && route->relays <= 1 &&
                (route->hop_count > 0) == (route->means == TB_HOST_ROUTE_RELAYED);
    for (uint32_t k = 0; good && k < route->hop_count; k++) {
        route->hops[k] = tb_get_u32(r);
        good = route->hops[k] < host_count;
    }
    route->latency = tb_get_u64(r);
    route->bandwidth = tb_get_u64(r);
    route->loss = tb_get_u32(r);
    return good && r->error == TB_OK;
}

int tb_host_routes_reserve(struct tb_host_routes *routes, uint32_t kinds)
{
    if (kinds <= routes->room)
        return TB_OK;
    struct tb_host_route *more = realloc(routes->routes, kinds * sizeof *more);
    if (more == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for the ways to %u kinds of hosts", kinds);
    routes->routes = more;
    routes->room = kinds;
    return TB_OK;
}

int tb_host_routes_decode(struct tb_host_routes *routes, struct tb_reader *r, uint32_t host_count)
{
    routes->version = tb_get_u32(r);
    routes->kind_count = 0;
    uint32_t kinds = tb_get_u32(r);
    size_t left = r->error == TB_OK ? r->length - r->at : 0;
    bool good = r->error == TB_OK && kinds <= TB_HOST_ROUTES_KINDS_LIMIT && kinds <= left / ROUTE_BYTES_LEAST;
    if (good && tb_host_routes_reserve(routes, kinds) != TB_OK)
        return TB_ERR_MEMORY;
    for (uint32_t i = 0; good && i < kinds; i++)
        good = take_route(r, &routes->routes[i], host_count);
    if (!good || tb_reader_end(r) != TB_OK) {
        tb_host_routes_close(routes);
        return tb_error(TB_ERR_PROTOCOL, "the ways between the hosts of the job make no sense");
    }
    routes->kind_count = kinds;
    return TB_OK;
}

void tb_host_routes_close(struct tb_host_routes *routes)
{
    free(routes->routes);
    *routes = (struct tb_host_routes){0};
}

const struct tb_host_route *tb_host_routes_to(const struct tb_host_routes *routes, const struct tb_address_book *book,
                                              uint32_t host)
{
    static const struct tb_host_route direct = {.means = TB_HOST_ROUTE_DIRECT, .near = 1, .open = 1},
                                      none = {.means = TB_HOST_ROUTE_NONE};
    if (host >= book->host_count)
        return &none;
    if (routes->kind_count == 0)
        return &direct;
    uint32_t kind = book->hosts[host].kind;
    return kind < routes->kind_count ? &routes->routes[kind] : &none;
}

int tb_host_routes_share(const struct tb_host_routes *routes, int *descriptor)
{
    struct tb_writer w;
    tb_writer_open(&w);
    int rc = tb_host_routes_encode(routes, &w);
    int fd = rc == TB_OK ? memfd_create("tombolo-ways", MFD_CLOEXEC | MFD_ALLOW_SEALING) : -1;
    if (rc == TB_OK && (fd < 0 || write(fd, w.bytes, w.length) != (ssize_t)w.length ||
                        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) < 0))
        rc = tb_error_errno("cannot make memory for the ways between the hosts");
    tb_writer_close(&w);
    if (rc != TB_OK && fd >= 0)
        close(fd);
    else if (rc == TB_OK)
        *descriptor = fd;
    return rc;
}

int tb_host_routes_read(struct tb_host_routes *routes, int descriptor, uint32_t host_count)
{
    struct stat about;
    if (fstat(descriptor, &about) < 0 || about.st_size <= 0 || about.st_size > (off_t)TB_CONTROL_LIMIT)
        return tb_error(TB_ERR_PROTOCOL, "the ways between hosts that the agent gave make no sense");
    void *mapping = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_SHARED, descriptor, 0);
    if (mapping == MAP_FAILED)
        return tb_error_errno("cannot map the ways between hosts");
    struct tb_reader r;
    tb_reader_open(&r, mapping, (size_t)about.st_size);
    int rc = tb_host_routes_decode(routes, &r, host_count);
    munmap(mapping, (size_t)about.st_size);
    return rc;
}

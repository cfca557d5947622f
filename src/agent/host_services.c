#include "agent/host_services.h"

#include "agent/rank_memory.h"
#include "transport/transport.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

void tb_host_services_init(struct tb_host_services *services)
{
    *services = (struct tb_host_services){
        .segment = -1, .book = -1, .routes = -1, .costs = -1, .plan = -1, .plans = -1, .worlds = -1, .parent = -1};
}

static int make_memories(struct tb_host_services *services)
{
    services->segment_bytes = tb_shm_segment_bytes(services->rank_count);
    int rc = tb_rank_memory_make("tombolo-segment", services->segment_bytes, &services->segment);
    return rc == TB_OK ? tb_rank_memory_make("tombolo-plans", TB_JOB_PLANS_BYTES, &services->plans) : rc;
}

static int make_doorbells(struct tb_host_services *services, uint32_t rank_count)
{
    services->doorbells = malloc((rank_count + 1u) * sizeof *services->doorbells);
    if (services->doorbells == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for %u ranks", rank_count);
    for (; services->rank_count < rank_count; services->rank_count++) {
        int doorbell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (doorbell < 0)
            return tb_error_errno("cannot make doorbells for %u ranks", rank_count);
        services->doorbells[services->rank_count] = doorbell;
    }
    return TB_OK;
}

int tb_host_services_make(struct tb_host_services *services, uint32_t rank_count, struct tb_address_book *book,
                          const struct tb_host_routes *routes)
{
    int rc = make_doorbells(services, rank_count);
    if (rc == TB_OK && rank_count > 0)
        rc = make_memories(services);
    if (rc == TB_OK)
        rc = tb_address_book_share(book, &services->book);
    if (rc == TB_OK)
        rc = tb_worlds_make(book, &services->worlds);
    return rc == TB_OK ? tb_host_routes_share(routes, &services->routes) : rc;
}

static int duplicate(int descriptor, int *copy)
{
    if (descriptor < 0)
        return TB_OK;
    *copy = fcntl(descriptor, F_DUPFD_CLOEXEC, 3);
    return *copy >= 0 ? TB_OK : tb_error_errno("cannot share with new ranks what the others have");
}

int tb_host_services_spawn(struct tb_host_services *services, uint32_t rank_count,
                           const struct tb_host_services *others, const void *parent, size_t parent_bytes)
{
    services->host = others->host;
    services->parameters = others->parameters;
    int rc = make_doorbells(services, rank_count);
    if (rc == TB_OK)
        rc = make_memories(services);
    if (rc == TB_OK)
        rc = duplicate(others->book, &services->book);
    if (rc == TB_OK)
        rc = duplicate(others->routes, &services->routes);
    if (rc == TB_OK)
        rc = duplicate(others->costs, &services->costs);
    if (rc == TB_OK)
        rc = duplicate(others->plan, &services->plan);
    if (rc == TB_OK)
        rc = duplicate(others->worlds, &services->worlds);
    return rc == TB_OK ? tb_shared_bytes_put(parent, parent_bytes, &services->parent) : rc;
}

int tb_host_services_change_routes(struct tb_host_services *services, const struct tb_host_routes *routes)
{
    int descriptor = -1, rc = tb_host_routes_share(routes, &descriptor);
    if (rc != TB_OK)
        return rc;
    if (services->routes >= 0)
        close(services->routes);
    services->routes = descriptor;
    return TB_OK;
}

void tb_host_services_close(struct tb_host_services *services)
{
    int files[] = {services->segment, services->book,  services->routes, services->costs,
                   services->plan,    services->plans, services->worlds, services->parent};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        if (files[i] >= 0)
            close(files[i]);
    for (uint32_t i = 0; i < services->rank_count; i++)
        close(services->doorbells[i]);
    free(services->doorbells);
    tb_host_services_init(services);
}

#include "mpi/multicast.h"

#include <netinet/in.h>
#include <string.h>

static uint32_t place_of(const struct tb_job *job, uint32_t proc)
{
    return job->book.hosts[tb_address_book_host_of(&job->book, proc)].place;
}

bool tb_multicast_in_cluster(void *context, struct tb_proc proc)
{
    const struct tb_job *job = context;
    return place_of(job, proc.index) == place_of(job, job->self.index);
}

static void socket_name(const struct tb_address *address, struct sockaddr_in *in4, struct sockaddr_in6 *in6)
{
    if (address->family == 4) {
        *in4 = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(address->port)};
        memcpy(&in4->sin_addr, address->bytes, sizeof in4->sin_addr);
    } else {
        *in6 = (struct sockaddr_in6){
            .sin6_family = AF_INET6, .sin6_port = htons(address->port), .sin6_scope_id = address->scope};
        memcpy(&in6->sin6_addr, address->bytes, sizeof in6->sin6_addr);
    }
}

/* ps a byte from here to the next host of the cluster. */
static uint64_t byte_time(struct tb_job *job)
{
    const struct tb_rank_places places = {.book = &job->book, .size = job->size, .table = job->table};
    uint32_t own = tb_address_book_host_of(&job->book, job->self.index), proc = 0;
    while (proc < job->size &&
           (tb_address_book_host_of(&job->book, proc) == own || place_of(job, proc) != job->book.hosts[own].place))
        proc++;
    if (proc == job->size || job->table == NULL)
        return 0;
    struct tb_way_brief way = tb_rank_places_way(&places, job->self.index, proc);
    return way.bandwidth > 0 ? UINT64_C(8000000000000) / way.bandwidth : 0;
}

bool tb_multicast_group_of(void *context, struct tb_engine_group *group)
{
    struct tb_job *job = context;
    const struct tb_multicast_group *g = &job->multicast.group;
    if (!job->multicast.grouped)
        return false;
    memset(group, 0, sizeof *group);
    socket_name(&g->address, &group->config.group.in4, &group->config.group.in6);
    socket_name(&g->local, &group->config.local.in4, &group->config.local.in6);
    group->config.interface = g->interface;
    group->config.hops = (uint8_t)g->ttl;
    group->config.key = g->key;
    group->piece = (uint16_t)g->piece;
    group->byte_time = byte_time(job);
    return true;
}

static bool verdict_is_known(void *context)
{
    const struct tb_job *job = context;
    return job->multicast.version > 0;
}

int tb_multicast_await(const uint8_t **places)
{
    struct tb_job *job = &tb_self.job;
    *places = NULL;
    if (!job->multicast.expected)
        return TB_OK;
    tb_engine_wait(tb_self.engine, verdict_is_known, job);
    for (uint32_t i = 0; i < TB_MULTICAST_PLACES && *places == NULL; i++)
        *places = job->multicast.first[i] != 0 ? job->multicast.first : NULL;
    if (*places == NULL)
        return TB_OK;
    tb_self_lock(); /* of several threads one opens it */
    int error = tb_engine_stand_by(tb_self.engine);
    tb_self_unlock();
    return error;
}

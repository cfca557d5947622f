#include "mpi/multicast.h"

#include <string.h>

static uint32_t place_of(const struct tb_job *job, uint32_t proc)
{
    return job->book.hosts[tb_address_book_host_of(&job->book, proc)].place;
}

bool tb_multicast_in_cluster(void *context, struct tb_proc proc)
{
    const struct tb_job *job = context;
    return tb_job_in_world(job, proc.index) && place_of(job, proc.index) == place_of(job, job->self.index);
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
    const struct tb_multicast_facts *facts = &job->multicast;
    const struct tb_multicast_group *g = &facts->group;
    struct sockaddr_storage name;
    memset(group, 0, sizeof *group);
    if (!facts->grouped && tb_multicast_first(facts, place_of(job, job->self.index)) != TB_MULTICAST_WORKS)
        return false;
    group->works = facts->grouped;
    group->byte_time = byte_time(job);
    if (!facts->grouped) /* algorithms that were chosen while it did go on, over connections */
        return true;
    memcpy(&group->config.group, &name, tb_address_socket(&g->address, &name));
    memcpy(&group->config.local, &name, tb_address_socket(&g->local, &name));
    group->config.interface = g->interface;
    group->config.hops = (uint8_t)g->ttl;
    group->config.key = g->key;
    group->piece = (uint16_t)g->piece;
    group->buffer = g->buffer;
    return true;
}

/* ---- trouble ----------------------------------------------------------------------------------------------------- */

void tb_multicast_complain(void *context, enum tb_engine_trouble what)
{
    tb_job_tell_group_trouble(context, what == TB_TROUBLE_OTHERS ? TB_MULTICAST_OTHER_JOB : TB_MULTICAST_UNHEARD);
}

void tb_multicast_learnt(void)
{
    const struct tb_job *job = &tb_self.job;
    uint64_t uncast = tb_multicast_uncast(&job->multicast, place_of(job, job->self.index));
    __atomic_store_n(&tb_self.uncast, uncast, __ATOMIC_RELAXED);
    tb_engine_regroup(tb_self.engine);
    if (tb_self.job.local_index == 0)
        tb_engine_listen(tb_self.engine); /* the first rank of a host hears for the others, mostly */
}

/* ---- where it is used -------------------------------------------------------------------------------------------- */

static bool verdict_is_known(void *context)
{
    const struct tb_job *job = context;
    return job->multicast.version > 0;
}

int tb_multicast_await(uint64_t communicator, uint8_t places[TB_MULTICAST_PLACES], bool *any)
{
    struct tb_job *job = &tb_self.job;
    *any = false;
    if (!job->multicast.expected)
        return TB_OK;
    tb_engine_wait(tb_self.engine, verdict_is_known, job);
    uint32_t leader = tb_context_leader(communicator, job->self.job);
    uint32_t there = place_of(
        job, leader < job->book.ranks
                 ? leader
                 : 0); /* nobody has made up that of an inbox, and worlds that were started later have no multicast */
    *any = tb_multicast_allowed(&job->multicast, communicator, there, places);
    return *any ? tb_engine_stand_by(tb_self.engine) : TB_OK;
}

/* The agent's first word to a rank: who it is, and what it shares with the others of its host. */
#include "job/job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

int tb_rank_welcome_send(int socket, const struct tb_rank_welcome *welcome, const char *parameters,
                         const int files[TB_WELCOME_FILES], const int *doorbells, uint32_t doorbell_count,
                         uint32_t *sent)
{
    int rc = TB_OK;
    struct tb_writer w;
    tb_writer_open(&w);
    while (rc == TB_OK && *sent < doorbell_count) {
        int descriptors[TB_PACKET_DESCRIPTORS];
        uint32_t count = 0;
        bool first = *sent == 0;
        w.length = 0;
        if (first) {
            tb_put_u32(&w, welcome->rank);
            tb_put_u32(&w, welcome->host);
            tb_put_u32(&w, welcome->app);
            tb_put_u64(&w, welcome->segment_bytes);
            tb_put_text(&w, parameters);
            tb_put_u8(&w, files[TB_WELCOME_PLAN] >= 0);
            tb_put_u8(&w, welcome->multicast);
            tb_put_u32(&w, welcome->first);
            tb_put_u32(&w, welcome->size);
            tb_put_u8(&w, files[TB_WELCOME_PARENT] >= 0);
            for (uint32_t i = 0; i < TB_WELCOME_FILES; i++)
                if (files[i] >= 0)
                    descriptors[count++] = files[i];
        } else {
            tb_put_u32(&w, *sent);
        }
        uint32_t room = TB_PACKET_DESCRIPTORS - count, left = doorbell_count - *sent;
        uint32_t now = left < room ? left : room;
        memcpy(descriptors + count, doorbells + *sent, now * sizeof(int));
        rc = tb_packet_send(socket, first ? TB_CONTROL_WELCOME : TB_CONTROL_DOORBELLS, &w, descriptors, count + now);
        if (rc == TB_OK)
            *sent += now;
    }
    tb_writer_close(&w);
    return rc;
}

/* ---- taking it --------------------------------------------------------------------------------------------------- */

/* Takes the descriptors of a packet from `first` on as doorbells. */
static int take_doorbells(struct tb_job *job, struct tb_packet *packet, uint32_t first, uint32_t *have)
{
    uint32_t count = packet->descriptor_count - first;
    if (count == 0 || count > job->local_count - *have)
        return tb_error(TB_ERR_PROTOCOL, "the agent gave %u doorbells for %u ranks", *have + count, job->local_count);
    for (uint32_t i = 0; i < count; i++) {
        job->doorbells[(*have)++] = packet->descriptors[first + i];
        packet->descriptors[first + i] = -1;
    }
    return TB_OK;
}

/* Of the world's ranks from `proc` on, those that stand one after the other on one host. */
static uint32_t run_from(const struct tb_job *job, uint32_t proc, uint32_t *host)
{
    const struct tb_rank_range *range = tb_address_book_range(&job->book, proc);
    uint32_t here = range->first_rank + range->count - proc, left = job->first + job->size - proc;
    *host = range->host;
    return here < left ? here : left;
}

/* Those of its own world. */
static int list_local(struct tb_job *job, uint32_t host)
{
    uint32_t n = 0, end = job->first + job->size, there, run;
    for (uint32_t proc = job->first; proc < end; proc += run) {
        run = run_from(job, proc, &there);
        job->local_count += there == host ? run : 0;
    }
    job->local_procs = calloc(job->local_count, sizeof *job->local_procs);
    job->doorbells = malloc(job->local_count * sizeof *job->doorbells);
    for (uint32_t i = 0; job->doorbells != NULL && i < job->local_count; i++)
        job->doorbells[i] = -1;
    if (job->local_procs == NULL || job->doorbells == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for the ranks of this host");
    for (uint32_t proc = job->first; proc < end; proc += run) {
        run = run_from(job, proc, &there);
        for (uint32_t i = 0; i < run && there == host; i++) {
            job->local_index = proc + i == job->self.index ? n : job->local_index;
            job->local_procs[n++] = proc + i;
        }
    }
    return TB_OK;
}

/* The hosts of the job agree but for what may differ; this program may have been built for yet another machine. */
static int look_at_machines(struct tb_job *job, uint32_t host)
{
    const struct tb_host *hosts = job->book.hosts;
    uint8_t own = tb_wire_representation();
    if (hosts[host].representation == TB_REP_UNKNOWN)
        return TB_OK;
    if (((own ^ hosts[host].representation) & ~TB_REP_MAY_DIFFER) != 0) {
        char ours[TB_MACHINE_BYTES];
        tb_wire_machine_print(tb_wire_machine(), ours);
        return tb_error(TB_ERR_UNSUPPORTED,
                        "this program is built for a machine that is %s, which host %s of the job is not: use a "
                        "program and a tombolo of the same architecture there",
                        ours, hosts[host].name);
    }
    for (uint32_t i = 0; i < job->book.host_count; i++)
        job->mixed = job->mixed || hosts[i].representation != hosts[host].representation;
    return TB_OK;
}

/* Memory that all ranks of the host write to. A file that is too short would end who looks behind its end. */
static int map_plans(struct tb_job *job, int descriptor)
{
    struct stat about;
    if (fstat(descriptor, &about) < 0 || about.st_size != TB_JOB_PLANS_BYTES)
        return tb_error(TB_ERR_PROTOCOL, "what the agent gave is no memory for plans");
    if (job->local_count == 1)
        return TB_OK;
    void *plans = mmap(NULL, TB_JOB_PLANS_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (plans == MAP_FAILED)
        return tb_error_errno("cannot map the host's memory for plans");
    madvise(plans, TB_JOB_PLANS_BYTES, MADV_DONTDUMP);
    job->plans = plans;
    return TB_OK;
}

/* Who this process is, and where: what agents and ranks must know alike. */
static int take_identity(struct tb_job *job, const struct tb_rank_welcome *w, const struct tb_packet *packet,
                         const uint32_t files[TB_WELCOME_FILES], bool spawned)
{
    int rc = tb_address_book_map(&job->book, packet->descriptors[TB_WELCOME_BOOK]);
    if (rc == TB_OK)
        rc = tb_worlds_map(&job->book, packet->descriptors[TB_WELCOME_WORLDS]);
    if (rc == TB_OK && spawned)
        rc = tb_shared_bytes_get(packet->descriptors[files[TB_WELCOME_PARENT]], &job->parent, &job->parent_bytes);
    if (rc != TB_OK)
        return rc;
    uint32_t known = tb_worlds_processes(&job->book);
    if (w->size > known || w->first > known - w->size || w->rank - w->first >= w->size ||
        w->host >= job->book.host_count || tb_address_book_host_of(&job->book, w->rank) != w->host)
        return tb_error(TB_ERR_PROTOCOL, "the agent's welcome does not agree with the address book");
    job->self = (struct tb_proc){job->book.job, w->rank};
    job->first = w->first;
    job->size = w->size;
    job->app = w->app;
    snprintf(job->host, sizeof job->host, "%s", job->book.hosts[w->host].name);
    return look_at_machines(job, w->host);
}

static int map_segment(struct tb_job *job, int descriptor, uint64_t bytes)
{
    void *segment = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (segment == MAP_FAILED)
        return tb_error_errno("cannot map the host's shared memory of %llu bytes", (unsigned long long)bytes);
    madvise(segment, bytes, MADV_DONTDUMP); /* a core file is to be as large as the program, not as the job */
    job->segment = segment;
    job->segment_bytes = bytes;
    return TB_OK;
}

/* Which descriptor is which; of those that may be missing, all that are there follow each other. */
static uint32_t find_files(uint32_t files[TB_WELCOME_FILES], bool planned, bool spawned)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < TB_WELCOME_FILES; i++) {
        files[i] = count;
        count += i < TB_WELCOME_PLAN || (i == TB_WELCOME_PLAN ? planned : spawned);
    }
    return count;
}

int tb_rank_welcome_take(struct tb_job *job, struct tb_packet *packet)
{
    struct tb_reader *r = &packet->frame.fields;
    struct tb_rank_welcome w = {.rank = tb_get_u32(r)};
    w.host = tb_get_u32(r);
    w.app = tb_get_u32(r);
    w.segment_bytes = tb_get_u64(r);
    size_t length = 0;
    const char *parameters = tb_get_bytes(r, &length);
    bool planned = tb_get_u8(r) != 0;
    job->multicast.expected = tb_get_u8(r) != 0;
    w.first = tb_get_u32(r);
    w.size = tb_get_u32(r);
    bool spawned = tb_get_u8(r) != 0;
    uint32_t files[TB_WELCOME_FILES], count = find_files(files, planned, spawned);
    if (tb_reader_end(r) != TB_OK || packet->descriptor_count <= count)
        return tb_error(TB_ERR_PROTOCOL, "the agent's welcome makes no sense; are program and mpiexec of the same "
                                         "version of Tombolo?");
    int rc = take_identity(job, &w, packet, files, spawned);
    if (rc == TB_OK)
        rc = tb_host_routes_read(&job->routes, packet->descriptors[TB_WELCOME_ROUTES], job->book.host_count);
    if (rc == TB_OK)
        rc = tb_host_routes_reserve(&job->spare, job->routes.kind_count);
    if (rc == TB_OK)
        rc = tb_cost_mapping_add(&job->costs, packet->descriptors[TB_WELCOME_COSTS], job->book.host_count,
                                 job->book.places.count);
    job->table = tb_cost_mapping_first(job->costs);
    if (rc == TB_OK)
        rc = list_local(job, w.host);
    if (rc == TB_OK)
        rc = map_plans(job, packet->descriptors[TB_WELCOME_PLANS]);
    if (rc == TB_OK && planned)
        rc = tb_sealed_map(packet->descriptors[files[TB_WELCOME_PLAN]], TB_JOB_PLAN_LIMIT, "plan", &job->plan,
                           &job->plan_bytes);
    if (rc == TB_OK)
        rc = tb_param_import(parameters, length);
    if (rc == TB_OK)
        rc = map_segment(job, packet->descriptors[TB_WELCOME_SEGMENT], w.segment_bytes);
    uint32_t have = 0;
    if (rc == TB_OK)
        rc = take_doorbells(job, packet, count, &have);
    while (rc == TB_OK && have < job->local_count) {
        tb_packet_discard(packet);
        rc = tb_packet_receive(job->control, packet, true);
        if (rc == TB_OK && packet->frame.kind != TB_CONTROL_DOORBELLS)
            rc = tb_error(TB_ERR_PROTOCOL, "the agent's welcome is incomplete");
        if (rc == TB_OK)
            rc = take_doorbells(job, packet, 0, &have);
    }
    return rc;
}

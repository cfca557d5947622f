/* A rank's membership in its job. */
#include "job/job.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define SEND_PATIENCE_MS  10000 /* an agent always reads; one that does not for this long is broken */
#define ABORT_PATIENCE_MS 10000 /* the agent kills us long before */
#define OWN_DESCRIPTORS   256   /* what a program may want for itself, besides the doorbells and connections */

struct agent_name {
    int descriptor;
    unsigned long inode;
    unsigned local_count;
    char socket[64];
};

static int parse_name(const char *text, struct agent_name *name)
{
    int used = 0;
    if (sscanf(text, "%d:%lu:%u:%n", &name->descriptor, &name->inode, &name->local_count, &used) != 3 || used == 0 ||
        text[used] == 0 || strlen(text + used) >= sizeof name->socket || name->local_count > TB_HOST_RANKS_LIMIT)
        return tb_error(TB_ERR_ARGUMENT,
                        "the environment variable " TB_AGENT_VARIABLE " is \"%s\", which no agent wrote; "
                        "unset it to run this program alone",
                        text);
    snprintf(name->socket, sizeof name->socket, "%s", text + used);
    return TB_OK;
}

/* So many descriptors, and those of the program, must fit; if they do not, there is to be room for `more`. The limit is
 * raised no further than that, and not before: what the program starts inherits it, and a select() of its own takes no
 * descriptor beyond 1023. */
static void raise_limit(rlim_t needed, rlim_t more)
{
    struct rlimit limit;
    rlim_t wanted = needed + OWN_DESCRIPTORS;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < wanted) {
        limit.rlim_cur = wanted + more < limit.rlim_max ? wanted + more : limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static bool is_inherited(const struct agent_name *name)
{
    struct stat about;
    return fstat(name->descriptor, &about) == 0 && S_ISSOCK(about.st_mode) && about.st_ino == name->inode;
}

/* In the world, and nothing more is known of it. */
static int place_alone(struct tb_places *places)
{
    struct tb_places_builder *builder;
    uint32_t number;
    int rc = tb_places_builder_open(&builder);
    if (rc == TB_OK)
        rc = tb_places_builder_seal(builder, places, &number);
    tb_places_builder_close(builder);
    return rc;
}

static int open_alone(struct tb_job *job)
{
    job->source = TB_JOB_ALONE;
    job->control = -1;
    job->size = job->local_count = 1;
    do {
        int rc = tb_random_secret(&job->self.job, sizeof job->self.job);
        if (rc != TB_OK)
            return rc;
    } while (job->self.job == 0);
    if (gethostname(job->host, sizeof job->host - 1) < 0)
        snprintf(job->host, sizeof job->host, "localhost");
    job->book.hosts = calloc(1, sizeof *job->book.hosts);
    job->book.ranges = calloc(1, sizeof *job->book.ranges);
    job->local_procs = calloc(1, sizeof *job->local_procs);
    if (job->book.hosts == NULL || job->book.ranges == NULL || job->local_procs == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for the address book");
    int rc = place_alone(&job->book.places);
    if (rc != TB_OK)
        return rc;
    job->book.version = 1;
    job->book.job = job->self.job;
    job->book.ranks = job->book.host_count = job->book.range_count = 1;
    snprintf(job->book.hosts[0].name, sizeof job->book.hosts[0].name, "%s", job->host);
    job->book.hosts[0].representation = tb_wire_representation();
    job->book.hosts[0].rank_count = job->book.ranges[0].count = 1;
    return TB_OK;
}

/* Over an inherited socket this needs no answer: it tells the agent that the rank has its process. */
static int tell_pid(int control)
{
    struct tb_writer w;
    tb_writer_open(&w);
    tb_put_u32(&w, (uint32_t)getpid());
    int rc = tb_packet_send(control, TB_CONTROL_HELLO, &w, NULL, 0);
    tb_writer_close(&w);
    return rc;
}

/* The name of an agent that is gone can be had by anybody: other users are not believed. */
static int look_at_owner(int socket)
{
    struct ucred who;
    socklen_t length = sizeof who;
    if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &who, &length) < 0)
        return tb_error_errno("cannot find out who listens in the place of the agent");
    if (who.uid == geteuid())
        return TB_OK;
    return tb_error(TB_ERR_FORBIDDEN,
                    "the agent that started this program (" TB_AGENT_VARIABLE ") is gone, and user %u listens in its "
                    "place; unset that variable to run the program alone",
                    (unsigned)who.uid);
}

/* Connects to the agent by name and asks who we are. */
static int ask_by_name(struct tb_job *job, const struct agent_name *name, struct tb_packet *packet)
{
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return tb_error_errno("cannot make a socket to the agent");
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    size_t length = strlen(name->socket);
    memcpy(to.sun_path + 1, name->socket, length);
    if (connect(fd, (struct sockaddr *)&to, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length)) < 0) {
        int rc = tb_error_errno("the agent that started this program (" TB_AGENT_VARIABLE ") does not answer; "
                                "unset that variable to run the program alone");
        close(fd);
        return rc;
    }
    if (job->control >= 0)
        close(job->control);
    job->control = fd;
    int rc = look_at_owner(fd);
    if (rc == TB_OK)
        rc = tell_pid(fd);
    return rc == TB_OK ? tb_packet_receive(fd, packet, true) : rc;
}

/* Whatever the agent's first packet was. *alone: this is a program that a rank has started. */
static int take_answer(struct tb_job *job, struct tb_packet *packet, bool *alone)
{
    struct tb_reader *r = &packet->frame.fields;
    if (packet->frame.kind == TB_CONTROL_WELCOME)
        return tb_rank_welcome_take(job, packet);
    if (packet->frame.kind != TB_CONTROL_TAKEN)
        return tb_error(TB_ERR_PROTOCOL, "the agent's first word to this rank makes no sense");
    *alone = tb_get_u8(r) != 0;
    size_t length = 0;
    const char *text = tb_get_bytes(r, &length);
    if (*alone)
        return TB_OK;
    return tb_error(TB_ERR_FORBIDDEN, "%.*s", r->error == TB_OK ? (int)length : 0, text != NULL ? text : "");
}

int tb_job_join(struct tb_job *job)
{
    *job = (struct tb_job){.control = -1};
    const char *text = getenv(TB_AGENT_VARIABLE);
    if (text == NULL || *text == 0) {
        tb_other_launcher_tell();
        return open_alone(job);
    }
    struct agent_name name;
    int rc = parse_name(text, &name);
    if (rc != TB_OK)
        return rc;
    struct tb_packet *packet = malloc(sizeof *packet);
    if (packet == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory to talk to the agent");
    packet->descriptor_count = 0;
    raise_limit(name.local_count, 0); /* for all doorbells of the host */
    job->source = TB_JOB_AGENT;
    rc = TB_AGAIN;
    if (is_inherited(&name)) {
        job->control = name.descriptor;
        fcntl(job->control, F_SETFD, FD_CLOEXEC);
        rc = tb_packet_receive(job->control, packet, false);
    }
    /* No packet in an inherited socket: another process has taken it, or it is late. The agent knows. */
    if (rc == TB_AGAIN)
        rc = ask_by_name(job, &name, packet);
    bool alone = false;
    if (rc == TB_OK)
        rc = take_answer(job, packet, &alone);
    if (rc == TB_OK && !alone && job->control == name.descriptor)
        rc = tell_pid(job->control);
    if (rc == TB_ERR_CLOSED)
        rc =
            tb_error(TB_ERR_PEER, "the agent that started this program is gone or does not know it: mpiexec has ended, "
                                  "or the process that it had started for this rank has. A program that goes into the "
                                  "background (daemon(), or & in a script) before MPI_Init is no rank");
    tb_packet_discard(packet);
    free(packet);
    if (rc != TB_OK || alone)
        tb_job_leave(job);
    return alone ? open_alone(job) : rc;
}

void tb_job_leave(struct tb_job *job)
{
    if (job->segment != NULL)
        munmap(job->segment, job->segment_bytes);
    if (job->plans != NULL)
        munmap(job->plans, TB_JOB_PLANS_BYTES);
    tb_sealed_unmap(job->plan, job->plan_bytes);
    for (uint32_t i = 0; job->doorbells != NULL && i < job->local_count; i++)
        if (job->doorbells[i] >= 0)
            close(job->doorbells[i]);
    free(job->doorbells);
    free(job->local_procs);
    free(job->parent);
    tb_address_book_close(&job->book);
    tb_host_routes_close(&job->routes);
    tb_host_routes_close(&job->spare);
    tb_cost_mapping_close(&job->costs);
    if (job->control >= 0)
        close(job->control);
    *job = (struct tb_job){.control = -1};
}

/* ---- talking ----------------------------------------------------------------------------------------------------- */

static struct tb_proc take_proc(struct tb_reader *r)
{
    struct tb_proc proc;
    proc.job = tb_get_u32(r);
    proc.index = tb_get_u32(r);
    return proc;
}

/* An agent that closes a refused request tells why; the descriptor is only there when it went well. */
static int take_connection(struct tb_packet *packet, const struct tb_job_events *events)
{
    struct tb_reader *r = &packet->frame.fields;
    struct tb_proc proc = take_proc(r);
    uint32_t stream = tb_get_u32(r);
    int error = (int)tb_get_u32(r);
    size_t length = 0;
    const char *text = tb_get_bytes(r, &length);
    bool known = stream < TB_STREAM_COUNT || stream == TB_STREAM_PAIR || stream == TB_STREAM_MEMORY;
    if (tb_reader_end(r) != TB_OK || !known || (error == TB_OK && packet->descriptor_count != 1))
        return tb_error(TB_ERR_PROTOCOL, "what the agent said about a connection makes no sense");
    if (error == TB_OK) {
        int descriptor = packet->descriptors[0];
        packet->descriptors[0] = -1;
        events->connection(events->context, proc, (enum tb_stream)stream, descriptor);
    } else {
        tb_error(error, "%.*s", (int)length, text);
        events->refused(events->context, proc, (enum tb_stream)stream, error);
    }
    return TB_OK;
}

static int take_lost(struct tb_packet *packet, const struct tb_job_events *events)
{
    struct tb_reader *r = &packet->frame.fields;
    struct tb_proc proc = take_proc(r);
    uint32_t count = tb_get_u32(r);
    size_t length = 0;
    const char *text = tb_get_bytes(r, &length);
    if (tb_reader_end(r) != TB_OK || count == 0 || count > TB_JOB_RANKS_LIMIT)
        return tb_error(TB_ERR_PROTOCOL, "what the agent said about a lost process makes no sense");
    int error = tb_error(TB_ERR_PEER, "%.*s", (int)length, text);
    events->lost(events->context, proc, count, error);
    return TB_OK;
}

/* A process has one job. */
static pthread_mutex_t routes_lock = PTHREAD_MUTEX_INITIALIZER;

struct tb_host_route tb_job_route(const struct tb_job *job, uint32_t host)
{
    pthread_mutex_lock(&routes_lock);
    struct tb_host_route route = *tb_host_routes_to(&job->routes, &job->book, host);
    pthread_mutex_unlock(&routes_lock);
    return route;
}

static int take_routes(struct tb_job *job, const struct tb_packet *packet, const struct tb_job_events *events)
{
    if (packet->descriptor_count != 1)
        return tb_error(TB_ERR_PROTOCOL, "the agent told of new ways between hosts, but gave none");
    int rc = tb_host_routes_read(&job->spare, packet->descriptors[0], job->book.host_count);
    if (rc != TB_OK || job->spare.version == job->routes.version)
        return rc;
    struct tb_host_routes old = job->routes;
    pthread_mutex_lock(&routes_lock);
    job->routes = job->spare;
    pthread_mutex_unlock(&routes_lock);
    job->spare = old;
    if (events->routes != NULL)
        events->routes(events->context);
    return TB_OK;
}

static int take_costs(struct tb_job *job, const struct tb_packet *packet)
{
    if (packet->descriptor_count != 1)
        return tb_error(TB_ERR_PROTOCOL, "the agent told of new costs of links, but gave none");
    return tb_cost_mapping_add(&job->costs, packet->descriptors[0], job->book.host_count, job->book.places.count);
}

static int take_launcher_answer(struct tb_packet *packet, const struct tb_job_events *events)
{
    struct tb_reader *r = &packet->frame.fields;
    struct tb_job_answer answer = {0};
    uint32_t number = tb_get_u32(r);
    answer.error = (int)tb_get_u32(r);
    size_t length = 0;
    const char *text = tb_get_bytes(r, &length);
    if (tb_reader_end(r) != TB_OK)
        return tb_error(TB_ERR_PROTOCOL, "what the agent passed on from the launcher makes no sense");
    snprintf(answer.text, sizeof answer.text, "%.*s", (int)length, text);
    if (packet->descriptor_count == 1) {
        int rc = tb_shared_bytes_get(packet->descriptors[0], &answer.bytes, &answer.length);
        if (rc != TB_OK)
            return rc;
    }
    events->answered(events->context, number, &answer);
    return TB_OK;
}

static int take_verdict(struct tb_job *job, struct tb_packet *packet)
{
    int rc = tb_multicast_get(&packet->frame.fields, &job->multicast);
    if (rc == TB_OK)
        tb_log(TB_LOG_DEBUG, "job", "multicast, verdict %u: %s", job->multicast.version,
               job->multicast.grouped ? "works here" : "not here");
    return rc;
}

int tb_job_poll(struct tb_job *job, const struct tb_job_events *events)
{
    if (job->control < 0)
        return TB_OK;
    struct tb_packet packet;
    for (;;) {
        int rc = tb_packet_receive(job->control, &packet, false);
        if (rc == TB_AGAIN)
            return TB_OK;
        if (rc == TB_ERR_CLOSED)
            return tb_error(TB_ERR_CLOSED, "the agent of host %s is gone", job->host);
        if (rc != TB_OK)
            return rc;
        /* The kernel gives the lowest number that is free. What does not fit any more would be lost. */
        if (packet.descriptor_count > 0)
            raise_limit((rlim_t)packet.descriptors[0], OWN_DESCRIPTORS);
        if (packet.frame.kind == TB_CONTROL_CONNECTION)
            rc = take_connection(&packet, events);
        else if (packet.frame.kind == TB_CONTROL_LOST)
            rc = take_lost(&packet, events);
        else if (packet.frame.kind == TB_CONTROL_ROUTES)
            rc = take_routes(job, &packet, events);
        else if (packet.frame.kind == TB_CONTROL_COSTS)
            rc = take_costs(job, &packet);
        else if (packet.frame.kind == TB_CONTROL_GROUP_VERDICT)
            rc = take_verdict(job, &packet);
        else if (packet.frame.kind == TB_CONTROL_ANSWER && events->answered != NULL)
            rc = take_launcher_answer(&packet, events);
        else if (packet.frame.kind == TB_CONTROL_ASK && events->asked != NULL)
            events->asked(events->context, tb_get_u32(&packet.frame.fields));
        tb_packet_discard(&packet);
        if (rc != TB_OK)
            return rc;
    }
}

/* Sends also when the socket is full for a moment: the agent always reads. */
static int tell_with(struct tb_job *job, enum tb_control kind, const struct tb_writer *fields, int descriptor)
{
    if (job->control < 0)
        return TB_OK;
    for (;;) {
        int rc = tb_packet_send(job->control, kind, fields, &descriptor, descriptor >= 0 ? 1 : 0);
        if (rc == TB_ERR_CLOSED)
            return tb_error(TB_ERR_PEER, "the agent of host %s is gone", job->host);
        if (rc != TB_AGAIN)
            return rc;
        struct pollfd wait = {.fd = job->control, .events = POLLOUT};
        if (poll(&wait, 1, SEND_PATIENCE_MS) == 0)
            return tb_error(TB_ERR_TIMEOUT, "the agent of host %s does not listen", job->host);
    }
}

static int tell(struct tb_job *job, enum tb_control kind, const struct tb_writer *fields)
{
    return tell_with(job, kind, fields, -1);
}

/* Closes what is to come along. */
static int ask_launcher(struct tb_job *job, enum tb_control what, uint32_t number, struct tb_writer *along)
{
    int descriptor = -1, rc = along->error;
    if (job->control < 0)
        rc = tb_error(TB_ERR_UNSUPPORTED, "this program was not started by mpiexec, which would have to do it");
    if (rc == TB_OK)
        rc = tb_shared_bytes_put(along->bytes, along->length, &descriptor);
    tb_writer_close(along);
    if (rc != TB_OK)
        return rc;
    struct tb_writer w;
    tb_writer_open(&w);
    tb_put_u32(&w, number);
    rc = tell_with(job, what, &w, descriptor);
    tb_writer_close(&w);
    close(descriptor);
    return rc;
}

int tb_job_ask_spawn(struct tb_job *job, uint32_t number, const struct tb_spawn *spawn)
{
    struct tb_writer w;
    tb_writer_open(&w);
    tb_spawn_encode(spawn, &w);
    return ask_launcher(job, TB_CONTROL_SPAWN, number, &w);
}

int tb_job_ask_meeting(struct tb_job *job, uint32_t number, const struct tb_meeting *meeting)
{
    struct tb_writer w;
    tb_writer_open(&w);
    tb_meeting_put(&w, meeting);
    return ask_launcher(job, TB_CONTROL_MEET, number, &w);
}

int tb_job_ask_registry(struct tb_job *job, const struct tb_registry_question *question)
{
    struct tb_writer w;
    tb_writer_open(&w);
    tb_registry_question_put(&w, question);
    return ask_launcher(job, TB_CONTROL_REGISTRY, question->number, &w);
}

int tb_job_ask_bond(struct tb_job *job, uint32_t number, const struct tb_bond *bond)
{
    struct tb_writer w;
    tb_writer_open(&w);
    tb_bond_put(&w, bond);
    return ask_launcher(job, TB_CONTROL_BOND, number, &w);
}

int tb_job_ask_connection(struct tb_job *job, struct tb_proc to, enum tb_stream stream)
{
    if (job->control < 0)
        return tb_error(TB_ERR_PEER, "a program that runs alone has nobody to connect to");
    struct tb_writer w;
    tb_writer_open(&w);
    tb_put_u32(&w, to.job);
    tb_put_u32(&w, to.index);
    tb_put_u32(&w, stream);
    int rc = tell(job, TB_CONTROL_CONNECT, &w);
    tb_writer_close(&w);
    return rc;
}

int tb_job_tell_initialized(struct tb_job *job)
{
    return tell(job, TB_CONTROL_INITIALIZED, NULL);
}

int tb_job_tell_finalized(struct tb_job *job)
{
    return tell(job, TB_CONTROL_FINALIZED, NULL);
}

void tb_job_tell_waiting(struct tb_job *job, const struct tb_job_waiting *waiting)
{
    if (job->control < 0)
        return;
    struct tb_writer w;
    tb_writer_open(&w);
    tb_job_waiting_put(&w, waiting);
    tb_packet_send(job->control, TB_CONTROL_WAITING, &w, NULL, 0);
    tb_writer_close(&w);
}

void tb_job_tell_group_trouble(struct tb_job *job, enum tb_multicast_trouble what)
{
    if (job->control < 0)
        return;
    struct tb_writer w;
    tb_writer_open(&w);
    tb_put_u32(&w, job->multicast.version);
    tb_put_u8(&w, (uint8_t)what);
    tb_packet_send(job->control, TB_CONTROL_GROUP_TROUBLE, &w, NULL, 0);
    tb_writer_close(&w);
}

void tb_job_tell_waits(struct tb_job *job, uint32_t number, const struct tb_job_wait *waits, uint32_t count)
{
    if (job->control < 0)
        return;
    struct tb_writer w;
    tb_writer_open(&w);
    tb_put_u32(&w, number);
    tb_put_u32(&w, count);
    for (uint32_t i = 0; i < count; i++) {
        tb_put_u64(&w, waits[i].time);
        tb_put_text(&w, waits[i].text);
    }
    tb_packet_send(job->control, TB_CONTROL_WAITS, &w, NULL, 0);
    tb_writer_close(&w);
}

_Noreturn void tb_job_abort(struct tb_job *job, int code, enum tb_abort_reason reason, const char *text,
                            const struct tb_abort_group *group)
{
    if (job->control >= 0) {
        struct tb_writer w;
        tb_writer_open(&w);
        tb_put_u32(&w, (uint32_t)code);
        tb_put_u8(&w, (uint8_t)reason);
        tb_put_text(&w, text != NULL ? text : "");
        tb_abort_group_put(&w, group);
        int rc = tell(job, TB_CONTROL_ABORT, &w);
        tb_writer_close(&w);
        struct pollfd wait = {.fd = job->control, .events = 0};
        if (rc == TB_OK)
            poll(&wait, 1, ABORT_PATIENCE_MS);
    } else if (text != NULL && *text != 0) {
        fprintf(stderr, "tombolo: %s\n", text);
    }
    _exit((code & 255) != 0 ? code & 255 : 1);
}

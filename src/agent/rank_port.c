#include "agent/rank_parcels.h"

#include "agent/process_state.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#define HELLO_PATIENCE_NS 5000000000u
#define ANCESTORS_LIMIT   256
/* What may wait for a rank that computes: with each other process two streams, which both may have asked for, or memory
 * of the two with its socket, likewise; with each host as much; and what is no connection. */
#define PARCELS_WITH_ONE 8u
#define PARCELS_BESIDES  256u

/* ---- packets to a rank ------------------------------------------------------------------------------------------- */

static void retry_all(struct tb_timer *timer)
{
    struct tb_rank_port *port = TB_CONTAINER(timer, struct tb_rank_port, retry);
    for (uint32_t i = 0; i < port->count; i++)
        tb_rank_parcels_flush(&port->ranks[i]);
}

/* Of all processes that the job has by now: each of them may have something for a rank that has slept since it was
 * alone. */
static bool has_room(const struct tb_port_rank *rank)
{
    const struct tb_address_book *book = rank->port->book;
    return rank->parcel_count < PARCELS_BESIDES + PARCELS_WITH_ONE * (tb_worlds_processes(book) + book->host_count);
}

static void close_control(struct tb_port_rank *rank);

/* The other process finds its connection broken, but the rank, if it has asked, would wait for ever. More than any job
 * of honest processes can have for it is there only if it asks without end and reads nothing: it ends without its
 * agent. */
static void give_up(struct tb_port_rank *rank, int descriptor)
{
    if (descriptor >= 0) {
        shutdown(descriptor, SHUT_RDWR); /* the agent may have a copy of it */
        close(descriptor);
    }
    if (rank->joined == 0 || rank->control.descriptor < 0)
        return;
    tb_log(TB_LOG_WARN, "agent", "rank %u does not read what its agent has for it, %u packets by now: it is ended",
           rank->rank, rank->parcel_count);
    close_control(rank);
}

void tb_rank_port_connection(struct tb_rank_port *port, uint32_t local, struct tb_proc proc, enum tb_stream stream,
                             int error, int descriptor)
{
    struct tb_port_rank *rank = &port->ranks[local];
    struct tb_writer *fields = has_room(rank) ? tb_rank_parcels_add(rank, TB_CONTROL_CONNECTION, descriptor) : NULL;
    if (fields == NULL) {
        give_up(rank, descriptor);
        return;
    }
    tb_put_u32(fields, proc.job);
    tb_put_u32(fields, proc.index);
    tb_put_u32(fields, stream);
    tb_put_u32(fields, (uint32_t)error);
    tb_put_text(fields, error != TB_OK ? tb_error_story() : "");
    tb_rank_parcels_flush(rank);
}

void tb_rank_port_routes(struct tb_rank_port *port)
{
    for (uint32_t i = 0; i < port->count; i++) {
        struct tb_port_rank *rank = &port->ranks[i];
        int descriptor = fcntl(port->services->routes, F_DUPFD_CLOEXEC, 3);
        if (tb_rank_parcels_renew(rank, TB_CONTROL_ROUTES, descriptor) != NULL)
            tb_rank_parcels_flush(rank);
        else if (descriptor >= 0)
            close(descriptor);
    }
}

void tb_rank_port_costs(struct tb_rank_port *port, uint32_t version, int costs)
{
    for (uint32_t i = 0; i < port->count; i++) {
        int descriptor = fcntl(costs, F_DUPFD_CLOEXEC, 3);
        struct tb_writer *fields =
            descriptor >= 0 ? tb_rank_parcels_add(&port->ranks[i], TB_CONTROL_COSTS, descriptor) : NULL;
        if (fields == NULL) {
            if (descriptor >= 0)
                close(descriptor);
            continue;
        }
        tb_put_u32(fields, version);
        tb_rank_parcels_flush(&port->ranks[i]);
    }
}

void tb_rank_port_answer(struct tb_rank_port *port, uint32_t local, const struct tb_port_answer *answer)
{
    struct tb_port_rank *rank = &port->ranks[local];
    int descriptor = -1, error = answer->error;
    if (error == TB_OK && answer->length > 0)
        error = tb_shared_bytes_put(answer->bytes, answer->length, &descriptor);
    struct tb_writer *fields = tb_rank_parcels_add(rank, TB_CONTROL_ANSWER, descriptor);
    if (fields == NULL) {
        if (descriptor >= 0)
            close(descriptor);
        return;
    }
    tb_put_u32(fields, answer->number);
    tb_put_u32(fields, (uint32_t)error);
    tb_put_bytes(fields, answer->text, answer->text_length);
    tb_rank_parcels_flush(rank);
}

void tb_rank_port_ask(struct tb_rank_port *port, uint32_t local, uint32_t number)
{
    struct tb_port_rank *rank = &port->ranks[local];
    struct tb_writer *fields = tb_rank_parcels_renew(rank, TB_CONTROL_ASK, -1);
    if (fields == NULL)
        return;
    tb_put_u32(fields, number);
    tb_rank_parcels_flush(rank);
}

void tb_rank_port_tell(struct tb_rank_port *port, uint32_t local, enum tb_control kind, const void *fields,
                       size_t length)
{
    struct tb_writer *parcel = tb_rank_parcels_add(&port->ranks[local], kind, -1);
    if (parcel == NULL)
        return;
    tb_put_raw(parcel, fields, length);
    tb_rank_parcels_flush(&port->ranks[local]);
}

static void tell_verdict(struct tb_port_rank *rank)
{
    struct tb_writer *fields = tb_rank_parcels_renew(rank, TB_CONTROL_GROUP_VERDICT, -1);
    if (fields != NULL)
        tb_multicast_put(fields, rank->port->services->multicast);
}

void tb_rank_port_verdict(struct tb_rank_port *port)
{
    for (uint32_t i = 0; i < port->count; i++) {
        tell_verdict(&port->ranks[i]);
        tb_rank_parcels_flush(&port->ranks[i]);
    }
}

/* ---- the process that has joined -------------------------------------------------------------------------------- */

static uint32_t local_of(const struct tb_port_rank *rank)
{
    return (uint32_t)(rank - rank->port->ranks);
}

static void close_process(struct tb_port_rank *rank)
{
    int descriptor = rank->process.descriptor;
    if (descriptor < 0)
        return;
    tb_loop_unwatch(rank->port->loop, &rank->process);
    close(descriptor);
}

static void read_control(struct tb_port_rank *rank);

/* The process has ended; -1: before a pidfd of it could be had. */
static void take_left(struct tb_port_rank *rank, int pidfd)
{
    const struct tb_rank_port_events *events = &rank->port->events;
    int status = pidfd >= 0 ? tb_process_ending(pidfd, rank->joined) : -1;
    close_process(rank);
    read_control(rank); /* its last words */
    if (!rank->finalized)
        events->left(events->context, local_of(rank), status);
}

static void process_ready(struct tb_watch *watch, uint32_t events)
{
    take_left(TB_CONTAINER(watch, struct tb_port_rank, process), watch->descriptor);
}

/* The process that was started is a child of the agent, which learns of its end anyway. One below it, that of a shell
 * which goes on, would be missed by nobody but the ranks that wait for it. */
static void watch_process(struct tb_port_rank *rank)
{
    if (rank->joined == rank->pid)
        return;
    close_process(rank);
    int pidfd = (int)syscall(SYS_pidfd_open, rank->joined, 0);
    if (pidfd < 0 && errno == ESRCH)
        take_left(rank, -1);
    else if (pidfd >= 0 && tb_loop_watch(rank->port->loop, &rank->process, pidfd, EPOLLIN, process_ready) != TB_OK)
        close(pidfd);
}

/* ---- packets from a rank ----------------------------------------------------------------------------------------- */

static void take_abort(struct tb_port_rank *rank, struct tb_reader *r)
{
    const struct tb_rank_port_events *events = &rank->port->events;
    uint32_t code = tb_get_u32(r);
    uint8_t reason = tb_get_u8(r);
    size_t length = 0;
    const void *text = tb_get_bytes(r, &length);
    struct tb_abort_group group;
    tb_abort_group_get(r, &group);
    if (r->error == TB_OK && reason <= TB_ABORT_FOLLOWS)
        events->aborted(events->context, local_of(rank), code, (enum tb_abort_reason)reason, text, length, &group);
}

static void take_connect(struct tb_port_rank *rank, struct tb_reader *r)
{
    const struct tb_rank_port_events *events = &rank->port->events;
    struct tb_proc to;
    to.job = tb_get_u32(r);
    to.index = tb_get_u32(r);
    uint32_t stream = tb_get_u32(r);
    if (tb_reader_end(r) == TB_OK && (stream < TB_STREAM_COUNT || stream == TB_STREAM_PAIR))
        events->connect(events->context, local_of(rank), to, (enum tb_stream)stream);
}

static void take_waiting(struct tb_port_rank *rank, struct tb_reader *r)
{
    const struct tb_rank_port_events *events = &rank->port->events;
    struct tb_job_waiting waiting;
    if (tb_job_waiting_get(r, &waiting) == TB_OK)
        events->waiting(events->context, local_of(rank), &waiting);
}

static void take_waits(struct tb_port_rank *rank, struct tb_reader *r)
{
    const struct tb_rank_port_events *events = &rank->port->events;
    uint32_t number = tb_get_u32(r), count = tb_get_u32(r);
    if (r->error == TB_OK && count <= TB_WAITS_LIMIT)
        events->waits(events->context, local_of(rank), number, count, r);
}

static void take_group_trouble(struct tb_port_rank *rank, struct tb_reader *r)
{
    const struct tb_rank_port_events *events = &rank->port->events;
    uint32_t version = tb_get_u32(r);
    uint8_t what = tb_get_u8(r);
    if (tb_reader_end(r) == TB_OK && what < TB_MULTICAST_TROUBLES)
        events->group_trouble(events->context, version, (enum tb_multicast_trouble)what);
}

/* Something for the launcher; what it is comes along. Whoever waits for an answer gets one, whatever it has sent. */
static void take_wish(struct tb_port_rank *rank, struct tb_packet *packet)
{
    const struct tb_rank_port_events *events = &rank->port->events;
    uint32_t number = tb_get_u32(&packet->frame.fields);
    void *bytes;
    size_t length;
    int rc = tb_reader_end(&packet->frame.fields);
    if (rc == TB_OK && packet->descriptor_count != 1)
        rc = tb_error(TB_ERR_PROTOCOL, "a wish has come with %u descriptors", packet->descriptor_count);
    if (rc == TB_OK)
        rc = tb_shared_bytes_get(packet->descriptors[0], &bytes, &length);
    if (rc != TB_OK) {
        const char *why = tb_error_story();
        tb_rank_port_answer(rank->port, local_of(rank),
                            &(struct tb_port_answer){number, rc, why, strlen(why), NULL, 0});
        return;
    }
    events->wishes(events->context, local_of(rank), (enum tb_control)packet->frame.kind, number, bytes, length);
    free(bytes);
}

/* It may count processes in a namespace of its own. */
static void take_hello(struct tb_port_rank *rank, struct tb_packet *packet)
{
    pid_t claimed = (pid_t)tb_get_u32(&packet->frame.fields);
    rank->joined = packet->sender > 0 ? packet->sender : claimed;
    if (packet->sender > 0)
        watch_process(rank);
    tb_rank_parcels_flush(rank);
}

static void take_packet(struct tb_port_rank *rank, struct tb_packet *packet)
{
    struct tb_reader *r = &packet->frame.fields;
    switch (packet->frame.kind) {
    case TB_CONTROL_HELLO:
        take_hello(rank, packet);
        break;
    case TB_CONTROL_INITIALIZED:
        if (!rank->initialized && rank->port->events.joined != NULL)
            rank->port->events.joined(rank->port->events.context, local_of(rank));
        rank->initialized = true;
        rank->finalized = false; /* sessions come and go */
        break;
    case TB_CONTROL_FINALIZED:
        rank->finalized = true;
        break;
    case TB_CONTROL_SPAWN:
    case TB_CONTROL_MEET:
    case TB_CONTROL_REGISTRY:
    case TB_CONTROL_BOND:
        take_wish(rank, packet);
        break;
    case TB_CONTROL_ABORT:
        take_abort(rank, r);
        break;
    case TB_CONTROL_CONNECT:
        take_connect(rank, r);
        break;
    case TB_CONTROL_WAITING:
        take_waiting(rank, r);
        break;
    case TB_CONTROL_WAITS:
        take_waits(rank, r);
        break;
    case TB_CONTROL_GROUP_TROUBLE:
        take_group_trouble(rank, r);
        break;
    default:
        tb_log(TB_LOG_WARN, "agent", "rank %u says something unknown (%u)", rank->rank, packet->frame.kind);
        break;
    }
}

/* Nobody is at the other end any more; a process that has not said hello may still come by name. */
static void close_control(struct tb_port_rank *rank)
{
    int descriptor = rank->control.descriptor;
    if (descriptor >= 0) {
        tb_loop_unwatch(rank->port->loop, &rank->control);
        close(descriptor);
    }
    if (rank->joined != 0)
        tb_rank_parcels_drop(rank);
}

static void read_control(struct tb_port_rank *rank)
{
    static struct tb_packet packet; /* one thread, used up before the next receive */
    while (rank->control.descriptor >= 0) {
        int rc = tb_packet_receive(rank->control.descriptor, &packet, false);
        if (rc == TB_AGAIN)
            return;
        if (rc == TB_OK) {
            take_packet(rank, &packet);
            tb_packet_discard(&packet);
        } else {
            if (rc != TB_ERR_CLOSED)
                tb_log(TB_LOG_WARN, "agent", "rank %u: %s", rank->rank, tb_error_story());
            close_control(rank);
        }
    }
}

void tb_rank_port_read(struct tb_rank_port *port, uint32_t local)
{
    read_control(&port->ranks[local]);
}

static void control_ready(struct tb_watch *watch, uint32_t events)
{
    read_control(TB_CONTAINER(watch, struct tb_port_rank, control));
}

static int watch_control(struct tb_port_rank *rank, int socket)
{
    int rc = tb_loop_watch(rank->port->loop, &rank->control, socket, EPOLLIN, control_ready);
    if (rc != TB_OK)
        close(socket);
    return rc;
}

int tb_rank_port_add(struct tb_rank_port *port, uint32_t local, uint32_t rank, uint32_t app, int socket)
{
    struct tb_port_rank *r = &port->ranks[local];
    r->rank = rank;
    r->app = app;
    setsockopt(socket, SOL_SOCKET, SO_PASSCRED, &(int){1}, sizeof(int)); /* who says hello? */
    int rc = watch_control(r, socket);
    if (rc == TB_OK)
        tb_rank_parcels_welcome(r);
    return rc;
}

void tb_rank_port_started(struct tb_rank_port *port, uint32_t local, pid_t pid)
{
    port->ranks[local].pid = pid;
}

void tb_rank_port_remove(struct tb_rank_port *port, uint32_t local)
{
    close_control(&port->ranks[local]);
    tb_rank_parcels_drop(&port->ranks[local]);
    close_process(&port->ranks[local]);
    port->ranks[local].pid = 0;
}

/* ---- those who come by name -------------------------------------------------------------------------------------- */

/* The rank that `pid` is or descends from. */
static struct tb_port_rank *rank_above(struct tb_rank_port *port, pid_t pid)
{
    for (int i = 0; i < ANCESTORS_LIMIT && pid > 1; i++, pid = tb_process_parent(pid))
        for (uint32_t k = 0; k < port->count; k++)
            if (port->ranks[k].pid == pid)
                return &port->ranks[k];
    return NULL;
}

static bool is_below(pid_t pid, pid_t above)
{
    for (int i = 0; i < ANCESTORS_LIMIT && pid > 1; i++, pid = tb_process_parent(pid))
        if (pid == above)
            return true;
    return false;
}

static void refuse(int socket, bool alone, const char *text)
{
    struct tb_writer w;
    tb_writer_open(&w);
    tb_put_u8(&w, alone);
    tb_put_text(&w, text);
    tb_packet_send(socket, TB_CONTROL_TAKEN, &w, NULL, 0);
    tb_writer_close(&w);
}

/* Gives the rank its new socket, or says why not. Takes the socket. */
static void admit(struct tb_rank_port *port, int socket)
{
    struct ucred who;
    socklen_t length = sizeof who;
    struct tb_port_rank *rank = NULL;
    if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &who, &length) == 0)
        rank = rank_above(port, who.pid);
    if (rank == NULL) {
        close(socket);
        return;
    }
    read_control(rank); /* the one before may have said hello just now */
    if (rank->joined != 0 && rank->joined != who.pid) {
        /* A program that the rank itself has started is its own business; one that comes after it is a mistake. */
        bool child = is_below(who.pid, rank->joined);
        bool over = rank->finalized || (kill(rank->joined, 0) < 0 && errno == ESRCH);
        char text[256];
        snprintf(text, sizeof text,
                 "rank %u already %s process %d, which %s: one mpiexec runs one MPI program in each rank; start the "
                 "second one with an mpiexec of its own",
                 rank->rank, over ? "was" : "is", (int)rank->joined, over ? "has ended its part" : "still runs");
        refuse(socket, child, text);
        close(socket);
        return;
    }
    int old = rank->control.descriptor;
    tb_loop_unwatch(port->loop, &rank->control);
    if (old >= 0)
        close(old);
    rank->joined = who.pid;
    rank->over = false;
    rank->welcomed = 0;
    if (port->services->multicast != NULL && port->services->multicast->version > 0)
        tell_verdict(rank);
    if (watch_control(rank, socket) == TB_OK)
        tb_rank_parcels_flush(rank);
    watch_process(rank);
}

static void joiner_ready(void *context, struct tb_caller *joiner)
{
    static struct tb_packet packet;
    int rc = tb_packet_receive(joiner->watch.descriptor, &packet, false);
    if (rc == TB_AGAIN)
        return;
    if (rc == TB_OK)
        tb_packet_discard(&packet);
    int socket = tb_caller_end(joiner);
    if (rc == TB_OK && packet.frame.kind == TB_CONTROL_HELLO)
        admit(context, socket);
    else
        close(socket);
}

/* Other users of this machine get no place. */
static bool joiner_came(void *context, struct tb_caller *joiner)
{
    struct ucred who;
    socklen_t length = sizeof who;
    return getsockopt(joiner->watch.descriptor, SOL_SOCKET, SO_PEERCRED, &who, &length) == 0 && who.uid == geteuid();
}

int tb_rank_port_open(struct tb_rank_port *port, struct tb_loop *loop, const struct tb_rank_port_events *events)
{
    uint64_t secret[2];
    const struct tb_callers_events come = {
        .context = port, .bytes = sizeof(struct tb_caller), .came = joiner_came, .ready = joiner_ready};
    *port = (struct tb_rank_port){.loop = loop, .events = *events};
    tb_timer_init(&port->retry, retry_all);
    tb_callers_open(&port->joiners, loop, TB_RANK_PORT_JOINERS, HELLO_PATIENCE_NS, &come);
    int rc = tb_random_secret(secret, sizeof secret);
    if (rc != TB_OK)
        return rc;
    snprintf(port->name, sizeof port->name, "tombolo-%016llx%016llx", (unsigned long long)secret[0],
             (unsigned long long)secret[1]);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return tb_error_errno("cannot make a Unix socket for the ranks");
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    size_t length = strlen(port->name);
    memcpy(name.sun_path + 1, port->name, length);
    if (bind(fd, (struct sockaddr *)&name, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length)) < 0 ||
        listen(fd, 1024) < 0)
        rc = tb_error_errno("cannot listen on a Unix socket for the ranks");
    else
        rc = tb_callers_listen(&port->joiners, fd);
    if (rc != TB_OK)
        close(fd);
    return rc;
}

int tb_rank_port_make(struct tb_rank_port *port, const struct tb_host_services *services, uint32_t count,
                      const struct tb_address_book *book)
{
    port->ranks = calloc(count + 1u, sizeof *port->ranks);
    if (port->ranks == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for %u ranks", count);
    for (uint32_t i = 0; i < count; i++) {
        port->ranks[i] = (struct tb_port_rank){.port = port, .control.descriptor = -1, .process.descriptor = -1};
        tb_list_init(&port->ranks[i].parcels);
    }
    port->services = services;
    port->book = book;
    port->count = count;
    return TB_OK;
}

void tb_rank_port_close(struct tb_rank_port *port)
{
    tb_callers_close(&port->joiners);
    for (uint32_t i = 0; i < port->count; i++) {
        close_control(&port->ranks[i]);
        tb_rank_parcels_drop(&port->ranks[i]);
        close_process(&port->ranks[i]);
    }
    tb_timer_clear(&port->retry);
    free(port->ranks);
    port->ranks = NULL;
    port->count = 0;
}

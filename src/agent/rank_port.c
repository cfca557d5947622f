/* Where ranks talk to their agent: an inherited socket for each, and an abstract one for those who lost theirs. */
#include "agent/state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/un.h>
#include <unistd.h>

#define HELLO_PATIENCE_NS 5000000000u
#define RETRY_NS          5000000u
#define PAUSE_NS          100000000u
#define ANCESTORS_LIMIT   256

static void joiner_ready(struct tb_watch *watch, uint32_t events);
static void flush_parcels(struct tb_rank *rank);

/* ---- packets to a rank
 * -------------------------------------------------------------------------------------------------- */

static void free_parcel(struct tb_rank *rank, struct tb_parcel *parcel)
{
    tb_list_remove(&parcel->node);
    rank->parcel_count--;
    if (parcel->descriptor >= 0)
        close(parcel->descriptor);
    tb_writer_close(&parcel->fields);
    free(parcel);
}

int tb_rank_port_welcome(struct tb_rank *rank)
{
    struct tb_agent *agent = rank->agent;
    struct tb_rank_welcome welcome = {
        .rank = rank->rank, .host = agent->setup.host, .app = rank->app, .segment_bytes = agent->segment_bytes};
    return tb_rank_welcome_send(rank->control.descriptor, &welcome, agent->parameters, agent->segment,
                                agent->book_descriptor, agent->routes_descriptor, agent->doorbells, agent->rank_count,
                                &rank->welcomed);
}

/* What could not be sent at once: when there is room again, or, since the kernel does not tell when descriptors under
 * way have become fewer, after a moment. */
static void wait_for_room(struct tb_rank *rank)
{
    struct tb_agent *agent = rank->agent;
    if (!tb_timer_is_set(&agent->retry))
        tb_timer_set(&agent->loop, &agent->retry, RETRY_NS);
}

static void flush_parcels(struct tb_rank *rank)
{
    if (rank->control.descriptor < 0)
        return;
    if (rank->welcomed < rank->agent->rank_count) {
        if (tb_rank_port_welcome(rank) == TB_AGAIN)
            wait_for_room(rank);
        if (rank->welcomed < rank->agent->rank_count)
            return;
    }
    /* Until its process is known, a packet could be queued in a socket that nobody will read. */
    struct tb_parcel *parcel;
    TB_LIST_EACH (parcel, &rank->parcels, struct tb_parcel, node) {
        if (rank->joined == 0)
            return;
        int rc = tb_packet_send(rank->control.descriptor, parcel->kind, &parcel->fields, &parcel->descriptor,
                                parcel->descriptor >= 0 ? 1 : 0);
        if (rc == TB_AGAIN) {
            wait_for_room(rank);
            return;
        }
        if (rc != TB_OK && parcel->kind == TB_CONTROL_CONNECTION && parcel->descriptor >= 0)
            shutdown(parcel->descriptor, SHUT_RDWR); /* likewise */
        free_parcel(rank, parcel);
    }
}

static void retry_all(struct tb_timer *timer)
{
    struct tb_agent *agent = TB_CONTAINER(timer, struct tb_agent, retry);
    for (uint32_t i = 0; i < agent->rank_count; i++)
        flush_parcels(&agent->ranks[i]);
}

void tb_rank_port_connection(struct tb_rank *rank, struct tb_proc proc, enum tb_stream stream, int error,
                             int descriptor)
{
    struct tb_parcel *parcel = calloc(1, sizeof *parcel);
    uint64_t limit = 64 + 4 * ((uint64_t)rank->agent->book.ranks + rank->agent->book.host_count);
    if (parcel == NULL || rank->ended || rank->control.descriptor < 0 || rank->parcel_count >= limit) {
        free(parcel);
        if (descriptor >= 0) {
            shutdown(descriptor, SHUT_RDWR); /* the agent may have a copy of it */
            close(descriptor);
        }
        return;
    }
    parcel->kind = TB_CONTROL_CONNECTION;
    parcel->descriptor = descriptor;
    tb_writer_open(&parcel->fields);
    tb_put_u32(&parcel->fields, proc.job);
    tb_put_u32(&parcel->fields, proc.index);
    tb_put_u32(&parcel->fields, stream);
    tb_put_u32(&parcel->fields, (uint32_t)error);
    tb_put_text(&parcel->fields, error != TB_OK ? tb_error_story() : "");
    tb_list_append(&rank->parcels, &parcel->node);
    rank->parcel_count++;
    flush_parcels(rank);
}

void tb_rank_port_routes(struct tb_agent *agent)
{
    for (uint32_t i = 0; i < agent->rank_count; i++) {
        struct tb_rank *rank = &agent->ranks[i];
        struct tb_parcel *parcel = calloc(1, sizeof *parcel);
        if (parcel == NULL || rank->ended || rank->control.descriptor < 0) {
            free(parcel);
            continue;
        }
        parcel->kind = TB_CONTROL_ROUTES;
        parcel->descriptor = fcntl(agent->routes_descriptor, F_DUPFD_CLOEXEC, 3);
        tb_writer_open(&parcel->fields);
        tb_list_append(&rank->parcels, &parcel->node);
        rank->parcel_count++;
        flush_parcels(rank);
    }
}

/* ---- packets from a rank
 * ------------------------------------------------------------------------------------------------ */

static void take_abort(struct tb_rank *rank, struct tb_reader *r)
{
    uint32_t code = tb_get_u32(r);
    size_t length = 0;
    const void *text = tb_get_bytes(r, &length);
    if (r->error != TB_OK)
        return;
    struct tb_control_stream *pipe = &rank->agent->pipe;
    struct tb_writer *w = tb_control_stream_begin(pipe, TB_CONTROL_ABORTED);
    tb_put_u32(w, rank->rank);
    tb_put_u32(w, (uint32_t)(rank->joined > 0 ? rank->joined : rank->pid));
    tb_put_u32(w, code);
    tb_put_bytes(w, text, length);
    tb_control_stream_end(pipe);
}

static void take_packet(struct tb_rank *rank, struct tb_packet *packet)
{
    struct tb_reader *r = &packet->frame.fields;
    switch (packet->frame.kind) {
    case TB_CONTROL_HELLO:
        rank->joined = (pid_t)tb_get_u32(r);
        flush_parcels(rank);
        break;
    case TB_CONTROL_INITIALIZED:
        rank->initialized = true;
        break;
    case TB_CONTROL_FINALIZED:
        rank->finalized = true;
        break;
    case TB_CONTROL_ABORT:
        take_abort(rank, r);
        break;
    case TB_CONTROL_CONNECT: {
        struct tb_proc to;
        to.job = tb_get_u32(r);
        to.index = tb_get_u32(r);
        uint32_t stream = tb_get_u32(r);
        if (tb_reader_end(r) == TB_OK && stream < TB_STREAM_COUNT)
            tb_network_connect(&rank->agent->network, rank->rank, to, (enum tb_stream)stream);
        break;
    }
    default:
        tb_log(TB_LOG_WARN, "agent", "rank %u says something unknown (%u)", rank->rank, packet->frame.kind);
        break;
    }
}

void tb_rank_port_close(struct tb_rank *rank)
{
    if (rank->control.descriptor >= 0) {
        int descriptor = rank->control.descriptor;
        tb_loop_unwatch(&rank->agent->loop, &rank->control);
        close(descriptor);
    }
    struct tb_parcel *parcel;
    TB_LIST_EACH (parcel, &rank->parcels, struct tb_parcel, node)
        free_parcel(rank, parcel);
}

void tb_rank_port_read(struct tb_rank *rank)
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
            tb_rank_port_close(rank);
        }
    }
}

static void control_ready(struct tb_watch *watch, uint32_t events)
{
    tb_rank_port_read(TB_CONTAINER(watch, struct tb_rank, control));
}

int tb_rank_port_watch(struct tb_rank *rank, int socket)
{
    return tb_loop_watch(&rank->agent->loop, &rank->control, socket, EPOLLIN, control_ready);
}

/* ---- those who come by name
 * ----------------------------------------------------------------------------------------------- */

static pid_t parent_of(pid_t pid)
{
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    if (n <= 0)
        return 0;
    text[n] = 0;
    /* The name in parentheses may hold anything; what follows the last one is fixed. */
    const char *after = strrchr(text, ')');
    int parent = 0;
    return after != NULL && sscanf(after + 1, " %*c %d", &parent) == 1 ? parent : 0;
}

/* The rank that `pid` is or descends from. */
static struct tb_rank *rank_above(struct tb_agent *agent, pid_t pid)
{
    for (int i = 0; i < ANCESTORS_LIMIT && pid > 1; i++, pid = parent_of(pid))
        for (uint32_t k = 0; k < agent->rank_count; k++)
            if (agent->ranks[k].pid == pid && !agent->ranks[k].ended)
                return &agent->ranks[k];
    return NULL;
}

static bool is_below(pid_t pid, pid_t above)
{
    for (int i = 0; i < ANCESTORS_LIMIT && pid > 1; i++, pid = parent_of(pid))
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
static void admit(struct tb_agent *agent, int socket)
{
    struct ucred who;
    socklen_t length = sizeof who;
    struct tb_rank *rank = NULL;
    if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &who, &length) == 0)
        rank = rank_above(agent, who.pid);
    if (rank == NULL) {
        close(socket);
        return;
    }
    tb_rank_port_read(rank); /* the one before may have said hello just now */
    if (rank->joined != 0 && rank->joined != who.pid) {
        /* A program that the rank itself has started is its own business; one that comes after it is a mistake. */
        bool child = is_below(who.pid, rank->joined);
        char text[256];
        snprintf(text, sizeof text,
                 "rank %u already was process %d, which has ended its part: one mpiexec runs one MPI program in each "
                 "rank; start the second one with an mpiexec of its own",
                 rank->rank, (int)rank->joined);
        refuse(socket, child, text);
        close(socket);
        return;
    }
    int old = rank->control.descriptor;
    tb_loop_unwatch(&agent->loop, &rank->control);
    if (old >= 0)
        close(old);
    rank->joined = who.pid;
    rank->welcomed = 0;
    if (tb_rank_port_watch(rank, socket) != TB_OK) {
        close(socket);
        return;
    }
    flush_parcels(rank);
}

/* Nobody is let in for a while; those who come wait in the queue of the socket. */
static void close_hall(struct tb_agent *agent, uint64_t time)
{
    tb_loop_change(&agent->loop, &agent->rank_port, 0);
    tb_timer_set(&agent->loop, &agent->hall, time);
}

static void open_hall(struct tb_timer *timer)
{
    struct tb_agent *agent = TB_CONTAINER(timer, struct tb_agent, hall);
    tb_timer_clear(timer);
    tb_loop_change(&agent->loop, &agent->rank_port, EPOLLIN);
}

static void end_joiner(struct tb_joiner *joiner, bool close_socket)
{
    struct tb_agent *agent = joiner->agent;
    int socket = joiner->watch.descriptor;
    tb_loop_unwatch(&agent->loop, &joiner->watch);
    if (close_socket)
        close(socket);
    for (uint32_t i = 0; i < TB_AGENT_JOINER_LIMIT; i++)
        if (agent->joiners[i] == joiner)
            agent->joiners[i] = NULL;
    free(joiner);
    open_hall(&agent->hall);
}

static void joiner_ready(struct tb_watch *watch, uint32_t events)
{
    struct tb_joiner *joiner = TB_CONTAINER(watch, struct tb_joiner, watch);
    struct tb_agent *agent = joiner->agent;
    static struct tb_packet packet;
    int socket = watch->descriptor;
    int rc = tb_packet_receive(socket, &packet, false);
    if (rc == TB_AGAIN)
        return;
    if (rc == TB_OK)
        tb_packet_discard(&packet);
    bool hello = rc == TB_OK && packet.frame.kind == TB_CONTROL_HELLO;
    end_joiner(joiner, !hello);
    if (hello)
        admit(agent, socket);
}

/* A free place; the oldest guest who has said nothing for long makes room. -1: none, and the hall is closed. */
static int find_place(struct tb_agent *agent, uint64_t now)
{
    int oldest = -1;
    for (int i = 0; i < (int)TB_AGENT_JOINER_LIMIT; i++) {
        if (agent->joiners[i] == NULL)
            return i;
        if (oldest < 0 || agent->joiners[i]->since < agent->joiners[oldest]->since)
            oldest = i;
    }
    uint64_t age = now - agent->joiners[oldest]->since;
    if (age < HELLO_PATIENCE_NS) {
        close_hall(agent, HELLO_PATIENCE_NS - age);
        return -1;
    }
    end_joiner(agent->joiners[oldest], true);
    return oldest;
}

static void rank_port_ready(struct tb_watch *watch, uint32_t events)
{
    struct tb_agent *agent = TB_CONTAINER(watch, struct tb_agent, rank_port);
    uint64_t now = tb_clock_now_real();
    int place = find_place(agent, now);
    if (place < 0)
        return;
    int socket = accept4(watch->descriptor, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (socket < 0) {
        /* Without a free descriptor the caller stays in the queue and would wake us again and again. */
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
            close_hall(agent, PAUSE_NS);
        return;
    }
    struct ucred who;
    socklen_t length = sizeof who;
    bool ours = getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &who, &length) == 0 && who.uid == geteuid();
    struct tb_joiner *joiner = ours ? calloc(1, sizeof *joiner) : NULL; /* other users of this machine get no place */
    if (joiner == NULL) {
        close(socket);
        return;
    }
    joiner->agent = agent;
    joiner->since = now;
    if (tb_loop_watch(&agent->loop, &joiner->watch, socket, EPOLLIN, joiner_ready) != TB_OK) {
        close(socket);
        free(joiner);
        return;
    }
    agent->joiners[place] = joiner;
}

int tb_rank_port_open(struct tb_agent *agent)
{
    uint64_t secret[2];
    tb_timer_init(&agent->retry, retry_all);
    tb_timer_init(&agent->hall, open_hall);
    int rc = tb_random_secret(secret, sizeof secret);
    if (rc != TB_OK)
        return rc;
    snprintf(agent->rank_port_name, sizeof agent->rank_port_name, "tombolo-%016llx%016llx",
             (unsigned long long)secret[0], (unsigned long long)secret[1]);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return tb_error_errno("cannot make a Unix socket for the ranks");
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    size_t length = strlen(agent->rank_port_name);
    memcpy(name.sun_path + 1, agent->rank_port_name, length);
    if (bind(fd, (struct sockaddr *)&name, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length)) < 0 ||
        listen(fd, 1024) < 0) {
        rc = tb_error_errno("cannot listen on a Unix socket for the ranks");
        close(fd);
        return rc;
    }
    return tb_loop_watch(&agent->loop, &agent->rank_port, fd, EPOLLIN, rank_port_ready);
}

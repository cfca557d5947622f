/* When the control stream of an agent is lost because the gateway that carried it is gone, the agent goes on by another
 * one: it connects to an agent that its launcher has named beforehand, and both ends send again what the other has not
 * heard. Its ranks notice nothing. Here are both sides: who has lost its stream, and who takes it in (as a tunnel). */
#include "agent/state.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <unistd.h>

#define PAUSE_NS      200000000u
#define ANSWER_NS     3000000000u /* for one address */
#define ROUNDS        4u          /* in all of which everybody has refused: nobody is left */
#define ANCHORS_LIMIT 64u

enum stage { CONNECTING, GREETED, CONFIRMED, ACCEPTED };

struct tb_attach {
    struct tb_agent *agent;
    uint32_t count, hosts[ANCHORS_LIMIT];
    bool lost; /* the stream is; we try */
    uint64_t since;
    uint32_t host, address; /* which one is being tried */
    uint32_t rounds;        /* in which nobody was even silent */
    bool refused;           /* by all so far in this round */
    enum stage stage;
    struct tb_watch watch;
    struct tb_timer timer;
    size_t have;
    struct tb_hello hello;
    struct tb_welcome welcome;
    struct tb_accepted accepted;
    uint8_t next[4];
};

static void try_next(struct tb_attach *attach);

static void close_attempt(struct tb_attach *attach)
{
    int socket = attach->watch.descriptor;
    tb_loop_unwatch(&attach->agent->loop, &attach->watch);
    if (socket >= 0)
        close(socket);
}

/* This one it is not; `refused`: because nobody is there. */
static void give_up_attempt(struct tb_attach *attach, bool refused)
{
    close_attempt(attach);
    attach->refused = attach->refused && refused;
    attach->address++;
    try_next(attach);
}

static void succeed(struct tb_attach *attach)
{
    struct tb_agent *agent = attach->agent;
    int socket = attach->watch.descriptor;
    uint32_t next = (uint32_t)attach->next[0] | (uint32_t)attach->next[1] << 8 | (uint32_t)attach->next[2] << 16 |
                    (uint32_t)attach->next[3] << 24;
    int out = fcntl(socket, F_DUPFD_CLOEXEC, 3); /* both are waited for, and epoll knows a descriptor only once */
    tb_loop_unwatch(&agent->loop, &attach->watch);
    tb_timer_clear(&attach->timer);
    attach->lost = false;
    int rc = out >= 0 ? tb_control_stream_resume(&agent->pipe, socket, out, next)
                      : tb_error_errno("no descriptor for the control stream");
    if (rc != TB_OK) {
        tb_agent_die(agent, tb_error_story());
        return;
    }
    tb_agent_attached(agent);
}

static int send_all(int socket, const void *bytes, size_t length)
{
    /* A connection that was just opened has room for these few. */
    return send(socket, bytes, length, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)length ? TB_OK : TB_ERR_CLOSED;
}

static int greet(struct tb_attach *attach)
{
    struct tb_agent *agent = attach->agent;
    uint8_t bytes[sizeof attach->hello];
    int error = 0, on = 1;
    socklen_t length = sizeof error;
    if (getsockopt(attach->watch.descriptor, SOL_SOCKET, SO_ERROR, &error, &length) < 0 || error != 0) {
        errno = error;
        return TB_ERR_SYSTEM;
    }
    setsockopt(attach->watch.descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    struct tb_proc to = {agent->setup.job, TB_PROC_AGENT | attach->hosts[attach->host]};
    int rc =
        tb_hello_make(&attach->hello, &agent->setup.key, tb_agent_proc(agent), to, (enum tb_stream)TB_STREAM_CONTROL);
    if (rc != TB_OK)
        return rc;
    tb_wire_put_hello(bytes, &attach->hello);
    attach->stage = GREETED;
    attach->have = 0;
    tb_loop_change(&agent->loop, &attach->watch, EPOLLIN);
    return send_all(attach->watch.descriptor, bytes, sizeof bytes);
}

static int read_exactly(struct tb_attach *attach, void *to, size_t size)
{
    int rc = tb_receive_exactly(attach->watch.descriptor, to, size, &attach->have);
    if (rc == TB_OK)
        attach->have = 0;
    return rc == TB_ERR_SYSTEM ? TB_ERR_CLOSED : rc; /* the connection is gone, whatever the reason */
}

/* One step on; TB_AGAIN: the other side has to say more. */
static int advance(struct tb_attach *attach)
{
    struct tb_agent *agent = attach->agent;
    int socket = attach->watch.descriptor, rc;
    struct tb_confirm confirm;
    uint32_t next = agent->pipe.sequence_in;
    switch (attach->stage) {
    case CONNECTING:
        return greet(attach);
    case GREETED:
        rc = read_exactly(attach, &attach->welcome, sizeof attach->welcome);
        if (rc != TB_OK)
            return rc;
        tb_wire_get_welcome(&attach->welcome, &attach->welcome);
        rc = tb_welcome_verify(&attach->welcome, &agent->setup.key, &attach->hello);
        if (rc == TB_OK)
            rc = attach->welcome.status == TB_WELCOME_OK ? TB_OK : TB_ERR_PEER;
        if (rc == TB_OK)
            rc = tb_confirm_make(&confirm, &agent->setup.key, &attach->hello, &attach->welcome);
        attach->stage = CONFIRMED;
        return rc == TB_OK ? send_all(socket, &confirm, sizeof confirm) : rc;
    case CONFIRMED:
        rc = read_exactly(attach, &attach->accepted, sizeof attach->accepted);
        attach->stage = rc == TB_OK ? ACCEPTED : CONFIRMED;
        if (rc != TB_OK)
            return rc;
        for (int i = 0; i < 4; i++)
            attach->next[i] = (uint8_t)(next >> 8 * i);
        /* Now the launcher has to answer, which may have much to read before. */
        if (tb_param.heartbeat > ANSWER_NS)
            tb_timer_set(&agent->loop, &attach->timer, tb_param.heartbeat);
        return send_all(socket, attach->next, sizeof attach->next);
    case ACCEPTED:
        return read_exactly(attach, attach->next, sizeof attach->next);
    }
    return TB_ERR_INTERNAL;
}

static void attempt_ready(struct tb_watch *watch, uint32_t events)
{
    struct tb_attach *attach = TB_CONTAINER(watch, struct tb_attach, watch);
    for (;;) {
        enum stage stage = attach->stage;
        errno = 0;
        int rc = advance(attach);
        if (rc == TB_AGAIN)
            return;
        if (rc != TB_OK) {
            give_up_attempt(attach, errno == ECONNREFUSED || rc == TB_ERR_CLOSED || rc == TB_ERR_PEER);
            return;
        }
        if (stage == ACCEPTED) {
            succeed(attach);
            return;
        }
        if (stage == CONNECTING)
            return;
    }
}

static void timer_fires(struct tb_timer *timer)
{
    struct tb_attach *attach = TB_CONTAINER(timer, struct tb_attach, timer);
    if (attach->watch.descriptor >= 0)
        give_up_attempt(attach, false);
    else
        try_next(attach);
}

/* All were tried; again after a moment, unless nobody can be left. */
static void end_round(struct tb_attach *attach)
{
    struct tb_agent *agent = attach->agent;
    attach->rounds = attach->refused ? attach->rounds + 1 : 0;
    attach->host = attach->address = 0;
    attach->refused = true;
    if (attach->rounds >= ROUNDS || tb_clock_now_real() - attach->since > tb_param.link_patience) {
        attach->lost = false;
        tb_timer_clear(&attach->timer);
        tb_agent_die(agent, "the launcher is gone, and nobody leads to it");
        return;
    }
    tb_timer_set(&agent->loop, &attach->timer, PAUSE_NS);
}

static void try_next(struct tb_attach *attach)
{
    struct tb_agent *agent = attach->agent;
    for (; attach->host < attach->count; attach->host++, attach->address = 0) {
        const struct tb_host *host = &agent->book.hosts[attach->hosts[attach->host]];
        for (; attach->address < host->address_count; attach->address++) {
            struct sockaddr_storage name;
            socklen_t length = tb_address_socket(&host->addresses[attach->address], &name);
            int fd = socket(name.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
            bool going = fd >= 0 && (connect(fd, (struct sockaddr *)&name, length) == 0 || errno == EINPROGRESS);
            if (going && tb_loop_watch(&agent->loop, &attach->watch, fd, EPOLLOUT, attempt_ready) == TB_OK) {
                attach->stage = CONNECTING;
                tb_timer_set(&agent->loop, &attach->timer, ANSWER_NS);
                return;
            }
            attach->refused = attach->refused && errno == ECONNREFUSED;
            if (fd >= 0)
                close(fd);
        }
    }
    end_round(attach);
}

/* ---- the agent's side
 * ---------------------------------------------------------------------------------------------------- */

void tb_attach_anchors(struct tb_agent *agent, struct tb_reader *r)
{
    uint32_t count = tb_get_u32(r);
    struct tb_attach *attach = agent->attach;
    if (r->error != TB_OK || count > ANCHORS_LIMIT || agent->phase != TB_AGENT_RUNNING)
        return;
    if (attach == NULL)
        attach = agent->attach = calloc(1, sizeof *attach);
    if (attach == NULL)
        return;
    attach->agent = agent;
    attach->watch.descriptor = attach->lost ? attach->watch.descriptor : -1;
    attach->count = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t host = tb_get_u32(r);
        if (r->error == TB_OK && host < agent->book.host_count && host != agent->setup.host)
            attach->hosts[attach->count++] = host;
    }
    if (!attach->lost)
        tb_timer_init(&attach->timer, timer_fires);
}

bool tb_attach_begin(struct tb_agent *agent)
{
    struct tb_attach *attach = agent->attach;
    if (attach == NULL || attach->count == 0 || agent->phase != TB_AGENT_RUNNING || agent->gone_told)
        return false;
    if (attach->lost)
        return true;
    tb_log(TB_LOG_INFO, "agent", "the control stream is lost; another way to the launcher is tried");
    attach->lost = true;
    attach->since = tb_clock_now_real();
    attach->host = attach->address = attach->rounds = 0;
    attach->refused = true;
    tb_timer_set(&agent->loop, &attach->timer, 0);
    return true;
}

bool tb_attach_lost(const struct tb_agent *agent)
{
    return agent->attach != NULL && agent->attach->lost;
}

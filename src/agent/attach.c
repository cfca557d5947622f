#include "agent/attach.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <unistd.h>

#define PAUSE_NS  200000000u
#define ANSWER_NS 1000000000u /* for each answer of a stand-in */
#define ROUNDS    4u          /* in all of which everybody has refused: nobody is left */

static void try_next(struct tb_attach *attach);

static void close_attempt(struct tb_attach *attach)
{
    int socket = attach->watch.descriptor;
    tb_loop_unwatch(attach->loop, &attach->watch);
    if (attach->tls != NULL)
        tb_tls_socket_close(attach->tls);
    else if (socket >= 0)
        close(socket);
    attach->tls = NULL;
}

/* Who proves the key and then hangs up is there, but unsure of the launcher itself for now. */
static bool is_unsure(const struct tb_attach *attach, int rc)
{
    return attach->stage == TB_ATTACH_SECURING && rc == TB_ERR_CLOSED;
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
    const uint8_t *b = attach->next;
    uint32_t next = (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
    struct tb_tls_socket *tls = attach->tls;
    tb_loop_unwatch(attach->loop, &attach->watch);
    tb_timer_clear(&attach->timer);
    attach->tls = NULL;
    attach->busy = false;
    attach->events.attached(attach->events.context, tls, next);
}

static int greet(struct tb_attach *attach)
{
    int error = 0, on = 1;
    socklen_t length = sizeof error;
    if (getsockopt(attach->watch.descriptor, SOL_SOCKET, SO_ERROR, &error, &length) < 0 || error != 0) {
        errno = error;
        return TB_ERR_SYSTEM;
    }
    setsockopt(attach->watch.descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    struct tb_proc to = {attach->self.job, TB_PROC_AGENT | attach->hosts[attach->host]};
    int rc = tb_handshake_connect(&attach->handshake, attach->key, attach->self, to, TB_STREAM_CONTROL, TB_FEATURE_TLS);
    if (rc != TB_OK)
        return rc;
    attach->stage = TB_ATTACH_PROVING;
    tb_loop_change(attach->loop, &attach->watch, EPOLLIN);
    return tb_handshake_socket_send(&attach->handshake, attach->watch.descriptor);
}

/* The stand-in has taken us in. From here on everything is encrypted: who can change what is on the way must not be
 * able to speak as the launcher. */
static int begin_securing(struct tb_attach *attach)
{
    const struct tb_handshake *h = &attach->handshake;
    struct tb_key secret;
    if ((h->welcome.features & TB_FEATURE_TLS) == 0)
        return TB_ERR_PEER;
    int rc = tb_stream_secret(&secret, attach->key, &h->hello, &h->welcome);
    if (rc == TB_OK)
        rc = tb_tls_socket_open(&attach->tls, attach->watch.descriptor, &secret, true);
    explicit_bzero(&secret, sizeof secret);
    attach->stage = TB_ATTACH_SECURING;
    attach->have = 0;
    /* A connection that was just opened has room for these few. */
    return rc == TB_OK ? tb_tls_socket_flush(attach->tls) : rc;
}

/* What we expect goes to the launcher, which answers likewise. */
static int begin_counting(struct tb_attach *attach)
{
    uint8_t bytes[4];
    for (int i = 0; i < 4; i++)
        bytes[i] = (uint8_t)(attach->expected >> 8 * i);
    attach->stage = TB_ATTACH_COUNTING;
    tb_timer_set(attach->loop, &attach->timer, attach->patience);
    int rc = tb_tls_socket_write(attach->tls, bytes, sizeof bytes);
    return rc == TB_OK ? tb_tls_socket_flush(attach->tls) : rc;
}

/* The handshake of TLS, and then the number that the launcher sends; not a byte that follows is taken. */
static int count(struct tb_attach *attach)
{
    size_t got = 0;
    int rc = tb_tls_socket_receive(attach->tls);
    if (rc != TB_OK)
        return rc;
    while (rc == TB_OK && attach->have < sizeof attach->next) {
        rc = tb_tls_socket_read(attach->tls, attach->next + attach->have, sizeof attach->next - attach->have, &got);
        attach->have += got;
    }
    if (attach->stage == TB_ATTACH_SECURING && tb_tls_socket_is_ready(attach->tls) && (rc == TB_OK || rc == TB_AGAIN)) {
        int begun = begin_counting(attach);
        return begun != TB_OK ? begun : rc;
    }
    return rc;
}

static int prove(struct tb_attach *attach)
{
    struct tb_handshake *h = &attach->handshake;
    int rc = tb_handshake_socket_receive(h, attach->watch.descriptor);
    if (rc != TB_OK)
        return rc;
    switch (h->verdict) {
    case TB_HANDSHAKE_WELCOMED:
        rc = tb_handshake_confirm(h);
        return rc == TB_OK ? tb_handshake_socket_send(h, attach->watch.descriptor) : rc;
    case TB_HANDSHAKE_DONE:
        return begin_securing(attach);
    case TB_HANDSHAKE_REFUSED:
        return TB_ERR_PEER;
    default:
        return h->error;
    }
}

/* One step on; TB_AGAIN: the other side has to say more. */
static int advance(struct tb_attach *attach)
{
    int rc = TB_ERR_INTERNAL;
    switch (attach->stage) {
    case TB_ATTACH_CONNECTING:
        rc = greet(attach);
        return rc == TB_OK ? TB_AGAIN : rc;
    case TB_ATTACH_PROVING:
        rc = prove(attach);
        break;
    case TB_ATTACH_SECURING:
    case TB_ATTACH_COUNTING:
        rc = count(attach);
        break;
    }
    return rc == TB_ERR_SYSTEM ? TB_ERR_CLOSED : rc; /* the connection is gone, whatever the reason */
}

static void attempt_ready(struct tb_watch *watch, uint32_t events)
{
    struct tb_attach *attach = TB_CONTAINER(watch, struct tb_attach, watch);
    for (;;) {
        bool counting = attach->stage >= TB_ATTACH_SECURING;
        errno = 0;
        int rc = advance(attach);
        if (rc == TB_AGAIN)
            return;
        if (rc != TB_OK) {
            attach->unsure = attach->unsure || is_unsure(attach, rc);
            give_up_attempt(attach, errno == ECONNREFUSED || rc == TB_ERR_CLOSED || rc == TB_ERR_PEER);
            return;
        }
        if (counting) {
            succeed(attach);
            return;
        }
        tb_timer_set(attach->loop, &attach->timer, ANSWER_NS);
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

static void begin_round(struct tb_attach *attach)
{
    attach->host = attach->address = 0;
    attach->refused = true;
    attach->unsure = false;
}

/* All were tried; again after a moment, unless nobody can be left. Those who are unsure may all wait for each other. */
static void end_round(struct tb_attach *attach)
{
    uint64_t now = tb_loop_now(attach->loop);
    attach->hopeful = attach->refused ? attach->hopeful : now;
    bool for_now = attach->unsure && now - attach->hopeful <= attach->patience;
    attach->rounds = attach->refused && !for_now ? attach->rounds + 1 : 0;
    begin_round(attach);
    if (attach->rounds >= ROUNDS || now - attach->since > tb_param.link_patience) {
        attach->busy = false;
        tb_timer_clear(&attach->timer);
        attach->events.failed(attach->events.context);
        return;
    }
    tb_timer_set(attach->loop, &attach->timer, PAUSE_NS);
}

static void try_next(struct tb_attach *attach)
{
    for (; attach->host < attach->count; attach->host++, attach->address = 0) {
        const struct tb_host *host = &attach->book->hosts[attach->hosts[attach->host]];
        for (; attach->address < host->address_count; attach->address++) {
            struct sockaddr_storage name;
            socklen_t length = tb_address_socket(&host->addresses[attach->address], &name);
            int fd = socket(name.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
            bool going = fd >= 0 && (connect(fd, (struct sockaddr *)&name, length) == 0 || errno == EINPROGRESS);
            if (going && tb_loop_watch(attach->loop, &attach->watch, fd, EPOLLOUT, attempt_ready) == TB_OK) {
                attach->stage = TB_ATTACH_CONNECTING;
                tb_timer_set(attach->loop, &attach->timer, ANSWER_NS);
                return;
            }
            attach->refused = attach->refused && errno == ECONNREFUSED;
            if (fd >= 0)
                close(fd);
        }
    }
    end_round(attach);
}

/* ---- the owner's side -------------------------------------------------------------------------------------------- */

void tb_attach_open(struct tb_attach *attach, struct tb_loop *loop, const struct tb_attach_events *events)
{
    *attach = (struct tb_attach){.loop = loop, .events = *events, .watch.descriptor = -1};
    tb_timer_init(&attach->timer, timer_fires);
}

void tb_attach_close(struct tb_attach *attach)
{
    close_attempt(attach);
    tb_timer_clear(&attach->timer);
    attach->busy = false;
}

void tb_attach_set_stand_ins(struct tb_attach *attach, const struct tb_key *key, struct tb_proc self,
                             const struct tb_address_book *book, const uint32_t *hosts, uint32_t count)
{
    attach->key = key;
    attach->self = self;
    attach->book = book;
    attach->count = count;
    memcpy(attach->hosts, hosts, count * sizeof *hosts);
}

void tb_attach_insist(struct tb_attach *attach, uint64_t patience)
{
    attach->since = attach->hopeful = tb_loop_now(attach->loop);
    attach->rounds = 0;
    attach->refused = false;
    attach->patience = patience;
    if (attach->stage == TB_ATTACH_COUNTING && attach->tls != NULL)
        tb_timer_set(attach->loop, &attach->timer, patience);
}

void tb_attach_begin(struct tb_attach *attach, uint32_t expected, uint64_t patience)
{
    attach->busy = true;
    attach->expected = expected;
    attach->patience = patience;
    attach->since = attach->hopeful = tb_loop_now(attach->loop);
    attach->rounds = 0;
    begin_round(attach);
    tb_timer_set(attach->loop, &attach->timer, 0);
}

#include "agent/hop_peer.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef TCP_RTO_MAX_MS
#define TCP_RTO_MAX_MS 44 /* Linux 6.15 */
#endif

/* Unsent bytes beyond which a socket is not writable: what is in there cannot be overtaken any more. */
#define UNSENT_MOST (16 << 10)
/* A write to another agent that is not acknowledged for so long, or its silence, means that the link is cut. It is
 * longer than an agent may be stopped, with all buffers full; that nothing passes is noticed sooner, by asking. */
#define SILENCE_MS       12000
#define REPEATS_MOST     3            /* of the kernel, in a row; about a second */
#define SILENCE_NS       10000000000u /* of one who is asked; then the connection is made anew; */
#define MISSED_NS        6000000000u  /* besides all ways there and back: so long it takes at most to make one */
#define DEAD_STORY       "a connection passes nothing while others do: has a proxy stopped, or a firewall forgotten it?"
#define UNHEARD_NS       1500000000u /* of a connection, while others bring something: then it is asked, too */
#define AGAIN_NS         1500000000u /* so soon while others have just come to life again */
#define REPEAT_MS        1000 /* so often the kernel repeats what a cut has swallowed, where it can be told that */
#define KEEPALIVE_IDLE_S 4
#define KEEPALIVE_STEP_S 2
#define KEEPALIVE_COUNT  4

void tb_hop_peer_open(struct tb_hop_peer *peer, struct tb_hop_set *hop_set, struct tb_proc proc)
{
    *peer = (struct tb_hop_peer){.hop_set = hop_set, .proc = proc};
    for (int i = 0; i < TB_STREAM_COUNT; i++)
        tb_list_init(&peer->connections[i]);
    tb_queue_open(&peer->queue, tb_hop_peer_is_agent(peer) ? hop_set->pool : hop_set->arrivals);
}

static bool is_stalled(const struct tb_hop_connection *connection)
{
    struct tcp_info info = {0};
    socklen_t length = sizeof info;
    return getsockopt(connection->watch.descriptor, IPPROTO_TCP, TCP_INFO, &info, &length) == 0 &&
           info.tcpi_retransmits >= REPEATS_MOST;
}

/* What others of the same agent bring says nothing about it: a proxy may stand in the way of this one alone, take what
 * we write, and have stopped. */
static bool is_unheard(const struct tb_hop_connection *connection, uint64_t now)
{
    uint64_t last = connection->heard > connection->opened ? connection->heard : connection->opened;
    return now - last > UNHEARD_NS;
}

bool tb_hop_peer_stalled(const struct tb_hop_peer *peer)
{
    for (int i = 0; i < TB_STREAM_COUNT; i++) {
        const struct tb_hop_connection *connection;
        TB_LIST_EACH (connection, &peer->connections[i], struct tb_hop_connection, node)
            if (is_stalled(connection))
                return true;
    }
    return false;
}

void tb_hop_peer_ask(struct tb_hop_peer *peer, uint32_t about)
{
    for (int i = 0; i < TB_STREAM_COUNT; i++) {
        struct tb_hop_connection *connection;
        TB_LIST_EACH (connection, &peer->connections[i], struct tb_hop_connection, node)
            tb_hop_connection_ask(connection, about);
    }
}

void tb_hop_peer_use_small(struct tb_hop_peer *peer)
{
    peer->packet_size.small = true;
    for (int i = 0; i < TB_STREAM_COUNT; i++) {
        struct tb_hop_connection *connection;
        TB_LIST_EACH (connection, &peer->connections[i], struct tb_hop_connection, node)
            connection->ping.small = true;
    }
}

static void note_answers(struct tb_hop_peer *peer)
{
    uint64_t last = 0;
    for (int i = 0; i < TB_STREAM_COUNT; i++) {
        struct tb_hop_connection *connection;
        TB_LIST_EACH (connection, &peer->connections[i], struct tb_hop_connection, node)
            last = connection->heard > last ? connection->heard : last;
    }
    tb_packet_size_answered(&peer->packet_size, last);
}

/* Of one that has been silent since then. True: all others have something to say. */
static bool end_if_silent(struct tb_hop_peer *peer, struct tb_hop_connection *connection, uint64_t since, bool again)
{
    const struct tb_hop_set_events *events = &peer->hop_set->events;
    uint64_t now = tb_loop_now(peer->hop_set->loop);
    /* On a slow wire the answer may wait behind what comes all the while. */
    uint64_t quiet = connection->heard > since && !is_stalled(connection) ? connection->heard : since;
    switch (tb_packet_size_judge(&peer->packet_size, connection->watch.descriptor, quiet, now)) {
    case TB_PACKET_TOO_LARGE:
        events->small(events->context, peer);
        tb_hop_connection_give_up(connection, TB_PACKET_STORY);
        return true;
    case TB_PACKET_NONE:
        tb_packet_size_stuck(&peer->packet_size, connection->watch.descriptor, connection->stream, since, now);
        tb_hop_connection_give_up(connection, TB_PACKET_STORY);
        return false;
    case TB_PACKET_DEAD:
        peer->dead_since[connection->stream] = since;
        tb_hop_connection_give_up(connection, DEAD_STORY);
        return false;
    case TB_PACKET_UNKNOWN:
        break;
    }
    if (now - since > (again ? AGAIN_NS : SILENCE_NS))
        tb_hop_connection_give_up(connection, "no answer");
    return false;
}

void tb_hop_peer_miss(struct tb_hop_peer *peer, enum tb_stream stream, uint64_t since, uint64_t latency)
{
    uint64_t now = tb_loop_now(peer->hop_set->loop);
    note_answers(peer);
    if (peer->dead_since[stream] == 0 &&
        tb_packet_size_answered_for(&peer->packet_size, since, now) > MISSED_NS + 8 * latency)
        peer->dead_since[stream] = since;
}

bool tb_hop_peer_is_dead(const struct tb_hop_peer *peer, enum tb_stream stream)
{
    return peer->dead_since[stream] != 0 && tb_list_empty(&peer->connections[stream]);
}

uint64_t tb_hop_peer_stuck_since(struct tb_hop_peer *peer, const char **why)
{
    struct tb_packet_size *size = &peer->packet_size;
    *why = DEAD_STORY;
    for (int i = 0; i < TB_STREAM_COUNT; i++)
        if (tb_hop_peer_is_dead(peer, (enum tb_stream)i))
            return peer->dead_since[i];
    *why = TB_PACKET_STORY;
    if (size->stuck_since == 0)
        return 0;
    struct tb_hop_connection *connection;
    TB_LIST_EACH (connection, &peer->connections[size->stuck_stream], struct tb_hop_connection, node)
        if (connection->opened > size->stuck)
            tb_packet_size_look(size, connection->watch.descriptor);
    return tb_packet_size_stuck_since(size, tb_loop_now(peer->hop_set->loop));
}

uint64_t tb_hop_peer_progress(struct tb_hop_peer *peer, bool again)
{
    uint64_t now = tb_loop_now(peer->hop_set->loop), last = 0;
    bool tell = false;
    note_answers(peer);
    for (int i = 0; i < TB_STREAM_COUNT; i++) {
        struct tb_hop_connection *connection;
        TB_LIST_EACH (connection, &peer->connections[i], struct tb_hop_connection, node) {
            uint64_t since = tb_hop_ping_since(&connection->ping, connection->watch.descriptor, now);
            if (since != 0 && connection->ping.acked_at > last) /* a question that was just asked is no progress */
                last = connection->ping.acked_at;
            if (since != 0)
                tell = end_if_silent(peer, connection, since, again) || tell;
            else if (is_stalled(connection) ||
                     is_unheard(connection, now)) /* the agent is heard, so nobody else asks */
                tb_hop_connection_ask(connection, 0);
        }
    }
    if (tell) /* so that the other side hears of it before it makes a new one; whoever is asked may end by that */
        tb_hop_peer_ask(peer, 0);
    return last;
}

void tb_hop_peer_close(struct tb_hop_peer *peer)
{
    for (int i = 0; i < TB_STREAM_COUNT; i++) {
        struct tb_hop_connection *connection;
        TB_LIST_EACH (connection, &peer->connections[i], struct tb_hop_connection, node) {
            tb_hop_connection_say_bye(connection);
            tb_hop_connection_close(connection);
        }
    }
    tb_queue_close(&peer->queue);
}

static uint32_t count_connections(const struct tb_hop_peer *peer)
{
    uint32_t count = 0;
    for (int i = 0; i < TB_STREAM_COUNT; i++)
        for (const struct tb_list *l = peer->connections[i].next; l != &peer->connections[i]; l = l->next)
            count++;
    return count;
}

/* Options that a socket lacks (a Unix socket in tests) are no reason to refuse it. */
static void set_options(const struct tb_hop_peer *peer, enum tb_stream stream, int socket)
{
    int on = 1, unsent = UNSENT_MOST;
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(socket, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof unsent);
    if (!tb_hop_peer_is_agent(peer))
        return;
    int silence = SILENCE_MS, repeat = REPEAT_MS, idle = KEEPALIVE_IDLE_S, step = KEEPALIVE_STEP_S,
        count = KEEPALIVE_COUNT;
    setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(socket, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    setsockopt(socket, IPPROTO_TCP, TCP_KEEPINTVL, &step, sizeof step);
    setsockopt(socket, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
    setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &silence, sizeof silence);
    setsockopt(socket, IPPROTO_TCP, TCP_RTO_MAX_MS, &repeat, sizeof repeat);
    if (stream == TB_STREAM_SHORT) /* after a cut, what waits alone is repeated soon */
        setsockopt(socket, IPPROTO_TCP, TCP_THIN_LINEAR_TIMEOUTS, &on, sizeof on);
}

int tb_hop_peer_adopt(struct tb_hop_peer *peer, enum tb_stream stream, uint32_t stripe, bool ours, int socket,
                      struct tb_codec *codec)
{
    struct tb_hop_connection *connection;
    TB_LIST_EACH (connection, &peer->connections[stream], struct tb_hop_connection, node)
        if (connection->stripe == stripe && connection->ours == ours)
            tb_hop_connection_close(connection);
    if (count_connections(peer) >= TB_HOP_PEER_CONNECTIONS) {
        close(socket);
        if (codec != NULL)
            codec->close(codec);
        return tb_error(TB_ERR_LIMIT, "too many connections with one process");
    }
    set_options(peer, stream, socket);
    int rc = tb_hop_connection_open(&connection, peer->hop_set, socket, codec);
    if (rc != TB_OK)
        return rc;
    connection->peer = peer;
    connection->proc = peer->proc;
    connection->queue = &peer->queue;
    connection->stream = (uint8_t)stream;
    connection->stripe = (uint8_t)stripe;
    connection->ours = ours;
    connection->opened = tb_loop_now(peer->hop_set->loop);
    connection->ping.small = peer->packet_size.small;
    tb_list_append(&peer->connections[stream], &connection->node);
    peer->dead_since[stream] = 0; /* it has been answered */
    return tb_hop_connection_begin(connection);
}

int tb_hop_peer_send(struct tb_hop_peer *peer, enum tb_stream stream, struct tb_cargo *cargo)
{
    struct tb_hop_connection *connection;
    TB_LIST_EACH (connection, &peer->connections[stream], struct tb_hop_connection, node) {
        if (!tb_hop_connection_is_ready(connection))
            continue;
        int rc = tb_hop_connection_send(connection, cargo);
        if (rc == TB_OK) {
            peer->hop_set->frames_out++;
            peer->hop_set->bytes_out += cargo->length;
            return TB_OK;
        }
        if (rc != TB_AGAIN)
            return TB_AGAIN; /* what is left of the peer is for the caller to find out */
    }
    return TB_AGAIN;
}

void tb_hop_peer_flush(struct tb_hop_peer *peer, enum tb_stream stream)
{
    struct tb_hop_connection *connection;
    TB_LIST_EACH (connection, &peer->connections[stream], struct tb_hop_connection, node) {
        if (tb_queue_empty(&peer->queue, stream))
            return;
        if (tb_hop_connection_is_ready(connection) && !tb_hop_connection_flush(connection))
            return; /* the list has changed in unknown ways; whatever is left is flushed by others */
    }
}

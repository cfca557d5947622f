#include "agent/neighbour.h"

#include <math.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>

#define NEIGHBOURS_FIRST 16u
#define PAUSE_NS         200000000u  /* before a lost connection is made again; doubled each time, */
#define PAUSE_MOST_NS    2000000000u /* up to this */
#define LOST_NS          5000000000u /* so long they take another one when a connection has been lost */
#define LOOK_NS          100000000u  /* how often it is looked whether what was sent arrives, where there are others */
#define WIDE_NS          1000000u    /* a way of this latency deserves two streams, open in advance */
#define SEGMENT_BITS     (1448 * 8)
#define WINDOW_BITS      (2e6 * 8) /* what one stream surely has in flight, if it needs to */
#define BANDWIDTH_USUAL  100e6
#define FAST             300000000u  /* bit/s */
#define UNSENT_FAST      (128 << 10) /* bytes */
#define UNSENT_SLOW      (16u << 10)
#define BATCH_FAST       (64u << 10)

/* ---- the table --------------------------------------------------------------------------------------------------- */

static struct tb_neighbour **slot_of(struct tb_neighbour_table *table, uint32_t index)
{
    uint32_t mask = table->room - 1, at = (index * 0x9e3779b1u >> 7) & mask;
    while (table->slots[at] != NULL && table->slots[at]->peer.proc.index != index)
        at = (at + 1) & mask;
    return &table->slots[at];
}

static bool table_grow(struct tb_neighbour_table *table)
{
    struct tb_neighbour **old = table->slots;
    uint32_t old_room = table->room, room = old_room == 0 ? NEIGHBOURS_FIRST : 2 * old_room;
    struct tb_neighbour **slots = calloc(room, sizeof(struct tb_neighbour *));
    if (slots == NULL)
        return false;
    table->slots = slots;
    table->room = room;
    for (uint32_t i = 0; i < old_room; i++)
        if (old[i] != NULL)
            *slot_of(table, old[i]->peer.proc.index) = old[i];
    free(old);
    return true;
}

int tb_neighbour_table_open(struct tb_neighbour_table *table, const struct tb_member *member,
                            struct tb_hop_set *hop_set)
{
    *table = (struct tb_neighbour_table){.member = member, .hop_set = hop_set};
    return table_grow(table) ? TB_OK : tb_error(TB_ERR_MEMORY, "no memory to forward messages");
}

void tb_neighbour_table_close(struct tb_neighbour_table *table)
{
    for (uint32_t i = 0; i < table->room; i++)
        if (table->slots[i] != NULL) {
            tb_hop_peer_close(&table->slots[i]->peer);
            free(table->slots[i]);
        }
    free(table->slots);
    *table = (struct tb_neighbour_table){0};
}

struct tb_neighbour *tb_neighbour_find(struct tb_neighbour_table *table, uint32_t index)
{
    struct tb_neighbour **slot = slot_of(table, index);
    if (*slot != NULL)
        return *slot;
    if (2 * (table->count + 1) > table->room) {
        if (!table_grow(table))
            return NULL;
        slot = slot_of(table, index);
    }
    struct tb_neighbour *n = calloc(1, sizeof *n);
    if (n == NULL)
        return NULL;
    tb_hop_peer_open(&n->peer, table->hop_set, (struct tb_proc){table->member->self.job, index});
    tb_list_init(&n->flush);
    tb_list_init(&n->care);
    *slot = n;
    table->count++;
    return n;
}

/* ---- one of them ------------------------------------------------------------------------------------------------- */

uint32_t tb_neighbour_host(const struct tb_neighbour *n, const struct tb_member *member)
{
    uint32_t index = n->peer.proc.index;
    return tb_hop_peer_is_agent(&n->peer) ? index & ~TB_PROC_AGENT : tb_address_book_host_of(member->book, index);
}

bool tb_neighbour_is_queued(const struct tb_neighbour *n)
{
    return !tb_queue_empty(&n->peer.queue, TB_STREAM_SHORT) || !tb_queue_empty(&n->peer.queue, TB_STREAM_BULK);
}

bool tb_neighbour_is_usable(struct tb_neighbour *n, uint64_t now)
{
    if (n->suspect)
        return false;
    for (int i = 0; i < TB_STREAM_COUNT; i++) {
        if (n->down_since[i] != 0 && now - n->down_since[i] > TB_NEIGHBOUR_OTHERS_NS)
            return false;
        if (n->lost_at[i] != 0 && now - n->lost_at[i] < LOST_NS)
            return false;
    }
    if (now - n->looked_at > LOOK_NS) {
        n->looked_at = now;
        n->stalled = tb_hop_peer_stalled(&n->peer);
    }
    return !n->left && !n->stalled;
}

double tb_neighbour_time_to_leave(const struct tb_neighbour *n, const struct tb_member *member, size_t before)
{
    const struct tb_host_route *route = tb_member_route(member, tb_neighbour_host(n, member));
    double wire = route->bandwidth > 0 ? (double)route->bandwidth : BANDWIDTH_USUAL;
    return 8 * (double)(n->peer.queue.bytes[TB_STREAM_BULK] + before + TB_FRAME_BUFFER_LIMIT) / wire;
}

/* A stream alone carries about a segment each round trip, divided by the root of the loss, and no more than its
 * window. */
uint32_t tb_neighbour_stripes_wanted(const struct tb_neighbour *n, const struct tb_member *member,
                                     enum tb_stream stream)
{
    if (!tb_hop_peer_is_agent(&n->peer) || stream == TB_STREAM_SHORT)
        return 1;
    if (tb_param.gateway_streams > 0)
        return (uint32_t)tb_param.gateway_streams;
    const struct tb_host_route *route = tb_member_route(member, tb_neighbour_host(n, member));
    double round_trip = 2e-9 * (double)route->latency;
    double wire = route->bandwidth > 0 ? (double)route->bandwidth : BANDWIDTH_USUAL;
    double streams = route->latency > WIDE_NS ? 2 : 1;
    if (round_trip > 0 && route->loss > 0)
        streams = fmax(streams, ceil(wire * round_trip * sqrt(route->loss * 1e-6) / (1.22 * SEGMENT_BITS)));
    streams = fmax(streams, ceil(wire * round_trip / WINDOW_BITS));
    return (uint32_t)fmin(streams, TB_STRIPES_LIMIT);
}

/* Does anything go through this agent as things are now? */
static bool is_hop(const struct tb_neighbour *n, const struct tb_member *member)
{
    const struct tb_host_routes *routes = member->routes;
    uint32_t host = tb_neighbour_host(n, member);
    for (uint32_t i = 0; i < routes->kind_count; i++)
        for (uint32_t k = 0; k < routes->routes[i].hop_count; k++)
            if (routes->routes[i].hops[k] == host)
                return true;
    return false;
}

bool tb_neighbour_is_kept(const struct tb_neighbour *n, const struct tb_member *member, enum tb_stream stream)
{
    if (!tb_hop_peer_is_agent(&n->peer) || !is_hop(n, member))
        return false;
    bool in_advance = member->self.index < n->peer.proc.index &&
                      !tb_list_empty(&n->peer.connections[TB_STREAM_SHORT]) &&
                      tb_member_route(member, tb_neighbour_host(n, member))->latency > WIDE_NS;
    return n->opener[stream] || in_advance;
}

void tb_neighbour_tune(const struct tb_neighbour *n, const struct tb_member *member, enum tb_stream stream, int socket)
{
    const struct tb_host_route *route = tb_member_route(member, tb_neighbour_host(n, member));
    int unsent = UNSENT_FAST;
    bool fast = (route->bandwidth == 0 || route->bandwidth >= FAST) && route->latency < WIDE_NS;
    if (!tb_hop_peer_is_agent(&n->peer) || stream != TB_STREAM_BULK)
        return;
    if (fast)
        setsockopt(socket, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof unsent);
    struct tb_hop_connection *connection;
    TB_LIST_EACH (connection, &n->peer.connections[stream], struct tb_hop_connection, node) {
        if (connection->watch.descriptor != socket)
            continue;
        connection->batch = fast ? BATCH_FAST : connection->batch;
        connection->unsent = route->bandwidth > 0 && route->bandwidth < FAST ? UNSENT_SLOW : 0;
    }
}

struct tb_hop_connection *tb_neighbour_connection(struct tb_neighbour *n, enum tb_stream stream, uint32_t stripe)
{
    struct tb_hop_connection *connection;
    TB_LIST_EACH (connection, &n->peer.connections[stream], struct tb_hop_connection, node)
        if (connection->ours && connection->stripe == stripe)
            return connection;
    return NULL;
}

void tb_neighbour_postpone(struct tb_neighbour_stripe *stripe, uint64_t now)
{
    stripe->asked = stripe->called = false;
    stripe->pause = stripe->pause == 0 ? PAUSE_NS : stripe->pause * 2;
    if (stripe->pause > PAUSE_MOST_NS)
        stripe->pause = PAUSE_MOST_NS;
    stripe->not_before = now + stripe->pause;
}

#include "transport/mcast/group.h"

#include "transport/mcast/batch.h"
#include "transport/mcast/faults.h"
#include "transport/mcast/group_sockets.h"
#include "transport/mcast/sender.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#define PIECE_LEAST     128u              /* less is not worth while */
#define BATCHES_AT_ONCE 4                 /* of a poll, of each socket */
#define CROWDED_NS      UINT64_C(1000000) /* after which an interface whose queue was full is tried again */
#define SOURCES_KNOWN   32u               /* senders of which nothing is missed when the membership is renewed */

struct tb_mcast_group {
    struct tb_mcast_config config;
    void (*datagram)(void *context,
                     const struct tb_mcast_arrival *arrival); /* the owner's, or of the faults before it */
    void *datagram_context;
    struct tb_mcast_membership membership;
    union tb_mcast_address own;
    struct tb_mcast_batch batch;
    struct tb_mcast_sender sender;
    struct tb_mcast_faults faults;
    struct tb_mcast_counters counters;
    int heard, spoken; /* the sockets */
    int descriptor;
    uint16_t piece;
    bool full;              /* datagrams were refused, and `writable` is owed: */
    uint64_t crowded_until; /* then; TB_NEVER: when the socket says so */
    uint64_t renewal;       /* when the membership is renewed; TB_NEVER: it is not ours */
    union tb_mcast_address sources[SOURCES_KNOWN];
    uint32_t source_count, source_last;
};

/* ---- opening and closing ----------------------------------------------------------------------------------------- */

static int piece_find(struct tb_mcast_group *g)
{
    uint32_t limit = 0, longest = TB_DATAGRAM_PAYLOAD_LIMIT + TB_DATAGRAM_BYTES;
    int rc = tb_mcast_sockets_limit(g->spoken, g->config.group.any.sa_family, g->config.interface, &limit);
    if (rc != TB_OK)
        return rc;
    limit = limit < longest ? limit : longest;
    if (limit < TB_DATAGRAM_BYTES + PIECE_LEAST)
        return tb_error(TB_ERR_UNSUPPORTED, "interface %u takes packets that are too short for multicast",
                        g->config.interface);
    g->piece = (uint16_t)(limit - TB_DATAGRAM_BYTES);
    return TB_OK;
}

static int descriptor_open(struct tb_mcast_group *g)
{
    struct epoll_event in = {.events = EPOLLIN};
    g->descriptor = epoll_create1(EPOLL_CLOEXEC);
    if (g->descriptor < 0 || epoll_ctl(g->descriptor, EPOLL_CTL_ADD, g->heard, &in) != 0 ||
        epoll_ctl(g->descriptor, EPOLL_CTL_ADD, g->spoken, &in) != 0)
        return tb_error_errno("cannot make a descriptor for a multicast group");
    return TB_OK;
}

static int faults_put(struct tb_mcast_group *g)
{
    const char *faults = g->config.faults;
    g->datagram = g->config.upcalls.datagram;
    g->datagram_context = g->config.upcalls.context;
    if (faults == NULL || *faults == 0)
        return TB_OK;
    g->datagram = tb_mcast_faults_datagram;
    g->datagram_context = &g->faults;
    return tb_mcast_faults_open(&g->faults, faults, g->config.self, g->config.clock, &g->config.upcalls);
}

static int group_fill(struct tb_mcast_group *g)
{
    const struct tb_mcast_config *c = &g->config;
    int rc = faults_put(g);
    rc = rc == TB_OK ? tb_mcast_sockets_hear(c, &g->heard) : rc;
    rc = rc == TB_OK ? tb_mcast_sockets_speak(c, &g->spoken, &g->own) : rc;
    rc = rc == TB_OK ? descriptor_open(g) : rc;
    rc = rc == TB_OK ? piece_find(g) : rc;
    rc = rc == TB_OK ? tb_mcast_batch_open(&g->batch, g->piece) : rc;
    if (rc == TB_OK && c->join) {
        g->renewal = tb_clock_now(c->clock) + TB_MCAST_RENEW_NS;
        rc = tb_mcast_membership_open(&g->membership, &c->group, c->interface);
    }
    return rc;
}

int tb_mcast_group_open(struct tb_mcast_group **group, const struct tb_mcast_config *config)
{
    TB_ASSERT(config->clock != NULL && config->upcalls.datagram != NULL);
    TB_ASSERT(config->group.any.sa_family == config->local.any.sa_family);
    struct tb_mcast_group *g = calloc(1, sizeof *g);
    if (g == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for a multicast group");
    g->config = *config;
    g->heard = g->spoken = g->descriptor = g->membership.socket = -1;
    g->renewal = g->crowded_until = TB_NEVER;
    int rc = group_fill(g);
    g->config.faults = NULL;
    if (rc != TB_OK) {
        tb_mcast_group_close(g);
        return rc;
    }
    if (g->config.group.any.sa_family == AF_INET6)
        g->config.group.in6.sin6_scope_id = g->config.interface;
    g->sender.socket = g->spoken;
    g->sender.job = config->job;
    g->sender.self = config->self;
    g->sender.key = tb_param_checks_multicast() ? &g->config.key : NULL;
    *group = g;
    return TB_OK;
}

void tb_mcast_group_close(struct tb_mcast_group *g)
{
    const int descriptors[] = {g->heard, g->spoken, g->descriptor};
    for (size_t i = 0; i < sizeof descriptors / sizeof descriptors[0]; i++)
        if (descriptors[i] >= 0)
            close(descriptors[i]);
    tb_mcast_membership_close(&g->membership);
    tb_mcast_faults_close(&g->faults);
    tb_mcast_batch_close(&g->batch);
    free(g);
}

/* ---- what there is to know --------------------------------------------------------------------------------------- */

uint16_t tb_mcast_group_piece(const struct tb_mcast_group *g)
{
    return g->piece;
}

uint32_t tb_mcast_group_buffer(const struct tb_mcast_group *g)
{
    return tb_mcast_sockets_buffer(g->heard);
}

/* The kernel counts the memory that a datagram takes, which differs between network cards: up to a page, or the next
 * power of two, for what is a little longer than half of it, and its own notes besides. */
uint32_t tb_mcast_holds(uint32_t buffer, uint32_t piece)
{
    return buffer / (2 * (piece + TB_DATAGRAM_BYTES) + 1536);
}

uint64_t tb_mcast_group_overflowed(const struct tb_mcast_group *g)
{
    return tb_mcast_sockets_drops(g->heard);
}

const union tb_mcast_address *tb_mcast_group_own(const struct tb_mcast_group *g)
{
    return &g->own;
}

const struct tb_mcast_counters *tb_mcast_group_counters(struct tb_mcast_group *g)
{
    g->counters.lost = g->faults.lost;
    g->counters.repeated = g->faults.repeated;
    g->counters.reordered = g->faults.reordered;
    return &g->counters;
}

int tb_mcast_group_descriptor(const struct tb_mcast_group *g)
{
    return g->descriptor;
}

uint64_t tb_mcast_group_deadline(const struct tb_mcast_group *g)
{
    uint64_t due = tb_mcast_faults_deadline(&g->faults);
    due = g->renewal < due ? g->renewal : due;
    return g->full && g->crowded_until < due ? g->crowded_until : due;
}

/* ---- sending ----------------------------------------------------------------------------------------------------- */

static void await_room(struct tb_mcast_group *g, bool wait)
{
    struct epoll_event events = {.events = wait ? EPOLLIN | EPOLLOUT : EPOLLIN};
    (void)epoll_ctl(g->descriptor, EPOLL_CTL_MOD, g->spoken, &events);
}

static int refused(struct tb_mcast_group *g, int error)
{
    char text[TB_MCAST_ADDRESS_TEXT];
    bool crowded =
        error == ENOBUFS || error == ENOMEM; /* the interface, not the socket: nobody tells when it is over */
    if (crowded || error == EAGAIN || error == EWOULDBLOCK) {
        g->full = true;
        g->crowded_until = crowded ? tb_clock_now(g->config.clock) + CROWDED_NS : TB_NEVER;
        g->counters.full++;
        await_room(g, !crowded);
        return TB_AGAIN;
    }
    if (error == EMSGSIZE) {
        int rc = piece_find(g);
        return rc != TB_OK
                   ? rc
                   : tb_error(TB_ERR_LIMIT, "a datagram is longer than interface %u takes", g->config.interface);
    }
    errno = error;
    return tb_error_errno("cannot send to the multicast group %s", tb_mcast_address_print(&g->config.group, text));
}

int tb_mcast_group_send(struct tb_mcast_group *g, const union tb_mcast_address *to,
                        const struct tb_mcast_datagram *datagrams, uint32_t count)
{
    uint32_t done = 0, batch;
    int rc = TB_OK;
    for (uint32_t n; done < count && rc == TB_OK; done += n) {
        uint64_t bytes;
        int error;
        batch = count - done < TB_MCAST_BATCH ? count - done : TB_MCAST_BATCH;
        n = tb_mcast_sender_send(&g->sender, to != NULL ? to : &g->config.group, datagrams + done, batch, &bytes,
                                 &error);
        g->counters.sent += n;
        g->counters.sent_bytes += bytes;
        if (n < batch)
            rc = refused(g, error);
    }
    if (rc < 0 && done > 0) { /* the error is for the next call, which is worth it at once */
        g->full = true;
        g->crowded_until = tb_clock_now(g->config.clock);
    }
    return rc < 0 && done == 0 ? rc : (int)done;
}

static void writable_tell(struct tb_mcast_group *g, uint64_t now)
{
    struct pollfd room = {.fd = g->spoken, .events = POLLOUT};
    bool free_again = g->crowded_until != TB_NEVER ? g->crowded_until <= now : poll(&room, 1, 0) > 0;
    if (!free_again)
        return;
    g->full = false;
    await_room(g, false);
    if (g->config.upcalls.writable != NULL)
        g->config.upcalls.writable(g->config.upcalls.context);
}

/* ---- receiving --------------------------------------------------------------------------------------------------- */

static void source_note(struct tb_mcast_group *g, const union tb_mcast_address *from)
{
    if (g->source_count > 0 && tb_mcast_address_same(&g->sources[g->source_last], from))
        return;
    for (uint32_t i = 0; i < g->source_count; i++) {
        if (tb_mcast_address_same(&g->sources[i], from)) {
            g->source_last = i;
            return;
        }
    }
    g->source_last = g->source_count < SOURCES_KNOWN ? g->source_count++ : (g->source_last + 1) % SOURCES_KNOWN;
    g->sources[g->source_last] = *from;
}

/* Counts; true: it is for the owner. */
static bool judge(struct tb_mcast_group *g, int rc, const struct tb_datagram *d, size_t bytes)
{
    bool foreign = rc != TB_ERR_PROTOCOL && d->job != g->config.job;
    bool own = rc == TB_OK && !foreign && d->sender == g->config.self;
    bool right = rc == TB_OK && !foreign && !own;
    g->counters.malformed += rc == TB_ERR_PROTOCOL;
    g->counters.foreign += foreign;
    g->counters.forged += rc == TB_ERR_FORBIDDEN && !foreign;
    g->counters.own += own;
    g->counters.received += right;
    g->counters.received_bytes += right ? bytes : 0;
    return right;
}

/* First all are checked, and moved aside where they are not in place; then they are handed up. */
static uint32_t batch_take(struct tb_mcast_group *g, uint32_t count, bool alone)
{
    struct tb_mcast_arrival arrivals[TB_MCAST_BATCH];
    uint32_t right = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct tb_mcast_arrival *a = &arrivals[right];
        int rc = tb_mcast_batch_check(&g->batch, i, g->sender.key, a);
        if (!judge(g, rc, &a->head, tb_mcast_batch_bytes(&g->batch, i)))
            continue;
        a->alone = alone;
        g->counters.placed += a->placed;
        if (!alone)
            source_note(g, a->from);
        right++;
    }
    for (uint32_t i = 0; i < right; i++)
        g->datagram(g->datagram_context, &arrivals[i]);
    return right;
}

static uint32_t hear(struct tb_mcast_group *g)
{
    const struct tb_mcast_upcalls *up = &g->config.upcalls;
    uint32_t right = 0, count = TB_MCAST_BATCH;
    for (int i = 0; i < BATCHES_AT_ONCE && count == TB_MCAST_BATCH; i++) {
        struct tb_mcast_room room;
        bool expected = up->expect != NULL && up->expect(up->context, &room);
        count = tb_mcast_batch_receive(&g->batch, g->heard, expected ? &room : NULL);
        right += batch_take(g, count, false);
    }
    return right;
}

static uint32_t hear_alone(struct tb_mcast_group *g)
{
    uint32_t right = 0, count = TB_MCAST_BATCH;
    for (int i = 0; i < BATCHES_AT_ONCE && count == TB_MCAST_BATCH; i++) {
        count = tb_mcast_batch_receive(&g->batch, g->spoken, NULL);
        if (count == 0 && errno != EAGAIN && errno != EWOULDBLOCK)
            tb_mcast_sockets_forget_errors(g->spoken);
        right += batch_take(g, count, true);
    }
    return right;
}

static void renew(struct tb_mcast_group *g, uint64_t now)
{
    g->renewal = now + TB_MCAST_RENEW_NS;
    if (tb_mcast_membership_renew(&g->membership, g->sources, g->source_count) != TB_OK)
        tb_log(TB_LOG_DEBUG, "mcast", "%s", tb_error_story());
}

int tb_mcast_group_poll(struct tb_mcast_group *g)
{
    uint32_t right = hear(g) + hear_alone(g);
    uint64_t now = tb_clock_now(g->config.clock);
    if (g->faults.held_count > 0)
        tb_mcast_faults_release(&g->faults, now);
    if (g->full)
        writable_tell(g, now);
    if (now >= g->renewal)
        renew(g, now);
    return (int)right;
}

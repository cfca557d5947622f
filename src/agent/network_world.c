#include "agent/network_world.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define PAYLOAD(i) ((char)((i)*31 + 7))

/* ---- the agent's side of its network ----------------------------------------------------------------------------- */

static bool has_rank(void *context, uint32_t rank)
{
    const struct world *w = context;
    return rank < RANKS && tb_address_book_host_of(&w->book, rank) == w->member.host && !w->ended[rank];
}

static bool is_gone(void *context, uint32_t rank)
{
    const struct world *w = context;
    return w->ended[rank];
}

static void take_connection(void *context, uint32_t rank, struct tb_proc proc, enum tb_stream stream, int error,
                            int descriptor)
{
    struct world *w = context;
    if (error != TB_OK) {
        w->refused[rank] = error;
        return;
    }
    if (w->handed[rank] >= 0)
        close(w->handed[rank]);
    w->handed[rank] = descriptor;
    w->handed_proc[rank] = proc;
    w->handed_stream[rank] = stream;
}

static void take_control_stream(void *context, const struct tb_connected *connected)
{
    close(connected->socket);
}

static void take_call(void *context, uint32_t host, struct tb_proc there, struct tb_proc here, uint32_t stream)
{
    struct world *w = context;
    assert_in_range(w->call_count, 0, CALLS_MOST - 1);
    w->events[w->call_count++] = (struct world_call){host, there, here, stream};
}

static void take_probed(void *context, const struct tb_reach_report *reports, uint32_t count) {}

static void take_link(void *context, uint32_t host, enum tb_link_report state, uint64_t time, const char *why)
{
    struct world *w = context;
    w->link_reports++;
    w->link_silent = state == TB_LINK_SILENT;
    w->link_host = host;
    w->link_told_at = tb_loop_now(w->loop);
    w->link_time = time;
    snprintf(w->link_why, sizeof w->link_why, "%s", why);
}

static void take_note(void *context, const char *text)
{
    struct world *w = context;
    snprintf(w->note, sizeof w->note, "%s", text);
}

static uint32_t numbers[RANKS][RANKS]; /* of the last frame of each pair */

/* ---- opening and closing ----------------------------------------------------------------------------------------- */

static void stop(struct tb_timer *timer)
{
    TB_CONTAINER(timer, struct world, end)->loop->stop = true;
}

void world_spin(struct world *w, unsigned ms)
{
    tb_timer_init(&w->end, stop);
    tb_timer_set(w->loop, &w->end, ms * UINT64_C(1000000));
    w->loop->stop = false;
    assert_int_equal(tb_loop_run(w->loop), TB_OK);
    tb_timer_clear(&w->end);
}

static void make_book(struct tb_address_book *book)
{
    *book = (struct tb_address_book){.job = JOB, .ranks = RANKS, .host_count = HOSTS, .range_count = HOSTS};
    book->hosts = calloc(HOSTS, sizeof *book->hosts);
    book->ranges = calloc(HOSTS, sizeof *book->ranges);
    assert_non_null(book->hosts);
    assert_non_null(book->ranges);
    for (uint32_t h = 0; h < HOSTS; h++) {
        struct tb_host *host = &book->hosts[h];
        snprintf(host->name, sizeof host->name, "host%u", h);
        host->kind = h;
        host->first_rank = h == 0 ? 0 : LOCAL_RANKS + h - 1;
        host->rank_count = h == 0 ? LOCAL_RANKS : 1;
        book->ranges[h] = (struct tb_rank_range){.first_rank = host->first_rank, .count = host->rank_count, .host = h};
        host->address_count = 1; /* where nobody listens */
        host->addresses[0] = (struct tb_address){.family = 4, .prefix = 8, .port = 1, .bytes = {127, 0, 0, 1}};
    }
}

void world_open_in(struct world *w, uint32_t host, struct tb_loop *loop)
{
    memset(w, 0, sizeof *w);
    memset(numbers, 0, sizeof numbers);
    w->loop = loop;
    for (uint32_t i = 0; i < RANKS; i++)
        w->handed[i] = -1;
    memset(w->key.bytes, 5, TB_KEY_BYTES);
    make_book(&w->book);
    w->member = (struct tb_member){.loop = loop,
                                   .key = &w->key,
                                   .self = {JOB, TB_PROC_AGENT | host},
                                   .host = host,
                                   .name = "here",
                                   .running = true,
                                   .book = &w->book,
                                   .routes = &w->known};
    tb_host_network_open(&w->network, &w->member,
                         &(struct tb_host_network_events){.context = w,
                                                          .has_rank = has_rank,
                                                          .is_gone = is_gone,
                                                          .connection = take_connection,
                                                          .control_stream = take_control_stream,
                                                          .call = take_call,
                                                          .probed = take_probed,
                                                          .link = take_link,
                                                          .note = take_note});
}

void world_open(struct world *w, uint32_t host)
{
    world_open_in(w, host, &w->own);
    assert_int_equal(tb_loop_open(&w->own, &tb_clock_real), TB_OK);
}

void world_close(struct world *w)
{
    tb_host_network_close(&w->network);
    for (uint32_t i = 0; i < RANKS; i++)
        if (w->handed[i] >= 0)
            close(w->handed[i]);
    if (w->loop == &w->own)
        tb_loop_close(w->loop);
    tb_address_book_close(&w->book);
}

void world_use_routes(struct world *w)
{
    w->known = (struct tb_host_routes){.kind_count = HOSTS, .routes = w->routes};
}

int world_join(struct world *w, uint32_t index, enum tb_stream stream, uint32_t stripe)
{
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
    struct tb_connected connected = {
        .self = w->member.self, .proc = {JOB, index}, .stream = stream, .stripe = stripe, .socket = pair[0]};
    assert_in_range(pair[1], 0, DESCRIPTORS_MOST - 1);
    w->pongs[pair[1]] = 0;
    w->is_agent[pair[1]] = (index & TB_PROC_AGENT) != 0;
    tb_forwarder_adopt(&w->network.forwarder, &connected);
    return pair[1];
}

int world_handed(struct world *w, uint32_t rank)
{
    for (int i = 0; i < 500 && w->handed[rank] < 0; i++)
        world_spin(w, 1);
    int descriptor = w->handed[rank];
    w->handed[rank] = -1;
    return descriptor;
}

/* ---- frames ------------------------------------------------------------------------------------------------------ */

/* What is written to a socket has one row of numbers, whoever writes it: the caller, or who answers questions. */
static uint32_t hop_number(struct world *w, int socket, uint32_t *sequence)
{
    uint32_t number = w->pongs[socket] > *sequence ? w->pongs[socket] : *sequence;
    w->pongs[socket] = *sequence = number + 1;
    return number;
}

static uint32_t number_of(uint32_t source, uint32_t destination)
{
    return source < RANKS && destination < RANKS ? ++numbers[source][destination] : 1;
}

size_t frame_make(char *to, uint32_t sequence, uint32_t source, uint32_t destination, uint64_t tag, size_t length)
{
    struct tb_hop hop = {.version = TB_WIRE_VERSION,
                         .type = TB_HOP_ENVELOPE,
                         .length = (uint32_t)(sizeof(struct tb_envelope) + length),
                         .sequence = sequence};
    struct tb_envelope envelope = {
        .routing = {.source = {JOB, source},
                    .destination = {JOB, destination},
                    .sequence = number_of(source, destination)},
        .message = {.kind = TB_KIND_EAGER, .flags = TB_MESSAGE_ROUTED, .match = tag, .length = length}};
    tb_wire_put_hop(to, &hop);
    tb_wire_put_envelope(to + sizeof hop, &envelope);
    for (size_t i = 0; i < length; i++)
        to[TB_FRAME_BUFFER_HEAD + i] = PAYLOAD(i + tag);
    return TB_FRAME_BUFFER_HEAD + length;
}

void frame_seal(char *bytes)
{
    struct tb_hop hop;
    assert_int_equal(tb_wire_get_hop(bytes, &hop), TB_OK);
    hop.flags = TB_HOP_CHECKED;
    tb_wire_put_hop(bytes, &hop);
    tb_wire_seal_heads(bytes, hop.type == TB_HOP_ENVELOPE ? TB_FRAME_BUFFER_HEAD : sizeof hop);
}

size_t receipt_make(char *to, uint32_t sequence, struct tb_proc self, uint32_t host, uint32_t source,
                    uint32_t destination, uint32_t up_to)
{
    struct tb_writer items;
    tb_writer_open(&items);
    tb_put_u32(&items, source);
    tb_put_u32(&items, destination);
    tb_put_u32(&items, up_to);
    tb_put_u8(&items, 0);
    tb_put_bytes(&items, NULL, 0);
    size_t length = items.length;
    struct tb_hop hop = {.version = TB_WIRE_VERSION,
                         .type = TB_HOP_ENVELOPE,
                         .length = (uint32_t)(sizeof(struct tb_envelope) + length),
                         .sequence = sequence};
    struct tb_envelope envelope = {.routing = {.source = {JOB, TB_PROC_AGENT | host}, .destination = self},
                                   .message = {.kind = TB_KIND_HOST,
                                               .flags = TB_MESSAGE_ROUTED,
                                               .length = TB_HOST_FRAME_RECEIPTS,
                                               .match = tb_crc32c(0, items.bytes, length)}};
    tb_wire_put_hop(to, &hop);
    tb_wire_put_envelope(to + sizeof hop, &envelope);
    memcpy(to + TB_FRAME_BUFFER_HEAD, items.bytes, length);
    frame_seal(to);
    tb_writer_close(&items);
    return TB_FRAME_BUFFER_HEAD + length;
}

void world_receipt(struct world *w, int socket, uint32_t *sequence, uint32_t host, uint32_t source,
                   uint32_t destination, uint32_t up_to)
{
    char bytes[TB_FRAME_BUFFER_HEAD + 64];
    size_t length =
        receipt_make(bytes, hop_number(w, socket, sequence), w->member.self, host, source, destination, up_to);
    assert_true(world_put(w, socket, bytes, length));
}

bool world_put(struct world *w, int socket, const char *bytes, size_t length)
{
    for (int tries = 0; length > 0 && tries < 200;) {
        ssize_t n = send(socket, bytes, length, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0 && errno != EAGAIN)
            return false;
        if (n < 0) {
            world_spin(w, 1);
            tries++;
            continue;
        }
        bytes += n;
        length -= (size_t)n;
        tries = 0;
    }
    return length == 0;
}

bool world_put_frame(struct world *w, int socket, uint32_t *sequence, uint32_t source, uint32_t destination,
                     uint64_t tag, size_t length)
{
    static char bytes[TB_FRAME_BUFFER_LIMIT];
    size_t whole = frame_make(bytes, hop_number(w, socket, sequence), source, destination, tag, length);
    if (w->is_agent[socket])
        frame_seal(bytes);
    return world_put(w, socket, bytes, whole);
}

static bool world_get(struct world *w, int socket, char *bytes, size_t length)
{
    for (int tries = 0; length > 0 && tries < 300;) {
        ssize_t n = recv(socket, bytes, length, MSG_DONTWAIT);
        if (n == 0 || (n < 0 && errno != EAGAIN))
            return false;
        if (n < 0) {
            world_spin(w, 1);
            tries++;
            continue;
        }
        bytes += n;
        length -= (size_t)n;
    }
    return length == 0;
}

/* As an agent would that sends nothing else. */
static void answer_ping(struct world *w, int socket, const struct tb_hop *ping)
{
    char bytes[sizeof *ping];
    struct tb_hop pong = {
        .version = TB_WIRE_VERSION, .type = TB_HOP_PONG, .sequence = w->pongs[socket]++, .credit = ping->credit};
    tb_wire_put_hop(bytes, &pong);
    assert_true(world_put(w, socket, bytes, sizeof bytes));
}

bool world_get_frame(struct world *w, int socket, uint32_t *sequence, struct world_frame *frame)
{
    char head[TB_FRAME_BUFFER_HEAD];
    do {
        if (!world_get(w, socket, head, sizeof frame->hop))
            return false;
        assert_int_equal(tb_wire_get_hop(head, &frame->hop), TB_OK);
        assert_int_equal(frame->hop.sequence, (*sequence)++);
        if (frame->hop.type == TB_HOP_PING)
            answer_ping(w, socket, &frame->hop);
    } while (frame->hop.type == TB_HOP_PING);
    assert_int_equal(frame->hop.type, TB_HOP_ENVELOPE);
    assert_true(world_get(w, socket, head, sizeof frame->envelope));
    assert_int_equal(tb_wire_get_envelope(head, &frame->envelope), TB_OK);
    frame->length = frame->hop.length - sizeof frame->envelope;
    assert_true(world_get(w, socket, frame->payload, frame->length));
    if (frame->envelope.message.kind == TB_KIND_HOST)
        return world_get_frame(w, socket, sequence, frame);
    for (size_t i = 0; i < frame->length; i++)
        assert_int_equal(frame->payload[i], PAYLOAD(i + frame->envelope.message.match));
    return true;
}

bool world_is_closed(struct world *w, int socket)
{
    char byte;
    for (int i = 0; i < 100; i++) {
        ssize_t n = recv(socket, &byte, 1, MSG_DONTWAIT);
        if (n == 0 || (n < 0 && errno != EAGAIN))
            return true;
        if (n < 0)
            world_spin(w, 1);
    }
    return false;
}

uint32_t world_drain(struct world *w, int socket, uint32_t *sequence)
{
    static struct world_frame frame;
    uint32_t count = 0;
    char byte;
    while (recv(socket, &byte, 1, MSG_DONTWAIT | MSG_PEEK) == 1 && world_get_frame(w, socket, sequence, &frame))
        count++;
    return count;
}

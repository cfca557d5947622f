/* What the launcher says to an agent, changed on the way, and frames that come to the forwarder of an agent, from a
 * rank and from another agent. */
#include "base/changed_bytes_test.h"
#include "agent/cost_store.h"
#include "agent/network_world.h"
#include "agent/tunnels.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "job/cost_mapping_test.h"
#include "remote/virtual_loop_test.h"

/* ---- control ----------------------------------------------------------------------------------------------------- */

struct listening {
    struct virtual_loop time;
    struct tb_uplink uplink;
    struct tb_tunnels tunnels;
    struct tb_cost_store costs;
    struct tb_sealed_store plan;
    sigset_t mask;
    int lost;
};

static struct listening agent;

/* As the agent does it, but for what starts and signals processes. */
static void take_control(void *context, struct tb_control_frame *frame)
{
    struct listening *l = context;
    struct tb_reader *r = &frame->fields;
    struct tb_setup setup;
    struct tb_address_book book;
    struct tb_host_routes routes = {0};
    int descriptor;
    switch (frame->kind) {
    case TB_CONTROL_SETUP:
        if (tb_setup_decode(&setup, r) == TB_OK)
            tb_setup_close(&setup);
        break;
    case TB_CONTROL_ADDRESS_BOOK:
        if (tb_address_book_decode(&book, r) == TB_OK)
            tb_address_book_close(&book);
        break;
    case TB_CONTROL_COSTS:
        if (tb_cost_store_take(&l->costs, r, HOSTS, &descriptor) == TB_OK && descriptor >= 0)
            close(descriptor);
        break;
    case TB_CONTROL_PLAN:
        if (tb_sealed_store_take(&l->plan, r, 0, &descriptor) == TB_OK && descriptor >= 0)
            close(descriptor);
        break;
    case TB_CONTROL_ROUTES:
        if (tb_host_routes_decode(&routes, r, HOSTS) == TB_OK)
            tb_host_routes_close(&routes);
        break;
    case TB_CONTROL_ATTACH:
        tb_tunnels_take_answer(&l->tunnels, r);
        break;
    case TB_CONTROL_TUNNEL:
        tb_tunnels_take_bytes(&l->tunnels, r);
        break;
    case TB_CONTROL_TUNNEL_END:
        tb_tunnels_take_end(&l->tunnels, r);
        break;
    default:
        break;
    }
}

static void take_lost(void *context, const char *why)
{
    ((struct listening *)context)->lost++;
    tb_error(TB_ERR_PROTOCOL, "%s", why);
}

static void take_ended(void *context) {}

static int take_all_control(void *context, const uint8_t *bytes, size_t length, size_t piece)
{
    struct listening *l = context;
    const struct tb_uplink_events events = {.context = l, .frame = take_control, .lost = take_lost};
    const struct tb_tunnels_events ended = {.context = l, .ended = take_ended};
    int pair[2];
    memset(l, 0, sizeof *l);
    sigemptyset(&l->mask);
    tb_cost_store_init(&l->costs);
    tb_sealed_store_init(&l->plan, "plan", "a plan", TB_JOB_PLAN_LIMIT);
    assert_int_equal(virtual_loop_open(&l->time), TB_OK);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
    tb_tunnels_open(&l->tunnels, &l->time.loop, &l->uplink, &l->mask, &ended);
    int out = fcntl(pair[0], F_DUPFD_CLOEXEC, 3);
    assert_int_equal(tb_uplink_open(&l->uplink, &l->time.loop, pair[0], out, &events), TB_OK);
    assert_int_equal(tb_uplink_keep(&l->uplink), TB_OK);
    tb_uplink_send(&l->uplink, TB_CONTROL_PING);
    tb_uplink_settle(&l->uplink);
    for (size_t at = 0; at < length && l->lost == 0;) {
        ssize_t n = send(pair[1], bytes + at, piece < length - at ? piece : length - at, MSG_NOSIGNAL);
        at += n > 0 ? (size_t)n : 0;
        virtual_loop_turn(&l->time);
    }
    int lost = l->lost;
    tb_cost_store_close(&l->costs);
    tb_sealed_store_close(&l->plan);
    tb_tunnels_close(&l->tunnels);
    tb_uplink_close(&l->uplink);
    virtual_loop_close(&l->time);
    close(pair[1]);
    return lost > 0 ? TB_ERR_PROTOCOL : TB_AGAIN;
}

static void put_numbers(struct tb_control_stream *s, enum tb_control kind, uint32_t count, const uint32_t *numbers)
{
    struct tb_writer *f = tb_control_stream_begin(s, kind);
    for (uint32_t i = 0; i < count; i++)
        tb_put_u32(f, numbers[i]);
    assert_int_equal(tb_control_stream_end(s), TB_OK);
}

static void put_book(struct tb_control_stream *s)
{
    static struct tb_host hosts[HOSTS];
    struct tb_rank_range ranges[HOSTS] = {{0, LOCAL_RANKS, 0, 0, 0, 0, 0}};
    struct tb_address_book book = {.version = 1,
                                   .job = JOB,
                                   .ranks = RANKS,
                                   .host_count = HOSTS,
                                   .range_count = HOSTS,
                                   .hosts = hosts,
                                   .ranges = ranges};
    costs_places(&book.places, 3);
    for (uint32_t i = 0; i < HOSTS; i++) {
        snprintf(hosts[i].name, sizeof hosts[i].name, "host%u", i);
        hosts[i].address_count = 1;
        hosts[i].addresses[0] = (struct tb_address){.family = 4, .port = 9, .bytes = {10, 0, 0, 1}};
        hosts[i].rank_count = i == 0 ? LOCAL_RANKS : 1;
        hosts[i].first_rank = i == 0 ? 0 : LOCAL_RANKS + i - 1;
        hosts[i].place = i % 3;
        if (i > 0)
            ranges[i] = (struct tb_rank_range){.first_rank = hosts[i].first_rank, .count = 1, .host = i};
    }
    if (tb_address_book_encode(&book, tb_control_stream_begin(s, TB_CONTROL_ADDRESS_BOOK)) == TB_OK)
        assert_int_equal(tb_control_stream_end(s), TB_OK);
    tb_places_close(&book.places);
}

/* In two pieces. */
static void put_costs(struct tb_control_stream *s)
{
    struct tb_cost_head *head = costs_make(3, HOSTS, 1);
    for (uint64_t at = 0; at < head->bytes; at += head->bytes / 2) {
        struct tb_writer *f = tb_control_stream_begin(s, TB_CONTROL_COSTS);
        tb_put_u32(f, head->version);
        tb_put_u64(f, head->bytes);
        tb_put_u64(f, at);
        tb_put_bytes(f, (const char *)head + at, (size_t)head->bytes / 2);
        assert_int_equal(tb_control_stream_end(s), TB_OK);
    }
    free(head);
}

static void put_plan(struct tb_control_stream *s)
{
    for (uint64_t at = 0; at < 40; at += 20) {
        struct tb_writer *f = tb_control_stream_begin(s, TB_CONTROL_PLAN);
        tb_put_u32(f, 1);
        tb_put_u64(f, 40);
        tb_put_u64(f, at);
        tb_put_bytes(f, "twenty bytes of this", 20);
        assert_int_equal(tb_control_stream_end(s), TB_OK);
    }
}

static void control_of_the_launcher(void **state)
{
    struct tb_control_stream s;
    struct tb_host_route ways[2] = {{.means = TB_HOST_ROUTE_DIRECT}, {.means = TB_HOST_ROUTE_NONE}};
    struct tb_host_routes routes = {.kind_count = 2, .routes = ways};
    size_t length;
    tb_control_stream_open(&s, -1, -1);
    assert_int_equal(tb_host_routes_encode(&routes, tb_control_stream_begin(&s, TB_CONTROL_ROUTES)), TB_OK);
    assert_int_equal(tb_control_stream_end(&s), TB_OK);
    put_costs(&s);
    put_plan(&s);
    put_book(&s);
    put_numbers(&s, TB_CONTROL_HEARD, 1, (const uint32_t[]){1});
    put_numbers(&s, TB_CONTROL_STAND_INS, 3, (const uint32_t[]){2, 1, 2});
    put_numbers(&s, TB_CONTROL_WINDOW, 1, (const uint32_t[]){65536});
    put_numbers(&s, TB_CONTROL_ATTACH, 2, (const uint32_t[]){1, 1});
    put_numbers(&s, TB_CONTROL_TUNNEL, 3, (const uint32_t[]){1, 4, 7});
    put_numbers(&s, TB_CONTROL_TUNNEL_END, 2, (const uint32_t[]){1, 0});
    put_numbers(&s, TB_CONTROL_CALL, 6, (const uint32_t[]){1, JOB, 1, JOB, 0, 0});
    put_numbers(&s, TB_CONTROL_PING, 0, NULL);
    put_numbers(&s, TB_CONTROL_STOP, 1, (const uint32_t[]){0});
    const uint8_t *bytes = tb_control_stream_take(&s, SIZE_MAX, &length);
    const struct changed_bytes c = {.kind = "control, launcher to agent",
                                    .take = take_all_control,
                                    .context = &agent,
                                    .bytes = bytes,
                                    .length = length};
    changed_bytes_sweep(&c);
    tb_control_stream_close(&s);
}

/* ---- frames ------------------------------------------------------------------------------------------------------ */

struct sender {
    struct world *world;
    uint32_t index; /* who sends */
};

static int take_frames(void *context, const uint8_t *bytes, size_t length, size_t piece)
{
    struct sender *s = context;
    int socket = world_join(s->world, s->index, TB_STREAM_SHORT, 0);
    for (size_t at = 0; at < length;) {
        ssize_t n = send(socket, bytes + at, piece < length - at ? piece : length - at, MSG_NOSIGNAL | MSG_DONTWAIT);
        world_spin(s->world, 0);
        if (n < 0)
            break; /* it was closed, or takes no more */
        at += (size_t)n;
    }
    close(socket);
    world_spin(s->world, 0);
    return TB_OK;
}

/* They may go to whomever they say now, but those who are there go on hearing what is right. */
static void frames_for_the_forwarder(void **state)
{
    static const uint32_t senders[] = {2, TB_PROC_AGENT | 1};
    static char recording[3 * TB_FRAME_BUFFER_LIMIT];
    for (size_t i = 0; i < 2; i++) {
        static struct world w;
        static struct world_frame frame;
        world_open(&w, 0);
        int good = world_join(&w, 0, TB_STREAM_BULK, 0), sink = world_join(&w, 1, TB_STREAM_BULK, 0);
        uint32_t source = i == 0 ? 2 : LOCAL_RANKS, out = 0, in = 0;
        size_t length = 0;
        for (uint32_t k = 0; k < 4; k++) {
            size_t whole = frame_make(recording + length, k, source, 3, k, k == 2 ? 1500 : 40);
            if (i == 1)
                frame_seal(recording + length);
            length += whole;
        }
        struct sender sender = {.world = &w, .index = senders[i]};
        const struct changed_bytes c = {.kind = i == 0 ? "frames, rank to agent" : "frames, agent to agent",
                                        .take = take_frames,
                                        .context = &sender,
                                        .bytes = (const uint8_t *)recording,
                                        .length = length};
        changed_bytes_sweep(&c);
        assert_true(world_put_frame(&w, good, &out, 0, 1, 5, 8));
        do
            assert_true(world_get_frame(&w, sink, &in, &frame));
        while (frame.envelope.message.match != 5 || frame.envelope.routing.source.index != 0);
        close(good);
        close(sink);
        world_close(&w);
    }
}

/* Between two agents whose stream is not encrypted: what is in header and envelope leads a frame, or says what has
 * come, so nothing of it is believed when a bit has changed. */
static void changed_heads_lead_nowhere(void **state)
{
    static struct world w;
    static struct world_frame frame;
    static char bytes[TB_FRAME_BUFFER_LIMIT];
    uint32_t in = 0, out = 0;
    world_open(&w, 0);
    int sink = world_join(&w, 1, TB_STREAM_SHORT, 0);
    for (size_t offset = 0; offset < TB_FRAME_BUFFER_HEAD; offset++) {
        int link = world_join(&w, TB_PROC_AGENT | 1, TB_STREAM_SHORT, 0);
        size_t whole = frame_make(bytes, 0, LOCAL_RANKS, 1, 7, 8);
        frame_seal(bytes);
        bytes[offset] ^= (char)(1u << offset % 8);
        assert_true(world_put(&w, link, bytes, whole));
        assert_true(world_is_closed(&w, link));
        close(link);
    }
    int link = world_join(&w, TB_PROC_AGENT | 1, TB_STREAM_SHORT, 0);
    assert_true(world_put_frame(&w, link, &out, LOCAL_RANKS, 1, 5, 8));
    assert_true(world_get_frame(&w, sink, &in, &frame));
    assert_int_equal(frame.envelope.message.match, 5);
    close(link);
    close(sink);
    world_close(&w);
}

/* A receipt for frames that have not come would make them lost for ever. */
static void changed_receipts_are_not_believed(void **state)
{
    static struct world w;
    static char bytes[TB_FRAME_BUFFER_LIMIT];
    world_open(&w, 0);
    int rank = world_join(&w, 0, TB_STREAM_SHORT, 0), link = world_join(&w, TB_PROC_AGENT | 1, TB_STREAM_SHORT, 0);
    uint32_t out = 0;
    const uint64_t *kept = &w.network.forwarder.crossing.replay.kept;
    assert_true(world_put_frame(&w, rank, &out, 0, LOCAL_RANKS, 1, 8));
    world_spin(&w, 5);
    assert_true(*kept > 0);
    for (uint32_t i = 0; i < 2; i++) {
        size_t length =
            receipt_make(bytes, i, w.member.self, 1, 0, LOCAL_RANKS, i); /* that none has come; that one has */
        if (i == 0)
            bytes[TB_FRAME_BUFFER_HEAD + 8] ^= 1;
        assert_true(world_put(&w, link, bytes, length));
        world_spin(&w, 5);
        assert_true((*kept == 0) == (i == 1));
    }
    close(rank);
    close(link);
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(control_of_the_launcher),
        cmocka_unit_test(frames_for_the_forwarder),
        cmocka_unit_test(changed_heads_lead_nowhere),
        cmocka_unit_test(changed_receipts_are_not_believed),
    };
    signal(SIGPIPE, SIG_IGN);
    setenv("TOMBOLO_LOG", "error", 1); /* each change is worth a warning */
    tb_param_load();
    return cmocka_run_group_tests(tests, NULL, NULL);
}

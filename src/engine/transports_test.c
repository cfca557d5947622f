/* Transports of an engine: an array of tables, of which it knows no name. The null transport carries messages; others
 * only write down what is called. */
#include "engine/message_test.h"

#include "transport/null_test.h"

#include <fcntl.h>
#include <unistd.h>

#define CONTEXT LOOP_CONTEXT

/* ---- the null transport ------------------------------------------------------------------------------------------ */

static void engine_make(const struct tb_transport_table *const *transports, uint32_t self, struct tb_engine **engine,
                        struct tb_channel **channel)
{
    struct tb_engine_config config = {.transport = {.self = {7, self}, .local_count = 2},
                                      .processes = 2,
                                      .transports = transports,
                                      .is_local = loop_is_local,
                                      .control = -1};
    struct tb_channel_config c = {.context = CONTEXT, .size = 2, .rank = self};
    assert_int_equal(tb_engine_open(&config, engine), TB_OK);
    assert_int_equal(tb_channel_open(*engine, &c, channel), TB_OK);
}

/* A folder and a line in an array: its parameter is settled, it is opened, polled and closed, and messages of any
 * length pass. */
static void a_null_transport_carries_messages(void **state)
{
    static const struct tb_transport_table *const transports[] = {&null_table, &tb_transport_tcp, NULL};
    struct loop_net net = {.count = 2};
    setenv("TOMBOLO_NULL_EAGER", "2k", 1);
    assert_int_equal(tb_param_join(null_table.params), TB_OK);
    assert_int_equal(tb_engine_load_params(), TB_OK);
    unsetenv("TOMBOLO_NULL_EAGER");
    for (uint32_t i = 0; i < 2; i++)
        engine_make(transports, i, &net.engines[i], &net.channels[i]);
    assert_int_equal(net.engines[0]->transports.count, 1); /* no agent: tcp is of no use */
    for (uint64_t length = 0; length <= BIG; length = length * 3 + 1) {
        struct tb_request s, r;
        fill(out, length, (uint32_t)length);
        memset(in, 0, sizeof in);
        post_receive(&net, &r, 1, 0, length, EXACT, BIG);
        post_send(&net, &s, 0, 1, length, length, TB_MODE_STANDARD);
        loop_net_settle(&net);
        assert_true(tb_request_done(&s));
        check_received(&r, 0, length, length);
    }
    struct tb_counters c = count_of(&net, 0);
    assert_int_equal(c.eager, 8); /* 0, 1, 4, 13, 40, 121, 364 bytes, and 1093 because the parameter says so */
    assert_true(c.rendezvous > 0);
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(tb_engine_flush(net.engines[i]), TB_OK);
        tb_channel_close(net.channels[i]);
        tb_engine_close(net.engines[i]);
        assert_null(null_nodes[i]);
    }
}

/* ---- those that write down --------------------------------------------------------------------------------------- */

#define PROBES 3

static struct probe {
    struct tb_transport head;
    bool open, busy;
    int opened, polls, arms, disarms, routed, refusals, adopted, asked, rests;
    int awake; /* so many times there is something when it is armed */
    struct tb_proc proc;
} probes[PROBES];
static struct tb_transport_table probe_tables[PROBES];
static const struct tb_transport_table *given[PROBES + 1];
static int closed[PROBES], closed_count;
static struct tb_engine *engine;
static void (*on_close)(int probe);

static int probe_open(int index, struct tb_transport **transport)
{
    struct probe *p = &probes[index];
    assert_false(p->open);
    p->open = true;
    p->opened++;
    p->head = (struct tb_transport){
        .table = &probe_tables[index], .capabilities = TB_CAP_DEPENDABLE, .max_payload = 100, .eager_limit = 100};
    *transport = &p->head;
    return TB_OK;
}

static int probe_open_0(const struct tb_transport_config *config, struct tb_transport **transport)
{
    return probe_open(0, transport);
}

static int probe_open_1(const struct tb_transport_config *config, struct tb_transport **transport)
{
    return probe_open(1, transport);
}

static int probe_open_2(const struct tb_transport_config *config, struct tb_transport **transport)
{
    return probe_open(2, transport);
}

static void probe_close(struct tb_transport *transport)
{
    struct probe *p = (struct probe *)transport;
    if (on_close != NULL)
        on_close((int)(p - probes));
    p->open = false;
    closed[closed_count++] = (int)(p - probes);
}

static int probe_poll(struct tb_transport *transport)
{
    struct probe *p = (struct probe *)transport;
    assert_true(p->open);
    p->polls++;
    return 0;
}

static bool probe_arm(struct tb_transport *transport)
{
    struct probe *p = (struct probe *)transport;
    p->arms++;
    return p->awake-- <= 0;
}

static void probe_disarm(struct tb_transport *transport)
{
    ((struct probe *)transport)->disarms++;
}

static int probe_descriptor(struct tb_transport *transport)
{
    return -1;
}

static uint64_t probe_deadline(struct tb_transport *transport)
{
    return tb_clock_now_real() + 100000; /* nobody sleeps for long */
}

static bool probe_idle(struct tb_transport *transport)
{
    return !((struct probe *)transport)->busy;
}

static int probe_endpoint(struct tb_transport *transport, struct tb_proc proc, struct tb_endpoint **endpoint)
{
    static struct tb_endpoint endpoints[PROBES];
    struct probe *p = (struct probe *)transport;
    p->proc = proc;
    *endpoint = &endpoints[p - probes];
    **endpoint = (struct tb_endpoint){.transport = transport, .proc = proc};
    return TB_OK;
}

static bool agents_only(struct tb_proc proc, enum tb_stream stream)
{
    return (proc.index & TB_PROC_AGENT) != 0;
}

static bool ranks_only(struct tb_proc proc, enum tb_stream stream)
{
    return !agents_only(proc, stream);
}

static int probe_adopt(struct tb_transport *transport, struct tb_proc proc, enum tb_stream stream, int descriptor)
{
    struct probe *p = (struct probe *)transport;
    close(descriptor);
    p->adopted++;
    p->proc = proc;
    return TB_OK;
}

static void probe_refused(struct tb_transport *transport, struct tb_proc proc, enum tb_stream stream, int error)
{
    struct probe *p = (struct probe *)transport;
    p->refusals++;
    p->proc = proc;
}

static void probe_routes(struct tb_transport *transport)
{
    ((struct probe *)transport)->routed++;
}

static bool probe_is_stuck(struct tb_transport *transport, struct tb_proc proc, uint64_t *tried)
{
    struct probe *p = (struct probe *)transport;
    p->asked++;
    *tried = 250;
    return proc.index == 2;
}

static void probe_rest(struct tb_transport *transport)
{
    ((struct probe *)transport)->rests++;
}

/* As shm, tcp and relay are: one for this host, one for those that can be connected with, one for the others. */
static void probes_make(void)
{
    static int (*const opens[])(const struct tb_transport_config *,
                                struct tb_transport **) = {probe_open_0, probe_open_1, probe_open_2};
    memset(probes, 0, sizeof probes);
    closed_count = 0;
    on_close = NULL;
    assert_int_equal(tb_engine_load_params(), TB_OK);
    for (int i = 0; i < PROBES; i++) {
        probe_tables[i] = (struct tb_transport_table){.name = "probe",
                                                      .capabilities = TB_CAP_DEPENDABLE,
                                                      .open = opens[i],
                                                      .close = probe_close,
                                                      .endpoint = probe_endpoint,
                                                      .poll = probe_poll,
                                                      .arm = probe_arm,
                                                      .disarm = probe_disarm,
                                                      .descriptor = probe_descriptor,
                                                      .deadline = probe_deadline,
                                                      .idle = probe_idle};
        given[i] = &probe_tables[i];
    }
    probe_tables[0].scope = TB_SCOPE_HOST;
    probe_tables[1].scope = TB_SCOPE_DIRECT;
    probe_tables[2].scope = TB_SCOPE_RELAYED;
    for (int i = 1; i < PROBES; i++) {
        probe_tables[i].patience = 8;
        probe_tables[i].adopts = i == 1 ? ranks_only : agents_only;
        probe_tables[i].adopt = probe_adopt;
        probe_tables[i].refused = probe_refused;
    }
    probe_tables[1].is_stuck = probe_is_stuck;
    probe_tables[1].rest = probe_rest;
    probe_tables[2].routes = probe_routes;
}

/* Processes 1 and 4 are on this host, and can have memory of their own and ours, 2 can be connected with, 3 not, and
 * nothing leads to 5. */
static bool is_near(void *context, struct tb_proc proc)
{
    return proc.index == 1 || proc.index == 4;
}

static int reach(void *context, struct tb_proc proc, struct tb_reach *reach)
{
    if (proc.index == 5)
        return tb_error(TB_ERR_PEER, "no way");
    *reach = (struct tb_reach){.near = is_near(context, proc), .direct = proc.index != 3, .relayed = true};
    return TB_OK;
}

static void engine_open(const char *fault)
{
    struct tb_engine_config config = {.transport = {.self = {7, 0}, .local_count = 2, .fault = fault},
                                      .processes = 6,
                                      .transports = given,
                                      .is_local = is_near,
                                      .reach = reach,
                                      .control = -1};
    assert_int_equal(tb_engine_open(&config, &engine), TB_OK);
}

static int reach_proc(uint32_t index)
{
    struct tb_peer *p = tb_peer_of(engine, index);
    assert_non_null(p);
    return tb_peer_reach(p);
}

static int descriptor_make(void)
{
    int descriptor = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_true(descriptor >= 0);
    return descriptor;
}

/* That of this host at once, the others when they lead somewhere. */
static void opened_when_needed(void **state)
{
    static const uint32_t procs[] = {1, 2, 3}, leads[] = {0, 1, 2};
    probes_make();
    engine_open("");
    assert_int_equal(probes[0].opened, 1);
    for (int i = 0; i < 3; i++) {
        for (uint32_t k = leads[i] + 1; k < PROBES; k++)
            assert_false(probes[k].open);
        assert_int_equal(reach_proc(procs[i]), TB_OK);
        assert_int_equal(probes[leads[i]].opened, 1);
        assert_int_equal(probes[leads[i]].proc.index, procs[i]);
    }
    assert_int_equal(reach_proc(5), TB_ERR_PEER);
    assert_string_equal(tb_error_story(), "no way");
    tb_engine_close(engine);
    assert_int_equal(closed_count, 3);
}

/* The best of what leads there, of what there is. */
static void another_scope_does_too(void **state)
{
    probes_make();
    given[0] = &probe_tables[2];
    given[1] = NULL;
    engine_open("");
    assert_int_equal(probes[2].opened, 0);
    for (uint32_t i = 1; i <= 3; i++) {
        assert_int_equal(reach_proc(i), TB_OK);
        assert_int_equal(probes[2].proc.index, i);
    }
    tb_engine_close(engine);

    probes_make();
    given[0] = &probe_tables[1];
    given[1] = NULL;
    engine_open("");
    assert_int_equal(reach_proc(4), TB_OK); /* on this host, but nothing is for that alone */
    assert_int_equal(probes[1].proc.index, 4);
    assert_int_equal(reach_proc(3), TB_ERR_PEER);
    assert_non_null(strstr(tb_error_story(), "only agents lead, and the parameter `transports` leaves relay"));
    tb_engine_close(engine);

    probes_make();
    given[0] = NULL;
    engine_open("");
    assert_int_equal(reach_proc(2), TB_ERR_PEER);
    assert_non_null(strstr(tb_error_story(), "leaves tcp out"));
    tb_engine_close(engine);
}

static void rounds(int count)
{
    for (int i = 0; i < PROBES; i++)
        probes[i].polls = 0;
    for (int i = 0; i < count; i++)
        tb_transport_set_poll(&engine->transports, 1);
}

/* One that leads to processes of this host two by two is opened when it is needed, and others are patient from then on.
 */
static void memory_of_two(void **state)
{
    probes_make();
    probe_tables[0].scope = TB_SCOPE_NEAR;
    engine_open("");
    assert_int_equal(probes[0].opened, 0);
    assert_null(engine->local);
    assert_int_equal(reach_proc(2), TB_OK);
    rounds(16);
    assert_int_equal(probes[1].polls, 16);
    assert_int_equal(reach_proc(4), TB_OK);
    assert_int_equal(probes[0].proc.index, 4);
    rounds(16);
    assert_int_equal(probes[0].polls, 16);
    assert_int_equal(probes[1].polls, 2);
    const struct tb_peer *near = tb_peer_of(engine, 4), *far = tb_peer_of(engine, 2);
    assert_true(near->near && !near->local && near->port == &near->own_port);
    assert_true(!far->near && far->port == &engine->ports.network);
    tb_engine_close(engine);
}

/* Those that take a system call are polled seldom where one is there that takes none, and always where none is. */
static void patience_is_for_company(void **state)
{
    probes_make();
    engine_open("");
    reach_proc(3); /* in another order than that of the array */
    reach_proc(2);
    rounds(33);
    assert_int_equal(probes[0].polls, 33);
    assert_int_equal(probes[1].polls, 5);
    assert_int_equal(probes[2].polls, 5);
    tb_transport_set_skip(&engine->transports, 7);
    rounds(1);
    assert_int_equal(probes[1].polls, 1);
    rounds(7);
    assert_int_equal(probes[1].polls, 0);
    tb_engine_refused(engine, (struct tb_proc){7, 2}, TB_STREAM_SHORT, TB_ERR_PEER); /* there may be news */
    rounds(1);
    assert_int_equal(probes[1].polls + probes[2].polls, 2);
    rounds(0);
    assert_int_equal(tb_engine_progress(engine), 0); /* whoever comes by seldom looks at all of them */
    assert_int_equal(probes[0].polls + probes[1].polls + probes[2].polls, 3);
    tb_engine_close(engine);

    probes_make();
    for (int i = 0; i < PROBES; i++)
        given[i] = i + 1 < PROBES ? &probe_tables[i + 1] : NULL;
    engine_open("");
    reach_proc(3);
    reach_proc(2);
    rounds(33);
    assert_int_equal(probes[1].polls, 33);
    assert_int_equal(probes[2].polls, 33);
    tb_engine_close(engine);
}

/* The last of the array first, whenever they were opened. */
static void closed_from_the_end(void **state)
{
    probes_make();
    engine_open("");
    reach_proc(3);
    reach_proc(2);
    tb_engine_close(engine);
    assert_true(closed_count == 3 && closed[0] == 2 && closed[1] == 1 && closed[2] == 0);
}

/* What the agent still connects while one is being closed. */
static void connect_late(int probe)
{
    if (probe != 2)
        return;
    assert_int_equal(tb_engine_adopt(engine, (struct tb_proc){7, TB_PROC_AGENT}, TB_STREAM_SHORT, descriptor_make()),
                     TB_OK);
    assert_int_equal(tb_engine_adopt(engine, (struct tb_proc){7, 2}, TB_STREAM_SHORT, descriptor_make()), TB_OK);
}

static void connected_while_closing(void **state)
{
    probes_make();
    engine_open("");
    reach_proc(3);
    on_close = connect_late;
    tb_engine_close(engine);
    assert_int_equal(probes[2].adopted, 1); /* the one that is being closed */
    assert_int_equal(probes[2].opened, 1);
    assert_int_equal(probes[1].adopted, 1);
    assert_true(closed_count == 3 && closed[0] == 2 && closed[1] == 1 && closed[2] == 0);
}

#define FAULTS 3
static const char *const faults[FAULTS] = {"", "loss=0,seed=3", "reorder=1%,seed=4"}; /* bare; one decorator; two */

/* Connections find whoever takes them, through decorators too; an answer opens nothing. */
static void connections_find_their_transport(void **state)
{
    for (int i = 0; i < FAULTS; i++) {
        probes_make();
        engine_open(faults[i]);
        const struct tb_proc agent = {7, TB_PROC_AGENT}, rank = {7, 2};
        tb_engine_refused(engine, rank, TB_STREAM_BULK, TB_ERR_PEER);
        tb_engine_routes(engine);
        assert_int_equal(probes[1].opened + probes[2].opened, 0);
        assert_int_equal(tb_engine_adopt(engine, rank, TB_STREAM_SHORT, descriptor_make()), TB_OK);
        assert_true(probes[1].adopted == 1 && probes[1].proc.index == 2);
        assert_int_equal(tb_engine_adopt(engine, agent, TB_STREAM_SHORT, descriptor_make()), TB_OK);
        assert_true(probes[2].adopted == 1 && probes[2].proc.index == TB_PROC_AGENT);
        tb_engine_refused(engine, rank, TB_STREAM_BULK, TB_ERR_PEER);
        assert_true(probes[1].refusals == 1 && probes[2].refusals == 0);
        tb_engine_routes(engine);
        assert_true(probes[1].routed == 0 && probes[2].routed == 1);
        tb_engine_close(engine);
    }
    probes_make();
    given[1] = NULL;
    engine_open("");
    int descriptor = descriptor_make();
    assert_int_equal(tb_engine_adopt(engine, (struct tb_proc){7, 2}, TB_STREAM_SHORT, descriptor), TB_ERR_PEER);
    assert_int_equal(fcntl(descriptor, F_GETFD), -1);
    tb_engine_close(engine);
}

static void stuck_note(void *context, struct tb_proc proc, uint64_t tried)
{
    assert_true(proc.index == 2 && tried == 250);
    ++*(int *)context;
}

/* Those that can tell whether anything passes are asked about whom they lead to, through decorators too. */
static void ways_are_asked_and_rest(void **state)
{
    for (int i = 0; i < FAULTS; i++) {
        int stuck = 0;
        probes_make();
        engine_open(faults[i]);
        tb_engine_stuck(engine, stuck_note, &stuck);
        tb_engine_rest(engine);
        assert_int_equal(probes[1].opened, 0); /* by nobody's question */
        for (uint32_t proc = 2; proc <= 4; proc++)
            assert_int_equal(reach_proc(proc), TB_OK);
        tb_engine_stuck(engine, stuck_note, &stuck);
        assert_true(stuck == 1 && probes[1].asked == 1 && probes[1].rests == 0);
        tb_engine_rest(engine);
        assert_true(probes[1].rests == 1 && probes[2].asked + probes[2].rests == 0);
        tb_engine_close(engine);
    }
}

static bool slept_twice(void *context)
{
    engine->waiting.events++;
    return engine->counters.sleeps >= 2;
}

/* All are told before a sleep and after it; one that has something keeps the thread awake. */
static void all_are_told_of_sleep(void **state)
{
    probes_make();
    tb_param.spin = 0;
    engine_open("");
    reach_proc(2);
    reach_proc(3);
    probes[1].awake = 3;
    tb_engine_wait(engine, slept_twice, NULL);
    assert_int_equal(engine->counters.sleeps, 2);
    assert_true(probes[0].arms == 5 && probes[1].arms == 5 && probes[2].arms == 2);
    for (int i = 0; i < PROBES; i++)
        assert_int_equal(probes[i].disarms, 5); /* also of what was not armed after all */
    probes[2].busy = true;
    assert_false(tb_transport_set_idle(&engine->transports));
    probes[2].busy = false;
    assert_int_equal(tb_engine_flush(engine), TB_OK);
    tb_engine_close(engine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_null_transport_carries_messages),
        cmocka_unit_test(opened_when_needed),
        cmocka_unit_test(another_scope_does_too),
        cmocka_unit_test(memory_of_two),
        cmocka_unit_test(patience_is_for_company),
        cmocka_unit_test(closed_from_the_end),
        cmocka_unit_test(connected_while_closing),
        cmocka_unit_test(connections_find_their_transport),
        cmocka_unit_test(ways_are_asked_and_rest),
        cmocka_unit_test(all_are_told_of_sleep),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

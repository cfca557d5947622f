/* Waiting: threads that share a engine, kicks, and sleeping over real shared memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>

#include <cmocka.h>

#include "engine/loopback_test.h"

#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define THREADS 4
#define ROUNDS  200

struct player {
    struct loop_net *net;
    uint32_t side, tag;
    char out[6000], in[6000];
    _Atomic uint32_t wrong;
};

static void pause_ms(long ms)
{
    struct timespec t = {.tv_nsec = ms * 1000000};
    nanosleep(&t, NULL);
}

/* Plays ball with the thread of the same tag at the other engine. cmocka's asserts belong to the main thread. */
static void *player_run(void *argument)
{
    struct player *p = argument;
    struct tb_channel *channel = p->net->channels[p->side];
    for (uint32_t i = 0; i < ROUNDS; i++) {
        uint64_t length = i % 7 == 0 ? sizeof p->out : i % 100 + 1;
        struct tb_buffer out = {p->out, length, &tb_type_byte}, in = {p->in, sizeof p->in, &tb_type_byte};
        struct tb_request s = {.complete = NULL}, r = {.complete = NULL};
        memset(p->out, (int)(i + p->tag), length);
        for (uint32_t turn = 0; turn < 2; turn++) {
            if (turn == p->side) {
                if (tb_send_now(channel, &out, 1 - p->side, p->tag, TB_MODE_STANDARD) == TB_OK)
                    continue;
                tb_send_post(channel, &s, &out, 1 - p->side, p->tag, TB_MODE_STANDARD);
                tb_request_wait(&s);
            } else {
                tb_receive_post(channel, &r, &in, 1 - p->side, p->tag, UINT64_MAX);
                tb_request_wait(&r);
                bool right = r.status.error == TB_OK && r.status.bytes == length && p->in[0] == (char)(i + p->tag) &&
                             p->in[length - 1] == (char)(i + p->tag);
                p->wrong += right ? 0 : 1;
            }
        }
    }
    return NULL;
}

static void threads_share_an_engine(void **state)
{
    static struct player players[2][THREADS];
    pthread_t threads[2][THREADS];
    struct loop_net net;
    loop_net_init(&net, 2);
    loop_net_open(&net, true);
    for (uint32_t side = 0; side < 2; side++)
        for (uint32_t i = 0; i < THREADS; i++) {
            players[side][i] = (struct player){.net = &net, .side = side, .tag = i};
            pthread_create(&threads[side][i], NULL, player_run, &players[side][i]);
        }
    for (uint32_t side = 0; side < 2; side++)
        for (uint32_t i = 0; i < THREADS; i++) {
            pthread_join(threads[side][i], NULL);
            assert_int_equal(players[side][i].wrong, 0);
        }
    tb_engine_flush(net.engines[0]);
    tb_engine_flush(net.engines[1]);
    loop_net_close(&net);
}

struct outside {
    struct tb_engine *engine;
    _Atomic bool flag;
};

static bool outside_ready(void *context)
{
    return atomic_load(&((struct outside *)context)->flag);
}

static void *outside_wait(void *argument)
{
    struct outside *o = argument;
    tb_engine_wait(o->engine, outside_ready, o);
    return NULL;
}

static void a_kick_wakes(void **state)
{
    struct loop_net net;
    loop_net_init(&net, 1);
    loop_net_open(&net, true);
    for (int round = 0; round < 5; round++) {
        struct outside o[3] = {{.engine = net.engines[0]}, {.engine = net.engines[0]}, {.engine = net.engines[0]}};
        pthread_t threads[3];
        for (int i = 0; i < 3; i++)
            pthread_create(&threads[i], NULL, outside_wait, &o[i]);
        if (round > 0)
            pause_ms(20);
        for (int i = 2; i >= 0; i--) {
            atomic_store(&o[i].flag, true);
            tb_engine_kick(net.engines[0]);
            pthread_join(threads[i], NULL);
        }
    }
    loop_net_close(&net);
}

/* Sends when the other side sleeps, and, so that a wait that never does has an end, after half a minute. How long it
 * takes until it sleeps depends on who else wants the core. */
static void *send_to_sleeper(void *argument)
{
    struct loop_net *net = argument;
    struct tb_buffer nothing = {NULL, 0, &tb_type_byte};
    const uint64_t *sleeps = &net->engines[0]->counters.sleeps;
    uint64_t end = tb_clock_now_real() + UINT64_C(30000000000);
    while (__atomic_load_n(sleeps, __ATOMIC_RELAXED) == 0 && tb_clock_now_real() < end)
        pause_ms(1);
    return tb_send_now(net->channels[1], &nothing, 0, 3, TB_MODE_STANDARD) == TB_OK ? NULL : net;
}

/* Without threads nobody may be there to take a kick: it must not keep the process awake for ever. */
static void a_kick_is_used_up(void **state)
{
    struct loop_net net;
    struct tb_buffer nothing = {NULL, 0, &tb_type_byte};
    struct tb_request first = {.complete = NULL}, r = {.complete = NULL};
    struct tb_counters counters;
    pthread_t thread;
    void *failed;
    loop_net_init(&net, 2);
    loop_net_open(&net, false);
    tb_send_post(net.channels[1], &first, &nothing, 0, 2, TB_MODE_STANDARD); /* so that the endpoint is there */
    tb_engine_kick(net.engines[0]);
    tb_receive_post(net.channels[0], &r, &nothing, 1, 3, UINT64_MAX);
    pthread_create(&thread, NULL, send_to_sleeper, &net);
    tb_request_wait(&r);
    pthread_join(thread, &failed);
    assert_null(failed);
    tb_engine_count(net.engines[0], &counters);
    assert_true(counters.sleeps > 0);
    loop_net_close(&net);
}

/* A condition that takes a message out of matching: asked again after it was true it would take a second one. */
struct taker {
    struct tb_channel *channel;
    struct tb_arrival *arrivals[4];
    _Atomic uint32_t count;
};

static bool taker_ready(void *context)
{
    struct taker *t = context;
    struct tb_arrival *arrival = NULL;
    if (tb_probe(t->channel, TB_ANY_RANK, 0, 0, NULL, &arrival) != TB_OK)
        return false;
    if (t->count < 4)
        t->arrivals[t->count] = arrival;
    t->count++;
    return true;
}

static void *taker_run(void *argument)
{
    struct taker *t = argument;
    tb_engine_wait(t->channel->engine, taker_ready, t);
    return NULL;
}

static void conditions_are_true_once(void **state)
{
    struct loop_net net;
    loop_net_init(&net, 1);
    loop_net_open(&net, true);
    struct tb_buffer nothing = {NULL, 0, &tb_type_byte};
    for (int round = 0; round < 20; round++) {
        struct taker takers[3] = {
            {.channel = net.channels[0]}, {.channel = net.channels[0]}, {.channel = net.channels[0]}};
        pthread_t threads[3];
        for (int i = 0; i < 3; i++)
            pthread_create(&threads[i], NULL, taker_run, &takers[i]);
        if (round % 2 == 0)
            pause_ms(5); /* so that one of them sleeps */
        for (int i = 0; i < 3; i++)
            assert_int_equal(tb_send_now(net.channels[0], &nothing, 0, 1, TB_MODE_STANDARD), TB_OK);
        for (int i = 0; i < 3; i++)
            pthread_join(threads[i], NULL);
        for (int i = 0; i < 3; i++) {
            struct tb_request r = {.complete = NULL};
            assert_int_equal(takers[i].count, 1);
            tb_receive_arrival(net.channels[0], &r, &nothing, takers[i].arrivals[0]);
            assert_true(tb_request_done(&r));
        }
    }
    loop_net_close(&net);
}

struct prober {
    struct tb_channel *channel;
    struct tb_status status;
    struct tb_arrival *arrival;
    int rc;
};

static void *prober_run(void *argument)
{
    struct prober *p = argument;
    p->rc = tb_probe_wait(p->channel, TB_ANY_RANK, 0, 0, &p->status, &p->arrival, NULL);
    return NULL;
}

static _Atomic(struct tb_engine *) watched;
static _Atomic uint32_t yields, selfish; /* in all; with the engine's lock held */

/* Instead of that of the C library. */
int sched_yield(void)
{
    struct tb_engine *e = watched;
    if (e != NULL) {
        yields++;
        selfish += e->waiting.depth > 0;
    }
    return (int)syscall(SYS_sched_yield);
}

/* Whoever probes again and again offers its core to others, and the engine with it. */
static void a_prober_gives_way(void **state)
{
    struct loop_net net;
    loop_net_init(&net, 2);
    loop_net_open(&net, true);
    watched = net.engines[0];
    for (int i = 0; i < 2000; i++)
        assert_int_equal(tb_probe(net.channels[0], TB_ANY_RANK, 0, 0, NULL, NULL), TB_AGAIN);
    watched = NULL;
    assert_true(yields > 0);
    assert_int_equal(selfish, 0);
    loop_net_close(&net);
}

/* A thread sleeps for a message; another one of the same engine posts a send that needs the sleeper's help. */
static void a_sleeper_helps_others(void **state)
{
    struct loop_net net;
    static char out[50000], in[50000];
    struct tb_buffer to = {out, sizeof out, &tb_type_byte}, room = {in, sizeof in, &tb_type_byte};
    struct tb_request s = {.complete = NULL}, r = {.complete = NULL}, last = {.complete = NULL};
    pthread_t thread;
    loop_net_init(&net, 2);
    loop_net_open(&net, true);
    struct prober p = {.channel = net.channels[0]};
    pthread_create(&thread, NULL, prober_run, &p);
    pause_ms(50);
    memset(out, 5, sizeof out);
    tb_send_post(net.channels[0], &s, &to, 1, 3, TB_MODE_STANDARD);
    tb_receive_post(net.channels[1], &r, &room, 0, 3, UINT64_MAX);
    tb_request_wait(&r);
    tb_request_wait(&s);
    assert_memory_equal(in, out, sizeof out);
    struct tb_buffer little = {out, 10, &tb_type_byte};
    tb_send_post(net.channels[1], &last, &little, 0, 9, TB_MODE_STANDARD);
    pthread_join(thread, NULL);
    assert_int_equal(p.rc, TB_OK);
    assert_int_equal(p.status.match, 9);
    tb_receive_arrival(net.channels[0], &r, &room, p.arrival);
    tb_request_wait(&r);
    assert_int_equal(r.status.bytes, 10);
    loop_net_close(&net);
}

/* A transport that has something to do all the time. */
static struct {
    const struct tb_transport_table *table;
    struct tb_transport_table busy;
} restless;

static int restless_poll(struct tb_transport *transport)
{
    return restless.table->poll(transport) + 1;
}

static void *receiver_run(void *argument)
{
    struct tb_channel *channel = argument;
    struct tb_buffer nothing = {NULL, 0, &tb_type_byte};
    for (uint64_t i = 0; i < 5; i++) {
        struct tb_request r = {.complete = NULL};
        tb_receive_post(channel, &r, &nothing, 1, i, UINT64_MAX);
        tb_request_wait(&r);
    }
    return NULL;
}

/* The thread that polls never rests; another one, whose message it has taken, goes on nevertheless. */
static void who_is_woken_gets_in(void **state)
{
    struct loop_net net;
    struct tb_buffer nothing = {NULL, 0, &tb_type_byte};
    pthread_t poller, receiver;
    loop_net_init(&net, 2);
    loop_net_open(&net, true);
    struct tb_transport *transport = net.engines[0]->transports.open[0].transport;
    restless.table = transport->table;
    restless.busy = *transport->table;
    restless.busy.poll = restless_poll;
    transport->table = &restless.busy;
    struct outside o = {.engine = net.engines[0]};
    pthread_create(&poller, NULL, outside_wait, &o);
    pause_ms(20);
    pthread_create(&receiver, NULL, receiver_run, net.channels[0]);
    for (uint64_t i = 0; i < 5; i++) {
        pause_ms(20);
        struct tb_request s = {.complete = NULL};
        tb_send_post(net.channels[1], &s, &nothing, 0, i, TB_MODE_STANDARD);
        tb_request_wait(&s);
    }
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += 20;
    assert_int_equal(pthread_timedjoin_np(receiver, NULL, &end), 0);
    atomic_store(&o.flag, true);
    tb_engine_kick(net.engines[0]);
    pthread_join(poller, NULL);
    transport->table = restless.table;
    loop_net_close(&net);
}

static void cancelled_from(struct tb_request *r)
{
    *(bool *)r->user = true;
}

static void *cancel_later(void *argument)
{
    pause_ms(30);
    tb_request_cancel(argument);
    return NULL;
}

/* The end of a request by another thread wakes who sleeps for it. */
static void a_cancel_wakes(void **state)
{
    struct loop_net net;
    bool called = false;
    struct tb_request r = {.complete = cancelled_from, .user = &called};
    struct tb_buffer nothing = {NULL, 0, &tb_type_byte};
    pthread_t thread;
    loop_net_init(&net, 2);
    loop_net_open(&net, true);
    tb_receive_post(net.channels[0], &r, &nothing, 1, 0, UINT64_MAX);
    pthread_create(&thread, NULL, cancel_later, &r);
    tb_request_wait(&r);
    pthread_join(thread, NULL);
    assert_true(r.status.cancelled && called);
    loop_net_close(&net);
}

/* ---- shared memory ----------------------------------------------------------------------------------------------- */

#define NEIGHBOURS 3

struct host {
    void *segment;
    size_t bytes;
    int bells[NEIGHBOURS];
    uint32_t procs[NEIGHBOURS];
};

static void neighbour_open(struct host *h, uint32_t rank, struct tb_engine **engine, struct tb_channel **channel)
{
    struct tb_engine_config config = {.transport = {.self = {7, rank},
                                                    .segment = h->segment,
                                                    .segment_bytes = h->bytes,
                                                    .local_index = rank,
                                                    .local_count = NEIGHBOURS,
                                                    .local_procs = h->procs,
                                                    .doorbells = h->bells},
                                      .processes = NEIGHBOURS,
                                      .is_local = loop_is_local,
                                      .control = -1};
    struct tb_channel_config c = {.context = LOOP_CONTEXT, .size = NEIGHBOURS, .rank = rank};
    if (tb_engine_open(&config, engine) != TB_OK || tb_channel_open(*engine, &c, channel) != TB_OK)
        abort();
}

static double cpu_seconds(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
}

/* The others wait half a second for rank 0, asleep, then all pass a large message round. */
static int neighbour_run(struct host *h, uint32_t rank)
{
    struct tb_engine *engine;
    struct tb_channel *channel;
    struct tb_counters counters;
    static char out[1 << 20], in[1 << 20];
    uint32_t next = (rank + 1) % NEIGHBOURS, before = (rank + NEIGHBOURS - 1) % NEIGHBOURS;
    neighbour_open(h, rank, &engine, &channel);
    double start = cpu_seconds();
    if (rank == 0)
        pause_ms(500);
    for (int i = 0; i < 20; i++) {
        struct tb_request s = {.complete = NULL}, r = {.complete = NULL};
        uint64_t length = i == 0 ? 1 : sizeof out - (uint64_t)i;
        struct tb_buffer to = {out, length, &tb_type_byte}, room = {in, sizeof in, &tb_type_byte};
        tb_receive_post(channel, &r, &room, before, (uint64_t)i, UINT64_MAX);
        if (rank != 0)
            tb_request_wait(&r);
        memset(out, rank == 0 ? i : in[0], length);
        tb_send_post(channel, &s, &to, next, (uint64_t)i, TB_MODE_STANDARD);
        tb_request_wait(&s);
        tb_request_wait(&r);
        if (r.status.error != TB_OK || r.status.bytes != length || in[0] != (char)i || in[length - 1] != (char)i)
            return 2;
        if (i == 0 && rank == 1 && cpu_seconds() - start > 0.1)
            return 3;
    }
    tb_engine_count(engine, &counters);
    tb_engine_flush(engine);
    tb_channel_close(channel);
    tb_engine_close(engine);
    return rank == 1 && counters.sleeps == 0 ? 4 : 0;
}

static void neighbours_sleep(void **state)
{
    assert_int_equal(tb_engine_load_params(), TB_OK);
    struct host h = {.bytes = tb_shm_segment_bytes(NEIGHBOURS)};
    h.segment = mmap(NULL, h.bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_ptr_not_equal(h.segment, MAP_FAILED);
    pid_t pids[NEIGHBOURS];
    for (uint32_t i = 0; i < NEIGHBOURS; i++) {
        h.procs[i] = i;
        h.bells[i] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    }
    for (uint32_t i = 0; i < NEIGHBOURS; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            alarm(60);
            _exit(neighbour_run(&h, i));
        }
    }
    for (uint32_t i = 0; i < NEIGHBOURS; i++) {
        int status = -1;
        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_int_equal(status, 0);
        close(h.bells[i]);
    }
    munmap(h.segment, h.bytes);
}

/* ---- telling that one waits -------------------------------------------------------------------------------------- */

#define SECOND UINT64_C(1000000000)

static struct teller {
    struct loop_net net;
    struct tb_clock clock;
    uint64_t now, step; /* each look at the clock takes so long, so that nobody sleeps in truth */
    uint64_t told[3];
    uint32_t told_count, over, procs;
    struct tb_proc proc;
} teller;

static uint64_t teller_now(void *context)
{
    return teller.now += teller.step;
}

static bool nobody_is_local(void *context, struct tb_proc proc)
{
    return false;
}

static void teller_each(void *context, struct tb_proc proc)
{
    teller.procs++;
    teller.proc = proc;
}

static void teller_send(uint32_t from, const struct tb_buffer *out)
{
    static struct tb_request r;
    r = (struct tb_request){.complete = NULL};
    tb_send_post(teller.net.channels[from], &r, out, 0, 5, TB_MODE_STANDARD);
    for (int i = 0; i < 10; i++)
        tb_engine_progress(teller.net.engines[from]);
}

/* At the third time, what was waited for comes. */
static void teller_waiting(void *context, bool waits)
{
    static char byte = 'x';
    struct tb_buffer out = {&byte, 1, &tb_type_byte};
    if (!waits) {
        teller.over++;
        return;
    }
    teller.told[teller.told_count++] = teller.now;
    tb_engine_awaited(teller.net.engines[0], teller_each, NULL);
    if (teller.told_count == 3)
        teller_send(2, &out);
}

static void teller_open(uint64_t step)
{
    memset(&teller, 0, sizeof teller);
    teller.step = step;
    teller.clock = (struct tb_clock){.now = teller_now};
    loop_net_init(&teller.net, 3);
    teller.net.remote = true;
    loop_net_open(&teller.net, false);
    struct tb_engine_config *config = &teller.net.engines[0]->config;
    config->is_local = nobody_is_local;
    config->waiting = teller_waiting;
    config->transport.clock = &teller.clock;
}

/* A rank that sleeps for long says so, and whom it waits for: the one that it has named, or all whom it knows. */
static void long_waits_are_told(void **state)
{
    for (uint32_t source = 2;; source = TB_ANY_RANK) {
        char byte = 0;
        struct tb_buffer in = {&byte, 1, &tb_type_byte};
        struct tb_request r = {.complete = NULL};
        teller_open(6 * SECOND);
        assert_non_null(tb_channel_peer(teller.net.channels[0], 1)); /* known, and nothing is wanted from it */
        tb_receive_post(teller.net.channels[0], &r, &in, source, 5, UINT64_MAX);
        uint64_t began = teller.now;
        tb_request_wait(&r);
        assert_true(byte == 'x' && teller.told_count == 3 && teller.over == 1);
        assert_in_range(teller.told[0] - began, 3 * SECOND / 2, 24 * SECOND);
        assert_in_range(teller.told[1] - teller.told[0], 2 * SECOND, 24 * SECOND);
        assert_in_range(teller.told[2] - teller.told[1], 2 * SECOND, 24 * SECOND);
        assert_int_equal(teller.procs, source == 2 ? 3 : 0); /* no way was opened to anybody */
        assert_true(source != 2 || teller.proc.index == 2);
        loop_net_close(&teller.net);
        if (source == TB_ANY_RANK)
            break;
    }
}

/* A short wait is nobody's business. */
static void short_waits_are_not_told(void **state)
{
    char byte = 0;
    struct tb_buffer in = {&byte, 1, &tb_type_byte};
    teller_open(1000);
    for (int i = 0; i < 100; i++) {
        struct tb_request r = {.complete = NULL};
        tb_receive_post(teller.net.channels[0], &r, &in, 1, 5, UINT64_MAX);
        teller_send(1, &in);
        tb_request_wait(&r);
    }
    assert_int_equal(teller.told_count + teller.over, 0);
    loop_net_close(&teller.net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_share_an_engine),  cmocka_unit_test(a_kick_wakes),
        cmocka_unit_test(a_kick_is_used_up),        cmocka_unit_test(conditions_are_true_once),
        cmocka_unit_test(a_prober_gives_way),       cmocka_unit_test(a_sleeper_helps_others),
        cmocka_unit_test(who_is_woken_gets_in),     cmocka_unit_test(a_cancel_wakes),
        cmocka_unit_test(neighbours_sleep),         cmocka_unit_test(long_waits_are_told),
        cmocka_unit_test(short_waits_are_not_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

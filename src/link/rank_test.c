/* Two ranks as threads, in real time: repair over faults over tcp and over shm, to the very end. */
#include "link/link.h"
#include "link/repair.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define JOB    3u
#define FRAMES 400u
#define SIZE   20000u

struct rank {
    uint32_t self;
    const char *fault;
    const struct tb_transport_table *table;
    int sockets[TB_STREAM_COUNT];
    struct tb_transport *transport;
    struct tb_endpoint *peer;
    uint32_t sent, received, wrong;
    int broken;
    uint64_t closing; /* ns */
    struct tb_link_counters counters;
    char bytes[SIZE];
};

/* What the host's agent provides for shm. */
static struct {
    void *segment;
    size_t bytes;
    uint32_t procs[2];
    int doorbells[2];
} host;

static size_t frame_length(const struct rank *r, uint32_t from, uint32_t number)
{
    uint32_t limit = r->transport->max_payload < SIZE ? r->transport->max_payload : SIZE;
    return (number * 7919 + from) % (limit + 1);
}

static void on_frame(void *context, struct tb_endpoint *from, const struct tb_routing *routing,
                     const struct tb_message *message, const void *payload, size_t length)
{
    struct rank *r = context;
    const char *bytes = payload;
    bool right = message->match == r->received && message->flags == 0 && routing == NULL &&
                 length == frame_length(r, 1 - r->self, r->received);
    for (size_t i = 0; right && i < length; i++)
        right = bytes[i] == (char)(i + r->received);
    r->wrong += !right;
    r->received++;
}

static void on_writable(void *context, struct tb_endpoint *to) {}

static void on_opened(void *context, struct tb_endpoint *from) {}

static void on_broken(void *context, struct tb_endpoint *with, int error)
{
    struct rank *r = context;
    r->broken = error;
}

static void rank_send(struct rank *r)
{
    size_t length = frame_length(r, r->self, r->sent);
    for (size_t i = 0; i < length; i++)
        r->bytes[i] = (char)(i + r->sent);
    struct tb_envelope envelope = {.message = {.kind = TB_KIND_EAGER, .match = r->sent}};
    struct tb_spans payload = tb_spans_of(r->bytes, length);
    /* Two streams have one order only when repair gives them one. */
    enum tb_stream stream = r->fault[0] != 0 && r->sent % 3 == 0 ? TB_STREAM_BULK : TB_STREAM_SHORT;
    int result = r->transport->table->send(r->peer, &envelope, &payload, stream, NULL);
    r->sent += result == TB_OK;
}

/* Waits as the engine does: looks, announces its sleep, sleeps until something comes or is due. */
static void rank_sleep(struct rank *r)
{
    struct tb_transport *t = r->transport;
    if (t->table->arm(t)) {
        uint64_t now = tb_clock_now_real(), deadline = t->table->deadline(t);
        struct pollfd wait = {.fd = t->table->descriptor(t), .events = POLLIN};
        poll(&wait, 1, deadline <= now ? 0 : deadline - now > 5000000 ? 5 : (int)((deadline - now) / 1000000));
    }
    t->table->disarm(t);
}

static void *rank_run(void *context)
{
    struct rank *r = context;
    struct tb_proc other = {JOB, 1 - r->self};
    struct tb_transport_config config = {
        .self = {JOB, r->self},
        .clock = &tb_clock_real,
        .fault = r->fault,
        .segment = host.segment,
        .segment_bytes = host.bytes,
        .local_index = r->self,
        .local_count = 2,
        .local_procs = host.procs,
        .doorbells = host.doorbells,
        .upcalls = {
            .context = r, .frame = on_frame, .writable = on_writable, .opened = on_opened, .broken = on_broken}};
    if (tb_link_open(r->table, &config, &r->transport) != TB_OK)
        return NULL;
    struct tb_transport *t = r->transport;
    t->table->endpoint(t, other, &r->peer);
    for (int stream = 0; stream < TB_STREAM_COUNT && r->table == &tb_transport_tcp; stream++)
        t->table->adopt(t, other, (enum tb_stream)stream, r->sockets[stream]);
    while (r->broken == 0 && (r->sent < FRAMES || r->received < FRAMES || !t->table->idle(t))) {
        if (r->sent < FRAMES)
            rank_send(r);
        if (t->table->poll(t) == 0)
            rank_sleep(r);
    }
    tb_link_count(t, &r->counters);
    uint64_t begin = tb_clock_now_real();
    t->table->close(t);
    r->closing = tb_clock_now_real() - begin;
    return r;
}

static void socket_pair(int *one, int *two)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(listener, 1), 0);
    getsockname(listener, (struct sockaddr *)&address, &size);
    *one = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(*one, (struct sockaddr *)&address, sizeof(address)), 0);
    *two = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    fcntl(*one, F_SETFL, O_NONBLOCK);
    close(listener);
}

static void host_open(void)
{
    host.bytes = tb_shm_segment_bytes(2);
    host.segment = mmap(NULL, host.bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(host.segment != MAP_FAILED);
    for (uint32_t i = 0; i < 2; i++) {
        host.procs[i] = i;
        host.doorbells[i] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
        assert_true(host.doorbells[i] >= 0);
    }
}

static void host_close(void)
{
    munmap(host.segment, host.bytes);
    close(host.doorbells[0]);
    close(host.doorbells[1]);
}

static void ranks_run(const struct tb_transport_table *table, const char *fault, struct tb_link_counters *sum)
{
    static struct rank ranks[2];
    pthread_t threads[2];
    memset(ranks, 0, sizeof(ranks));
    host_open();
    for (int stream = 0; stream < TB_STREAM_COUNT && table == &tb_transport_tcp; stream++)
        socket_pair(&ranks[0].sockets[stream], &ranks[1].sockets[stream]);
    for (uint32_t i = 0; i < 2; i++) {
        ranks[i].self = i;
        ranks[i].fault = fault;
        ranks[i].table = table;
        assert_int_equal(pthread_create(&threads[i], NULL, rank_run, &ranks[i]), 0);
    }
    for (int i = 0; i < 2; i++) {
        void *done;
        pthread_join(threads[i], &done);
        assert_non_null(done);
    }
    host_close();
    memset(sum, 0, sizeof(*sum));
    for (int i = 0; i < 2; i++) {
        assert_int_equal(ranks[i].sent, FRAMES);
        assert_int_equal(ranks[i].received, FRAMES);
        assert_int_equal(ranks[i].wrong, 0);
        assert_true(ranks[i].broken == 0 || ranks[i].broken == TB_ERR_CLOSED);
        /* a tenth of a second, on a machine that has time */
        assert_true(ranks[i].closing < UINT64_C(5000000000));
        sum->sent += ranks[i].counters.sent;
        sum->repeated += ranks[i].counters.repeated;
        sum->corrupted += ranks[i].counters.corrupted;
        sum->reordered += ranks[i].counters.reordered;
    }
}

static void without_faults(void **state)
{
    struct tb_link_counters sum;
    ranks_run(*state, "", &sum);
    assert_int_equal(sum.sent, 0); /* not even wrapped */
}

static void with_all_faults(void **state)
{
    struct tb_link_counters sum;
    ranks_run(*state, "loss=3%,repeat=3%,delay=2ms,reorder=3%,corrupt=3%,seed=11", &sum);
    assert_int_equal(sum.sent, 2 * FRAMES);
    assert_true(sum.repeated > 0 && sum.corrupted > 0 && sum.reordered > 0);
}

/* The last acknowledgements are lost as often as not. */
static void endings_under_heavy_loss(void **state)
{
    struct tb_link_counters sum;
    ranks_run(*state, "loss=40%,seed=12", &sum);
    assert_true(sum.repeated > 0);
}

int main(void)
{
    if (tb_transports_load_params() != TB_OK)
        return 1;
    void *tcp = (void *)&tb_transport_tcp, *shm = (void *)&tb_transport_shm;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(without_faults, tcp),
        cmocka_unit_test_prestate(with_all_faults, tcp),
        cmocka_unit_test_prestate(endings_under_heavy_loss, tcp),
        cmocka_unit_test_prestate(without_faults, shm),
        cmocka_unit_test_prestate(with_all_faults, shm),
        cmocka_unit_test_prestate(endings_under_heavy_loss, shm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The loop in virtual time itself: timers, streams with a delay, silence, ends, ports that lead to others. */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "agent/loop_sim_test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#define MS     UINT64_C(1000000)
#define SECOND UINT64_C(1000000000)

static struct loop_sim sim;

struct party {
    struct tb_watch watch;
    struct tb_timer timer;
    uint64_t every; /* it writes a byte so often; 0: never */
    bool echoes;
    uint64_t bytes, last_at, ended_at, fired;
    int error; /* errno of its end; 0: orderly */
};

static void party_ready(struct tb_watch *watch, uint32_t events)
{
    struct party *p = TB_CONTAINER(watch, struct party, watch);
    char bytes[4096];
    ssize_t n = read(watch->descriptor, bytes, sizeof(bytes));
    if (n > 0) {
        p->bytes += (uint64_t)n;
        p->last_at = sim.sim.now;
        if (p->echoes)
            assert_int_equal(write(watch->descriptor, bytes, (size_t)n), n);
        return;
    }
    int fd = watch->descriptor;
    p->error = n < 0 ? errno : 0;
    p->ended_at = sim.sim.now;
    tb_loop_unwatch(&sim.loop, watch);
    close(fd);
}

static void party_fire(struct tb_timer *timer)
{
    struct party *p = TB_CONTAINER(timer, struct party, timer);
    p->fired++;
    assert_int_equal(write(p->watch.descriptor, "x", 1), 1);
    tb_timer_set(&sim.loop, timer, p->every);
}

static void party_open(struct party *p, int fd, uint64_t every)
{
    *p = (struct party){.every = every};
    tb_timer_init(&p->timer, party_fire);
    assert_int_equal(tb_loop_watch(&sim.loop, &p->watch, fd, EPOLLIN, party_ready), TB_OK);
    if (every > 0)
        tb_timer_set(&sim.loop, &p->timer, every);
}

static void party_close(struct party *p)
{
    int fd = p->watch.descriptor;
    tb_timer_clear(&p->timer);
    tb_loop_unwatch(&sim.loop, &p->watch);
    if (fd >= 0)
        close(fd);
}

/* An hour of a byte every second, there and back. */
static void an_hour_takes_no_time(void **state)
{
    int ends[2];
    struct party a, b;
    loop_sim_open(&sim, 1);
    sim.sim.route[0].delay = 40 * MS;
    assert_int_equal(tb_sim_streams_pair(&sim.streams, 0, ends), TB_OK);
    party_open(&a, ends[0], SECOND);
    party_open(&b, ends[1], 0);
    b.echoes = true;
    uint64_t start = sim.sim.now;
    loop_sim_run(&sim, 3600 * SECOND + 100 * MS);
    assert_int_equal(sim.sim.now, start + 3600 * SECOND + 100 * MS);
    assert_int_equal(a.fired, 3600);
    assert_true(b.bytes == 3600 && a.bytes == 3600);
    assert_int_equal(b.last_at, start + 3600 * SECOND + 40 * MS);
    assert_int_equal(a.last_at, start + 3600 * SECOND + 80 * MS);
    party_close(&a);
    party_close(&b);
    loop_sim_close(&sim);
}

static void rates_hold(void **state)
{
    static char block[100000];
    int ends[2];
    struct party b;
    loop_sim_open(&sim, 1);
    sim.sim.route[1] = (struct tb_sim_route){.delay = 10 * MS, .byte_time = 100};
    assert_int_equal(tb_sim_streams_pair(&sim.streams, 1, ends), TB_OK);
    party_open(&b, ends[1], 0);
    assert_int_equal(write(ends[0], block, sizeof(block)), sizeof(block));
    close(ends[0]);
    uint64_t start = sim.sim.now;
    loop_sim_run(&sim, SECOND);
    assert_int_equal(b.bytes, sizeof(block));
    assert_true(b.ended_at == start + 20 * MS && b.error == 0);
    assert_int_equal(sim.streams.count, 0); /* both have closed */
    loop_sim_close(&sim);
}

/* A dead route is silent, and brings everything once it lives again; a reset ends it. */
static void silence_and_ends(void **state)
{
    int ends[2];
    struct party a, b;
    loop_sim_open(&sim, 1);
    sim.sim.route[0].delay = 5 * MS;
    assert_int_equal(tb_sim_streams_pair(&sim.streams, 0, ends), TB_OK);
    party_open(&a, ends[0], SECOND);
    party_open(&b, ends[1], 0);
    loop_sim_run(&sim, 10 * SECOND + 10 * MS);
    assert_int_equal(b.bytes, 10);
    sim.sim.route[0].dead = true;
    loop_sim_run(&sim, 30 * SECOND);
    assert_true(b.bytes == 10 && b.ended_at == 0 && a.fired == 40);
    sim.sim.route[0].dead = false;
    loop_sim_run(&sim, SECOND / 2);
    assert_int_equal(b.bytes, 40);
    tb_timer_clear(&a.timer);
    tb_sim_streams_reset(&sim.streams, 0);
    loop_sim_run(&sim, SECOND);
    assert_true(a.ended_at > 0 && b.ended_at > 0);
    loop_sim_close(&sim);
}

static int listen_here(uint16_t *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(fd, 8), 0);
    getsockname(fd, (struct sockaddr *)&address, &size);
    *port = ntohs(address.sin_port);
    return fd;
}

static int connect_to(uint16_t port)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    return fd;
}

static struct party accepted;

static void listener_ready(struct tb_watch *watch, uint32_t events)
{
    party_open(&accepted, accept4(watch->descriptor, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK), 0);
    accepted.echoes = true;
}

static void ports_lead_to_others(void **state)
{
    uint16_t real, virtual;
    struct tb_watch watch;
    struct party a;
    loop_sim_open(&sim, 1);
    sim.sim.route[0].delay = 100 * MS;
    int listener = listen_here(&real);
    assert_int_equal(tb_loop_watch(&sim.loop, &watch, listener, EPOLLIN, listener_ready), TB_OK);
    assert_int_equal(tb_sim_streams_listen(&sim.streams, 0, real, &virtual), TB_OK);
    party_open(&a, connect_to(virtual), 0);
    uint64_t start = sim.sim.now;
    assert_int_equal(write(a.watch.descriptor, "hello", 5), 5);
    loop_sim_run(&sim, SECOND);
    assert_true(sim.streams.accepted == 1 && accepted.bytes == 5 && a.bytes == 5);
    assert_int_equal(accepted.last_at, start + 100 * MS);
    assert_int_equal(a.last_at, start + 200 * MS);
    tb_sim_streams_reset(&sim.streams, 0);
    loop_sim_run(&sim, SECOND);
    assert_true(a.error == ECONNRESET && accepted.error == ECONNRESET);
    tb_loop_unwatch(&sim.loop, &watch);
    close(listener);
    party_open(&a, connect_to(virtual), 0); /* nobody is there any more */
    loop_sim_run(&sim, SECOND);
    assert_true(sim.streams.accepted == 2 && a.error == ECONNRESET);
    loop_sim_close(&sim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_hour_takes_no_time),
        cmocka_unit_test(rates_hold),
        cmocka_unit_test(silence_and_ends),
        cmocka_unit_test(ports_lead_to_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

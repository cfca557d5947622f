/* The rank port with ranks that the test plays: it holds the other ends of their sockets, comes by name, and moves
 * time on. */
#include "agent/rank_port.h"
#include "remote/virtual_loop_test.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define JOB      5u
#define RANKS    2u
#define LIMIT    4u          /* packets that wait for a rank */
#define PATIENCE 5000000000u /* for who comes by name and does not speak */
#define NO_PID   0x3fffffff  /* beyond what the kernel gives */

struct world {
    struct virtual_loop t;
    struct tb_rank_port port;
    struct tb_host_services services;
    int sockets[RANKS]; /* the ranks' ends */
    int connects, aborts, waits, lefts;
    int status; /* of the last one that left */
    struct tb_job_waiting awaited;
    uint32_t local, code; /* of the last call */
    enum tb_abort_reason reason;
    struct tb_proc to;
    enum tb_stream stream;
    char text[64];
};

static struct tb_packet packet;

static void take_connect(void *context, uint32_t local, struct tb_proc to, enum tb_stream stream)
{
    struct world *w = context;
    w->connects++;
    w->local = local;
    w->to = to;
    w->stream = stream;
}

static void take_waiting(void *context, uint32_t local, const struct tb_job_waiting *waiting)
{
    struct world *w = context;
    w->waits++;
    w->local = local;
    w->awaited = *waiting;
}

static void take_aborted(void *context, uint32_t local, uint32_t code, enum tb_abort_reason reason, const void *text,
                         size_t length)
{
    struct world *w = context;
    w->aborts++;
    w->local = local;
    w->code = code;
    w->reason = reason;
    snprintf(w->text, sizeof w->text, "%.*s", (int)length, (const char *)text);
}

static void take_left(void *context, uint32_t local, int status)
{
    struct world *w = context;
    w->lefts++;
    w->local = local;
    w->status = status;
}

static void world_open(struct world *w)
{
    const struct tb_rank_port_events events = {
        .context = w, .connect = take_connect, .waiting = take_waiting, .left = take_left, .aborted = take_aborted};
    struct tb_host_routes routes = {0};
    struct tb_host host = {.name = "here", .rank_count = RANKS};
    struct tb_rank_range range = {.count = RANKS};
    struct tb_address_book book = {
        .job = JOB, .ranks = RANKS, .host_count = 1, .range_count = 1, .hosts = &host, .ranges = &range};
    memset(w, 0, sizeof *w);
    assert_int_equal(virtual_loop_open(&w->t), TB_OK);
    tb_host_services_init(&w->services);
    w->services.host = 3;
    w->services.parameters = "a=b";
    assert_int_equal(tb_host_services_make(&w->services, RANKS, &book, &routes), TB_OK);
    assert_int_equal(tb_rank_port_open(&w->port, &w->t.loop, &events), TB_OK);
    assert_int_equal(tb_rank_port_make(&w->port, &w->services, RANKS, LIMIT), TB_OK);
    for (uint32_t i = 0; i < RANKS; i++) {
        int pair[2];
        assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
        assert_int_equal(tb_rank_port_add(&w->port, i, 7 + i, i, pair[0]), TB_OK);
        tb_rank_port_started(&w->port, i, NO_PID);
        w->sockets[i] = pair[1];
    }
}

static void world_close(struct world *w)
{
    tb_rank_port_close(&w->port);
    tb_host_services_close(&w->services);
    virtual_loop_close(&w->t);
    for (uint32_t i = 0; i < RANKS; i++)
        close(w->sockets[i]);
}

/* The next packet must be of this kind. */
static struct tb_reader *expect(int socket, enum tb_control kind)
{
    assert_int_equal(tb_packet_receive(socket, &packet, false), TB_OK);
    assert_int_equal(packet.frame.kind, kind);
    return &packet.frame.fields;
}

static void expect_welcome(int socket, uint32_t rank, uint32_t app)
{
    struct tb_reader *r = expect(socket, TB_CONTROL_WELCOME);
    assert_int_equal(tb_get_u32(r), rank);
    assert_int_equal(tb_get_u32(r), 3);
    assert_int_equal(tb_get_u32(r), app);
    assert_true(tb_get_u64(r) > 0);
    char *parameters = tb_get_text(r);
    assert_string_equal(parameters, "a=b");
    free(parameters);
    assert_int_equal(packet.descriptor_count, 3 + RANKS);
    tb_packet_discard(&packet);
}

static void expect_nothing(int socket)
{
    assert_int_equal(tb_packet_receive(socket, &packet, false), TB_AGAIN);
}

static void say_numbers(struct world *w, int socket, enum tb_control kind, uint32_t count, const uint32_t *numbers)
{
    struct tb_writer fields;
    tb_writer_open(&fields);
    for (uint32_t i = 0; i < count; i++)
        tb_put_u32(&fields, numbers[i]);
    assert_int_equal(tb_packet_send(socket, kind, &fields, NULL, 0), TB_OK);
    tb_writer_close(&fields);
    virtual_loop_turn(&w->t);
}

static void say_hello(struct world *w, int socket)
{
    say_numbers(w, socket, TB_CONTROL_HELLO, 1, (uint32_t[]){(uint32_t)getpid()});
}

static int come_by_name(struct world *w)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    size_t length = strlen(w->port.name);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    memcpy(name.sun_path + 1, w->port.name, length);
    assert_int_equal(
        connect(fd, (struct sockaddr *)&name, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length)), 0);
    virtual_loop_turn(&w->t);
    return fd;
}

/* Gives a rank one end of a connection; the other one stays with the test. */
static int give_connection(struct world *w, uint32_t local, uint32_t from)
{
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
    tb_rank_port_connection(&w->port, local, (struct tb_proc){JOB, from}, TB_STREAM_BULK, TB_OK, pair[0]);
    return pair[1];
}

static bool is_closed(int socket)
{
    char byte;
    return recv(socket, &byte, 1, MSG_DONTWAIT) == 0;
}

static void expect_connection(int socket, uint32_t from)
{
    struct tb_reader *r = expect(socket, TB_CONTROL_CONNECTION);
    assert_int_equal(tb_get_u32(r), JOB);
    assert_int_equal(tb_get_u32(r), from);
    assert_int_equal(tb_get_u32(r), TB_STREAM_BULK);
    assert_int_equal(tb_get_u32(r), TB_OK);
    assert_int_equal(packet.descriptor_count, 1);
    tb_packet_discard(&packet);
}

/* ---- ranks with their sockets ------------------------------------------------------------------------------------ */

static void ranks_are_welcomed(void **state)
{
    struct world w;
    world_open(&w);
    for (uint32_t i = 0; i < RANKS; i++) {
        expect_welcome(w.sockets[i], 7 + i, i);
        expect_nothing(w.sockets[i]);
    }
    world_close(&w);
}

static void requests_are_handed_up(void **state)
{
    struct world w;
    world_open(&w);
    say_numbers(&w, w.sockets[1], TB_CONTROL_CONNECT, 3, (uint32_t[]){JOB, 40, TB_STREAM_SHORT});
    assert_int_equal(w.connects, 1);
    assert_int_equal(w.local, 1);
    assert_int_equal(w.to.index, 40);
    assert_int_equal(w.stream, TB_STREAM_SHORT);
    say_numbers(&w, w.sockets[1], TB_CONTROL_CONNECT, 3, (uint32_t[]){JOB, 40, TB_STREAM_COUNT});
    say_numbers(&w, w.sockets[1], TB_CONTROL_CONNECT, 2, (uint32_t[]){JOB, 40});
    assert_int_equal(w.connects, 1); /* nonsense is not */
    say_numbers(&w, w.sockets[1], TB_CONTROL_WAITING, 4, (uint32_t[]){2, 5, 3, 0});
    assert_true(w.waits == 1 && w.awaited.count == 2 && w.awaited.hosts[0] == 5 && w.awaited.hosts[1] == 3);
    assert_int_equal(w.awaited.stuck_count, 0);
    say_numbers(&w, w.sockets[1], TB_CONTROL_WAITING, 3, (uint32_t[]){2, 5, 3});
    say_numbers(&w, w.sockets[1], TB_CONTROL_WAITING, 20,
                (uint32_t[20]){TB_WAITING_HOSTS + 2, [TB_WAITING_HOSTS + 2] = 1});
    say_numbers(&w, w.sockets[1], TB_CONTROL_WAITING, 3 + 3 * (TB_WAITING_STUCK + 1),
                (uint32_t[3 + 3 * (TB_WAITING_STUCK + 1)]){1, 5, TB_WAITING_STUCK + 1});
    assert_int_equal(w.waits, 1);
    say_numbers(&w, w.sockets[1], TB_CONTROL_WAITING, 6, (uint32_t[]){1, 5, 1, 7, 250, 0});
    assert_true(w.waits == 2 && w.awaited.count == 1 && w.awaited.stuck_count == 1);
    assert_true(w.awaited.stuck[0].rank == 7 && w.awaited.stuck[0].tried == 250);
    say_numbers(&w, w.sockets[1], TB_CONTROL_WAITING, 2, (uint32_t[]){0, 0});
    assert_true(w.waits == 3 && w.awaited.count == 0);
    struct tb_writer fields;
    tb_writer_open(&fields);
    tb_put_u32(&fields, 9);
    tb_put_u8(&fields, TB_ABORT_LOST);
    tb_put_text(&fields, "enough");
    assert_int_equal(tb_packet_send(w.sockets[0], TB_CONTROL_ABORT, &fields, NULL, 0), TB_OK);
    tb_writer_close(&fields);
    tb_rank_port_read(&w.port, 0); /* without the loop, as when the rank has ended */
    assert_int_equal(w.aborts, 1);
    assert_int_equal(w.local, 0);
    assert_int_equal(w.code, 9);
    assert_int_equal(w.reason, TB_ABORT_LOST);
    assert_string_equal(w.text, "enough");
    say_numbers(&w, w.sockets[0], TB_CONTROL_INITIALIZED, 0, NULL);
    assert_true(w.port.ranks[0].initialized && !w.port.ranks[0].finalized && !w.port.ranks[1].initialized);
    say_numbers(&w, w.sockets[0], TB_CONTROL_FINALIZED, 0, NULL);
    assert_true(w.port.ranks[0].finalized);
    world_close(&w);
}

/* Until its process is known, a packet could be queued in a socket that nobody will read. */
static void packets_wait_for_hello(void **state)
{
    struct world w;
    world_open(&w);
    expect_welcome(w.sockets[0], 7, 0);
    int a = give_connection(&w, 0, 50), b = give_connection(&w, 0, 51);
    virtual_loop_turn(&w.t);
    expect_nothing(w.sockets[0]);
    say_hello(&w, w.sockets[0]);
    expect_connection(w.sockets[0], 50);
    expect_connection(w.sockets[0], 51);
    tb_error(TB_ERR_PEER, "no way there");
    tb_rank_port_connection(&w.port, 0, (struct tb_proc){JOB, 52}, TB_STREAM_BULK, TB_ERR_PEER, -1);
    struct tb_reader *r = expect(w.sockets[0], TB_CONTROL_CONNECTION);
    for (int i = 0; i < 3; i++)
        tb_get_u32(r);
    assert_int_equal((int)tb_get_u32(r), TB_ERR_PEER);
    char *why = tb_get_text(r);
    assert_non_null(strstr(why, "no way there"));
    free(why);
    assert_int_equal(packet.descriptor_count, 0);
    close(a);
    close(b);
    world_close(&w);
}

static void too_many_packets_are_refused(void **state)
{
    struct world w;
    world_open(&w);
    int others[LIMIT + 1];
    for (uint32_t i = 0; i <= LIMIT; i++)
        others[i] = give_connection(&w, 0, i);
    assert_false(is_closed(others[LIMIT - 1]));
    assert_true(is_closed(others[LIMIT]));
    tb_rank_port_remove(&w.port, 0); /* and with the rank go those that wait for it */
    assert_true(is_closed(others[0]));
    int late = give_connection(&w, 0, 60);
    assert_true(is_closed(late));
    close(late);
    for (uint32_t i = 0; i <= LIMIT; i++)
        close(others[i]);
    world_close(&w);
}

/* Packets that a socket has no room for follow when the rank reads, in order. */
static void a_full_socket_is_tried_again(void **state)
{
    struct world w;
    world_open(&w);
    w.port.parcel_limit = 2000;
    expect_welcome(w.sockets[0], 7, 0);
    say_hello(&w, w.sockets[0]);
    enum { MANY = 1000 };
    for (uint32_t i = 0; i < MANY; i++)
        tb_rank_port_connection(&w.port, 0, (struct tb_proc){JOB, i}, TB_STREAM_SHORT, TB_OK, -1);
    assert_true(w.port.ranks[0].parcel_count > 0);
    uint32_t next = 0;
    for (int i = 0; i < MANY && next < MANY; i++) {
        while (tb_packet_receive(w.sockets[0], &packet, false) == TB_OK) {
            tb_get_u32(&packet.frame.fields);
            assert_int_equal(tb_get_u32(&packet.frame.fields), next);
            next++;
        }
        virtual_loop_pass(&w.t, 5000000);
    }
    assert_int_equal(next, MANY);
    assert_int_equal(w.port.ranks[0].parcel_count, 0);
    world_close(&w);
}

static void expect_routes(int socket, uint32_t version)
{
    struct tb_host_routes got = {0};
    expect(socket, TB_CONTROL_ROUTES);
    assert_int_equal(packet.descriptor_count, 1);
    assert_int_equal(tb_host_routes_read(&got, packet.descriptors[0], 1), TB_OK);
    assert_int_equal(got.version, version);
    tb_host_routes_close(&got);
    tb_packet_discard(&packet);
}

static void all_are_told_routes(void **state)
{
    struct world w;
    struct tb_host_routes routes = {.version = 9};
    world_open(&w);
    tb_rank_port_remove(&w.port, 1);
    expect_welcome(w.sockets[0], 7, 0);
    say_hello(&w, w.sockets[0]);
    assert_int_equal(tb_host_services_change_routes(&w.services, &routes), TB_OK);
    tb_rank_port_routes(&w.port);
    expect_routes(w.sockets[0], 9);
    expect_welcome(w.sockets[1], 8, 1);
    assert_int_equal(tb_packet_receive(w.sockets[1], &packet, false), TB_ERR_CLOSED);
    world_close(&w);
}

/* Of routes and questions only the newest waits, however long a rank reads nothing. */
static void only_the_newest_waits(void **state)
{
    struct world w;
    struct tb_host_routes routes = {.version = 1};
    world_open(&w);
    expect_welcome(w.sockets[0], 7, 0);
    for (uint32_t i = 1; i <= 100; i++) {
        routes.version = i;
        assert_int_equal(tb_host_services_change_routes(&w.services, &routes), TB_OK);
        tb_rank_port_routes(&w.port);
        tb_rank_port_ask(&w.port, 0, i);
    }
    assert_int_equal(w.port.ranks[0].parcel_count, 2);
    int next = dup(w.sockets[0]);
    assert_in_range(next, 0, 50); /* descriptors do not add up either */
    close(next);
    say_hello(&w, w.sockets[0]);
    expect_routes(w.sockets[0], 100);
    expect(w.sockets[0], TB_CONTROL_ASK);
    assert_int_equal(tb_get_u32(&packet.frame.fields), 100);
    expect_nothing(w.sockets[0]);
    world_close(&w);
}

/* ---- those who come by name -------------------------------------------------------------------------------------- */

/* What waits for the rank goes with it to the new socket. */
static void a_rank_comes_by_name(void **state)
{
    struct world w;
    world_open(&w);
    w.port.ranks[1].pid = getpid();
    int other = give_connection(&w, 1, 50), fd = come_by_name(&w);
    expect_nothing(fd);
    say_hello(&w, fd);
    expect_welcome(fd, 8, 1);
    expect_connection(fd, 50);
    expect_welcome(w.sockets[1], 8, 1); /* of the beginning, which it has not read */
    assert_int_equal(tb_packet_receive(w.sockets[1], &packet, false), TB_ERR_CLOSED);
    close(other);
    close(fd);
    world_close(&w);
}

static void strangers_get_nothing(void **state)
{
    struct world w;
    world_open(&w);
    int fd = come_by_name(&w), silent = come_by_name(&w);
    say_hello(&w, fd); /* it descends from no rank */
    assert_int_equal(tb_packet_receive(fd, &packet, false), TB_ERR_CLOSED);
    say_numbers(&w, silent, TB_CONTROL_CONNECT, 3, (uint32_t[]){JOB, 40, TB_STREAM_SHORT});
    assert_int_equal(tb_packet_receive(silent, &packet, false), TB_ERR_CLOSED);
    assert_int_equal(w.connects, 0);
    close(fd);
    close(silent);
    world_close(&w);
}

static void a_rank_is_one_program(void **state)
{
    struct world w;
    world_open(&w);
    w.port.ranks[0].pid = getpid();
    const pid_t joined[] = {NO_PID, getppid()}; /* one that came before; one that has started us */
    for (int i = 0; i < 2; i++) {
        w.port.ranks[0].joined = joined[i];
        int fd = come_by_name(&w);
        say_hello(&w, fd);
        struct tb_reader *r = expect(fd, TB_CONTROL_TAKEN);
        assert_int_equal(tb_get_u8(r), i == 1 && getppid() > 1);
        char *text = tb_get_text(r);
        assert_non_null(strstr(text, "one mpiexec runs one MPI program"));
        assert_non_null(strstr(text, i == 0 ? ", which has ended its part" : ", which still runs"));
        free(text);
        close(fd);
    }
    world_close(&w);
}

/* Those who say nothing keep nobody out: the oldest one makes room. */
static void a_crowd_makes_room(void **state)
{
    struct world w;
    world_open(&w);
    w.port.ranks[0].pid = getpid();
    int crowd[TB_RANK_PORT_JOINERS];
    for (uint32_t i = 0; i < TB_RANK_PORT_JOINERS; i++)
        crowd[i] = come_by_name(&w);
    int late = come_by_name(&w);
    say_hello(&w, late);
    expect_welcome(late, 7, 0);
    assert_int_equal(tb_packet_receive(crowd[0], &packet, false), TB_ERR_CLOSED);
    assert_int_equal(tb_packet_receive(crowd[1], &packet, false), TB_AGAIN);
    virtual_loop_pass(&w.t, PATIENCE - 1);
    assert_int_equal(tb_packet_receive(crowd[1], &packet, false), TB_AGAIN);
    virtual_loop_pass(&w.t, 1);
    for (uint32_t i = 1; i < TB_RANK_PORT_JOINERS; i++)
        assert_int_equal(tb_packet_receive(crowd[i], &packet, false), TB_ERR_CLOSED);
    close(late);
    for (uint32_t i = 0; i < TB_RANK_PORT_JOINERS; i++)
        close(crowd[i]);
    world_close(&w);
}

/* ---- programs below a shell -------------------------------------------------------------------------------------- */

/* A process of its own that joins as a rank, with its socket or by name, says the rest, and ends itself. */
static pid_t join_and_die(struct world *w, uint32_t local, bool by_name, bool finalize, int signal)
{
    int hold[2];
    char byte;
    assert_int_equal(pipe2(hold, O_CLOEXEC), 0);
    pid_t pid = fork();
    if (pid == 0) {
        struct tb_writer fields;
        int fd = w->sockets[local];
        if (by_name) {
            struct sockaddr_un name = {.sun_family = AF_UNIX};
            memcpy(name.sun_path + 1, w->port.name, strlen(w->port.name));
            fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
            socklen_t length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(w->port.name));
            if (connect(fd, (struct sockaddr *)&name, length) != 0)
                _exit(1);
        }
        tb_writer_open(&fields);
        tb_put_u32(&fields, 4711); /* in a namespace of its own */
        tb_packet_send(fd, TB_CONTROL_HELLO, &fields, NULL, 0);
        close(hold[1]);
        if (read(hold[0], &byte, 1) == 0 && finalize)
            tb_packet_send(fd, TB_CONTROL_FINALIZED, NULL, NULL, 0);
        kill(getpid(), signal);
        _exit(7);
    }
    close(hold[0]);
    for (int i = 0; i < 1000 && w->port.ranks[local].joined == 0; i++) {
        virtual_loop_turn(&w->t);
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
    assert_int_equal(w->port.ranks[local].joined, pid);
    assert_int_equal(w->lefts, 0);
    close(hold[1]);
    return pid;
}

/* Until it is told or no longer looked for. */
static void wait_until_left(struct world *w, uint32_t local)
{
    for (int i = 0; i < 1000 && w->port.ranks[local].process.descriptor >= 0; i++) {
        virtual_loop_turn(&w->t);
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
    assert_int_equal(w->port.ranks[local].process.descriptor, -1);
}

static void a_program_below_is_missed(void **state)
{
    for (int by_name = 0; by_name < 2; by_name++)
        for (int signal = 0; signal <= SIGKILL; signal += SIGKILL) {
            struct world w;
            world_open(&w);
            w.port.ranks[1].pid = getpid();
            pid_t pid = join_and_die(&w, 1, by_name, false, signal);
            wait_until_left(&w, 1);
            assert_int_equal(w.lefts, 1);
            assert_int_equal(w.local, 1);
            assert_int_equal(w.status, signal != 0 ? signal : 7 << 8);
            waitpid(pid, NULL, 0);
            world_close(&w);
        }
}

/* Nor is the process that was started, whose end is told by others. */
static void who_has_finalized_is_not_missed(void **state)
{
    struct world w;
    world_open(&w);
    pid_t pid = join_and_die(&w, 1, false, true, 0);
    assert_true(w.port.ranks[1].process.descriptor >= 0);
    wait_until_left(&w, 1);
    assert_int_equal(w.lefts, 0);
    waitpid(pid, NULL, 0);
    w.port.ranks[0].pid = getpid();
    say_hello(&w, w.sockets[0]);
    assert_int_equal(w.port.ranks[0].joined, getpid());
    assert_int_equal(w.port.ranks[0].process.descriptor, -1);
    world_close(&w);
}

/* Its hello is read when it is gone already. */
static void who_is_gone_at_once_is_missed(void **state)
{
    struct world w;
    world_open(&w);
    pid_t pid = fork();
    if (pid == 0) {
        tb_packet_send(w.sockets[0], TB_CONTROL_HELLO, NULL, NULL, 0);
        _exit(0);
    }
    waitpid(pid, NULL, 0);
    virtual_loop_turn(&w.t);
    assert_int_equal(w.lefts, 1);
    assert_int_equal(w.status, -1);
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_are_welcomed),
        cmocka_unit_test(requests_are_handed_up),
        cmocka_unit_test(packets_wait_for_hello),
        cmocka_unit_test(too_many_packets_are_refused),
        cmocka_unit_test(a_full_socket_is_tried_again),
        cmocka_unit_test(all_are_told_routes),
        cmocka_unit_test(only_the_newest_waits),
        cmocka_unit_test(a_rank_comes_by_name),
        cmocka_unit_test(strangers_get_nothing),
        cmocka_unit_test(a_rank_is_one_program),
        cmocka_unit_test(a_crowd_makes_room),
        cmocka_unit_test(a_program_below_is_missed),
        cmocka_unit_test(who_has_finalized_is_not_missed),
        cmocka_unit_test(who_is_gone_at_once_is_missed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

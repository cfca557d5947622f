/* The rank port with ranks that the test plays: it holds the other ends of their sockets, comes by name, and moves
 * time on. Included by the tests of the rank port. */
#ifndef TB_AGENT_RANK_PORT_WORLD_TEST_H
#define TB_AGENT_RANK_PORT_WORLD_TEST_H

#include "agent/rank_port.h"
#include "job/cost_mapping_test.h"
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
#define LIMIT    280u        /* packets that wait for a rank: 256, and 8 for each rank and host */
#define PATIENCE 5000000000u /* for who comes by name and does not speak */
#define NO_PID   0x3fffffff  /* beyond what the kernel gives */

struct world {
    struct virtual_loop t;
    struct tb_rank_port port;
    struct tb_host_services services;
    struct tb_address_book book;
    int sockets[RANKS]; /* the ranks' ends */
    int connects, aborts, waits, lefts;
    int status; /* of the last one that left */
    int troubles, wishes;
    enum tb_control wish;
    uint32_t number;  /* of the wish */
    uint32_t version; /* of the verdict that the last one was about */
    enum tb_multicast_trouble trouble;
    struct tb_job_waiting awaited;
    uint32_t local, code; /* of the last call */
    enum tb_abort_reason reason;
    struct tb_abort_group group;
    struct tb_proc to;
    enum tb_stream stream;
    char text[64];
};

static struct tb_packet packet;

static inline void take_connect(void *context, uint32_t local, struct tb_proc to, enum tb_stream stream)
{
    struct world *w = context;
    w->connects++;
    w->local = local;
    w->to = to;
    w->stream = stream;
}

static inline void take_waiting(void *context, uint32_t local, const struct tb_job_waiting *waiting)
{
    struct world *w = context;
    w->waits++;
    w->local = local;
    w->awaited = *waiting;
}

static inline void take_aborted(void *context, uint32_t local, uint32_t code, enum tb_abort_reason reason,
                                const void *text, size_t length, const struct tb_abort_group *group)
{
    struct world *w = context;
    w->group = *group;
    w->aborts++;
    w->local = local;
    w->code = code;
    w->reason = reason;
    snprintf(w->text, sizeof w->text, "%.*s", (int)length, (const char *)text);
}

static inline void take_left(void *context, uint32_t local, int status)
{
    struct world *w = context;
    w->lefts++;
    w->local = local;
    w->status = status;
}

static inline void take_group_trouble(void *context, uint32_t version, enum tb_multicast_trouble what)
{
    struct world *w = context;
    w->troubles++;
    w->version = version;
    w->trouble = what;
}

static inline void take_wish(void *context, uint32_t local, enum tb_control what, uint32_t number, const void *bytes,
                             size_t length)
{
    struct world *w = context;
    w->wishes++;
    w->local = local;
    w->wish = what;
    w->number = number;
    snprintf(w->text, sizeof w->text, "%.*s", (int)length, (const char *)bytes);
}

static inline void world_make(struct world *w)
{
    const struct tb_rank_port_events events = {.context = w,
                                               .connect = take_connect,
                                               .waiting = take_waiting,
                                               .left = take_left,
                                               .group_trouble = take_group_trouble,
                                               .wishes = take_wish,
                                               .aborted = take_aborted};
    struct tb_host_routes routes = {0};
    struct tb_host host = {.name = "here", .rank_count = RANKS};
    struct tb_rank_range range = {.count = RANKS};
    struct tb_address_book *book = &w->book;
    memset(w, 0, sizeof *w);
    *book = (struct tb_address_book){
        .version = 1, .job = JOB, .ranks = RANKS, .host_count = 1, .range_count = 1, .hosts = &host, .ranges = &range};
    assert_int_equal(virtual_loop_open(&w->t), TB_OK);
    tb_host_services_init(&w->services);
    w->services.host = 3;
    w->services.parameters = "a=b";
    w->services.costs = costs_file_of(1, 1, 1);
    costs_places(&book->places, 1);
    assert_int_equal(tb_host_services_make(&w->services, RANKS, book, &routes), TB_OK);
    tb_places_close(&book->places);
    assert_int_equal(tb_rank_port_open(&w->port, &w->t.loop, &events), TB_OK);
    assert_int_equal(tb_rank_port_make(&w->port, &w->services, RANKS, book), TB_OK);
}

static inline void world_start(struct world *w)
{
    for (uint32_t i = 0; i < RANKS; i++) {
        int pair[2];
        assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
        assert_int_equal(tb_rank_port_add(&w->port, i, 7 + i, i, pair[0]), TB_OK);
        tb_rank_port_started(&w->port, i, NO_PID);
        w->sockets[i] = pair[1];
    }
}

static inline void world_open(struct world *w)
{
    world_make(w);
    world_start(w);
}

static inline void world_close(struct world *w)
{
    tb_rank_port_close(&w->port);
    tb_host_services_close(&w->services);
    tb_worlds_close(&w->book);
    virtual_loop_close(&w->t);
    for (uint32_t i = 0; i < RANKS; i++)
        close(w->sockets[i]);
}

/* The next packet must be of this kind. */
static inline struct tb_reader *expect(int socket, enum tb_control kind)
{
    assert_int_equal(tb_packet_receive(socket, &packet, false), TB_OK);
    assert_int_equal(packet.frame.kind, kind);
    return &packet.frame.fields;
}

static inline void expect_welcome(int socket, uint32_t rank, uint32_t app)
{
    struct tb_reader *r = expect(socket, TB_CONTROL_WELCOME);
    assert_int_equal(tb_get_u32(r), rank);
    assert_int_equal(tb_get_u32(r), 3);
    assert_int_equal(tb_get_u32(r), app);
    assert_true(tb_get_u64(r) > 0);
    char *parameters = tb_get_text(r);
    assert_string_equal(parameters, "a=b");
    free(parameters);
    assert_int_equal(tb_get_u8(r), 0);
    assert_int_equal(packet.descriptor_count, TB_WELCOME_PLAN + RANKS); /* without a plan nothing stands for it */
    tb_packet_discard(&packet);
}

static inline void expect_nothing(int socket)
{
    assert_int_equal(tb_packet_receive(socket, &packet, false), TB_AGAIN);
}

static inline void say_numbers(struct world *w, int socket, enum tb_control kind, uint32_t count,
                               const uint32_t *numbers)
{
    struct tb_writer fields;
    tb_writer_open(&fields);
    for (uint32_t i = 0; i < count; i++)
        tb_put_u32(&fields, numbers[i]);
    assert_int_equal(tb_packet_send(socket, kind, &fields, NULL, 0), TB_OK);
    tb_writer_close(&fields);
    virtual_loop_turn(&w->t);
}

static inline void say_hello(struct world *w, int socket)
{
    say_numbers(w, socket, TB_CONTROL_HELLO, 1, (uint32_t[]){(uint32_t)getpid()});
}

static inline int come_by_name(struct world *w)
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
static inline int give_connection(struct world *w, uint32_t local, uint32_t from)
{
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
    tb_rank_port_connection(&w->port, local, (struct tb_proc){JOB, from}, TB_STREAM_BULK, TB_OK, pair[0]);
    return pair[1];
}

static inline bool is_closed(int socket)
{
    char byte;
    return recv(socket, &byte, 1, MSG_DONTWAIT) == 0;
}

static inline void expect_connection(int socket, uint32_t from)
{
    struct tb_reader *r = expect(socket, TB_CONTROL_CONNECTION);
    assert_int_equal(tb_get_u32(r), JOB);
    assert_int_equal(tb_get_u32(r), from);
    assert_int_equal(tb_get_u32(r), TB_STREAM_BULK);
    assert_int_equal(tb_get_u32(r), TB_OK);
    assert_int_equal(packet.descriptor_count, 1);
    tb_packet_discard(&packet);
}

#endif

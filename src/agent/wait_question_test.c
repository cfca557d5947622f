/* The question what ranks wait for, with ranks and a launcher that the test plays, in virtual time. */
#include "agent/process_state.h"
#include "agent/wait_question.h"
#include "job/cost_mapping_test.h"
#include "remote/virtual_loop_test.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#define RANKS    3u
#define PATIENCE 500000000u

struct world {
    struct virtual_loop t;
    struct tb_uplink uplink;
    struct tb_control_stream launcher;
    struct tb_rank_port port;
    struct tb_host_services services;
    struct tb_address_book book;
    struct tb_wait_question question;
    pid_t pids[RANKS]; /* processes that do nothing */
    int sockets[RANKS];
    char told[RANKS][TB_WAITS_LIMIT][300]; /* of the last frame: "rank what ns text" */
    uint32_t told_count[RANKS], frames, number;
};

static struct tb_packet packet;

static void take_frame(void *context, struct tb_control_frame *frame) {}

static void take_lost(void *context, const char *why)
{
    fail_msg("%s", why);
}

static void settle(struct tb_loop *loop)
{
    struct world *w = TB_CONTAINER(TB_CONTAINER(loop, struct virtual_loop, loop), struct world, t);
    tb_uplink_settle(&w->uplink);
}

static void take_waits(void *context, uint32_t local, uint32_t number, uint32_t count, struct tb_reader *waits)
{
    struct world *w = context;
    tb_wait_question_take(&w->question, local, number, count, waits);
}

static void open_uplink(struct world *w)
{
    const struct tb_uplink_events events = {.context = w, .frame = take_frame, .lost = take_lost};
    int pair[2];
    char version[64];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
    tb_control_stream_open(&w->launcher, pair[1], pair[1]);
    int out = fcntl(pair[0], F_DUPFD_CLOEXEC, 3);
    assert_int_equal(tb_uplink_open(&w->uplink, &w->t.loop, pair[0], out, &events), TB_OK);
    assert_int_equal(tb_control_stream_fill(&w->launcher), TB_OK);
    assert_int_equal(tb_control_stream_preamble(&w->launcher, version, sizeof version), TB_OK);
}

static void open_ranks(struct world *w)
{
    const struct tb_rank_port_events events = {.context = w, .waits = take_waits};
    struct tb_host_routes routes = {0};
    struct tb_host host = {.name = "here", .rank_count = RANKS};
    struct tb_rank_range range = {.count = RANKS};
    struct tb_address_book book = {
        .version = 1, .job = 5, .ranks = RANKS, .host_count = 1, .range_count = 1, .hosts = &host, .ranges = &range};
    tb_host_services_init(&w->services);
    w->services.parameters = "";
    w->services.costs = costs_file_of(1, 1, 1);
    costs_places(&book.places, 1);
    assert_int_equal(tb_host_services_make(&w->services, RANKS, &book, &routes), TB_OK);
    tb_worlds_close(&book);
    tb_places_close(&book.places);
    w->book = (struct tb_address_book){.ranks = RANKS, .host_count = 1};
    assert_int_equal(tb_rank_port_open(&w->port, &w->t.loop, &events), TB_OK);
    assert_int_equal(tb_rank_port_make(&w->port, &w->services, RANKS, &w->book), TB_OK);
    for (uint32_t i = 0; i < RANKS; i++) {
        int pair[2];
        assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
        assert_int_equal(tb_rank_port_add(&w->port, i, 7 + i, 0, pair[0]), TB_OK);
        /* The test speaks for them, and the kernel would say so. */
        setsockopt(w->port.ranks[i].control.descriptor, SOL_SOCKET, SO_PASSCRED, &(int){0}, sizeof(int));
        w->sockets[i] = pair[1];
        w->pids[i] = fork();
        if (w->pids[i] == 0) {
            for (;;)
                pause();
        }
        for (int k = 0; k < 5000 && tb_process_state(w->pids[i]) != 'S'; k++)
            usleep(1000);
        tb_rank_port_started(&w->port, i, w->pids[i]);
    }
}

static void world_open(struct world *w)
{
    memset(w, 0, sizeof *w);
    assert_int_equal(virtual_loop_open(&w->t), TB_OK);
    w->t.loop.settle = settle;
    open_uplink(w);
    open_ranks(w);
    tb_wait_question_open(&w->question, &w->t.loop, &w->uplink, &w->port);
}

static void world_close(struct world *w)
{
    tb_wait_question_close(&w->question);
    tb_rank_port_close(&w->port);
    tb_host_services_close(&w->services);
    tb_uplink_close(&w->uplink);
    tb_control_stream_close(&w->launcher);
    virtual_loop_close(&w->t);
    for (uint32_t i = 0; i < RANKS; i++) {
        close(w->sockets[i]);
        kill(w->pids[i], SIGKILL);
        waitpid(w->pids[i], NULL, 0);
    }
}

/* The rank says a word without fields, or its process. */
static void rank_says(struct world *w, uint32_t local, enum tb_control kind, uint32_t pid)
{
    struct tb_writer fields;
    tb_writer_open(&fields);
    if (kind == TB_CONTROL_HELLO)
        tb_put_u32(&fields, pid);
    assert_int_equal(tb_packet_send(w->sockets[local], kind, &fields, NULL, 0), TB_OK);
    tb_writer_close(&fields);
    virtual_loop_turn(&w->t);
}

static void rank_joins(struct world *w, uint32_t local)
{
    rank_says(w, local, TB_CONTROL_HELLO, (uint32_t)w->pids[local]);
    rank_says(w, local, TB_CONTROL_INITIALIZED, 0);
}

/* The question that has come to a rank; 0: none. */
static uint32_t rank_hears(struct world *w, uint32_t local)
{
    uint32_t number = 0;
    while (tb_packet_receive(w->sockets[local], &packet, false) == TB_OK) {
        if (packet.frame.kind == TB_CONTROL_ASK)
            number = tb_get_u32(&packet.frame.fields);
        tb_packet_discard(&packet);
    }
    return number;
}

static void rank_answers(struct world *w, uint32_t local, uint32_t number, uint32_t count, const char *text)
{
    struct tb_writer fields;
    tb_writer_open(&fields);
    tb_put_u32(&fields, number);
    tb_put_u32(&fields, count);
    for (uint32_t i = 0; i < count; i++) {
        tb_put_u64(&fields, 1000 + i);
        tb_put_text(&fields, text);
    }
    assert_int_equal(tb_packet_send(w->sockets[local], TB_CONTROL_WAITS, &fields, NULL, 0), TB_OK);
    tb_writer_close(&fields);
    virtual_loop_turn(&w->t);
}

static void take_answers(struct world *w, struct tb_reader *r)
{
    memset(w->told_count, 0, sizeof w->told_count);
    w->frames++;
    w->number = tb_get_u32(r);
    assert_int_equal(tb_get_u32(r), 0); /* no other answer follows */
    uint32_t count = tb_get_u32(r);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t local = tb_get_u32(r) - 7;
        assert_in_range(local, 0, RANKS - 1);
        assert_int_equal(tb_get_u32(r), w->pids[local]);
        unsigned what = tb_get_u8(r);
        unsigned long long ns = tb_get_u64(r);
        char *text = tb_get_text(r);
        snprintf(w->told[local][w->told_count[local]++], sizeof w->told[0][0], "%u %llu %s", what, ns, text);
        free(text);
    }
    assert_int_equal(tb_reader_end(r), TB_OK);
}

/* What the launcher has heard until now. */
static void launcher_listens(struct world *w)
{
    struct tb_control_frame frame;
    virtual_loop_turn(&w->t);
    tb_control_stream_fill(&w->launcher);
    while (tb_control_stream_next(&w->launcher, &frame) == TB_OK)
        if (frame.kind == TB_CONTROL_WAITS)
            take_answers(w, &frame.fields);
}

static void expect(const struct world *w, uint32_t local, unsigned what, const char *rest)
{
    char text[300];
    snprintf(text, sizeof text, "%u %s", what, rest);
    assert_int_equal(w->told_count[local], 1);
    assert_string_equal(w->told[local][0], text);
}

static void answers_go_to_the_launcher_at_once(void **state)
{
    struct world w;
    world_open(&w);
    for (uint32_t i = 0; i < RANKS; i++)
        rank_joins(&w, i);
    tb_wait_question_ask(&w.question, 4);
    for (uint32_t i = 0; i < RANKS; i++) {
        assert_int_equal(rank_hears(&w, i), 4);
        launcher_listens(&w);
        assert_int_equal(w.frames, 0);
        rank_answers(&w, i, 4, i, "MPI_Recv");
    }
    launcher_listens(&w);
    assert_int_equal(w.frames, 1);
    assert_int_equal(w.number, 4);
    expect(&w, 0, TB_WAIT_BUSY, "0 ");
    expect(&w, 1, TB_WAIT_TOLD, "1000 MPI_Recv");
    assert_int_equal(w.told_count[2], 2); /* threads */
    assert_string_equal(w.told[2][1], "0 1001 MPI_Recv");
    virtual_loop_pass(&w.t, 2 * (uint64_t)PATIENCE);
    launcher_listens(&w);
    assert_int_equal(w.frames, 1);
    world_close(&w);
}

/* Waits until the kernel has stopped it; bounded. */
static void stop_process(pid_t pid)
{
    int status;
    kill(pid, SIGSTOP);
    assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
}

static void the_silent_are_looked_at(void **state)
{
    struct world w;
    world_open(&w);
    for (uint32_t i = 0; i < 2; i++)
        rank_joins(&w, i);
    stop_process(w.pids[0]);
    tb_wait_question_ask(&w.question, 9);
    virtual_loop_pass(&w.t, PATIENCE - 1000000);
    launcher_listens(&w);
    assert_int_equal(w.frames, 0);
    virtual_loop_pass(&w.t, 2000000);
    launcher_listens(&w);
    assert_int_equal(w.frames, 1);
    expect(&w, 0, TB_WAIT_STOPPED, "0 ");
    expect(&w, 1, TB_WAIT_SLEEPS, "0 ");
    expect(&w, 2, TB_WAIT_BEFORE, "0 ");
    rank_answers(&w, 1, 9, 1, "too late");
    rank_says(&w, 1, TB_CONTROL_FINALIZED, 0);
    tb_rank_port_remove(&w.port, 0);
    tb_wait_question_ask(&w.question, 10);
    rank_answers(&w, 1, 9, 1, "still too late");
    launcher_listens(&w); /* none of them can answer, which is seen at once */
    assert_int_equal(w.frames, 2);
    expect(&w, 0, TB_WAIT_ENDED, "0 ");
    expect(&w, 1, TB_WAIT_FINALIZED, "0 ");
    world_close(&w);
}

static void whoever_ends_is_not_waited_for(void **state)
{
    struct world w;
    world_open(&w);
    for (uint32_t i = 0; i < RANKS; i++)
        rank_joins(&w, i);
    tb_wait_question_ask(&w.question, 1);
    rank_answers(&w, 0, 1, 1, "a");
    rank_answers(&w, 0, 1, 1, "again");
    rank_answers(&w, 1, 1, 1, "b");
    tb_rank_port_remove(&w.port, 2);
    tb_wait_question_ended(&w.question, 2);
    launcher_listens(&w);
    assert_int_equal(w.frames, 1);
    expect(&w, 0, TB_WAIT_TOLD, "1000 a");
    expect(&w, 2, TB_WAIT_ENDED, "0 ");
    world_close(&w);
}

/* A rank is not trusted: what is too long or too much is not passed on. */
static void nonsense_is_not_passed_on(void **state)
{
    struct world w;
    char text[TB_WAIT_TEXT + 1];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = 0;
    world_open(&w);
    for (uint32_t i = 0; i < RANKS; i++)
        rank_joins(&w, i);
    tb_wait_question_ask(&w.question, 1);
    rank_answers(&w, 0, 1, TB_WAITS_LIMIT + 1, "a");
    rank_answers(&w, 1, 1, 1, text);
    rank_answers(&w, 2, 1, TB_WAITS_LIMIT, "c");
    virtual_loop_pass(&w.t, PATIENCE);
    launcher_listens(&w);
    assert_int_equal(w.frames, 1);
    expect(&w, 0, TB_WAIT_SLEEPS, "0 ");
    expect(&w, 1, TB_WAIT_BUSY, "0 ");
    assert_int_equal(w.told_count[2], TB_WAITS_LIMIT);
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_go_to_the_launcher_at_once),
        cmocka_unit_test(the_silent_are_looked_at),
        cmocka_unit_test(whoever_ends_is_not_waited_for),
        cmocka_unit_test(nonsense_is_not_passed_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Ranks of a host as the launcher sees them: what comes up the control stream when real processes run. */
#include "agent/local_ranks.h"
#include "job/cost_mapping_test.h"
#include "remote/virtual_loop_test.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#define RANKS 2u

struct world {
    struct virtual_loop t;
    struct tb_uplink uplink;
    struct tb_local_ranks local;
    struct tb_control_stream launcher;
    struct tb_address_book book;
    struct tb_host host;
    struct tb_rank_range range;
    struct tb_app app;
    struct tb_setup setup;
    sigset_t mask;
    int connects, ended, outputs_ended;
    /* What the launcher has heard: */
    uint32_t pids[RANKS];
    char text[RANKS][2][256]; /* of standard output and error */
    uint32_t window;
    struct tb_ended ends[RANKS];
    int end_count, abort_count;
};

static void take_frame(void *context, struct tb_control_frame *frame) {}

static void take_lost(void *context, const char *why)
{
    fail_msg("%s", why);
}

static void take_connect(void *context, uint32_t rank, struct tb_proc to, enum tb_stream stream)
{
    ((struct world *)context)->connects++;
}

static void take_ended(void *context, uint32_t rank)
{
    ((struct world *)context)->ended++;
}

static void take_heard(void *context) {}

static void take_output_ended(void *context)
{
    ((struct world *)context)->outputs_ended++;
}

static void take_note(void *context, const char *text)
{
    fail_msg("%s", text);
}

static void settle(struct tb_loop *loop)
{
    struct world *w = TB_CONTAINER(TB_CONTAINER(loop, struct virtual_loop, loop), struct world, t);
    tb_uplink_settle(&w->uplink);
}

static void world_open(struct world *w)
{
    const struct tb_uplink_events uplink_calls = {.context = w, .frame = take_frame, .lost = take_lost};
    const struct tb_local_ranks_events events = {.context = w,
                                                 .connect = take_connect,
                                                 .ended = take_ended,
                                                 .output_heard = take_heard,
                                                 .output_ended = take_output_ended,
                                                 .note = take_note};
    int pair[2];
    char version[64];
    memset(w, 0, sizeof *w);
    sigemptyset(&w->mask);
    assert_int_equal(virtual_loop_open(&w->t), TB_OK);
    w->t.loop.settle = settle;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
    tb_control_stream_open(&w->launcher, pair[1], pair[1]);
    int out = fcntl(pair[0], F_DUPFD_CLOEXEC, 3);
    assert_int_equal(tb_uplink_open(&w->uplink, &w->t.loop, pair[0], out, &uplink_calls), TB_OK);
    assert_int_equal(tb_control_stream_fill(&w->launcher), TB_OK);
    assert_int_equal(tb_control_stream_preamble(&w->launcher, version, sizeof version), TB_OK);
    tb_local_ranks_open(&w->local, &w->t.loop, &w->uplink, &events);
    assert_int_equal(tb_local_ranks_listen(&w->local), TB_OK);
    tb_outputs_allow(&w->local.outputs, 1 << 20);
}

static int give_costs(struct world *w, uint32_t places, uint32_t version)
{
    struct tb_cost_head *head = costs_make(places, 1, version);
    struct tb_writer t;
    struct tb_reader r;
    tb_writer_open(&t);
    tb_put_u32(&t, version);
    tb_put_u64(&t, head->bytes);
    tb_put_u64(&t, 0);
    tb_put_bytes(&t, head, (size_t)head->bytes);
    tb_reader_open(&r, t.bytes, t.length);
    int rc = tb_local_ranks_take_costs(&w->local, &r, 1);
    tb_writer_close(&t);
    free(head);
    return rc;
}

/* Of a plan, which has 10 bytes. */
static int give_plan(struct world *w, uint64_t at, const char *bytes)
{
    struct tb_writer t;
    struct tb_reader r;
    tb_writer_open(&t);
    tb_put_u32(&t, 1);
    tb_put_u64(&t, 10);
    tb_put_u64(&t, at);
    tb_put_bytes(&t, bytes, strlen(bytes));
    tb_reader_open(&r, t.bytes, t.length);
    int rc = tb_local_ranks_take_plan(&w->local, &r);
    tb_writer_close(&t);
    return rc;
}

static void start(struct world *w, const char *script)
{
    static char *words[] = {(char *)"sh", (char *)"-c", NULL, NULL};
    struct tb_host_routes routes = {0};
    struct tb_start_failure failure;
    words[2] = (char *)script;
    w->host = (struct tb_host){.name = "here", .rank_count = RANKS};
    w->range = (struct tb_rank_range){.count = RANKS};
    w->book = (struct tb_address_book){.version = 1,
                                       .job = 5,
                                       .ranks = RANKS,
                                       .host_count = 1,
                                       .range_count = 1,
                                       .hosts = &w->host,
                                       .ranges = &w->range};
    w->app = (struct tb_app){.ranks = RANKS, .argument_count = 3, .arguments = words, .directory = (char *)""};
    w->setup = (struct tb_setup){.job = 5,
                                 .bind_width = 1,
                                 .bind_cpus = (char *)"",
                                 .rank_cpus = (char *)"",
                                 .host_count = 1,
                                 .hold = 1000000,
                                 .parameters = (char *)"",
                                 .directory = (char *)"/",
                                 .app_count = 1,
                                 .apps = &w->app};
    struct tb_rank_start how = {.setup = &w->setup, .book = &w->book, .host = "here", .mask = &w->mask};
    costs_places(&w->book.places, 2);
    assert_int_equal(tb_local_ranks_make(&w->local, &w->setup, &w->book, &routes), TB_ERR_PROTOCOL); /* costs first */
    assert_int_equal(give_costs(w, 2, 1), TB_OK);
    assert_int_equal(give_costs(w, 2, 2), TB_ERR_PROTOCOL); /* no other before the ranks are known */
    assert_int_equal(give_plan(w, 0, "01234"), TB_OK);
    assert_int_equal(w->local.services.plan, -1);
    assert_int_equal(tb_local_ranks_make(&w->local, &w->setup, &w->book, &routes), TB_ERR_PROTOCOL); /* half a plan */
    assert_int_equal(give_plan(w, 5, "56789"), TB_OK);
    assert_true(w->local.services.plan >= 0);
    assert_int_equal(give_plan(w, 0, "01234"), TB_ERR_PROTOCOL); /* there is one */
    assert_int_equal(tb_local_ranks_make(&w->local, &w->setup, &w->book, &routes), TB_OK);
    tb_places_close(&w->book.places);
    if (tb_local_ranks_start(&w->local, &how, &failure) != TB_OK)
        fail_msg("%s", failure.text);
}

static void world_close(struct world *w)
{
    int status;
    pid_t pid;
    tb_ranks_signal(&w->local.ranks, SIGKILL);
    while ((pid = waitpid(-1, &status, 0)) > 0)
        tb_ranks_reap(&w->local.ranks, pid, status);
    tb_rank_port_close(&w->local.port);
    tb_outputs_close(&w->local.outputs);
    tb_rank_input_close(&w->local.input);
    tb_host_services_close(&w->local.services);
    tb_ranks_close(&w->local.ranks);
    tb_uplink_close(&w->uplink);
    tb_control_stream_close(&w->launcher);
    virtual_loop_close(&w->t);
}

static void hear(struct world *w, struct tb_control_frame *frame)
{
    struct tb_reader *r = &frame->fields;
    size_t length = 0;
    if (frame->kind == TB_CONTROL_STARTED) {
        assert_int_equal(tb_get_u32(r), RANKS);
        for (uint32_t i = 0; i < RANKS; i++)
            w->pids[i] = tb_get_u32(r);
    } else if (frame->kind == TB_CONTROL_OUTPUT) {
        uint32_t rank = tb_get_u32(r), stream = tb_get_u8(r);
        const char *bytes = tb_get_bytes(r, &length);
        strncat(w->text[rank][stream - 1], bytes, length);
    } else if (frame->kind == TB_CONTROL_WINDOW) {
        w->window += tb_get_u32(r);
    } else if (frame->kind == TB_CONTROL_ABORTED) {
        w->abort_count++;
    } else {
        assert_int_equal(frame->kind, TB_CONTROL_ENDED);
        assert_int_equal(tb_ended_get(r, &w->ends[w->end_count++]), TB_OK);
    }
}

/* Until so many streams have ended; the processes then are collected. */
static void run(struct world *w, int streams)
{
    struct tb_control_frame frame;
    int status;
    pid_t pid;
    for (int i = 0; i < 1000 && w->outputs_ended < streams; i++) {
        struct pollfd ready = {.fd = w->t.loop.epoll, .events = POLLIN};
        virtual_loop_turn(&w->t);
        if (w->outputs_ended < streams)
            poll(&ready, 1, 10);
    }
    assert_int_equal(w->outputs_ended, streams);
    while ((pid = waitpid(-1, &status, 0)) > 0)
        tb_ranks_reap(&w->local.ranks, pid, status);
    virtual_loop_turn(&w->t);
    tb_control_stream_fill(&w->launcher);
    while (tb_control_stream_next(&w->launcher, &frame) == TB_OK)
        hear(w, &frame);
}

static void a_whole_life(void **state)
{
    struct world w;
    world_open(&w);
    start(&w, "echo out; echo err >&2; cat; exit $((TOMBOLO_RANK + 2))");
    assert_true(tb_local_ranks_has(&w.local, 1));
    assert_false(tb_local_ranks_has(&w.local, 2));
    assert_int_equal(tb_rank_input_add(&w.local.input, "typed\n", 6), TB_OK);
    assert_int_equal(tb_rank_input_add(&w.local.input, NULL, 0), TB_OK);
    run(&w, 2 * RANKS);
    assert_string_equal(w.text[0][0], "out\ntyped\n"); /* only rank 0 has input */
    assert_string_equal(w.text[1][0], "out\n");
    assert_string_equal(w.text[1][1], "err\n");
    assert_int_equal(w.window, 6);
    assert_int_equal(w.end_count, RANKS);
    assert_int_equal(w.ended, RANKS);
    for (int i = 0; i < w.end_count; i++) {
        assert_int_equal(w.ends[i].pid, w.pids[w.ends[i].rank]);
        assert_int_equal(w.ends[i].status, (w.ends[i].rank + 2) << 8);
        assert_int_equal(w.ends[i].flags, 0); /* they have never heard of MPI */
    }
    assert_true(tb_local_ranks_all_ended(&w.local));
    assert_false(tb_local_ranks_has(&w.local, 1));
    world_close(&w);
}

/* What a rank has told of itself comes with its end, also when it is read only then. */
static void ends_say_how_far_it_came(void **state)
{
    struct world w;
    world_open(&w);
    start(&w, "exec sleep 60");
    struct tb_port_rank *rank = &w.local.port.ranks[1];
    rank->initialized = true;
    tb_local_ranks_stop(&w.local);
    w.local.ranks.all[0].dumping = true; /* its end is its own */
    kill(w.local.ranks.all[0].pid, SIGTERM);
    tb_ranks_signal(&w.local.ranks, SIGKILL);
    run(&w, 2 * RANKS);
    assert_int_equal(w.end_count, RANKS);
    for (int i = 0; i < w.end_count; i++) {
        uint32_t expected =
            (w.ends[i].rank == 0 ? 0 : TB_ENDED_STOPPED) | (w.ends[i].rank == 1 ? TB_ENDED_INITIALIZED : 0);
        assert_int_equal(w.ends[i].flags, expected);
    }
    world_close(&w);
}

/* A rank that dies just before the agent ends all of them has not died of that. */
static void the_dying_are_not_stopped(void **state)
{
    struct world w;
    world_open(&w);
    start(&w, "exec sleep 60");
    kill(w.local.ranks.all[1].pid, SIGKILL);
    tb_local_ranks_stop(&w.local);
    tb_ranks_signal(&w.local.ranks, SIGTERM);
    run(&w, 2 * RANKS);
    assert_int_equal(w.end_count, RANKS);
    for (int i = 0; i < w.end_count; i++) {
        assert_int_equal(w.ends[i].flags, w.ends[i].rank == 1 ? 0 : TB_ENDED_STOPPED);
        assert_int_equal(WTERMSIG(w.ends[i].status), w.ends[i].rank == 1 ? SIGKILL : SIGTERM);
    }
    world_close(&w);
}

/* Until each has written this. */
static void run_until_said(struct world *w, const char *text)
{
    struct tb_control_frame frame;
    for (int i = 0; i < 1000 && (strcmp(w->text[0][0], text) != 0 || strcmp(w->text[1][0], text) != 0); i++) {
        struct pollfd ready = {.fd = w->t.loop.epoll, .events = POLLIN};
        poll(&ready, 1, 10);
        virtual_loop_turn(&w->t);
        tb_control_stream_fill(&w->launcher);
        while (tb_control_stream_next(&w->launcher, &frame) == TB_OK)
            hear(w, &frame);
    }
    assert_string_equal(w->text[0][0], text);
    assert_string_equal(w->text[1][0], text);
}

/* Those of one world are ended while others go on: who does not heed that is killed. */
static void a_world_is_ended_by_itself(void **state)
{
    struct world w;
    world_open(&w);
    start(&w, "[ $TOMBOLO_RANK = 0 ] && trap '' TERM; echo on; exec sleep 60");
    run_until_said(&w, "on\n");
    tb_local_ranks_end(&w.local);
    virtual_loop_pass(&w.t, tb_param.kill_grace / 2);
    tb_local_ranks_end(&w.local); /* which changes nothing */
    assert_int_equal(kill(w.local.ranks.all[0].pid, 0), 0);
    virtual_loop_pass(&w.t, tb_param.kill_grace / 2 + 1);
    run(&w, 2 * RANKS);
    assert_int_equal(w.end_count, RANKS);
    for (int i = 0; i < w.end_count; i++) {
        assert_int_equal(w.ends[i].flags, TB_ENDED_STOPPED);
        assert_int_equal(WTERMSIG(w.ends[i].status), w.ends[i].rank == 0 ? SIGKILL : SIGTERM);
    }
    world_close(&w);
}

/* A connection for a rank that has ended is closed. */
static void the_ended_get_no_connections(void **state)
{
    struct world w;
    world_open(&w);
    start(&w, "true");
    int pair[2];
    char byte;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
    run(&w, 2 * RANKS);
    tb_local_ranks_connection(&w.local, 1, (struct tb_proc){5, 0}, TB_STREAM_SHORT, TB_OK, pair[0]);
    assert_int_equal(recv(pair[1], &byte, 1, 0), 0);
    close(pair[1]);
    assert_int_equal(w.connects + w.abort_count, 0);
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_whole_life),
        cmocka_unit_test(ends_say_how_far_it_came),
        cmocka_unit_test(the_dying_are_not_stopped),
        cmocka_unit_test(a_world_is_ended_by_itself),
        cmocka_unit_test(the_ended_get_no_connections),
    };
    signal(SIGPIPE, SIG_IGN);
    tb_param_load();
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Names for several jobs: a server and launchers that ask it, over loopback. */
#include "launch/name_client.h"
#include "launch/name_file.h"
#include "launch/name_server.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define PATIENCE_NS 20000000000u

static uint64_t passed; /* that the clock is ahead */

static uint64_t now(void *context)
{
    return tb_clock_now(&tb_clock_real) + passed;
}

static const struct tb_clock clock_ahead = {.now = now};

struct job {
    struct tb_name_client client;
    uint32_t answers;
    struct tb_registry_answer last;
    struct world *world;
};

struct world {
    struct tb_loop loop;
    struct tb_name_server server;
    bool serves;
    uint16_t port;
    char path[64];
    struct tb_name_file file;
    struct job a, b;
    uint32_t wanted; /* answers of both */
    struct tb_timer overdue;
};

static void too_late(struct tb_timer *timer)
{
    TB_CONTAINER(timer, struct world, overdue)->loop.stop = true;
}

static void settle(struct tb_loop *loop)
{
    struct world *w = TB_CONTAINER(loop, struct world, loop);
    if (w->serves)
        tb_name_server_settle(&w->server);
    tb_name_client_settle(&w->a.client);
    tb_name_client_settle(&w->b.client);
    if (w->a.answers + w->b.answers >= w->wanted)
        loop->stop = true;
}

static void answered(void *context, uint32_t rank, const struct tb_registry_answer *answer)
{
    struct job *job = context;
    job->answers++;
    job->last = *answer;
}

/* At the port that it had before, if it had one. */
static void serve(struct world *w, bool other_secret)
{
    struct tb_name_place place;
    char text[TB_NAME_PLACE_BYTES], where[32], ports[16];
    snprintf(ports, sizeof ports, "%u", (unsigned)w->port);
    int socket = tb_ports_listen(ports, &w->port);
    assert_true(socket >= 0);
    snprintf(where, sizeof where, "127.0.0.1:%u", (unsigned)w->port);
    assert_int_equal(tb_name_place_make(&place, where, text), TB_OK);
    assert_int_equal(tb_name_server_open(&w->server, &w->loop, socket, &place.key), TB_OK);
    if (!other_secret) {
        assert_int_equal(tb_name_file_claim(&w->file, w->path), TB_OK);
        assert_int_equal(tb_name_file_write(&w->file, text), TB_OK);
    }
    w->serves = true;
}

static void serve_no_more(struct world *w)
{
    tb_name_server_close(&w->server);
    w->serves = false;
}

static void join(struct world *w, struct job *job)
{
    job->world = w;
    job->answers = 0;
    assert_int_equal(tb_name_client_open(&job->client, &w->loop, w->path,
                                         &(struct tb_name_client_events){.context = job, .answered = answered}),
                     TB_OK);
}

static struct world *make(void)
{
    struct world *w = calloc(1, sizeof *w);
    assert_non_null(w);
    assert_int_equal(tb_loop_open(&w->loop, &clock_ahead), TB_OK);
    w->loop.settle = settle;
    tb_timer_init(&w->overdue, too_late);
    snprintf(w->path, sizeof w->path, "/tmp/tombolo-names-%d", (int)getpid());
    serve(w, false);
    join(w, &w->a);
    join(w, &w->b);
    return w;
}

static void unmake(struct world *w)
{
    tb_name_client_close(&w->a.client);
    tb_name_client_close(&w->b.client);
    if (w->serves)
        serve_no_more(w);
    tb_timer_clear(&w->overdue);
    tb_loop_close(&w->loop);
    tb_name_file_close(&w->file);
    unlink(w->path);
    free(w);
}

static void run(struct world *w, uint32_t more)
{
    w->wanted = w->a.answers + w->b.answers + more;
    w->loop.stop = false;
    tb_timer_set(&w->loop, &w->overdue, PATIENCE_NS);
    assert_int_equal(tb_loop_run(&w->loop), TB_OK);
    tb_timer_clear(&w->overdue);
    assert_int_equal(w->a.answers + w->b.answers, w->wanted);
}

static void ask(struct job *job, uint32_t rank, enum tb_registry_kind kind, const char *name, const char *value,
                uint64_t patience)
{
    static uint32_t number;
    struct tb_registry_question question = {.kind = kind, .patience = patience};
    struct tb_writer fields;
    snprintf(question.name, sizeof question.name, "%s", name);
    snprintf(question.value, sizeof question.value, "%s", value);
    tb_writer_open(&fields);
    tb_registry_question_put(&fields, &question);
    const struct tb_agent_wish wish = {rank, ++number, fields.bytes, fields.length};
    assert_true(tb_name_client_take(&job->client, &wish));
    tb_writer_close(&fields);
}

static enum tb_registry_result result(struct world *w, struct job *job, uint32_t rank, enum tb_registry_kind kind,
                                      const char *name, const char *value)
{
    ask(job, rank, kind, name, value, 0);
    run(w, 1);
    return job->last.result;
}

/* ------------------------------------------------------------------------------------------------------------------ */

static void one_publishes_and_another_finds_it(void **state)
{
    struct world *w = make();
    assert_int_equal(result(w, &w->b, 0, TB_REGISTRY_LOOKUP, "sea", ""), TB_REGISTRY_UNKNOWN);
    assert_int_equal(result(w, &w->a, 3, TB_REGISTRY_PUBLISH, "sea", "a port"), TB_REGISTRY_DONE);
    assert_int_equal(result(w, &w->b, 0, TB_REGISTRY_LOOKUP, "sea", ""), TB_REGISTRY_DONE);
    assert_string_equal(w->b.last.value, "a port");
    assert_int_equal(result(w, &w->b, 0, TB_REGISTRY_PUBLISH, "sea", "another"), TB_REGISTRY_TAKEN);
    assert_int_equal(result(w, &w->a, 3, TB_REGISTRY_UNPUBLISH, "sea", "a port"), TB_REGISTRY_DONE);
    assert_int_equal(result(w, &w->b, 0, TB_REGISTRY_LOOKUP, "sea", ""), TB_REGISTRY_UNKNOWN);
    unmake(w);
}

static void one_waits_until_it_is_there(void **state)
{
    struct world *w = make();
    ask(&w->b, 1, TB_REGISTRY_LOOKUP, "sea", "", TB_REGISTRY_FOREVER);
    ask(&w->b, 2, TB_REGISTRY_LOOKUP, "nothing", "", 50000000);
    run(w, 1);
    assert_int_equal(w->b.last.result, TB_REGISTRY_LATE);
    ask(&w->a, 0, TB_REGISTRY_PUBLISH, "sea", "a port", 0);
    run(w, 2);
    assert_int_equal(w->b.last.result, TB_REGISTRY_DONE);
    assert_string_equal(w->b.last.value, "a port");
    unmake(w);
}

static void names_go_with_their_rank_and_job(void **state)
{
    struct world *w = make();
    assert_int_equal(result(w, &w->a, 0, TB_REGISTRY_PUBLISH, "sea", "0"), TB_REGISTRY_DONE);
    assert_int_equal(result(w, &w->a, 1, TB_REGISTRY_PUBLISH, "shore", "1"), TB_REGISTRY_DONE);
    tb_name_client_end(&w->a.client, 0);
    assert_int_equal(result(w, &w->a, 2, TB_REGISTRY_LOOKUP, "sea", ""), TB_REGISTRY_UNKNOWN);
    assert_int_equal(result(w, &w->b, 0, TB_REGISTRY_LOOKUP, "shore", ""), TB_REGISTRY_DONE);
    tb_name_client_close(&w->a.client);
    for (int i = 0; i < 1000 && w->b.last.result != TB_REGISTRY_UNKNOWN; i++)
        result(w, &w->b, 0, TB_REGISTRY_LOOKUP, "shore", "");
    assert_int_equal(w->b.last.result, TB_REGISTRY_UNKNOWN);
    join(w, &w->a);
    unmake(w);
}

static void who_asks_in_vain_is_told(void **state)
{
    struct world *w = make();
    assert_int_equal(result(w, &w->a, 0, TB_REGISTRY_PUBLISH, "sea", "0"), TB_REGISTRY_DONE);
    ask(&w->b, 1, TB_REGISTRY_LOOKUP, "nothing", "", TB_REGISTRY_FOREVER);
    assert_int_equal(result(w, &w->b, 0, TB_REGISTRY_LOOKUP, "sea", ""), TB_REGISTRY_DONE);
    serve_no_more(w);
    run(w, 1); /* who has waited */
    assert_int_equal(w->b.last.result, TB_REGISTRY_DEAD);
    assert_int_equal(result(w, &w->a, 0, TB_REGISTRY_LOOKUP, "sea", ""), TB_REGISTRY_DEAD);
    serve(w, true); /* somebody else, with another secret */
    assert_int_equal(result(w, &w->a, 0, TB_REGISTRY_LOOKUP, "sea", ""), TB_REGISTRY_DEAD);
    unmake(w);
}

static void turn(struct world *w)
{
    w->loop.stop = false;
    w->wanted = UINT32_MAX;
    tb_timer_set(&w->loop, &w->overdue, 5000000);
    assert_int_equal(tb_loop_run(&w->loop), TB_OK);
}

/* So many seconds pass, one after the other. `lives`: a server that is there has as long as it needs. */
static void pass(struct world *w, uint32_t seconds, bool lives)
{
    for (uint32_t i = 0; i < seconds; i++) {
        passed += 1000000000u;
        turn(w);
        for (int k = 0; k < 2000 && lives && !(w->a.client.heard && w->b.client.heard); k++)
            turn(w);
    }
}

/* In a process of its own, which both jobs know from now on. */
static pid_t serve_apart(struct world *w)
{
    serve_no_more(w);
    unlink(w->path);
    w->port = 0;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct world *own = calloc(1, sizeof *own);
        alarm(60); /* whatever becomes of the test */
        assert_int_equal(tb_loop_open(&own->loop, &tb_clock_real), TB_OK);
        own->loop.settle = settle;
        own->wanted = UINT32_MAX;
        memcpy(own->path, w->path, sizeof own->path);
        serve(own, false);
        tb_loop_run(&own->loop);
        _exit(0);
    }
    for (int i = 0; i < 2000 && access(w->path, F_OK) != 0; i++)
        usleep(10000);
    tb_name_client_close(&w->a.client);
    tb_name_client_close(&w->b.client);
    join(w, &w->a);
    join(w, &w->b);
    return child;
}

/* It is stopped, or cut off: its connection is there, and nothing comes. */
static void a_server_that_is_silent(void **state)
{
    struct world *w = make();
    pid_t child = serve_apart(w);
    assert_int_equal(result(w, &w->a, 0, TB_REGISTRY_PUBLISH, "sea", "0"), TB_REGISTRY_DONE);
    ask(&w->b, 1, TB_REGISTRY_LOOKUP, "nothing", "", TB_REGISTRY_FOREVER);
    pass(w, 60, true); /* who waits for a name waits, while it answers */
    assert_int_equal(w->b.answers, 0);
    kill(child, SIGSTOP);
    ask(&w->a, 0, TB_REGISTRY_LOOKUP, "sea", "", 0);
    pass(w, 16, false);
    assert_int_equal(w->a.answers, 2);
    assert_int_equal(w->a.last.result, TB_REGISTRY_DEAD);
    assert_int_equal(w->b.answers, 1);
    assert_int_equal(w->b.last.result, TB_REGISTRY_DEAD);
    ask(&w->a, 0, TB_REGISTRY_LOOKUP, "sea", "", 0); /* nor does it answer who comes anew */
    pass(w, 16, false);
    assert_int_equal(w->a.last.result, TB_REGISTRY_DEAD);
    kill(child, SIGCONT);
    assert_int_equal(result(w, &w->b, 0, TB_REGISTRY_LOOKUP, "shore", ""), TB_REGISTRY_UNKNOWN); /* there it is again */
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    unmake(w);
}

/* More answers at once than a connection takes, and more than anybody's who reads. */
static void many_wait_for_one_name(void **state)
{
    enum { MANY = 5000, TOO_MANY = 65500 }; /* the latter with more than 64 MiB of answers */
    char value[TB_REGISTRY_VALUE_BYTES];
    struct world *w = make();
    memset(value, 'v', sizeof value - 1);
    value[sizeof value - 1] = 0;
    for (uint32_t i = 0; i < MANY; i++)
        ask(&w->b, i, TB_REGISTRY_LOOKUP, "sea", "", TB_REGISTRY_FOREVER);
    ask(&w->b, 0, TB_REGISTRY_LOOKUP, "nothing", "", 0); /* when it is answered, all of them are there */
    run(w, 1);
    ask(&w->a, 0, TB_REGISTRY_PUBLISH, "sea", value, 0);
    run(w, MANY + 1);
    assert_int_equal(w->b.last.result, TB_REGISTRY_DONE);
    assert_string_equal(w->b.last.value, value);
    for (uint32_t i = 0; i < TOO_MANY; i++)
        ask(&w->b, i, TB_REGISTRY_LOOKUP, "shore", "", TB_REGISTRY_FOREVER);
    ask(&w->b, 0, TB_REGISTRY_LOOKUP, "nothing", "", 0);
    run(w, 1);
    ask(&w->a, 0, TB_REGISTRY_PUBLISH, "shore", value, 0);
    run(w, TOO_MANY + 1);
    assert_int_equal(w->b.last.result, TB_REGISTRY_DEAD);
    assert_int_equal(result(w, &w->b, 0, TB_REGISTRY_LOOKUP, "sea", ""), TB_REGISTRY_DONE); /* it may come again */
    unmake(w);
}

/* One job leaves as much to all others as it has itself, of names and of those who may wait. */
static void each_has_its_share(void **state)
{
    struct world *w = make();
    struct tb_name_table *names = &w->server.names;
    const struct {
        uint32_t *count, *own, most;
    } all[] = {{&names->name_count, &names->shares[0].names, TB_NAME_TABLE_NAMES},
               {&names->wait_count, &names->shares[0].waits, TB_REGISTRY_WAITS}};
    assert_int_equal(result(w, &w->a, 0, TB_REGISTRY_PUBLISH, "first", "p"), TB_REGISTRY_DONE);
    assert_int_equal(result(w, &w->b, 0, TB_REGISTRY_PUBLISH, "second", "p"), TB_REGISTRY_DONE);
    for (size_t i = 0; i < 2; i++) {
        uint32_t half = all[i].most / 2 - *all[i].own - 1;
        *all[i].count += half; /* as if it had done that as often */
        *all[i].own += half;
        enum tb_registry_kind kind = i == 0 ? TB_REGISTRY_PUBLISH : TB_REGISTRY_LOOKUP;
        ask(&w->a, 0, kind, "one more of these", "p", TB_REGISTRY_FOREVER);
        ask(&w->a, 1, kind, "and one too many", "p", TB_REGISTRY_FOREVER);
        run(w, i == 0 ? 2 : 1);
        assert_int_equal(w->a.last.result, TB_REGISTRY_FULL);
        ask(&w->b, 0, kind, "that of another job", "p", 1);
        run(w, 1);
        assert_int_equal(w->b.last.result, i == 0 ? TB_REGISTRY_DONE : TB_REGISTRY_LATE);
        *all[i].count -= half;
        *all[i].own -= half;
        assert_int_equal(result(w, &w->b, 0, TB_REGISTRY_UNPUBLISH, "that of another job", "p"),
                         i == 0 ? TB_REGISTRY_DONE : TB_REGISTRY_UNKNOWN);
        result(w, &w->a, 0, TB_REGISTRY_UNPUBLISH, "one more of these", "p");
    }
    unmake(w);
}

static void places_that_are_none(void **state)
{
    struct tb_name_place place;
    static const char *const bad[] = {"", "anything", "tombolo-meet:12@127.0.0.1:7",
                                      "tombolo-meet:00000000000000000000000000000000",
                                      "tombolo-meet:00000000000000000000000000000000@"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(tb_name_place_parse(&place, bad[i]), TB_ERR_ARGUMENT);
    assert_int_equal(tb_name_place_parse(&place, "tombolo-meet:0123456789abcdef0123456789abcdef@[::1]:7,192.0.2.1:7\n"),
                     TB_OK);
    assert_string_equal(place.addresses, "[::1]:7,192.0.2.1:7");
    assert_int_not_equal(tb_name_place_read(&place, "/nowhere/at/all"), TB_OK);
    assert_non_null(strstr(tb_error_story(), "/nowhere/at/all"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_publishes_and_another_finds_it),
        cmocka_unit_test(one_waits_until_it_is_there),
        cmocka_unit_test(names_go_with_their_rank_and_job),
        cmocka_unit_test(who_asks_in_vain_is_told),
        cmocka_unit_test(a_server_that_is_silent),
        cmocka_unit_test(many_wait_for_one_name),
        cmocka_unit_test(each_has_its_share),
        cmocka_unit_test(places_that_are_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

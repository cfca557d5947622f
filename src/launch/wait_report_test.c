/* What ranks wait for as the user is told it, of agents that the test plays, in virtual time. */
#include "launch/wait_report.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "remote/virtual_loop_test.h"

#define HOSTS 3u
#define TENTH 100000000u /* ns */

struct world {
    struct virtual_loop loop;
    struct tb_host_agents agents;
    struct tb_host_agent_events agent_events;
    struct tb_wait_report report;
    struct tb_writer answers; /* of the host that speaks */
    uint32_t count, done, lines;
    char said[80][1100];
};

static void say(void *context, const char *text)
{
    struct world *w = context;
    assert_true(w->lines < 80);
    snprintf(w->said[w->lines++], sizeof w->said[0], "%s", text);
}

static void done(void *context)
{
    ((struct world *)context)->done++;
}

static void make(struct world *w)
{
    static const char *const names[HOSTS] = {"a", "b", "c"};
    memset(w, 0, sizeof *w);
    virtual_loop_open(&w->loop);
    assert_int_equal(tb_host_agents_open(&w->agents, &w->loop.loop, HOSTS, &w->agent_events), TB_OK);
    for (uint32_t i = 0; i < HOSTS; i++) {
        w->agents.all[i].phase = TB_HOST_AGENT_STARTED;
        w->agents.all[i].rank_count = 2;
        w->agents.all[i].name = names[i];
    }
    tb_wait_report_init(&w->report, &w->loop.loop, &w->agents,
                        &(struct tb_wait_report_events){.context = w, .say = say, .done = done});
}

static void unmake(struct world *w)
{
    tb_wait_report_stop(&w->report);
    for (uint32_t i = 0; i < HOSTS; i++)
        tb_host_agent_give_up(&w->agents.all[i]);
    tb_host_agents_close(&w->agents);
    virtual_loop_close(&w->loop);
}

static void begin(struct world *w)
{
    tb_writer_open(&w->answers);
    w->count = 0;
}

static void entry(struct world *w, uint32_t rank, enum tb_wait_answer what, uint64_t time, const char *text)
{
    tb_put_u32(&w->answers, rank);
    tb_put_u32(&w->answers, 1000 + rank);
    tb_put_u8(&w->answers, (uint8_t)what);
    tb_put_u64(&w->answers, time);
    tb_put_text(&w->answers, text);
    w->count++;
}

/* The host answers a question with what was entered. */
static void answer(struct world *w, uint32_t host, uint32_t number)
{
    uint8_t bytes[65536];
    struct tb_writer head;
    struct tb_reader r;
    tb_writer_open(&head);
    tb_put_u32(&head, number);
    tb_put_u32(&head, 0);
    tb_put_u32(&head, w->count);
    assert_true(head.length + w->answers.length <= sizeof bytes);
    memcpy(bytes, head.bytes, head.length);
    if (w->answers.length > 0)
        memcpy(bytes + head.length, w->answers.bytes, w->answers.length);
    tb_reader_open(&r, bytes, head.length + w->answers.length);
    tb_wait_report_take(&w->report, &w->agents.all[host], &r);
    tb_writer_close(&head);
    tb_writer_close(&w->answers);
}

static void line_is(const struct world *w, uint32_t at, const char *text)
{
    assert_true(at < w->lines);
    assert_string_equal(w->said[at], text);
}

static void the_same_is_said_once(void **state)
{
    struct world w;
    static const char barrier[] = "MPI_Barrier on MPI_COMM_WORLD: rank 5 has not called it";
    make(&w);
    assert_true(tb_wait_report_ask(&w.report));
    assert_true(tb_wait_report_is_open(&w.report));
    begin(&w);
    entry(&w, 5, TB_WAIT_SLEEPS, 0, "");
    entry(&w, 4, TB_WAIT_TOLD, 121 * (uint64_t)TENTH, barrier);
    answer(&w, 2, 1);
    begin(&w);
    entry(&w, 0, TB_WAIT_TOLD, 119 * (uint64_t)TENTH, barrier);
    entry(&w, 1, TB_WAIT_TOLD, 120 * (uint64_t)TENTH, barrier);
    answer(&w, 0, 1);
    assert_int_equal(w.lines, 0);
    begin(&w);
    entry(&w, 2, TB_WAIT_TOLD, 120 * (uint64_t)TENTH, barrier);
    entry(&w, 3, TB_WAIT_TOLD, 5 * (uint64_t)TENTH, "MPI_Recv from rank 5, tag 7, MPI_COMM_WORLD");
    entry(&w, 3, TB_WAIT_TOLD, 0, "MPI_Recv from rank 5, tag 8, MPI_COMM_WORLD");
    answer(&w, 1, 1);
    assert_int_equal(w.done, 1);
    assert_int_equal(w.lines, 4);
    line_is(&w, 0,
            "ranks 0-2, 4 have waited for 11.9 to 12.1 s in MPI_Barrier on MPI_COMM_WORLD: rank 5 has not called it");
    line_is(&w, 1, "rank 3 on b, process 1003, has waited for 0.5 s in MPI_Recv from rank 5, tag 7, MPI_COMM_WORLD");
    line_is(&w, 2, "rank 3 on b, process 1003, waits in MPI_Recv from rank 5, tag 8, MPI_COMM_WORLD");
    line_is(&w, 3, "rank 5 on c, process 1005, is outside of MPI: it sleeps, or waits for something else");
    assert_false(tb_wait_report_is_open(&w.report));
    unmake(&w);
}

static void hosts_that_do_not_answer_are_named(void **state)
{
    struct world w;
    make(&w);
    w.agents.all[0].idle = true; /* has no ranks any more */
    assert_true(tb_wait_report_ask(&w.report));
    begin(&w);
    entry(&w, 2, TB_WAIT_ENDED, 0, "");
    entry(&w, 3, TB_WAIT_ENDED, 0, "");
    answer(&w, 1, 1);
    virtual_loop_pass(&w.loop, 14 * (uint64_t)TENTH);
    assert_int_equal(w.done, 0);
    virtual_loop_pass(&w.loop, 2 * (uint64_t)TENTH);
    assert_int_equal(w.done, 1);
    assert_int_equal(w.lines, 2);
    line_is(&w, 0, "ranks 2, 3 have ended");
    line_is(&w, 1, "host c does not answer: nothing is known of its ranks");
    begin(&w);
    entry(&w, 4, TB_WAIT_STOPPED, 0, "");
    answer(&w, 2, 1); /* too late */
    assert_true(tb_wait_report_ask(&w.report));
    begin(&w);
    answer(&w, 2, 1); /* for another question */
    assert_int_equal(w.done, 1);
    tb_wait_report_stop(&w.report);
    virtual_loop_pass(&w.loop, 20 * (uint64_t)TENTH);
    assert_int_equal(w.done, 1);
    assert_int_equal(w.lines, 2);
    unmake(&w);
}

static void nobody_is_asked_before_the_start(void **state)
{
    struct world w;
    make(&w);
    for (uint32_t i = 0; i < HOSTS; i++)
        w.agents.all[i].phase = TB_HOST_AGENT_READY;
    assert_false(tb_wait_report_ask(&w.report));
    assert_false(tb_wait_report_is_open(&w.report));
    virtual_loop_pass(&w.loop, 20 * (uint64_t)TENTH);
    assert_int_equal(w.done, 0);
    unmake(&w);
}

static void there_is_an_end_to_it(void **state)
{
    struct world w;
    char text[64];
    make(&w);
    assert_true(tb_wait_report_ask(&w.report));
    begin(&w);
    for (uint32_t i = 0; i < 100; i++) {
        snprintf(text, sizeof text, "MPI_Recv from rank %u", i + 1);
        entry(&w, 99 - i, TB_WAIT_TOLD, 0, text);
    }
    entry(&w, 200, TB_WAIT_ANSWERS, 0, "no such answer");
    answer(&w, 0, 1);
    begin(&w);
    for (uint32_t i = 0; i < 400; i++)
        entry(&w, 1000 + 2 * i, TB_WAIT_BEFORE, 0, "");
    answer(&w, 1, 1);
    begin(&w);
    entry(&w, 0, TB_WAIT_TOLD, 0, "\"\033[31mred\n\"");
    answer(&w, 2, 1);
    assert_int_equal(w.done, 1);
    assert_int_equal(w.lines, 65);
    line_is(&w, 0, "rank 0 on c, process 1000, waits in \"?[31mred?\"");
    line_is(&w, 64, "and 437 more ranks");
    unmake(&w);
}

/* Many ranks without neighbours do not make a line without end. */
static void lists_are_cut(void **state)
{
    struct world w;
    make(&w);
    w.agents.all[1].idle = w.agents.all[2].idle = true;
    assert_true(tb_wait_report_ask(&w.report));
    begin(&w);
    for (uint32_t i = 0; i < 400; i++)
        entry(&w, 1000 + 2 * i, TB_WAIT_BEFORE, 0, "");
    answer(&w, 0, 1);
    assert_int_equal(w.lines, 1);
    assert_true(strlen(w.said[0]) < 300);
    assert_non_null(strstr(w.said[0], "ranks 1000, 1002, "));
    assert_non_null(strstr(w.said[0], " more have not called MPI_Init"));
    unmake(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_is_said_once),
        cmocka_unit_test(hosts_that_do_not_answer_are_named),
        cmocka_unit_test(nobody_is_asked_before_the_start),
        cmocka_unit_test(there_is_an_end_to_it),
        cmocka_unit_test(lists_are_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

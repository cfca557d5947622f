/* Worlds and ports that ranks ask the launcher for, of agents that the test plays, in virtual time. */
#include "launch/spawns.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "remote/virtual_loop_test.h"

#define HOSTS 2u
#define RANKS 4u

struct world {
    struct virtual_loop loop;
    struct tb_host_agents agents;
    struct tb_host_agent_events agent_events;
    struct tb_address_book book;
    struct tb_rank_ends ends;
    struct tb_job_report report;
    struct tb_spawns spawns;
    struct tb_control_stream heard[HOSTS]; /* what each agent was told */
    struct tb_control_frame frame;         /* the last of it */
    uint32_t verdicts;
    uint64_t patience;     /* of those who want processes: that, */
    uint32_t asker, model; /* and who that is, and which program of the job, as it says */
};

static void failed(void *context, enum tb_verdict_weight weight, int code, const char *text)
{
    ((struct world *)context)->verdicts++;
}

static void make(struct world *w)
{
    memset(w, 0, sizeof *w);
    virtual_loop_open(&w->loop);
    w->book =
        (struct tb_address_book){.version = 1, .job = 5, .ranks = RANKS, .host_count = HOSTS, .range_count = HOSTS};
    w->book.hosts = calloc(HOSTS, sizeof *w->book.hosts);
    w->book.ranges = calloc(HOSTS, sizeof *w->book.ranges);
    assert_int_equal(tb_host_agents_open(&w->agents, &w->loop.loop, HOSTS, &w->agent_events), TB_OK);
    for (uint32_t i = 0; i < HOSTS; i++) {
        snprintf(w->book.hosts[i].name, sizeof w->book.hosts[i].name, "%c.example", 'a' + (int)i);
        w->book.hosts[i].rank_count = 2;
        w->book.ranges[i] = (struct tb_rank_range){.first_rank = 2 * i, .count = 2, .host = i};
        w->agents.all[i].phase = TB_HOST_AGENT_STARTED;
        w->agents.all[i].rank_count = 2;
        tb_control_stream_open(&w->heard[i], -1, -1);
    }
    tb_rank_ends_init(&w->ends, &w->loop.loop, &(struct tb_rank_ends_events){.context = w, .failed = failed});
    assert_int_equal(tb_rank_ends_begin(&w->ends, &w->book), TB_OK);
    tb_spawns_init(&w->spawns, &w->book, &w->agents, &w->ends, &w->report);
}

static void unmake(struct world *w)
{
    assert_true(tb_list_empty(&w->spawns.all)); /* nothing is left behind */
    assert_true(tb_list_empty(&w->spawns.meetings.ports));
    for (uint32_t i = 0; i < HOSTS; i++) {
        tb_control_stream_close(&w->heard[i]);
        tb_host_agent_give_up(&w->agents.all[i]);
        free(w->report.screens[i].mid_lines);
    }
    tb_host_agents_close(&w->agents);
    tb_spawns_close(&w->spawns);
    tb_rank_ends_stop(&w->ends);
    tb_rank_ends_close(&w->ends);
    free(w->book.hosts);
    free(w->book.ranges);
    tb_worlds_close(&w->book);
    virtual_loop_close(&w->loop);
}

/* The next thing that an agent was told; 0: nothing. */
static uint32_t hear(struct world *w, uint32_t host)
{
    size_t length;
    const void *bytes = tb_control_stream_take(&w->agents.all[host].control, 1u << 20, &length);
    if (length > 0)
        assert_int_equal(tb_control_stream_feed(&w->heard[host], bytes, length), TB_OK);
    return tb_control_stream_next(&w->heard[host], &w->frame) == TB_OK ? w->frame.kind : 0;
}

static void tell(struct world *w, uint32_t host, enum tb_control kind, const struct tb_writer *fields)
{
    struct tb_reader r;
    tb_reader_open(&r, fields->bytes, fields->length);
    tb_spawns_take(&w->spawns, &w->agents.all[host], kind, &r);
}

static void tell_number(struct world *w, uint32_t host, enum tb_control kind, uint32_t number)
{
    struct tb_writer f;
    tb_writer_open(&f);
    tb_put_u32(&f, number);
    tell(w, host, kind, &f);
    tb_writer_close(&f);
}

static void ask(struct world *w, enum tb_control kind, uint32_t rank, uint32_t number, const struct tb_writer *what)
{
    struct tb_writer f;
    tb_writer_open(&f);
    tb_put_u32(&f, rank);
    tb_put_u32(&f, number);
    tb_put_bytes(&f, what->bytes, what->length);
    tell(w, tb_address_book_host_of(&w->book, rank), kind, &f);
    tb_writer_close(&f);
}

static void want(struct world *w, uint32_t count, const char *hosts)
{
    static char *words[] = {(char *)"work", NULL}, *none[] = {NULL};
    struct tb_spawn_app app = {
        .app = {.ranks = count, .argument_count = 1, .arguments = words, .variables = none, .directory = (char *)""},
        .hosts = (char *)hosts};
    struct tb_spawn spawn = {.model = w->model,
                             .app_count = 1,
                             .apps = &app,
                             .parent_bytes = 1,
                             .parent = (char *)"p",
                             .patience = w->patience};
    struct tb_writer f;
    tb_writer_open(&f);
    assert_int_equal(tb_spawn_encode(&spawn, &f), TB_OK);
    ask(w, TB_CONTROL_SPAWN, w->asker, 9, &f);
    tb_writer_close(&f);
}

/* Rank `rank` has an answer to its question; `error` of it. The bytes are in the frame. */
static const char *answered(struct world *w, uint32_t rank, uint32_t number, int error, size_t *length)
{
    struct tb_reader *r = &w->frame.fields;
    size_t text;
    uint32_t kind;
    while ((kind = hear(w, rank / 2)) == TB_CONTROL_BORDER) /* a port is shut there */
        ;
    assert_int_equal(kind, TB_CONTROL_ANSWER);
    assert_int_equal(tb_get_u32(r), rank);
    assert_int_equal(tb_get_u32(r), number);
    assert_int_equal((int)tb_get_u32(r), error);
    const char *why = tb_get_bytes(r, &text);
    const char *bytes = tb_get_bytes(r, length);
    assert_int_equal(tb_reader_end(r), TB_OK);
    return error == TB_OK ? bytes : why;
}

static void end_of(struct world *w, uint32_t rank, int status, bool taken)
{
    const struct tb_ended ended = {.rank = rank, .pid = 100, .status = status};
    uint32_t host = tb_address_book_host_of(&w->book, rank);
    assert_int_equal(tb_spawns_take_ended(&w->spawns, &w->agents.all[host], &ended), taken);
}

/* Three processes are wanted, and both agents know of them: two of them on the host of who asks. */
static void begin(struct world *w)
{
    want(w, 3, "");
    for (uint32_t i = 0; i < HOSTS; i++) {
        assert_int_equal(hear(w, i), TB_CONTROL_WORLD);
        assert_int_equal(hear(w, i), 0); /* not before all know of it */
        tell_number(w, i, TB_CONTROL_WORLD_TOLD, RANKS);
    }
    for (uint32_t i = 0; i < HOSTS; i++)
        assert_int_equal(hear(w, i), TB_CONTROL_WORLD_START);
}

static void all_join(void **state)
{
    struct world w;
    size_t length;
    struct tb_reader r;
    make(&w);
    begin(&w);
    static const uint32_t hosts[] = {0, 0, 1};
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(tb_address_book_host_of(&w.book, RANKS + i), hosts[i]);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(hear(&w, 0), 0);
        tell_number(&w, hosts[i], TB_CONTROL_JOINED, RANKS + i);
    }
    const char *bytes = answered(&w, 0, 9, TB_OK, &length);
    tb_reader_open(&r, bytes, length);
    assert_int_equal(tb_get_u32(&r), RANKS);
    assert_int_equal(tb_get_u32(&r), 3);
    for (uint32_t i = 0; i < 3; i++) { /* they are ranks as others now: their end is judged where those of all are */
        const struct tb_ended ended = {
            .rank = RANKS + i, .status = 0, .flags = TB_ENDED_INITIALIZED | TB_ENDED_FINALIZED};
        end_of(&w, RANKS + i, 0, false);
        assert_true(tb_rank_ends_add(&w.ends, &ended));
    }
    assert_int_equal(w.verdicts, 0);
    unmake(&w);
}

static void one_that_ends_before_fails_all(void **state)
{
    struct world w;
    size_t length;
    make(&w);
    begin(&w);
    tell_number(&w, 0, TB_CONTROL_JOINED, RANKS);
    end_of(&w, RANKS + 2, SIGKILL, true);
    assert_non_null(strstr(answered(&w, 0, 9, TB_ERR_PEER, &length), "new process 2 on host b.example"));
    assert_int_equal(hear(&w, 0), TB_CONTROL_WORLD_END);
    assert_int_equal(hear(&w, 1), TB_CONTROL_WORLD_END);
    tell_number(&w, 0, TB_CONTROL_JOINED, RANKS + 1); /* too late */
    end_of(&w, RANKS, SIGKILL, true);
    end_of(&w, RANKS + 1, SIGKILL, true);
    assert_int_equal(hear(&w, 0), 0);
    assert_int_equal(w.verdicts, 0);
    assert_int_equal(w.agents.all[0].rank_count - w.agents.all[0].ended, 2); /* as before */
    unmake(&w);
}

/* That it ends afterwards says less. */
static void one_that_aborts_fails_all(void **state)
{
    static const char *const texts[] = {"", "there is no data"};
    static const char *const told[] = {"new process 2 on host b.example (pid 100) called MPI_Abort with code 17",
                                       "new process 2 on host b.example (pid 100): there is no data"};
    for (int i = 0; i < 2; i++) {
        struct tb_agent_abort abort = {
            .rank = RANKS + 2, .pid = 100, .code = 17, .text = texts[i], .length = strlen(texts[i])};
        struct world w;
        size_t length;
        make(&w);
        assert_false(tb_spawns_take_aborted(&w.spawns, &abort)); /* it is none of ours */
        begin(&w);
        assert_true(tb_spawns_take_aborted(&w.spawns, &abort));
        end_of(&w, RANKS + 2, 17 << 8, true);
        assert_non_null(strstr(answered(&w, 0, 9, TB_ERR_PEER, &length), told[i]));
        end_of(&w, RANKS, SIGKILL, true);
        end_of(&w, RANKS + 1, SIGKILL, true);
        assert_int_equal(w.verdicts, 0);
        unmake(&w);
    }
}

static void one_that_is_done_before_others_were_heard_of(void **state)
{
    struct world w;
    size_t length;
    struct tb_ended ended = {.rank = RANKS + 2, .pid = 9, .flags = TB_ENDED_INITIALIZED | TB_ENDED_FINALIZED};
    make(&w);
    begin(&w);
    tell_number(&w, 1, TB_CONTROL_JOINED, RANKS + 2);
    ended.status = 3 << 8; /* an exit code after MPI_Finalize harms nobody, and is the job's in the end */
    assert_true(tb_spawns_take_ended(&w.spawns, &w.agents.all[1], &ended));
    assert_int_equal(hear(&w, 0), 0);
    tell_number(&w, 0, TB_CONTROL_JOINED, RANKS);
    assert_int_equal(w.verdicts, 0);
    tell_number(&w, 0, TB_CONTROL_JOINED, RANKS + 1);
    answered(&w, 0, 9, TB_OK, &length);
    assert_int_equal(w.verdicts, 1);
    assert_false(tb_rank_ends_add(&w.ends, &ended)); /* that was told */
    end_of(&w, RANKS, 0, false);
    end_of(&w, RANKS + 1, 0, false);
    unmake(&w);
}

static void one_that_cannot_be_started(void **state)
{
    struct world w;
    struct tb_writer f;
    size_t length;
    make(&w);
    begin(&w);
    tb_writer_open(&f);
    tb_put_u32(&f, RANKS);
    tb_put_u32(&f, 1);
    tb_put_text(&f, "there is no such program");
    tell(&w, 0, TB_CONTROL_WORLD_FAILED, &f);
    tb_writer_close(&f);
    assert_non_null(strstr(answered(&w, 0, 9, TB_ERR_PEER, &length), "there is no such program"));
    end_of(&w, RANKS, SIGKILL, true); /* of the two there, one had been started */
    end_of(&w, RANKS + 2, SIGKILL, true);
    assert_int_equal(w.verdicts, 0);
    unmake(&w);
}

static void hosts_that_are_named(void **state)
{
    struct world w;
    size_t length;
    make(&w);
    want(&w, 2, "a,nowhere");
    assert_non_null(strstr(answered(&w, 0, 9, TB_ERR_ARGUMENT, &length), "\"nowhere\""));
    assert_int_equal(tb_worlds_processes(&w.book), RANKS);
    want(&w, 2, "b"); /* the name without its domain */
    assert_int_equal(tb_address_book_host_of(&w.book, RANKS), 1);
    assert_int_equal(tb_address_book_host_of(&w.book, RANKS + 1), 1);
    w.agents.all[1].idle = true; /* its part is over just now */
    tb_spawns_lose(&w.spawns, 1);
    assert_int_equal(hear(&w, 0), TB_CONTROL_WORLD);
    assert_non_null(strstr(answered(&w, 0, 9, TB_ERR_LIMIT, &length), "of b"));
    want(&w, 1, "b");
    answered(&w, 0, 9, TB_ERR_LIMIT, &length);
    assert_int_equal(w.agents.all[1].rank_count, 2);
    unmake(&w);
}

/* Nothing was started there, and other hosts will do. */
static void a_host_whose_part_is_over_before_it_has_begun(void **state)
{
    struct world w;
    size_t length;
    make(&w);
    want(&w, 3, "");
    assert_int_equal(tb_address_book_host_of(&w.book, RANKS + 2), 1);
    assert_int_equal(hear(&w, 0), TB_CONTROL_WORLD);
    tell_number(&w, 0, TB_CONTROL_WORLD_TOLD, RANKS);
    w.agents.all[1].idle = true;
    tb_spawns_lose(&w.spawns, 1);
    assert_int_equal(hear(&w, 0), TB_CONTROL_WORLD_END);
    assert_int_equal(tb_get_u32(&w.frame.fields), RANKS);
    assert_int_equal(hear(&w, 0), TB_CONTROL_WORLD);
    for (uint32_t i = RANKS + 3; i < RANKS + 6; i++)
        assert_int_equal(tb_address_book_host_of(&w.book, i), 0);
    tell_number(&w, 1, TB_CONTROL_WORLD_TOLD, RANKS); /* of the one that came to nothing */
    tell_number(&w, 0, TB_CONTROL_WORLD_TOLD, RANKS + 3);
    assert_int_equal(hear(&w, 0), 0);
    tell_number(&w, 1, TB_CONTROL_WORLD_TOLD, RANKS + 3);
    assert_int_equal(hear(&w, 0), TB_CONTROL_WORLD_START);
    assert_int_equal(tb_get_u32(&w.frame.fields), RANKS + 3);
    for (uint32_t i = RANKS + 3; i < RANKS + 6; i++)
        tell_number(&w, 0, TB_CONTROL_JOINED, i);
    answered(&w, 0, 9, TB_OK, &length);
    assert_int_equal(w.agents.all[0].rank_count, 5);
    assert_int_equal(w.agents.all[1].rank_count, 2);
    for (uint32_t i = RANKS + 3; i < RANKS + 6; i++)
        end_of(&w, i, 0, false);
    unmake(&w);
}

/* What has started it may go on for ever. */
static void one_that_dies_below_a_shell_fails_all(void **state)
{
    const struct tb_ended left = {.rank = RANKS + 1, .pid = 7, .status = -1, .flags = TB_ENDED_BELOW};
    struct world w;
    size_t length;
    make(&w);
    begin(&w);
    assert_true(tb_spawns_take_ended(&w.spawns, &w.agents.all[0], &left));
    assert_non_null(strstr(answered(&w, 0, 9, TB_ERR_PEER, &length), "new process 1 on host a.example (pid 7) ended"));
    assert_int_equal(hear(&w, 0), TB_CONTROL_WORLD_END);
    for (uint32_t i = 0; i < 3; i++)
        end_of(&w, RANKS + i, SIGKILL, true);
    unmake(&w);
}

static void those_who_never_join_are_not_waited_for(void **state)
{
    struct world w;
    size_t length;
    make(&w);
    w.patience = 2000000000u;
    begin(&w);
    tell_number(&w, 0, TB_CONTROL_JOINED, RANKS);
    virtual_loop_pass(&w.loop, 1999000000);
    assert_int_equal(hear(&w, 0), 0);
    virtual_loop_pass(&w.loop, 2000000);
    assert_non_null(strstr(answered(&w, 0, 9, TB_ERR_PEER, &length), "2 of the 3 new processes have not called"));
    assert_int_equal(hear(&w, 0), TB_CONTROL_WORLD_END);
    for (uint32_t i = 0; i < 3; i++)
        end_of(&w, RANKS + i, SIGKILL, true);
    unmake(&w);
}

static void new_ones_hear_of_the_dead(void **state)
{
    struct world w;
    make(&w);
    tb_spawns_note_lost(&w.spawns, 3, "it was killed");
    begin(&w);
    for (uint32_t i = 0; i < HOSTS; i++) {
        assert_int_equal(hear(&w, i), TB_CONTROL_LOST);
        assert_int_equal(tb_get_u32(&w.frame.fields), w.book.job);
        assert_int_equal(tb_get_u32(&w.frame.fields), 3);
        assert_int_equal(hear(&w, i), 0);
    }
    for (uint32_t i = 0; i < 3; i++)
        end_of(&w, RANKS + i, SIGKILL, true);
    unmake(&w);
}

/* The program of the job whose environment the new processes get, as host 0 is told with what it is to start. */
static uint32_t told_model(struct world *w)
{
    struct tb_spawn spawn;
    size_t length;
    assert_int_equal(hear(w, 0), TB_CONTROL_WORLD_START);
    tb_get_u32(&w->frame.fields);
    const void *bytes = tb_get_bytes(&w->frame.fields, &length);
    assert_int_equal(tb_spawn_decode(&spawn, bytes, length), TB_OK);
    uint32_t model = spawn.model;
    tb_spawn_close(&spawn);
    return model;
}

/* A process that was started itself does not know whose environment it has got. */
static void environments_are_handed_down(void **state)
{
    struct world w;
    make(&w);
    w.model = 3;
    for (uint32_t i = 0; i < 3; i++) {
        w.asker = i == 0 ? 0 : RANKS + i - 1;
        want(&w, 1, "a.example");
        w.model = 0;
        for (uint32_t k = 0; k < HOSTS; k++) {
            assert_int_equal(hear(&w, k), TB_CONTROL_WORLD);
            tell_number(&w, k, TB_CONTROL_WORLD_TOLD, RANKS + i);
        }
        assert_int_equal(told_model(&w), 3);
        tell_number(&w, 0, TB_CONTROL_JOINED, RANKS + i);
        assert_int_equal(hear(&w, 0), TB_CONTROL_ANSWER);
    }
    for (uint32_t i = 0; i < 3; i++)
        end_of(&w, RANKS + i, 0, false);
    unmake(&w);
}

/* The first ranks of a host that is far away run, as far as is known here, a while after those of others. */
static void hosts_that_have_just_been_told_to_start_take_some(void **state)
{
    static const enum tb_host_agent_phase phases[] = {TB_HOST_AGENT_READY, TB_HOST_AGENT_TOLD};
    for (int i = 0; i < 2; i++) {
        struct world w;
        make(&w);
        w.agents.all[1].phase = phases[i];
        w.agents.all[0].rank_count = 3; /* so that there are fewer */
        want(&w, 1, i == 0 ? "b.example" : "");
        for (uint32_t k = 0; k < HOSTS; k++) {
            assert_int_equal(hear(&w, k), TB_CONTROL_WORLD);
            tell_number(&w, k, TB_CONTROL_WORLD_TOLD, RANKS);
        }
        assert_int_equal(hear(&w, 1), TB_CONTROL_WORLD_START);
        assert_int_equal(w.agents.all[1].rank_count, 3);
        assert_int_equal(w.agents.all[1].later_count, 1);
        end_of(&w, RANKS, SIGKILL, true);
        unmake(&w);
    }
}

/* Agents that have none of the new ones have told theirs already. */
static void others_do_not_hear_of_them_again(void **state)
{
    struct world w;
    make(&w);
    tb_spawns_note_lost(&w.spawns, 3, "it was killed");
    tb_spawns_note_lost(&w.spawns, 2, "it was killed");
    want(&w, 1, "b.example");
    for (uint32_t i = 0; i < HOSTS; i++) {
        assert_int_equal(hear(&w, i), TB_CONTROL_WORLD);
        tell_number(&w, i, TB_CONTROL_WORLD_TOLD, RANKS);
    }
    assert_int_equal(hear(&w, 0), 0);
    assert_int_equal(hear(&w, 1), TB_CONTROL_WORLD_START);
    assert_int_equal(hear(&w, 1), TB_CONTROL_LOST);
    assert_int_equal(hear(&w, 1), TB_CONTROL_LOST);
    assert_int_equal(hear(&w, 1), 0);
    end_of(&w, RANKS, SIGKILL, true);
    unmake(&w);
}

/* An agent speaks for its own ranks alone. */
static void nobody_asks_for_ranks_of_others(void **state)
{
    struct world w;
    struct tb_writer f;
    make(&w);
    tb_writer_open(&f);
    tb_put_u32(&f, 0);
    tb_put_u32(&f, 1);
    tb_put_bytes(&f, "", 0);
    tell(&w, 1, TB_CONTROL_SPAWN, &f);
    tell(&w, 1, TB_CONTROL_MEET, &f);
    tell(&w, 1, TB_CONTROL_BOND, &f);
    assert_int_equal(hear(&w, 0), 0);
    tell(&w, 0, TB_CONTROL_BOND, &f); /* which makes no sense, but is answered */
    assert_int_equal(hear(&w, 0), TB_CONTROL_ANSWER);
    tb_writer_close(&f);
    unmake(&w);
}

/* ---- ports ------------------------------------------------------------------------------------------------------- */

static void meet(struct world *w, uint32_t rank, uint32_t number, enum tb_meeting_wish wish, const char *name,
                 uint64_t patience, const char *bytes)
{
    struct tb_writer f;
    tb_writer_open(&f);
    tb_meeting_put(&f, &(struct tb_meeting){wish, name, strlen(name), patience, bytes, strlen(bytes)});
    ask(w, TB_CONTROL_MEET, rank, number, &f);
    tb_writer_close(&f);
}

static void open_port(struct world *w, uint32_t rank, char name[TB_PORT_NAME_BYTES])
{
    size_t length;
    struct tb_writer f;
    meet(w, rank, 1, TB_MEETING_OPEN, "", 0, "");
    assert_int_equal(hear(w, rank / 2), TB_CONTROL_BORDER);
    assert_int_equal(tb_get_u8(&w->frame.fields), TB_BORDER_OPEN);
    tb_writer_open(&f);
    tb_put_u8(&f, TB_BORDER_OPENED);
    tb_put_u32(&f, tb_get_u32(&w->frame.fields));
    tb_put_text(&f, rank == 0 ? "192.0.2.1:7" : "");
    tb_put_text(&f, rank == 0 ? "" : "no network");
    tell(w, rank / 2, TB_CONTROL_BORDER, &f);
    tb_writer_close(&f);
    const char *bytes = answered(w, rank, 1, TB_OK, &length);
    assert_true(length > 0 && length < TB_PORT_NAME_BYTES);
    snprintf(name, TB_PORT_NAME_BYTES, "%.*s", (int)length, bytes);
}

static void two_meet_at_a_port(void **state)
{
    struct world w;
    char name[TB_PORT_NAME_BYTES], other[TB_PORT_NAME_BYTES];
    size_t length;
    make(&w);
    open_port(&w, 0, name);
    open_port(&w, 2, other);
    assert_string_not_equal(name, other);
    assert_non_null(strstr(name, "@192.0.2.1:7"));
    assert_null(strchr(other, '@')); /* it is of this job alone */
    meet(&w, 2, 5, TB_MEETING_CONNECT, name, 0, "two");
    meet(&w, 3, 6, TB_MEETING_CONNECT, name, 0, "three");
    assert_int_equal(hear(&w, 1), 0);
    meet(&w, 0, 7, TB_MEETING_ACCEPT, name, 0, "zero"); /* whoever came first */
    assert_memory_equal(answered(&w, 0, 7, TB_OK, &length), "two", 3);
    assert_memory_equal(answered(&w, 2, 5, TB_OK, &length), "zero", 4);
    meet(&w, 1, 8, TB_MEETING_ACCEPT, name, 0, "one");
    assert_memory_equal(answered(&w, 1, 8, TB_OK, &length), "three", 5);
    assert_memory_equal(answered(&w, 3, 6, TB_OK, &length), "one", 3);
    meet(&w, 3, 9, TB_MEETING_CONNECT, name, 0, "again");
    meet(&w, 1, 10, TB_MEETING_CLOSE, name, 0, "");
    answered(&w, 3, 9, TB_ERR_CLOSED, &length);
    answered(&w, 1, 10, TB_OK, &length);
    meet(&w, 1, 11, TB_MEETING_CLOSE, name, 0, "");
    answered(&w, 1, 11, TB_ERR_CLOSED, &length);
    meet(&w, 1, 12, TB_MEETING_CONNECT, "nonsense", 0, "");
    assert_non_null(strstr(answered(&w, 1, 12, TB_ERR_CLOSED, &length), "nonsense"));
    meet(&w, 1, 13, TB_MEETING_ACCEPT, other, 0, "one");
    end_of(&w, 2, 0, false); /* whose port it is */
    answered(&w, 1, 13, TB_ERR_CLOSED, &length);
    unmake(&w);
}

static void nobody_waits_longer_than_wished(void **state)
{
    struct world w;
    char name[TB_PORT_NAME_BYTES];
    size_t length;
    make(&w);
    open_port(&w, 0, name);
    meet(&w, 1, 2, TB_MEETING_ACCEPT, name, 1000000000, "one");
    meet(&w, 2, 3, TB_MEETING_ACCEPT, name, 0, "two");
    meet(&w, 3, 4, TB_MEETING_ACCEPT, name, 0, "three");
    virtual_loop_pass(&w.loop, 999000000);
    assert_int_equal(hear(&w, 0), 0);
    virtual_loop_pass(&w.loop, 2000000);
    answered(&w, 1, 2, TB_ERR_TIMEOUT, &length);
    end_of(&w, 2, 0, false); /* it waits no more */
    meet(&w, 0, 5, TB_MEETING_CONNECT, name, 0, "zero");
    assert_memory_equal(answered(&w, 0, 5, TB_OK, &length), "three", 5);
    assert_memory_equal(answered(&w, 3, 4, TB_OK, &length), "zero", 4);
    end_of(&w, 0, 0, false);
    unmake(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_join),
        cmocka_unit_test(one_that_ends_before_fails_all),
        cmocka_unit_test(one_that_aborts_fails_all),
        cmocka_unit_test(one_that_is_done_before_others_were_heard_of),
        cmocka_unit_test(one_that_cannot_be_started),
        cmocka_unit_test(hosts_that_are_named),
        cmocka_unit_test(a_host_whose_part_is_over_before_it_has_begun),
        cmocka_unit_test(one_that_dies_below_a_shell_fails_all),
        cmocka_unit_test(those_who_never_join_are_not_waited_for),
        cmocka_unit_test(new_ones_hear_of_the_dead),
        cmocka_unit_test(others_do_not_hear_of_them_again),
        cmocka_unit_test(hosts_that_have_just_been_told_to_start_take_some),
        cmocka_unit_test(environments_are_handed_down),
        cmocka_unit_test(nobody_asks_for_ranks_of_others),
        cmocka_unit_test(two_meet_at_a_port),
        cmocka_unit_test(nobody_waits_longer_than_wished),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

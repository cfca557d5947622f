/* Those who come to the port of another job, and those who wait for them there: how long, for whom, and what becomes of
 * them when somebody goes, says nonsense, or never goes on. */
#include "launch/foreign_sides_test.h"

static void who_accepts_survives_those_who_come(void **state)
{
    struct side a, b;
    make(&a, 0x11111111);
    make(&b, 0x77777777);
    open_port(&a);
    want(&a, 0, TB_MEETING_ACCEPT, a.name, CONTEXT, 0, RANKS);
    connect_to(&b, &a, 0, 1);
    say_text(&a, TB_BORDER_ENDED, 1 | TB_BORDER_CAME_HERE, "gone", NULL); /* before it was ready */
    hear(&a);
    assert_int_equal(a.answers, 1);
    assert_int_equal(a.error, TB_AGAIN); /* it was told of the context: the rank takes another one */
    a.answers = 0;
    want(&a, 0, TB_MEETING_ACCEPT, a.name, CONTEXT, 0, RANKS);
    say_text(&b, TB_BORDER_ENDED, 1, "gone", NULL);
    hear(&b);
    assert_int_equal(b.error, TB_ERR_CLOSED);
    assert_string_equal(b.text, "gone");
    b.answers = b.tells = a.tells = 0;
    connect_to(&b, &a, 0, 1); /* the next one */
    carry(&a, &b, false);
    carry(&b, &a, true);
    assert_int_equal(a.answers, 1);
    assert_int_equal(a.error, TB_OK);
    unmake(&a);
    unmake(&b);
}

/* In one job, threads of one process: both are told, whichever comes first, and the next two meet. */
static void who_is_in_both_groups(void **state)
{
    struct side a;
    make(&a, 0x11111111);
    open_port(&a);
    for (int i = 0; i < 2; i++) {
        want(&a, 1, i == 0 ? TB_MEETING_ACCEPT : TB_MEETING_CONNECT, a.name, CONTEXT, 0, 2);
        want(&a, 1, i == 0 ? TB_MEETING_CONNECT : TB_MEETING_ACCEPT, a.name, CONTEXT, 1, 2);
        assert_int_equal(a.answers, 2);
        assert_int_equal(a.error, TB_ERR_ARGUMENT);
        assert_non_null(strstr(a.text, "process 1 is in both groups"));
        a.answers = 0;
    }
    want(&a, 0, TB_MEETING_ACCEPT, a.name, CONTEXT, 0, 1);
    want(&a, 1, TB_MEETING_CONNECT, a.name, 0, 1, 2);
    assert_int_equal(a.answers, 2);
    assert_int_equal(a.error, TB_OK);
    unmake(&a);
}

static void those_who_wait_are_told(void **state)
{
    struct side a, b;
    make(&a, 0x11111111);
    make(&b, 0x77777777);
    open_port(&a);
    connect_to(&b, &a, 0, 1);
    want(&a, 0, TB_MEETING_CLOSE, a.name, 0, 0, 0);
    carry(&a, &b, false);
    assert_int_equal(b.error, TB_ERR_CLOSED);
    assert_non_null(strstr(b.text, "was closed"));
    b.answers = 0;
    want(&b, 0, TB_MEETING_CONNECT, a.name, 0, 0, 1); /* nobody answers */
    virtual_loop_pass(&b.loop, tb_param.link_patience + 1);
    hear(&b);
    assert_int_equal(b.error, TB_ERR_TIMEOUT);
    want(&b, 0, TB_MEETING_CONNECT, "tombolo:11111111:0:00000000000000000000000000000000", 0, 0, 1);
    assert_int_equal(b.error, TB_ERR_CLOSED);
    assert_non_null(strstr(b.text, "no address"));
    want(&b, 0, TB_MEETING_CONNECT, "tombolo:11111111:0:12@192.0.2.1:7", 0, 0, 1);
    assert_non_null(strstr(b.text, "no name of a port"));
    unmake(&a);
    unmake(&b);
}

/* What the other launcher says is no fault of who accepts. */
static void who_accepts_waits_for_the_next(void **state)
{
    struct side a, b;
    make(&a, 0x11111111);
    make(&b, 0x77777777);
    open_port(&a);
    want(&a, 0, TB_MEETING_ACCEPT, a.name, CONTEXT, 0, RANKS);
    connect_to(&b, &a, 0, 1);
    tell(&a, 1 | TB_BORDER_CAME_HERE, "\2\0\0\0\0", 5); /* refused, after it was accepted */
    assert_int_equal(a.answers, 1);
    assert_int_equal(a.error, TB_AGAIN);
    a.answers = 0;
    want(&a, 0, TB_MEETING_ACCEPT, a.name, CONTEXT, 0, RANKS);
    a.tells = 0;
    somebody_comes(&a, 100);
    tell(&a, 100 | TB_BORDER_CAME_HERE, "\7", 1); /* nonsense, before it was */
    assert_int_equal(a.answers, 0);
    meet_accepted(&a, &b, 1, 1);
    unmake(&a);
    unmake(&b);
}

/* Its patience holds for all who come, and beyond each of them. */
static void who_accepts_is_not_kept_longer_than_it_wants(void **state)
{
    struct side a, b;
    make(&a, 0x11111111);
    make(&b, 0x77777777);
    open_port(&a);
    patience = 5000000000u;
    want(&a, 0, TB_MEETING_ACCEPT, a.name, CONTEXT, 0, RANKS);
    patience = 0;
    a.deaf = true; /* its agent is slow: nobody is told of it */
    connect_to(&b, &a, 0, 1);
    virtual_loop_pass(&a.loop, 1000000000u);
    say_text(&a, TB_BORDER_ENDED, 1 | TB_BORDER_CAME_HERE, "gone", NULL);
    hear(&a);
    assert_int_equal(a.answers, 0);
    virtual_loop_pass(&a.loop, 3999999999u);
    hear(&a);
    assert_int_equal(a.answers, 0);
    virtual_loop_pass(&a.loop, 2);
    hear(&a);
    assert_int_equal(a.answers, 1);
    assert_int_equal(a.error, TB_ERR_TIMEOUT);
    a.answers = 0;
    patience = 5000000000u;
    want(&a, 0, TB_MEETING_ACCEPT, a.name, CONTEXT, 0, RANKS);
    patience = 0;
    b.answers = b.tells = 0;
    connect_to(&b, &a, 1, 1);
    virtual_loop_pass(&a.loop, 4999999999u);
    hear(&a);
    assert_int_equal(a.answers, 0);
    virtual_loop_pass(&a.loop, 2); /* one is there who does not go on */
    hear(&a);
    assert_int_equal(a.answers, 1);
    assert_int_equal(a.error, TB_ERR_TIMEOUT);
    unmake(&a);
    unmake(&b);
}

/* Of those who wait at the port, the next goes while who has accepted the one before is given to it. */
static void guests_that_go_with_others(void **state)
{
    struct side a, b;
    make(&a, 0x11111111);
    make(&b, 0x77777777);
    open_port(&a);
    meet(&a, &b, 0, 1); /* link 1 */
    connect_to(&b, &a, 1, 1);
    a.deaf = true;
    want(&a, 0, TB_MEETING_ACCEPT, a.name, CONTEXT, 0, RANKS); /* link 2, whose introduction does not end */
    for (uint32_t i = 0; i < 3; i++) {                         /* and who say of themselves what makes no sense */
        connect_to(&b, &a, 2, 1);
        struct tb_foreign_link *last = TB_CONTAINER(a.meetings.foreign.links.all.prev, struct tb_foreign_link, node);
        ((struct tb_meeting_party *)last->their)->procs[0] = TB_JOB_RANKS_LIMIT;
    }
    say_text(&a, TB_BORDER_ENDED, 1 | TB_BORDER_CAME_HERE, "gone", NULL); /* and the second goes with it */
    a.deaf = false;
    hear(&a);
    assert_true(tb_list_empty(&a.meetings.foreign.links.all) && tb_list_empty(&a.meetings.foreign.jobs));
    assert_int_equal(a.answers, 0); /* it still accepts */
    unmake(&a);
    unmake(&b);
}

/* As many as can be kept, and no longer than it is worth. */
static void guests_have_limits(void **state)
{
    struct side a, b;
    make(&a, 0x11111111);
    make(&b, 0x77777777);
    open_port(&a);
    somebody_comes(&a, 5000);
    somebody_comes(&a, 5001);
    for (uint32_t i = 0; i < TB_MEETINGS_GUESTS / 2; i++)
        connect_to(&b, &a, i % RANKS, 1);
    assert_int_equal(a.closed, 0);
    a.tells = 0;
    connect_to(&b, &a, 0, 1);
    carry(&a, &b, false);
    assert_int_equal(b.answers, 1);
    assert_non_null(strstr(b.text, "too many wait"));
    assert_int_equal(a.closed, 1);
    struct side c; /* another job has room */
    make(&c, 0x44444444);
    c.meetings.foreign.links.next = 3000;
    connect_to(&c, &a, 0, 1);
    assert_int_equal(a.closed, 1);
    unmake(&c);
    virtual_loop_pass(&a.loop, tb_param.link_patience + 1);
    hear(&a);
    assert_int_equal(a.closed, 3); /* these have said nothing, and the others have said all */
    unmake(&a);
    unmake(&b);
}

/* Then who accepts would wait for ever, since nobody else fits either; and it is told before another one comes. */
static void indices_that_are_used_up(void **state)
{
    struct side a, b;
    make(&a, 0x11111111);
    make(&b, 0x77777777);
    const struct tb_rank_range others = {
        .first_rank = RANKS, .count = TB_JOB_RANKS_LIMIT - RANKS - 1, .job = 5, .home = 0};
    assert_int_equal(tb_worlds_add(&a.book, &others, 1), TB_OK);
    open_port(&a);
    for (uint32_t waits = 0; waits < 2; waits++) { /* whoever comes first */
        a.answers = b.answers = a.tells = b.tells = 0;
        if (waits)
            want(&a, 0, TB_MEETING_ACCEPT, a.name, CONTEXT, 0, RANKS);
        connect_to(&b, &a, 0, 2);
        if (!waits)
            want(&a, 0, TB_MEETING_ACCEPT, a.name, CONTEXT, 0, RANKS);
        assert_int_equal(a.answers, 1);
        assert_int_equal(a.error, TB_ERR_LIMIT);
        assert_non_null(strstr(a.text, "1048576 processes in all"));
        carry(&a, &b, false);
        assert_int_equal(b.answers, 1);
        assert_int_equal(b.error, TB_ERR_CLOSED);
        assert_non_null(strstr(b.text, "the other job has refused: a job can know 1048576 processes"));
        assert_true(tb_list_empty(&a.meetings.foreign.links.all) && tb_list_empty(&a.meetings.foreign.jobs));
    }
    a.answers = b.answers = a.tells = b.tells = 0;
    meet(&a, &b, 0, 1); /* there is one left */
    unmake(&a);
    unmake(&b);
}

/* It is the one that connects which can know nobody else: who accepts waits for another one. */
static void indices_of_who_connects_that_are_used_up(void **state)
{
    struct side a, b;
    make(&a, 0x11111111);
    make(&b, 0x77777777);
    const struct tb_rank_range others = {
        .first_rank = RANKS, .count = TB_JOB_RANKS_LIMIT - RANKS - 1, .job = 5, .home = 0};
    assert_int_equal(tb_worlds_add(&b.book, &others, 1), TB_OK);
    open_port(&a);
    connect_to(&b, &a, 0, 1);
    want(&a, 0, TB_MEETING_ACCEPT, a.name, CONTEXT, 0, RANKS);
    carry(&a, &b, false);
    assert_int_equal(b.answers, 1);
    assert_int_equal(b.error, TB_ERR_LIMIT);
    carry(&b, &a, true);
    assert_int_equal(a.answers, 1);
    assert_int_equal(a.error, TB_AGAIN);
    unmake(&a);
    unmake(&b);
}

/* Another job says things that a terminal would obey. */
static void what_others_say_is_shown(void **state)
{
    struct side a, b;
    make(&a, 0x11111111);
    make(&b, 0x77777777);
    open_port(&a);
    connect_to(&b, &a, 0, 1);
    struct tb_writer w;
    tb_writer_open(&w);
    tb_put_u8(&w, TB_FOREIGN_REFUSE);
    tb_put_text(&w, "\33[2J");
    tell(&b, 1, (const char *)w.bytes, w.length);
    tb_writer_close(&w);
    assert_int_equal(b.error, TB_ERR_CLOSED);
    assert_null(strchr(b.text, 27));
    assert_non_null(strstr(b.text, "[2J"));
    unmake(&a);
    unmake(&b);
}

/* The context of who accepts must be one that its job can have made up, and nobody here. */
static void contexts_that_are_not_theirs(void **state)
{
    const uint64_t bad[] = {0,
                            77,
                            tb_context_make(0, TB_CONTEXT_WORLD, TB_PLANE_POINT),
                            tb_context_make(tb_context_tag(0x77777777), 5, TB_PLANE_POINT),
                            tb_context_make(tb_context_tag(0x11111111) - 1, 5, TB_PLANE_POINT),
                            tb_context_make(tb_context_tag(0x11111111) + TB_JOB_RANKS_LIMIT, 5, TB_PLANE_POINT),
                            tb_context_plane(CONTEXT, TB_PLANE_COLLECTIVE)};
    struct side a, b;
    make(&a, 0x11111111);
    make(&b, 0x77777777);
    open_port(&a);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        a.answers = b.answers = a.tells = b.tells = 0;
        connect_to(&b, &a, 0, 1);
        want(&a, 0, TB_MEETING_ACCEPT, a.name, bad[i], 0, RANKS);
        carry(&a, &b, false);
        assert_int_equal(b.answers, 1);
        assert_int_equal(b.error, TB_ERR_PROTOCOL);
        carry(&b, &a, true); /* it has refused */
        assert_int_equal(a.error, TB_AGAIN);
    }
    a.answers = b.answers = a.tells = b.tells = 0;
    meet(&a, &b, 0, 1);
    unmake(&a);
    unmake(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_accepts_survives_those_who_come),
        cmocka_unit_test(who_is_in_both_groups),
        cmocka_unit_test(those_who_wait_are_told),
        cmocka_unit_test(who_accepts_waits_for_the_next),
        cmocka_unit_test(who_accepts_is_not_kept_longer_than_it_wants),
        cmocka_unit_test(guests_that_go_with_others),
        cmocka_unit_test(guests_have_limits),
        cmocka_unit_test(indices_that_are_used_up),
        cmocka_unit_test(indices_of_who_connects_that_are_used_up),
        cmocka_unit_test(what_others_say_is_shown),
        cmocka_unit_test(contexts_that_are_not_theirs),
    };
    return tb_param_load() == TB_OK ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
}

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

/* Nobody from elsewhere comes to a port any more when the agent at which it is open is gone: who waits there is told.
 */
static void a_port_whose_host_is_lost(void **state)
{
    struct side a, b;
    make(&a, 0x11111111);
    make(&b, 0x77777777);
    open_port(&a);
    tb_meetings_lose(&a.meetings, 1); /* another one */
    want(&a, 0, TB_MEETING_ACCEPT, a.name, CONTEXT, 0, RANKS);
    assert_int_equal(a.answers, 0);
    tb_meetings_lose(&a.meetings, 0);
    hear(&a);
    assert_int_equal(a.answers, 1);
    assert_int_equal(a.error, TB_ERR_CLOSED);
    assert_non_null(strstr(a.text, "was closed: the agent of the host"));
    assert_true(tb_list_empty(&a.meetings.ports));
    open_port(&a);
    connect_to(&b, &a, 0, 1);
    tb_meetings_lose(&a.meetings, 0);
    hear(&a);
    assert_true(tb_list_empty(&a.meetings.foreign.links.all));
    a.deaf = true;
    want(&a, 0, TB_MEETING_OPEN, "", 0, 0, 0); /* what is being opened is for this job alone */
    assert_int_equal(a.answers, 0);
    tb_meetings_lose(&a.meetings, 0);
    hear(&a);
    assert_true(a.answers == 1 && a.error == TB_OK);
    assert_null(strchr(a.name, '@'));
    tb_meetings_lose(&a.meetings, 0); /* and that it stays */
    want(&a, 0, TB_MEETING_ACCEPT, a.name, CONTEXT, 0, 1);
    want(&a, 1, TB_MEETING_CONNECT, a.name, 0, 1, 1);
    assert_true(a.answers == 3 && a.error == TB_OK);
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

/* ---- a second meeting -------------------------------------------------------------------------------------------- */

/* What both have together, by link 1, is as it was; and nobody waits for those who have left it. */
static void check_first(struct side *a, struct side *b, uint32_t met_by_a, uint32_t met_by_b)
{
    assert_int_equal(a->lost + b->lost, 0);
    assert_false(tb_list_empty(&a->meetings.foreign.jobs) || tb_list_empty(&b->meetings.foreign.jobs));
    a->tells = b->tells = 0;
    for (uint32_t rank = 0; rank < RANKS; rank++)
        leave(a, rank, b->book.job, met_by_a);
    assert_int_equal(a->tells, 1);
    assert_int_equal(a->told[0], TB_FOREIGN_LEFT);
    assert_true(a->teller == (1 | TB_BORDER_CAME_HERE));
    carry(a, b, false);
    leave(b, 0, a->book.job, met_by_b);
    carry(b, a, true);
    assert_true(tb_list_empty(&a->meetings.foreign.jobs) && tb_list_empty(&b->meetings.foreign.jobs));
    assert_int_equal(a->lost + b->lost, 0);
}

enum how {
    TELLING,
    NAMING,
    ANSWERED,
    REFUSED,
    OVER,
    HOWS
}; /* how far who accepts has come, and that its time is over */

static void fail_second(struct side *a, struct side *b, enum how how)
{
    a->deaf = how == TELLING || how == OVER;
    a->slow = how == NAMING ? 1 | TB_BORDER_CAME_HERE : 0;
    patience = how == OVER ? 5000000000u : 0;
    want(a, 0, TB_MEETING_ACCEPT, a->name, CONTEXT, 0, RANKS);
    patience = 0;
    connect_to(b, a, 1, 1);
    virtual_loop_pass(&a->loop, 5000000001u);
    hear(a);
    if (how == REFUSED)
        tell(a, 2 | TB_BORDER_CAME_HERE, "\2\0\0\0\0", 5);
    else if (how != OVER)
        say_text(a, TB_BORDER_ENDED, 2 | TB_BORDER_CAME_HERE, "gone", NULL);
    hear(a);
    say_text(b, TB_BORDER_ENDED, 2, "gone", NULL);
    hear(b);
    assert_int_equal(b->answers, 1);
    assert_int_equal(b->error, TB_ERR_CLOSED);
    assert_int_equal(a->answers, how == ANSWERED || how == REFUSED || how == OVER);
    assert_int_equal(a->error, how == OVER ? TB_ERR_TIMEOUT : how == ANSWERED || how == REFUSED ? TB_AGAIN : TB_OK);
}

static void a_second_meeting_comes_to_nothing(void **state)
{
    for (enum how how = TELLING; how < HOWS; how++) {
        struct side a, b;
        make(&a, 0x11111111);
        make(&b, 0x77777777);
        open_port(&a);
        meet(&a, &b, 0, 1);
        uint32_t met_by_a = a.answer->meeting, met_by_b = b.answer->meeting;
        fail_second(&a, &b, how);
        a.deaf = false;
        a.slow = 0;
        check_first(&a, &b, met_by_a, met_by_b);
        unmake(&a);
        unmake(&b);
    }
}

/* A third one begins before the second has failed, and is what counts then. */
static void a_third_meeting_goes_on_without_the_second(void **state)
{
    struct side a, b;
    make(&a, 0x11111111);
    make(&b, 0x77777777);
    open_port(&a);
    meet(&a, &b, 0, 1);
    uint32_t met_by_a = a.answer->meeting, met_by_b = b.answer->meeting;
    a.slow = 1 | TB_BORDER_CAME_HERE;
    connect_to(&b, &a, 1, 1);
    connect_to(&b, &a, 2, 1);
    want(&a, 0, TB_MEETING_ACCEPT, a.name, CONTEXT, 0, RANKS);
    want(&a, 0, TB_MEETING_ACCEPT, a.name, CONTEXT, 0, RANKS);
    say_text(&a, TB_BORDER_ENDED, 2 | TB_BORDER_CAME_HERE, "gone", NULL);
    say_text(&b, TB_BORDER_ENDED, 2, "gone", NULL);
    hear(&a);
    hear(&b);
    a.slow = 0;
    a.tells = b.tells = b.answers = 0;
    for (uint32_t rank = 0; rank < RANKS; rank++)
        leave(&a, rank, b.book.job, met_by_a);
    leave(&b, 0, a.book.job, met_by_b);
    assert_int_equal(a.tells + b.tells, 0); /* they will have met again */
    uint32_t telling = tb_foreign_link_find(&a.meetings.foreign.links, 0, 1 | TB_BORDER_CAME_HERE)->telling;
    say(&a, TB_BORDER_NAMED, 1 | TB_BORDER_CAME_HERE, &telling, sizeof telling);
    hear(&a);
    carry(&a, &b, false);
    carry(&b, &a, true);
    assert_true(a.answers == 1 && b.answers == 1 && a.error == TB_OK && b.error == TB_OK);
    assert_int_equal(a.lost + b.lost + a.tells + b.tells, 0);
    unmake(&a);
    unmake(&b);
}

/* Who connects and was accepted waits as long as it takes, its own time being over or not; at last, it fails alone. */
static void who_is_accepted_does_not_turn_back(void **state)
{
    struct side a, b;
    make(&a, 0x11111111);
    make(&b, 0x77777777);
    open_port(&a);
    meet(&a, &b, 0, 1);
    uint32_t met_by_a = a.answer->meeting, met_by_b = b.answer->meeting;
    patience = 1000000000u;
    connect_to(&b, &a, 1, 1);
    want(&a, 0, TB_MEETING_ACCEPT, a.name, CONTEXT, 0, RANKS);
    patience = 0;
    b.slow = 1;
    carry(&a, &b, false);
    virtual_loop_pass(&a.loop, 2000000000u); /* nor does the one that has accepted it */
    virtual_loop_pass(&b.loop, 2000000000u);
    hear(&a);
    hear(&b);
    assert_int_equal(a.answers + b.answers + a.closed + b.closed, 0);
    virtual_loop_pass(&b.loop, tb_param.link_patience);
    hear(&b);
    assert_true(b.answers == 1 && b.closed == 1 && b.error == TB_ERR_CLOSED);
    say_text(&a, TB_BORDER_ENDED, 2 | TB_BORDER_CAME_HERE, "gone", NULL);
    hear(&a);
    assert_true(a.answers == 1 && a.error == TB_AGAIN);
    b.slow = 0;
    check_first(&a, &b, met_by_a, met_by_b);
    unmake(&a);
    unmake(&b);
}

/* Frames take the link that had names first: others of the job are lost with it. */
static void a_second_meeting_by_the_link_that_leads(void **state)
{
    struct side a, b;
    make(&a, 0x11111111);
    make(&b, 0x77777777);
    open_port(&a);
    meet(&a, &b, 0, 1);
    tb_foreign_link_find(&a.meetings.foreign.links, 0, 1 | TB_BORDER_CAME_HERE)->first_telling = UINT32_MAX;
    fail_second(&a, &b, ANSWERED);
    assert_int_equal(a.lost, 2);
    assert_true(tb_list_empty(&a.meetings.foreign.jobs) && tb_list_empty(&a.meetings.foreign.links.all));
    unmake(&a);
    unmake(&b);
}

/* Who comes again before all agents know of it waits until they do. */
static void a_second_meeting_that_agents_do_not_know_of(void **state)
{
    struct side a, b;
    make(&a, 0x11111111);
    make(&b, 0x77777777);
    open_port(&a);
    meet(&a, &b, 0, 1);
    fail_second(&a, &b, OVER);
    a.answers = b.answers = a.tells = b.tells = 0;
    connect_to(&b, &a, 1, 1);
    want(&a, 0, TB_MEETING_ACCEPT, a.name, CONTEXT, 0, RANKS);
    assert_int_equal(a.tells, 0);
    tb_foreign_jobs_told(&a.meetings.foreign, 0, RANKS + 1); /* late, that of the second; now it is another one */
    hear(&a);
    assert_int_equal(a.tells, 0);
    tb_foreign_jobs_told(&a.meetings.foreign, 0, RANKS + 2);
    hear(&a);
    carry(&a, &b, false);
    carry(&b, &a, true);
    assert_true(a.answers == 1 && b.answers == 1 && a.error == TB_OK && b.error == TB_OK);
    assert_int_equal(a.answer->procs[0], RANKS + 2);
    unmake(&a);
    unmake(&b);
}

/* Nor is it told who has died by one that may yet end alone. */
static void a_second_meeting_passes_no_news(void **state)
{
    struct side a, b;
    make(&a, 0x11111111);
    make(&b, 0x77777777);
    open_port(&a);
    meet(&a, &b, 0, 1);
    connect_to(&b, &a, 1, 1);
    want(&a, 0, TB_MEETING_ACCEPT, a.name, CONTEXT, 0, RANKS);
    struct tb_foreign_link *first = tb_foreign_link_find(&a.meetings.foreign.links, 0, 1 | TB_BORDER_CAME_HERE);
    tb_list_remove(&first->node); /* whichever has come before */
    tb_list_append(&a.meetings.foreign.links.all, &first->node);
    tb_foreign_jobs_lost(&a.meetings.foreign, 1, 1, "killed");
    hear(&a);
    assert_int_equal(a.told[0], TB_FOREIGN_LOST);
    assert_true(a.teller == first->number);
    unmake(&a);
    unmake(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_accepts_survives_those_who_come),
        cmocka_unit_test(who_is_in_both_groups),
        cmocka_unit_test(those_who_wait_are_told),
        cmocka_unit_test(a_port_whose_host_is_lost),
        cmocka_unit_test(who_accepts_waits_for_the_next),
        cmocka_unit_test(who_accepts_is_not_kept_longer_than_it_wants),
        cmocka_unit_test(guests_that_go_with_others),
        cmocka_unit_test(guests_have_limits),
        cmocka_unit_test(indices_that_are_used_up),
        cmocka_unit_test(indices_of_who_connects_that_are_used_up),
        cmocka_unit_test(what_others_say_is_shown),
        cmocka_unit_test(contexts_that_are_not_theirs),
        cmocka_unit_test(a_second_meeting_comes_to_nothing),
        cmocka_unit_test(a_third_meeting_goes_on_without_the_second),
        cmocka_unit_test(who_is_accepted_does_not_turn_back),
        cmocka_unit_test(a_second_meeting_by_the_link_that_leads),
        cmocka_unit_test(a_second_meeting_that_agents_do_not_know_of),
        cmocka_unit_test(a_second_meeting_passes_no_news),
    };
    return tb_param_load() == TB_OK ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
}

/* Two launchers whose jobs meet, leave and lose each other. */
#include "launch/foreign_sides_test.h"

static void each_gets_indices_for_the_other(void **state)
{
    struct side a, b;
    make(&a, 0x11111111);
    make(&b, 0x77777777);
    open_port(&a);
    meet(&a, &b, 1, 2);
    assert_int_equal(a.answer->size, 2);
    assert_int_equal(a.answer->procs[0], RANKS);
    assert_int_equal(a.answer->procs[1], RANKS + 1);
    assert_true(b.answer->context == CONTEXT);
    assert_int_equal(b.answer->size, RANKS);
    assert_int_equal(b.answer->procs[2], RANKS + 2);
    assert_true(a.names > 0 && b.names > 0);
    assert_int_equal(tb_worlds_home(&a.book, RANKS + 1).job, 0x77777777);
    assert_int_equal(tb_worlds_home(&a.book, RANKS + 1).index, 2);
    uint32_t first = a.answer->procs[0];
    meet(&a, &b, 0, 2); /* those who are known keep theirs */
    assert_int_equal(a.answer->procs[1], first);
    assert_int_equal(a.answer->procs[0], RANKS + 2);
    unmake(&a);
    unmake(&b);
}

static void who_has_left_hears_nothing(void **state)
{
    struct side a, b;
    make(&a, 0x11111111);
    make(&b, 0x77777777);
    open_port(&a);
    meet(&a, &b, 0, 1);
    uint32_t met = a.answer->meeting;
    leave(&a, 0, b.book.job, met);
    leave(&a, 1, b.book.job, met);
    assert_int_equal(a.tells, 0);
    leave(&a, 2, b.book.job, met);
    assert_int_equal(a.tells, 1);
    carry(&a, &b, false);
    assert_int_equal(b.closed, 0); /* it has not left */
    say_text(&a, TB_BORDER_ENDED, 1 | TB_BORDER_CAME_HERE, "gone", NULL);
    hear(&a);
    assert_int_equal(a.lost, 0);
    say_text(&b, TB_BORDER_ENDED, 1, "gone", NULL);
    hear(&b);
    assert_int_equal(b.lost, RANKS);
    assert_int_equal(b.losses, 1); /* however many they are */
    unmake(&a);
    unmake(&b);
}

static void both_leave_and_meet_again(void **state)
{
    struct side a, b;
    make(&a, 0x11111111);
    make(&b, 0x77777777);
    open_port(&a);
    for (uint32_t i = 0; i < 5; i++) {
        meet(&a, &b, 0, 1);
        assert_int_equal(a.answer->procs[0], RANKS + i); /* another generation */
        leave(&b, 0, a.book.job, b.answer->meeting);
        for (uint32_t rank = 0; rank < RANKS; rank++)
            leave(&a, rank, b.book.job, a.answer->meeting);
        carry(&a, &b, false);
        carry(&b, &a, true);
        assert_int_equal(a.closed, i + 1);
        assert_int_equal(b.closed, i + 1);
        assert_true(tb_list_empty(&a.meetings.foreign.jobs) && tb_list_empty(&b.meetings.foreign.links.all));
    }
    assert_int_equal(a.lost + b.lost, 0);
    unmake(&a);
    unmake(&b);
}

/* One has left, and the other, which has not, meets it anew: nothing of the old one harms what is new. */
static void another_generation_begins_while_one_ends(void **state)
{
    struct side a, b;
    make(&a, 0x11111111);
    make(&b, 0x77777777);
    open_port(&a);
    meet(&a, &b, 0, 1);
    uint32_t met = b.answer->meeting;
    for (uint32_t rank = 0; rank < RANKS; rank++)
        leave(&a, rank, b.book.job, a.answer->meeting);
    a.tells = 0; /* that is on its way */
    meet(&a, &b, 0, 1);
    assert_int_equal(a.answer->procs[0], RANKS + 1);
    a.told[0] = 4; /* there it is, that they have left */
    a.told_length = 1;
    a.tells = 1;
    a.teller = 1;
    carry(&a, &b, false);
    leave(&b, 0, a.book.job, met); /* of the first meeting */
    carry(&b, &a, true);
    assert_int_equal(a.lost + b.lost, 0);
    unmake(&a);
    unmake(&b);
}

/* Two of a job come before either has met anybody: they are of two generations, and who leaves one leaves both. */
static void generations_beside_each_other(void **state)
{
    struct side a, b;
    make(&a, 0x11111111);
    make(&b, 0x77777777);
    open_port(&a);
    connect_to(&b, &a, 0, 1);
    connect_to(&b, &a, 1, 1);
    for (uint32_t i = 0; i < 2; i++) {
        want(&a, 0, TB_MEETING_ACCEPT, a.name, CONTEXT, 0, 1);
        carry(&a, &b, false);
        carry(&b, &a, true);
    }
    assert_true(a.answers == 2 && b.answers == 2);
    assert_int_equal(a.answer->procs[0], RANKS + 1);
    uint32_t index; /* by which both sides tell them apart */
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t generation = tb_worlds_generation(&a.book, RANKS + i);
        assert_true(tb_worlds_find(&b.book, (struct tb_proc){a.book.job, 0}, generation, &index));
        assert_int_equal(index, RANKS + i);
    }
    leave(&a, 0, b.book.job, a.answer->meeting);
    struct tb_foreign_job *job;
    TB_LIST_EACH (job, &a.meetings.foreign.jobs, struct tb_foreign_job, node)
        assert_true(job->left);
    unmake(&a);
    unmake(&b);
}

/* Processes of a job that goes on. */
static void some_are_lost(void **state)
{
    struct side a, b;
    make(&a, 0x11111111);
    make(&b, 0x77777777);
    open_port(&a);
    meet(&a, &b, 1, 2);
    a.tells = 0;
    tb_foreign_jobs_lost(&b.meetings.foreign, 0, 1, "whom nobody has met");
    hear(&b);
    assert_int_equal(b.tells, 0);
    tb_foreign_jobs_lost(&b.meetings.foreign, 0, RANKS, "all of them");
    hear(&b);
    assert_int_equal(b.tells, 1);
    carry(&b, &a, true);
    assert_true(a.losses == 1 && a.lost == 2 && a.lost_first == RANKS);
    unmake(&a);
    unmake(&b);
}

/* Who dies before the others know it would be waited for. */
static void some_are_lost_while_they_meet(void **state)
{
    struct side a, b;
    make(&a, 0x11111111);
    make(&b, 0x77777777);
    open_port(&a);
    connect_to(&b, &a, 0, 2);
    a.deaf = true;
    want(&a, 0, TB_MEETING_ACCEPT, a.name, CONTEXT, 0, RANKS);
    a.tells = 0;
    tb_foreign_jobs_lost(&a.meetings.foreign, 1, 2, "killed");
    hear(&a);
    assert_int_equal(a.tells, 0); /* they do not know it yet */
    tb_foreign_jobs_told(&a.meetings.foreign, 0, RANKS);
    hear(&a);
    assert_int_equal(a.tells, 2); /* accepted, and lost */
    assert_int_equal(a.told[0], TB_FOREIGN_LOST);
    assert_int_equal(a.told[1], 1);
    assert_int_equal(a.told[5], 2);
    unmake(&a);
    unmake(&b);
}

/* That one of them was lost, is what it has told last. */
static void check_told_lost(const struct side *s, uint32_t first, uint32_t count)
{
    assert_int_equal(s->told[0], TB_FOREIGN_LOST);
    assert_int_equal(s->told[1], first);
    assert_int_equal(s->told[5], count);
}

/* Those who have died before are told of as well, by either side, and nobody waits for them to leave. */
static void some_were_lost_before_they_meet(void **state)
{
    for (uint32_t how = 0; how < 4; how++) {
        struct side a, b, *s = how % 2 == 0 ? &a : &b;
        make(&a, 0x11111111);
        make(&b, 0x77777777);
        open_port(&a);
        if (how >= 2) { /* they have met others before */
            want(&a, 0, TB_MEETING_ACCEPT, a.name, CONTEXT, 0, 1);
            meet_accepted(&a, &b, 0, 1);
        }
        tb_foreign_jobs_lost(&s->meetings.foreign, 2, 1, "killed");
        tb_meetings_forget(&s->meetings, 2);
        tb_meetings_forget(&s->meetings, 1); /* in good order */
        hear(s);
        assert_int_equal(a.tells + b.tells, 0);
        connect_to(&b, &a, 0, RANKS);
        want(&a, 0, TB_MEETING_ACCEPT, a.name, CONTEXT, 0, RANKS);
        if (s == &b) {
            carry(&a, &b, false);
            assert_int_equal(b.answers, 1);
        }
        assert_int_equal(s->tells, 2); /* accepted, or ready, and lost */
        check_told_lost(s, 2, 1);
        s->tells = 0;
        if (s == &a) /* who accepts hears that the other is ready */
            tell(&a, (how >= 2 ? 2 : 1) | TB_BORDER_CAME_HERE, "\3", 1);
        assert_int_equal(s->answers, 1);
        leave(s, 0, how % 2 == 0 ? b.book.job : a.book.job, s->answer->meeting);
        assert_int_equal(s->tells, 1);
        assert_int_equal(s->told[0], TB_FOREIGN_LEFT);
        unmake(&a);
        unmake(&b);
    }
}

/* Those whom the others do not know yet, by a meeting that is not the first. */
static void some_are_lost_while_they_meet_again(void **state)
{
    struct side a, b;
    make(&a, 0x11111111);
    make(&b, 0x77777777);
    open_port(&a);
    want(&a, 0, TB_MEETING_ACCEPT, a.name, CONTEXT, 0, 1);
    meet_accepted(&a, &b, 0, 1);
    a.slow = 1 | TB_BORDER_CAME_HERE;
    connect_to(&b, &a, 1, 1);
    want(&a, 0, TB_MEETING_ACCEPT, a.name, CONTEXT, 0, 2);
    tb_foreign_jobs_lost(&a.meetings.foreign, 0, RANKS, "killed");
    hear(&a);
    assert_int_equal(a.tells, 1);
    check_told_lost(&a, 0, 1);
    a.tells = 0;
    uint32_t telling = tb_foreign_link_find(&a.meetings.foreign.links, 0, a.slow)->telling;
    say(&a, TB_BORDER_NAMED, a.slow, &telling, sizeof telling);
    hear(&a);
    assert_int_equal(a.tells, 2); /* accepted, and lost */
    check_told_lost(&a, 1, 1);
    unmake(&a);
    unmake(&b);
}

/* What would be told all our processes each time has an end. */
static void losses_without_end(void **state)
{
    static const char lost[] = {5, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0},
                      nobody[] = {5, 9, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0};
    struct side a, b;
    make(&a, 0x11111111);
    make(&b, 0x77777777);
    open_port(&a);
    meet(&a, &b, 1, 2);
    tell(&a, 1 | TB_BORDER_CAME_HERE, nobody, sizeof nobody);
    for (uint32_t i = 0; i < 10; i++)
        tell(&a, 1 | TB_BORDER_CAME_HERE, lost, sizeof lost);
    assert_int_equal(a.closed, 1);
    assert_int_equal(a.losses, 3); /* twice, as it has two, and then all of it */
    assert_true(tb_list_empty(&a.meetings.foreign.jobs));
    unmake(&a);
    unmake(&b);
}

/* Words about processes of a job that has not been met. */
static void words_that_come_too_early(void **state)
{
    static const char lost[] = {5, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0}, *const words[] = {lost, "\4", "\3"};
    for (uint32_t i = 0; i < 3; i++) {
        struct side a, b;
        make(&a, 0x11111111);
        make(&b, 0x77777777);
        open_port(&a);
        meet(&a, &b, 0, 1);
        connect_to(&b, &a, 1, 1); /* again: it is known to be that job, if it is it */
        tell(&b, 2, words[i], i == 0 ? sizeof lost : 1);
        assert_int_equal(b.answers, 1);
        assert_int_equal(b.error, TB_ERR_PROTOCOL);
        assert_int_equal(b.losses, 0);
        assert_false(tb_list_empty(&b.meetings.foreign.jobs)); /* that one is as it was */
        unmake(&a);
        unmake(&b);
    }
}

/* A job that takes itself for another one connects; what it is told. */
static void connect_as(struct side *b, struct side *a, uint32_t job, const char *told)
{
    uint32_t own = b->book.job;
    b->book.job = job;
    want(b, 0, TB_MEETING_CONNECT, a->name, 0, 0, 1);
    b->book.job = own;
    come(b, a);
    carry(a, b, false);
    assert_int_equal(b->error, TB_ERR_CLOSED);
    assert_non_null(strstr(b->text, told));
}

static void jobs_that_are_not_alike_do_not_meet(void **state)
{
    struct side a, b;
    make(&a, 0x11111111);
    make(&b, 0x11111112); /* contexts could be the same */
    open_port(&a);
    want(&b, 0, TB_MEETING_CONNECT, a.name, 0, 0, 1);
    assert_int_equal(b.error, TB_ERR_CLOSED);
    assert_non_null(strstr(b.text, "too near"));
    assert_non_null(strstr(b.text, "not as MPI_Open_port has given it"));
    b.answers = 0;
    connect_as(&b, &a, 0x77777777, "too near"); /* one that does not look, is refused by the other */
    assert_true(tb_list_empty(&a.meetings.foreign.links.all));
    b.book.job = 0x11111111; /* it has come to itself */
    connect_as(&b, &a, 0x77777777, "of this job itself");
    unmake(&a);
    unmake(&b);
}

/* Who accepts is told as well, if nobody at all could be accepted; else it waits for another one. */
static void jobs_without_relay_do_not_meet(void **state)
{
    static const char *const ours[] = {"tcp", "shm,tcp", "tcp", "shm,relay"}, *const theirs[] = {"tcp", "tcp", "all",
                                                                                                 "pair"};
    for (size_t i = 0; i < sizeof ours / sizeof ours[0]; i++) {
        struct side a, b;
        bool any = strstr(ours[i], "relay") != NULL;
        make(&a, 0x11111111);
        make(&b, 0x77777777);
        open_port(&a);
        want(&a, 0, TB_MEETING_ACCEPT, a.name, CONTEXT, 0, RANKS);
        want(&b, 0, TB_MEETING_CONNECT, a.name, 0, 0, 1);
        somebody_comes(&a, b.dialed);
        tb_param.transports = theirs[i];
        say(&b, TB_BORDER_UP, b.dialed, NULL, 0);
        hear(&b);
        tb_param.transports = ours[i];
        carry(&b, &a, true);
        tb_param.transports = theirs[i];
        carry(&a, &b, false);
        tb_param.transports = TB_PARAM_ALL;
        assert_int_equal(b.answers, 1);
        assert_int_equal(b.error, TB_ERR_CLOSED);
        assert_non_null(strstr(b.text, any ? "the job that connects was" : "the job that accepts was"));
        assert_int_equal(a.answers, any ? 0 : 1);
        assert_true(any || (a.error == TB_ERR_CLOSED && strstr(a.text, "the job that accepts was") != NULL));
        assert_true(tb_list_empty(&a.meetings.foreign.links.all) && tb_list_empty(&b.meetings.foreign.links.all));
        unmake(&a);
        unmake(&b);
    }
}

/* A rank ends that connects to a job once more, which all others have left: all links to that go. */
static void links_that_go_with_a_rank(void **state)
{
    struct side a, b;
    make(&a, 0x11111111);
    make(&b, 0x77777777);
    open_port(&a);
    meet(&a, &b, 0, 1);
    uint32_t first = b.answer->meeting;
    want(&b, 0, TB_MEETING_CONNECT, a.name, 0, 0, 1); /* again, and waits */
    say(&b, TB_BORDER_UP, b.dialed, NULL, 0);
    hear(&b);
    b.tells = 0;
    meet(&a, &b, 1, 1);
    leave(&b, 0, a.book.job, first);
    leave(&b, 1, a.book.job, b.answer->meeting);
    tell(&b, 1, "\4", 1); /* the other side has left */
    assert_false(tb_list_empty(&b.meetings.foreign.jobs));
    tb_meetings_forget(&b.meetings, 0);
    hear(&b);
    assert_true(tb_list_empty(&b.meetings.foreign.links.all) && tb_list_empty(&b.meetings.foreign.jobs));
    unmake(&a);
    unmake(&b);
}

/* Frames may pass any link to the other job: nobody hears of another one before all borders know both. */
static void all_borders_know_before_anybody_is_told(void **state)
{
    struct side a, b;
    make(&a, 0x11111111);
    make(&b, 0x77777777);
    open_port(&a);
    meet(&a, &b, 0, 1); /* link 1 */
    b.slow = 1;         /* from now on */
    connect_to(&b, &a, 1, 1);
    want(&a, 0, TB_MEETING_ACCEPT, a.name, CONTEXT, 0, RANKS);
    uint32_t names = b.names;
    carry(&a, &b, false);
    assert_int_equal(b.names, names + 2); /* who of theirs may be spoken to is known; but by whom? */
    assert_int_equal(b.answers + b.tells, 0);
    uint32_t telling = tb_foreign_link_find(&b.meetings.foreign.links, 0, 1)->telling, before = telling - 2;
    say(&b, TB_BORDER_NAMED, 1, &before, sizeof before); /* that of another telling is of no use */
    hear(&b);
    assert_int_equal(b.answers, 0);
    say(&b, TB_BORDER_NAMED, 1, &telling, sizeof telling);
    hear(&b);
    assert_int_equal(b.answers, 1);
    assert_int_equal(b.error, TB_OK);
    carry(&b, &a, true);
    assert_int_equal(a.answers, 1);
    unmake(&a);
    unmake(&b);
}

/* Whoever is at the other end of a link, where it has not said yet that it is that job, may not speak for it. */
static void borders_with_who_is_not_known_yet(void **state)
{
    struct side a, b;
    make(&a, 0x11111111);
    make(&b, 0x77777777);
    open_port(&a);
    meet(&a, &b, 0, 1);
    want(&b, 0, TB_MEETING_CONNECT, a.name, 0, 0, 1); /* to somebody who may have made that name up */
    say(&b, TB_BORDER_UP, b.dialed, NULL, 0);
    hear(&b);
    b.tells = 0;
    uint32_t names = b.names;
    meet(&a, &b, 1, 1);
    assert_int_equal(b.names, names + 2); /* by the first link, and by the last */
    unmake(&a);
    unmake(&b);
}

/* ---- bytes of others --------------------------------------------------------------------------------------------- */

static int take_changed(void *context, const uint8_t *bytes, size_t length, size_t piece)
{
    struct side a;
    struct tb_writer w;
    make(&a, 0x11111111);
    open_port(&a);
    want(&a, 0, TB_MEETING_ACCEPT, a.name, CONTEXT, 0, RANKS);
    somebody_comes(&a, 0);
    for (size_t at = 0; at + 2 <= length;) { /* what is said, one word after the other */
        size_t now = (size_t)bytes[at] << 8 | bytes[at + 1];
        now = now > length - at - 2 ? length - at - 2 : now;
        tb_writer_open(&w);
        tb_put_bytes(&w, bytes + at + 2, now);
        say(&a, TB_BORDER_TELL, TB_BORDER_CAME_HERE, w.bytes, w.length);
        tb_writer_close(&w);
        hear(&a);
        at += 2 + now;
    }
    say_text(&a, TB_BORDER_ENDED, TB_BORDER_CAME_HERE, "gone", NULL);
    unmake(&a);
    return TB_OK;
}

static size_t record(uint8_t *to, const struct side *s)
{
    to[0] = (uint8_t)(s->told_length >> 8);
    to[1] = (uint8_t)s->told_length;
    memcpy(to + 2, s->told, s->told_length);
    return 2 + s->told_length;
}

static void changed_words_of_another_launcher(void **state)
{
    static uint8_t recording[8192];
    struct side a, b;
    size_t length;
    make(&a, 0x11111111);
    make(&b, 0x77777777);
    open_port(&a);
    want(&b, 0, TB_MEETING_CONNECT, a.name, 0, 0, 3);
    say(&b, TB_BORDER_UP, b.dialed, NULL, 0);
    hear(&b);
    length = record(recording, &b);
    const uint8_t more[][13] = {{3}, {5, 1, 0, 0, 0, 1}, {4}};
    const size_t lengths[] = {1, 13, 1};
    for (size_t i = 0; i < 3; i++) {
        memcpy(b.told, more[i], lengths[i]);
        b.told_length = lengths[i];
        length += record(recording + length, &b);
    }
    changed_bytes_sweep(&(struct changed_bytes){
        .kind = "words of another launcher", .take = take_changed, .bytes = recording, .length = length});
    unmake(&a);
    unmake(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_gets_indices_for_the_other),
        cmocka_unit_test(who_has_left_hears_nothing),
        cmocka_unit_test(both_leave_and_meet_again),
        cmocka_unit_test(another_generation_begins_while_one_ends),
        cmocka_unit_test(generations_beside_each_other),
        cmocka_unit_test(some_are_lost),
        cmocka_unit_test(some_are_lost_while_they_meet),
        cmocka_unit_test(some_were_lost_before_they_meet),
        cmocka_unit_test(some_are_lost_while_they_meet_again),
        cmocka_unit_test(losses_without_end),
        cmocka_unit_test(words_that_come_too_early),
        cmocka_unit_test(jobs_that_are_not_alike_do_not_meet),
        cmocka_unit_test(jobs_without_relay_do_not_meet),
        cmocka_unit_test(links_that_go_with_a_rank),
        cmocka_unit_test(all_borders_know_before_anybody_is_told),
        cmocka_unit_test(borders_with_who_is_not_known_yet),
        cmocka_unit_test(changed_words_of_another_launcher),
    };
    return tb_param_load() == TB_OK ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
}

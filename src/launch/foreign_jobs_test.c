/* Two launchers whose jobs meet: the test plays their agents, and carries what they say to each other. */
#include "base/changed_bytes_test.h"
#include "launch/meetings.h"

#include <stdio.h>

#include "remote/virtual_loop_test.h"

#define RANKS   3u
#define PORT    "192.0.2.1:7"
#define CONTEXT tb_context_make(tb_context_tag(0x11111111), 77, TB_PLANE_POINT) /* of who accepts */

/* A job of one host, whose agent knows whatever it is told at once. */
struct side {
    struct virtual_loop loop;
    struct tb_host_agents agents;
    struct tb_host_agent_events agent_events;
    struct tb_address_book book;
    struct tb_meetings meetings;
    struct tb_control_stream heard;
    struct tb_meeting_party *answer; /* the last one, */
    int error;                       /* and its code, */
    uint32_t answers, lost, names, closed;
    char text[1200], name[TB_PORT_NAME_BYTES];
    uint32_t dialed; /* link */
    uint8_t told[4096];
    size_t told_length; /* of the last TELL */
    uint32_t tells, teller;
    bool deaf;     /* the agent does not say that it knows of others */
    uint32_t slow; /* the border of this link does not say that it has names; 0: of none */
};

static void make(struct side *s, uint32_t job)
{
    memset(s, 0, sizeof *s);
    virtual_loop_open(&s->loop);
    s->book = (struct tb_address_book){.version = 1, .job = job, .ranks = RANKS, .host_count = 1, .range_count = 1};
    s->book.hosts = calloc(1, sizeof *s->book.hosts);
    s->book.ranges = calloc(1, sizeof *s->book.ranges);
    s->book.ranges[0].count = s->book.hosts[0].rank_count = RANKS;
    assert_int_equal(tb_host_agents_open(&s->agents, &s->loop.loop, 1, &s->agent_events), TB_OK);
    s->agents.all[0].phase = TB_HOST_AGENT_STARTED;
    tb_control_stream_open(&s->heard, -1, -1);
    tb_meetings_init(&s->meetings, &s->loop.loop, &s->agents, &s->book);
}

static void unmake(struct side *s)
{
    for (uint32_t rank = 0; rank < RANKS; rank++)
        tb_meetings_forget(&s->meetings, rank);
    assert_true(tb_list_empty(&s->meetings.ports));
    tb_meetings_close(&s->meetings);
    tb_control_stream_close(&s->heard);
    tb_host_agent_give_up(&s->agents.all[0]);
    tb_host_agents_close(&s->agents);
    free(s->answer);
    free(s->book.hosts);
    free(s->book.ranges);
    tb_worlds_close(&s->book);
    virtual_loop_close(&s->loop);
}

/* ---- what the launcher says to its agent --------------------------------------------------------------------------
 */

static void say(struct side *s, enum tb_border_word word, uint32_t number, const void *fields, size_t length)
{
    struct tb_writer w;
    struct tb_reader r;
    tb_writer_open(&w);
    tb_put_u8(&w, (uint8_t)word);
    tb_put_u32(&w, number);
    if (length > 0)
        tb_put_raw(&w, fields, length);
    tb_reader_open(&r, w.bytes, w.length);
    tb_foreign_jobs_take(&s->meetings.foreign, &s->agents.all[0], &r);
    tb_writer_close(&w);
}

static void say_text(struct side *s, enum tb_border_word word, uint32_t number, const char *text, const char *more)
{
    struct tb_writer w;
    tb_writer_open(&w);
    tb_put_text(&w, text);
    if (more != NULL)
        tb_put_text(&w, more);
    say(s, word, number, w.bytes, w.length);
    tb_writer_close(&w);
}

static void take_border(struct side *s, struct tb_reader *r)
{
    uint8_t word = tb_get_u8(r);
    uint32_t number = tb_get_u32(r);
    size_t length = 0;
    if (word == TB_BORDER_OPEN) {
        say_text(s, TB_BORDER_OPENED, number, PORT, "");
    } else if (word == TB_BORDER_DIAL) {
        s->dialed = number;
    } else if (word == TB_BORDER_NAMES) {
        uint32_t telling = tb_get_u32(r);
        s->names++;
        if (number != s->slow)
            say(s, TB_BORDER_NAMED, number, &telling, sizeof telling);
    } else if (word == TB_BORDER_CLOSE) {
        s->closed++;
    } else if (word == TB_BORDER_TELL) {
        const void *bytes = tb_get_bytes(r, &length);
        assert_true(length <= sizeof s->told);
        memcpy(s->told, bytes, length);
        s->told_length = length;
        s->teller = number;
        s->tells++;
    }
}

static void take_answer(struct side *s, struct tb_reader *r)
{
    size_t text = 0, length = 0;
    tb_get_u32(r);
    tb_get_u32(r);
    s->error = (int)tb_get_u32(r);
    const char *why = tb_get_bytes(r, &text);
    const void *bytes = tb_get_bytes(r, &length);
    snprintf(s->text, sizeof s->text, "%.*s", (int)text, why);
    free(s->answer);
    s->answer = calloc(1, length + sizeof *s->answer);
    memcpy(s->answer, bytes, length);
    if (length > 8 && memcmp(bytes, "tombolo:", 8) == 0)
        snprintf(s->name, sizeof s->name, "%.*s", (int)length, (const char *)bytes);
    s->answers++;
}

/* All that it has said by now. */
static void hear(struct side *s)
{
    struct tb_control_frame frame;
    size_t length;
    const void *bytes;
    virtual_loop_turn(&s->loop); /* who has accepted in vain waits for another one */
    while ((bytes = tb_control_stream_take(&s->agents.all[0].control, 1u << 20, &length)), length > 0) {
        assert_int_equal(tb_control_stream_feed(&s->heard, bytes, length), TB_OK);
        while (tb_control_stream_next(&s->heard, &frame) == TB_OK) {
            if (frame.kind == TB_CONTROL_BORDER)
                take_border(s, &frame.fields);
            else if (frame.kind == TB_CONTROL_ANSWER)
                take_answer(s, &frame.fields);
            else if (frame.kind == TB_CONTROL_WORLD && !s->deaf) /* count, then the first index */
                tb_foreign_jobs_told(&s->meetings.foreign, 0, (tb_get_u32(&frame.fields), tb_get_u32(&frame.fields)));
            s->lost += frame.kind == TB_CONTROL_LOST;
        }
    }
}

static uint64_t patience; /* of the next wish */

static void want(struct side *s, uint32_t rank, enum tb_meeting_wish wish, const char *name, uint64_t context,
                 uint32_t first, uint32_t count)
{
    char party[sizeof(struct tb_meeting_party) + RANKS * sizeof(uint32_t)] = {0};
    struct tb_meeting_party *p = (struct tb_meeting_party *)party;
    struct tb_meeting meeting = {
        .wish = wish, .name = name, .name_length = strlen(name), .patience = patience, .bytes = party};
    struct tb_writer w, f;
    struct tb_reader r;
    p->context = context;
    p->size = count;
    for (uint32_t i = 0; i < count; i++)
        p->procs[i] = first + i;
    meeting.length = count > 0 ? sizeof *p + count * sizeof(uint32_t) : 0;
    tb_writer_open(&w);
    tb_writer_open(&f);
    tb_meeting_put(&w, &meeting);
    tb_put_u32(&f, rank);
    tb_put_u32(&f, 1);
    tb_put_bytes(&f, w.bytes, w.length);
    tb_reader_open(&r, f.bytes, f.length);
    tb_meetings_take(&s->meetings, &r);
    tb_writer_close(&w);
    tb_writer_close(&f);
    hear(s);
}

static void leave(struct side *s, uint32_t rank, uint32_t job, uint32_t meeting)
{
    tb_foreign_jobs_leave(&s->meetings.foreign, rank, job, meeting);
    hear(s);
}

/* What one has told the other; links have the same numbers but for who has given them. */
static void carry(struct side *from, struct side *to, bool came_to)
{
    struct tb_writer w;
    uint32_t tells = from->tells;
    if (tells == 0)
        return;
    from->tells = 0;
    tb_writer_open(&w);
    tb_put_bytes(&w, from->told, from->told_length);
    say(to, TB_BORDER_TELL, came_to ? from->teller | TB_BORDER_CAME_HERE : from->teller & ~TB_BORDER_CAME_HERE, w.bytes,
        w.length);
    tb_writer_close(&w);
    hear(to);
}

/* Bytes that the other launcher is to have said. */
static void tell(struct side *s, uint32_t link, const char *bytes, size_t length)
{
    struct tb_writer w;
    tb_writer_open(&w);
    tb_put_bytes(&w, bytes, length);
    say(s, TB_BORDER_TELL, link, w.bytes, w.length);
    tb_writer_close(&w);
    hear(s);
}

static void open_port(struct side *a)
{
    want(a, 0, TB_MEETING_OPEN, "", 0, 0, 0);
    assert_non_null(strstr(a->name, "@" PORT));
    a->answers = 0;
}

/* Somebody comes to the first port. */
static void somebody_comes(struct side *a, uint32_t link)
{
    struct tb_writer w;
    tb_writer_open(&w);
    tb_put_u32(&w, 0);
    say(a, TB_BORDER_CAME, link | TB_BORDER_CAME_HERE, w.bytes, w.length);
    tb_writer_close(&w);
}

/* The one who connects says who it is. */
static void come(struct side *b, struct side *a)
{
    somebody_comes(a, b->dialed);
    say(b, TB_BORDER_UP, b->dialed, NULL, 0);
    hear(b);
    carry(b, a, true);
}

static void connect_to(struct side *b, struct side *a, uint32_t first, uint32_t count)
{
    want(b, first, TB_MEETING_CONNECT, a->name, 0, first, count);
    assert_int_equal(b->answers, 0);
    come(b, a);
}

/* One connects while the other waits for somebody already. */
static void meet_accepted(struct side *a, struct side *b, uint32_t first, uint32_t count)
{
    a->answers = b->answers = a->tells = b->tells = 0;
    connect_to(b, a, first, count);
    carry(a, b, false);
    carry(b, a, true);
    assert_true(a->answers == 1 && b->answers == 1);
    assert_int_equal(a->error, TB_OK);
    assert_int_equal(b->error, TB_OK);
    a->answers = b->answers = 0;
}

static void meet(struct side *a, struct side *b, uint32_t first, uint32_t count)
{
    connect_to(b, a, first, count);
    want(a, 0, TB_MEETING_ACCEPT, a->name, CONTEXT, 0, RANKS);
    assert_int_equal(a->answers, 0);
    carry(a, b, false);
    assert_int_equal(b->answers, 1);
    carry(b, a, true);
    assert_int_equal(a->answers, 1);
    assert_int_equal(a->error, TB_OK);
    assert_int_equal(b->error, TB_OK);
    a->answers = b->answers = 0;
}

/* ---- tests ------------------------------------------------------------------------------------------------------- */

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
    leave(&a, 2, b.book.job, met + 1); /* of a meeting that is to come */
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

static void jobs_that_are_not_alike_do_not_meet(void **state)
{
    struct side a, b;
    make(&a, 0x11111111);
    make(&b, 0x11111112); /* contexts could be the same */
    open_port(&a);
    want(&b, 0, TB_MEETING_CONNECT, a.name, 0, 0, 1);
    assert_int_equal(b.error, TB_ERR_UNSUPPORTED);
    assert_non_null(strstr(b.text, "too near"));
    b.answers = 0;
    b.book.job = 0x77777777; /* one that does not look, is refused by the other */
    want(&b, 0, TB_MEETING_CONNECT, a.name, 0, 0, 1);
    b.book.job = 0x11111112;
    come(&b, &a);
    carry(&a, &b, false);
    assert_int_equal(b.error, TB_ERR_CLOSED);
    assert_non_null(strstr(b.text, "too near"));
    assert_true(tb_list_empty(&a.meetings.foreign.links.all));
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

/* As many as can be kept, and no longer than it is worth. */
static void guests_have_limits(void **state)
{
    struct side a, b;
    make(&a, 0x11111111);
    make(&b, 0x77777777);
    open_port(&a);
    somebody_comes(&a, 5000);
    somebody_comes(&a, 5001);
    for (uint32_t i = 0; i < TB_MEETINGS_GUESTS; i++)
        connect_to(&b, &a, i % RANKS, 1);
    assert_int_equal(a.closed, 0);
    a.tells = 0;
    connect_to(&b, &a, 0, 1);
    carry(&a, &b, false);
    assert_int_equal(b.answers, 1);
    assert_non_null(strstr(b.text, "too many wait"));
    assert_int_equal(a.closed, 1);
    virtual_loop_pass(&a.loop, tb_param.link_patience + 1);
    hear(&a);
    assert_int_equal(a.closed, 3); /* these have said nothing, and the others have said all */
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
    const uint8_t more[][8] = {{3}, {5, 1, 0, 0, 0, 0, 0, 0}, {4}};
    const size_t lengths[] = {1, 8, 1};
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
        cmocka_unit_test(who_accepts_survives_those_who_come),
        cmocka_unit_test(those_who_wait_are_told),
        cmocka_unit_test(jobs_that_are_not_alike_do_not_meet),
        cmocka_unit_test(who_accepts_waits_for_the_next),
        cmocka_unit_test(who_accepts_is_not_kept_longer_than_it_wants),
        cmocka_unit_test(guests_that_go_with_others),
        cmocka_unit_test(links_that_go_with_a_rank),
        cmocka_unit_test(all_borders_know_before_anybody_is_told),
        cmocka_unit_test(guests_have_limits),
        cmocka_unit_test(what_others_say_is_shown),
        cmocka_unit_test(contexts_that_are_not_theirs),
        cmocka_unit_test(changed_words_of_another_launcher),
    };
    return tb_param_load() == TB_OK ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
}

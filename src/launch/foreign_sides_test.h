/* Two launchers whose jobs meet, for tests: these play their agents, and carry what they say to each other. */
#ifndef TB_LAUNCH_FOREIGN_SIDES_TEST_H
#define TB_LAUNCH_FOREIGN_SIDES_TEST_H

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
    uint32_t answers, names, closed;
    uint32_t losses, lost, lost_first; /* how often somebody was, how many in all, and who was the last time */
    char text[1200], name[TB_PORT_NAME_BYTES];
    uint32_t dialed; /* link */
    uint8_t told[4096];
    size_t told_length; /* of the last TELL */
    uint32_t tells, teller;
    bool deaf;     /* the agent does not say that it knows of others, nor that it has opened a port */
    uint32_t slow; /* the border of this link does not say that it has names; 0: of none */
};

static inline void make(struct side *s, uint32_t job)
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

static inline void unmake(struct side *s)
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

static inline void say(struct side *s, enum tb_border_word word, uint32_t number, const void *fields, size_t length)
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

static inline void say_text(struct side *s, enum tb_border_word word, uint32_t number, const char *text,
                            const char *more)
{
    struct tb_writer w;
    tb_writer_open(&w);
    tb_put_text(&w, text);
    if (more != NULL)
        tb_put_text(&w, more);
    say(s, word, number, w.bytes, w.length);
    tb_writer_close(&w);
}

static inline void take_border(struct side *s, struct tb_reader *r)
{
    uint8_t word = tb_get_u8(r);
    uint32_t number = tb_get_u32(r);
    size_t length = 0;
    if (word == TB_BORDER_OPEN && !s->deaf) {
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

static inline void take_answer(struct side *s, struct tb_reader *r)
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

static inline void take_lost(struct side *s, struct tb_reader *r)
{
    assert_int_equal(tb_get_u32(r), s->book.job);
    s->lost_first = tb_get_u32(r);
    s->lost += tb_get_u32(r);
    s->losses++;
}

/* All that it has said by now. */
static inline void hear(struct side *s)
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
            else if (frame.kind == TB_CONTROL_LOST)
                take_lost(s, &frame.fields);
        }
    }
}

static uint64_t patience; /* of the next wish */

static inline void want(struct side *s, uint32_t rank, enum tb_meeting_wish wish, const char *name, uint64_t context,
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

static inline void leave(struct side *s, uint32_t rank, uint32_t job, uint32_t meeting)
{
    tb_foreign_jobs_leave(&s->meetings.foreign, rank, job, meeting);
    hear(s);
}

/* What one has told the other; links have the same numbers but for who has given them. */
static inline void carry(struct side *from, struct side *to, bool came_to)
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
static inline void tell(struct side *s, uint32_t link, const char *bytes, size_t length)
{
    struct tb_writer w;
    tb_writer_open(&w);
    tb_put_bytes(&w, bytes, length);
    say(s, TB_BORDER_TELL, link, w.bytes, w.length);
    tb_writer_close(&w);
    hear(s);
}

static inline void open_port(struct side *a)
{
    want(a, 0, TB_MEETING_OPEN, "", 0, 0, 0);
    assert_non_null(strstr(a->name, "@" PORT));
    a->answers = 0;
}

/* Somebody comes to the first port. */
static inline void somebody_comes(struct side *a, uint32_t link)
{
    struct tb_writer w;
    tb_writer_open(&w);
    tb_put_u32(&w, 0);
    say(a, TB_BORDER_CAME, link | TB_BORDER_CAME_HERE, w.bytes, w.length);
    tb_writer_close(&w);
}

/* The one who connects says who it is. */
static inline void come(struct side *b, struct side *a)
{
    somebody_comes(a, b->dialed);
    say(b, TB_BORDER_UP, b->dialed, NULL, 0);
    hear(b);
    carry(b, a, true);
}

static inline void connect_to(struct side *b, struct side *a, uint32_t first, uint32_t count)
{
    want(b, first, TB_MEETING_CONNECT, a->name, 0, first, count);
    assert_int_equal(b->answers, 0);
    come(b, a);
}

/* One connects while the other waits for somebody already. */
static inline void meet_accepted(struct side *a, struct side *b, uint32_t first, uint32_t count)
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

static inline void meet(struct side *a, struct side *b, uint32_t first, uint32_t count)
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

#endif

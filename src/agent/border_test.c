/* Borders of several jobs, over loopback: who holds up whom when one of them does not read, and what becomes of those
 * who wait for a link that ends. The test plays the launchers, and the forwarders of the agents. */
#include "agent/border.h"
#include "agent/hop_frame.h"
#include "agent/queue.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define JOBS        3u
#define THEIRS      7u           /* the index that the process of another job has; and more by the job's place */
#define PATIENCE_NS 20000000000u /* for what should come */
#define LINK        1u           /* of the one who connects; that of the other is the first that came */

static const struct tb_key key = {{9}};

/* A job with one process, 0, and its border. */
struct job {
    struct world *world;
    struct tb_member member;
    struct tb_uplink uplink; /* without descriptors */
    struct tb_border border;
    struct tb_control_stream heard;
    char addresses[600];
    uint32_t came, ups, ended; /* words that it has heard; `came`: the number of the last link */
    uint32_t tellings, named;  /* of names; the last that the border has */
    uint32_t tells;
    char why[320];       /* the last link has ended */
    bool deaf;           /* the launcher reads nothing */
    uint64_t kept[JOBS]; /* what the forwarder keeps, by the place of the other job */
    struct forwarder {
        int socket; /* -1: there is none */
        uint32_t sequence_out, sequence_in;
        char in[TB_FRAME_BUFFER_LIMIT];
        size_t have;
        char out[TB_FRAME_BUFFER_LIMIT];
        size_t out_start, out_end;
        uint32_t frames;
    } forwarders[JOBS]; /* by the place of the other job */
};

struct world {
    struct tb_loop loop;
    struct tb_timer stop;
    struct job jobs[JOBS];
};

static uint32_t number_of(const struct job *job)
{
    return 0x11111111u * (1 + (uint32_t)(job - job->world->jobs));
}

/* ---- the forwarders ---------------------------------------------------------------------------------------------- */

static void connects(void *context, uint32_t rank, enum tb_stream stream)
{
    struct job *job = context;
    struct forwarder *f = &job->forwarders[rank - THEIRS];
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
    *f = (struct forwarder){.socket = pair[1]};
    tb_border_connection(&job->border, rank, stream, pair[0]);
}

static uint64_t kept(void *context, uint32_t rank)
{
    return ((struct job *)context)->kept[rank - THEIRS];
}

/* What is left of the last frame. */
static bool flush(struct forwarder *f)
{
    while (f->out_start < f->out_end) {
        ssize_t n = send(f->socket, f->out + f->out_start, f->out_end - f->out_start, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0 && errno == EAGAIN)
            return false;
        assert_true(n > 0);
        f->out_start += (size_t)n;
    }
    return true;
}

/* A frame for the process of another job. False: there is no room for it now. */
static bool forward(struct job *job, const struct job *other, size_t payload)
{
    uint32_t rank = THEIRS + (uint32_t)(other - job->world->jobs);
    struct forwarder *f = &job->forwarders[rank - THEIRS];
    if (f->socket < 0)
        connects(job, rank, TB_STREAM_SHORT);
    if (!flush(f))
        return false;
    const struct tb_envelope envelope = {
        .routing = {.source = {number_of(job), 0}, .destination = {number_of(job), rank}, .sequence = 1},
        .message = {.context = tb_context_make(tb_context_tag(number_of(job)), 9, TB_PLANE_POINT),
                    .length = payload,
                    .kind = TB_KIND_EAGER,
                    .flags = TB_MESSAGE_ROUTED}};
    tb_wire_put_hop(f->out, &(struct tb_hop){.version = TB_WIRE_VERSION,
                                             .type = TB_HOP_ENVELOPE,
                                             .length = (uint32_t)(sizeof envelope + payload)});
    tb_wire_put_envelope(f->out + sizeof(struct tb_hop), &envelope);
    tb_hop_frame_number(f->out, f->sequence_out++, false);
    f->out_start = 0;
    f->out_end = TB_FRAME_BUFFER_HEAD + payload;
    flush(f);
    return true;
}

/* What the border has for the forwarder. */
static void take_forwarded(struct forwarder *f)
{
    ssize_t n;
    while (f->socket >= 0 && (n = recv(f->socket, f->in + f->have, sizeof f->in - f->have, MSG_DONTWAIT)) > 0) {
        struct tb_hop hop;
        size_t at = 0;
        for (f->have += (size_t)n; f->have - at >= sizeof hop; at += sizeof hop + hop.length) {
            assert_int_equal(tb_wire_get_hop(f->in + at, &hop), TB_OK);
            if (f->have - at < sizeof hop + hop.length)
                break;
            assert_int_equal(hop.sequence, f->sequence_in++);
            f->frames++;
        }
        f->have -= at;
        memmove(f->in, f->in + at, f->have);
    }
}

/* ---- the launchers ----------------------------------------------------------------------------------------------- */

static void hear(struct job *job)
{
    struct tb_control_frame frame;
    const void *bytes;
    size_t length;
    while (!job->deaf && ((bytes = tb_control_stream_take(&job->uplink.stream, 1u << 20, &length)), length > 0)) {
        assert_int_equal(tb_control_stream_feed(&job->heard, bytes, length), TB_OK);
        while (tb_control_stream_next(&job->heard, &frame) == TB_OK) {
            uint8_t word = tb_get_u8(&frame.fields);
            uint32_t number = tb_get_u32(&frame.fields);
            if (word == TB_BORDER_OPENED) {
                const char *text = tb_get_bytes(&frame.fields, &length);
                snprintf(job->addresses, sizeof job->addresses, "%.*s", (int)length, text);
            } else if (word == TB_BORDER_CAME) {
                job->came = number;
            } else if (word == TB_BORDER_NAMED) {
                job->named = tb_get_u32(&frame.fields);
            } else if (word == TB_BORDER_ENDED) {
                const char *text = tb_get_bytes(&frame.fields, &length);
                snprintf(job->why, sizeof job->why, "%.*s", (int)length, text);
            }
            job->tells += word == TB_BORDER_TELL;
            job->ups += word == TB_BORDER_UP;
            job->ended += word == TB_BORDER_ENDED;
        }
    }
}

static void settle(struct tb_loop *loop)
{
    struct world *w = TB_CONTAINER(loop, struct world, loop);
    for (uint32_t i = 0; i < JOBS; i++) {
        tb_border_settle(&w->jobs[i].border);
        hear(&w->jobs[i]);
        for (uint32_t k = 0; k < JOBS; k++)
            take_forwarded(&w->jobs[i].forwarders[k]);
    }
}

static void stop(struct tb_timer *timer)
{
    TB_CONTAINER(timer, struct world, stop)->loop.stop = true;
}

/* A few milliseconds pass. */
static void turn(struct world *w)
{
    w->loop.stop = false;
    tb_timer_set(&w->loop, &w->stop, 2000000);
    assert_int_equal(tb_loop_run(&w->loop), TB_OK);
}

static void await(struct world *w, const uint32_t *value, uint32_t wanted)
{
    uint64_t until = tb_loop_now(&w->loop) + PATIENCE_NS;
    while (*value < wanted && tb_loop_now(&w->loop) < until)
        turn(w);
    assert_true(*value >= wanted);
}

static void say(struct job *job, enum tb_border_word word, uint32_t number, const struct tb_writer *fields)
{
    struct tb_writer w;
    struct tb_reader r;
    tb_writer_open(&w);
    tb_put_u8(&w, (uint8_t)word);
    tb_put_u32(&w, number);
    if (fields != NULL)
        tb_put_raw(&w, fields->bytes, fields->length);
    tb_reader_open(&r, w.bytes, w.length);
    tb_border_take(&job->border, &r);
    tb_writer_close(&w);
}

static void name(struct job *job, uint32_t link, const struct job *other)
{
    const uint32_t fields[] = {
        ++job->tellings, number_of(other), 1, THEIRS + (uint32_t)(other - job->world->jobs), 1, 0, 1, 0, 1};
    struct tb_writer w;
    tb_writer_open(&w);
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        tb_put_u32(&w, fields[i]);
    say(job, TB_BORDER_NAMES, link, &w);
    tb_writer_close(&w);
    hear(job);
    assert_int_equal(job->named, job->tellings);
}

/* `from` connects to the port of `to`. */
static void dial(struct job *from, struct job *to)
{
    struct tb_writer w;
    uint32_t ups = from->ups;
    to->came = 0;
    tb_writer_open(&w);
    tb_put_u64(&w, PATIENCE_NS);
    tb_put_bytes(&w, key.bytes, TB_KEY_BYTES);
    tb_put_text(&w, to->addresses);
    say(from, TB_BORDER_DIAL, LINK + from->ups, &w);
    tb_writer_close(&w);
    await(from->world, &from->ups, ups + 1);
    await(from->world, &to->came, 1);
}

/* And both learn who they are. */
static void meet(struct job *from, struct job *to)
{
    uint32_t ups = from->ups;
    dial(from, to);
    name(from, LINK + ups, to);
    name(to, to->came, from);
}

static void tell(struct job *job, uint32_t link, size_t length)
{
    static char bytes[1u << 16];
    struct tb_writer w;
    tb_writer_open(&w);
    tb_put_bytes(&w, bytes, length);
    say(job, TB_BORDER_TELL, link, &w);
    tb_writer_close(&w);
}

static struct world *make(void)
{
    struct world *w = calloc(1, sizeof *w);
    struct tb_writer fields;
    assert_non_null(w);
    assert_int_equal(tb_loop_open(&w->loop, &tb_clock_real), TB_OK);
    tb_timer_init(&w->stop, stop);
    w->loop.settle = settle;
    tb_writer_open(&fields);
    tb_put_bytes(&fields, key.bytes, TB_KEY_BYTES);
    for (uint32_t i = 0; i < JOBS; i++) {
        struct job *job = &w->jobs[i];
        job->world = w;
        job->member = (struct tb_member){.loop = &w->loop, .self = {number_of(job), TB_PROC_AGENT}, .name = "here"};
        for (uint32_t k = 0; k < JOBS; k++)
            job->forwarders[k].socket = -1;
        tb_control_stream_open(&job->uplink.stream, -1, -1);
        tb_control_stream_open(&job->heard, -1, -1);
        tb_border_open(&job->border, &job->member, &job->uplink, &(struct tb_border_events){job, connects, kept});
        say(job, TB_BORDER_OPEN, 0, &fields);
        hear(job);
        assert_true(job->addresses[0] != 0);
    }
    tb_writer_close(&fields);
    return w;
}

static void unmake(struct world *w)
{
    for (uint32_t i = 0; i < JOBS; i++) {
        struct job *job = &w->jobs[i];
        tb_border_close(&job->border);
        tb_control_stream_close(&job->uplink.stream);
        tb_control_stream_close(&job->heard);
        for (uint32_t k = 0; k < JOBS; k++)
            if (job->forwarders[k].socket >= 0)
                close(job->forwarders[k].socket);
    }
    tb_timer_clear(&w->stop);
    tb_loop_close(&w->loop);
    free(w);
}

/* All links of a job: nothing is read from them any more. */
static void go_deaf(struct job *job)
{
    struct tb_border_link *link;
    TB_LIST_EACH (link, &job->border.links, struct tb_border_link, node)
        tb_border_link_hold(link, TB_BORDER_HELD_FRAMES, true);
}

/* Until the link of another one has no room any more. */
static void fill(struct job *from, const struct job *to)
{
    const struct tb_border_link *link;
    uint64_t until = tb_loop_now(&from->world->loop) + PATIENCE_NS;
    bool full = false;
    while (!full && tb_loop_now(&from->world->loop) < until) {
        while (forward(from, to, TB_RELAY_PAYLOAD))
            ;
        turn(from->world);
        TB_LIST_EACH (link, &from->border.links, const struct tb_border_link, node)
            full = full || tb_border_link_is_full(link);
    }
    assert_true(full);
}

/* ------------------------------------------------------------------------------------------------------------------ */

static void frames_pass_between_jobs(void **state)
{
    struct world *w = make();
    meet(&w->jobs[1], &w->jobs[0]);
    assert_true(forward(&w->jobs[0], &w->jobs[1], 100));
    assert_true(forward(&w->jobs[1], &w->jobs[0], TB_RELAY_PAYLOAD));
    await(w, &w->jobs[1].forwarders[0].frames, 1);
    await(w, &w->jobs[0].forwarders[1].frames, 1);
    unmake(w);
}

static void one_that_does_not_read_holds_up_itself_alone(void **state)
{
    struct world *w = make();
    meet(&w->jobs[1], &w->jobs[0]);
    meet(&w->jobs[2], &w->jobs[0]);
    go_deaf(&w->jobs[1]);
    fill(&w->jobs[0], &w->jobs[1]);
    assert_true(forward(&w->jobs[0], &w->jobs[2], 100));
    await(w, &w->jobs[2].forwarders[0].frames, 1);
    unmake(w);
}

static void a_full_link_that_ends_holds_up_nobody(void **state)
{
    struct world *w = make();
    meet(&w->jobs[1], &w->jobs[0]);
    go_deaf(&w->jobs[1]);
    fill(&w->jobs[0], &w->jobs[1]);
    say(&w->jobs[0], TB_BORDER_CLOSE, w->jobs[0].came, NULL);
    close(w->jobs[0].forwarders[1].socket); /* the border has closed its end, too */
    w->jobs[0].forwarders[1].socket = -1;
    meet(&w->jobs[2], &w->jobs[0]);
    assert_true(forward(&w->jobs[0], &w->jobs[2], 100));
    await(w, &w->jobs[2].forwarders[0].frames, 1);
    uint32_t before = w->jobs[1].forwarders[0].frames;
    meet(&w->jobs[1], &w->jobs[0]); /* and itself, anew */
    assert_true(forward(&w->jobs[0], &w->jobs[1], 100));
    await(w, &w->jobs[1].forwarders[0].frames, before + 1);
    unmake(w);
}

/* Frames that our own processes do not take fill one agent up to a bound, and a third job goes on. */
static void frames_that_nobody_takes(void **state)
{
    struct world *w = make();
    meet(&w->jobs[1], &w->jobs[0]);
    meet(&w->jobs[2], &w->jobs[0]);
    w->jobs[0].kept[1] = TB_BORDER_KEPT + 1; /* as if the forwarder had them */
    const struct tb_border_link *link = TB_CONTAINER(w->jobs[0].border.links.next, struct tb_border_link, node);
    uint64_t until = tb_loop_now(&w->loop) + PATIENCE_NS;
    while (link->held == 0 && tb_loop_now(&w->loop) < until) {
        forward(&w->jobs[1], &w->jobs[0], TB_RELAY_PAYLOAD);
        turn(w);
    }
    assert_int_equal(link->held, TB_BORDER_HELD_FRAMES);
    uint32_t before = w->jobs[0].forwarders[1].frames;
    fill(&w->jobs[1], &w->jobs[0]); /* what it sends stays there */
    assert_int_equal(w->jobs[0].forwarders[1].frames, before);
    assert_true(forward(&w->jobs[2], &w->jobs[0], 100));
    await(w, &w->jobs[0].forwarders[2].frames, 1);
    w->jobs[0].kept[1] = 0;
    await(w, &w->jobs[0].forwarders[1].frames, before + 1);
    unmake(w);
}

/* Nor do words that our launcher does not read. */
static void words_that_nobody_reads(void **state)
{
    struct world *w = make();
    meet(&w->jobs[1], &w->jobs[0]);
    meet(&w->jobs[2], &w->jobs[0]);
    w->jobs[0].deaf = true;
    for (uint32_t i = 0; i < 200; i++) {
        tell(&w->jobs[1], LINK, 60000);
        turn(w);
        assert_true(tb_uplink_queued(&w->jobs[0].uplink) < 2 * TB_BORDER_UNREAD);
    }
    assert_true(forward(&w->jobs[2], &w->jobs[0], 100));
    await(w, &w->jobs[0].forwarders[2].frames, 1);
    w->jobs[0].deaf = false;
    await(w, &w->jobs[0].tells, 200);
    unmake(w);
}

/* Who comes and does not say who it is gives way to who does. */
static void those_who_say_nothing(void **state)
{
    struct world *w = make();
    dial(&w->jobs[2], &w->jobs[0]);
    tell(&w->jobs[2], LINK, 100);
    await(w, &w->jobs[0].tells, 1);
    for (uint32_t i = 0; i <= TB_BORDER_QUIET; i++)
        dial(&w->jobs[1], &w->jobs[0]);
    await(w, &w->jobs[0].ended, 1);
    await(w, &w->jobs[1].ended, 1);
    assert_non_null(strstr(w->jobs[0].why, "others have come"));
    tell(&w->jobs[1], LINK + TB_BORDER_QUIET, 100); /* the last one */
    await(w, &w->jobs[0].tells, 2);
    assert_int_equal(w->jobs[0].ended, 1);
    unmake(w);
}

/* A job whose processes want more descriptors than the agent has for them is told, and others are not concerned. */
static void more_connections_than_there_are(void **state)
{
    struct world *w = make();
    meet(&w->jobs[1], &w->jobs[0]);
    meet(&w->jobs[2], &w->jobs[0]);
    assert_true(forward(&w->jobs[2], &w->jobs[0], 100));
    await(w, &w->jobs[0].forwarders[2].frames, 1);
    w->jobs[0].border.ranks.ends_most = 1;
    assert_true(forward(&w->jobs[1], &w->jobs[0], 100));
    await(w, &w->jobs[0].ended, 1);
    assert_non_null(strstr(w->jobs[0].why, "no descriptors left"));
    await(w, &w->jobs[1].ended, 1);
    assert_true(forward(&w->jobs[2], &w->jobs[0], 100));
    await(w, &w->jobs[0].forwarders[2].frames, 2);
    unmake(w);
}

/* Its agent stays when its ranks have ended: others may come, and those who have been met still need it. */
static void a_border_is_used_while_somebody_may_come(void **state)
{
    struct world *w = make();
    assert_true(tb_border_is_used(&w->jobs[0].border));
    say(&w->jobs[0], TB_BORDER_SHUT, 0, NULL);
    assert_false(tb_border_is_used(&w->jobs[0].border));
    say(&w->jobs[1], TB_BORDER_SHUT, 0, NULL);
    meet(&w->jobs[1], &w->jobs[2]);
    assert_true(tb_border_is_used(&w->jobs[1].border));
    unmake(w);
}

/* Whichever came first: what goes another way than before could overtake it. */
static void frames_take_the_link_that_had_names_first(void **state)
{
    struct world *w = make();
    dial(&w->jobs[1], &w->jobs[0]);
    uint32_t came = w->jobs[0].came;
    meet(&w->jobs[1], &w->jobs[0]);
    name(&w->jobs[1], LINK, &w->jobs[0]);
    name(&w->jobs[0], came, &w->jobs[1]);
    struct tb_border_link *link;
    TB_LIST_EACH (link, &w->jobs[1].border.links, struct tb_border_link, node)
        if (link->number == LINK)
            tb_border_link_hold(link, TB_BORDER_HELD_FRAMES, true);
    assert_true(forward(&w->jobs[0], &w->jobs[1], 100));
    await(w, &w->jobs[1].forwarders[0].frames, 1);
    unmake(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_pass_between_jobs),
        cmocka_unit_test(one_that_does_not_read_holds_up_itself_alone),
        cmocka_unit_test(a_full_link_that_ends_holds_up_nobody),
        cmocka_unit_test(frames_that_nobody_takes),
        cmocka_unit_test(words_that_nobody_reads),
        cmocka_unit_test(those_who_say_nothing),
        cmocka_unit_test(more_connections_than_there_are),
        cmocka_unit_test(frames_take_the_link_that_had_names_first),
        cmocka_unit_test(a_border_is_used_while_somebody_may_come),
    };
    if (tb_param_load() != TB_OK || tb_tls_is_usable() != TB_OK)
        return 77; /* without OpenSSL jobs do not meet */
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Links between the borders of two jobs: what passes, under which names, and what does not. Over a pair of sockets,
 * with TLS. */
#include "agent/border_link.h"
#include "base/changed_bytes_test.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#define OURS    0x11111111u
#define THEIRS  0x77777777u
#define TURNS   16
#define CONTEXT tb_context_make(tb_context_tag(OURS), 9, TB_PLANE_POINT)

static const struct tb_key key = {{7}};

struct end {
    struct tb_member member;
    struct tb_border_link *link;
    uint32_t frames, from, told, up;
    struct tb_envelope last;
    size_t payload;
    char why[320]; /* "": it has not ended */
};

struct world {
    struct tb_loop loop;
    struct tb_timer stop;
    struct end a, b;
    struct tb_tls_socket *raw; /* somebody else in the place of b */
};

static void up(void *context, struct tb_border_link *link)
{
    ((struct end *)context)->up++;
}

static void told(void *context, struct tb_border_link *link, const void *bytes, size_t length)
{
    struct end *end = context;
    end->told += length == 5 && memcmp(bytes, "hello", 5) == 0;
}

static int frame(void *context, struct tb_border_link *link, uint32_t from, enum tb_stream stream, char *bytes,
                 size_t length)
{
    struct end *end = context;
    assert_int_equal(tb_wire_get_envelope(bytes, &end->last), TB_OK);
    end->from = from;
    end->payload = length - sizeof(struct tb_envelope);
    end->frames++;
    return TB_OK;
}

static void eased(void *context) {}

static void ended(void *context, struct tb_border_link *link, const char *why)
{
    struct end *end = context;
    snprintf(end->why, sizeof end->why, "%s", why);
    tb_border_link_close(link);
    end->link = NULL;
}

static void stop(struct tb_timer *timer)
{
    TB_CONTAINER(timer, struct world, stop)->loop.stop = true;
}

static void turn(struct world *w)
{
    for (int i = 0; i < TURNS; i++) {
        if (w->a.link != NULL)
            tb_border_link_settle(w->a.link);
        if (w->b.link != NULL)
            tb_border_link_settle(w->b.link);
        w->loop.stop = false;
        tb_timer_set(&w->loop, &w->stop, 0);
        assert_int_equal(tb_loop_run(&w->loop), TB_OK);
    }
}

static void open_end(struct world *w, struct end *end, uint32_t job, int socket, bool connector)
{
    const struct tb_border_link_events events = {
        .context = end, .up = up, .told = told, .frame = frame, .eased = eased, .ended = ended};
    end->member = (struct tb_member){.loop = &w->loop, .self = {job, TB_PROC_AGENT}, .name = "here"};
    assert_int_equal(tb_border_link_open(&end->link, &end->member, socket, &key, connector, &events), TB_OK);
}

/* Processes `home` to `home + 1` of the other job are `first` to `first + 1`; ours are 0 to 2. */
static void name(struct end *end, uint32_t job, uint32_t first, uint32_t home)
{
    const uint32_t fields[] = {job, 1, first, 2, home, 1, 0, 3};
    struct tb_writer w;
    struct tb_reader r;
    tb_writer_open(&w);
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        tb_put_u32(&w, fields[i]);
    tb_reader_open(&r, w.bytes, w.length);
    assert_int_equal(tb_border_names_take(&end->link->names, &r), TB_OK);
    tb_writer_close(&w);
}

static void make(struct world *w, bool raw)
{
    int pair[2];
    memset(w, 0, sizeof *w);
    assert_int_equal(tb_loop_open(&w->loop, &tb_clock_real), TB_OK);
    tb_timer_init(&w->stop, stop);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
    open_end(w, &w->a, OURS, pair[0], false);
    name(&w->a, THEIRS, 10, 1);
    if (raw) {
        assert_int_equal(tb_tls_socket_open(&w->raw, pair[1], &key, true), TB_OK);
        return;
    }
    open_end(w, &w->b, THEIRS, pair[1], true);
    name(&w->b, OURS, 20, 0);
    turn(w);
    assert_true(w->a.up == 1 && w->b.up == 1);
}

static void unmake(struct world *w)
{
    if (w->a.link != NULL)
        tb_border_link_close(w->a.link);
    if (w->b.link != NULL)
        tb_border_link_close(w->b.link);
    tb_tls_socket_close(w->raw);
    tb_timer_clear(&w->stop);
    tb_loop_close(&w->loop);
}

/* From process `source` to one that the sender knows as `destination`. */
static void pass_in(struct end *end, uint32_t source, uint32_t destination, uint64_t context)
{
    char bytes[sizeof(struct tb_envelope) + 3] = {0};
    const uint32_t job = end->member.self.job;
    const struct tb_envelope envelope = {
        .routing = {.source = {job, source}, .destination = {job, destination}, .sequence = 5, .acknowledge = 4},
        .message = {.context = context, .length = 3, .kind = TB_KIND_EAGER, .flags = TB_MESSAGE_ROUTED}};
    tb_wire_put_envelope(bytes, &envelope);
    tb_border_link_pass(end->link, TB_STREAM_SHORT, bytes, sizeof bytes);
}

static void pass(struct end *end, uint32_t source, uint32_t destination)
{
    pass_in(end, source, destination, CONTEXT);
}

/* ------------------------------------------------------------------------------------------------------------------ */

static void frames_pass_under_the_names_of_each_job(void **state)
{
    struct world w;
    make(&w, false);
    pass(&w.b, 2, 21); /* process 2 there, which is 11 here, to ours with index 1 */
    tb_border_link_tell(w.b.link, "hello", 5);
    turn(&w);
    assert_int_equal(w.a.frames, 1);
    assert_int_equal(w.a.told, 1);
    assert_int_equal(w.a.from, 11);
    assert_true(w.a.last.routing.source.job == OURS && w.a.last.routing.source.index == 11);
    assert_true(w.a.last.routing.destination.job == OURS && w.a.last.routing.destination.index == 1);
    assert_int_equal(w.a.last.routing.sequence, 5);
    assert_int_equal(w.a.payload, 3);
    pass(&w.a, 1, 11); /* and back */
    turn(&w);
    assert_int_equal(w.b.frames, 1);
    assert_int_equal(w.b.from, 21);
    assert_int_equal(w.b.last.routing.destination.index, 2);
    unmake(&w);
}

static void only_those_who_have_met_are_heard(void **state)
{
    static const uint32_t bad[][2] = {{3, 21}, {2, 40}}; /* who was not introduced, and to whom */
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct world w;
        make(&w, false);
        pass(&w.b, bad[i][0], bad[i][1]); /* nobody waits in vain for what does not pass */
        turn(&w);
        assert_true(w.a.frames == 0 && w.b.link == NULL);
        assert_non_null(strstr(w.b.why, "has not met"));
        unmake(&w);
    }
    struct world w;
    make(&w, false);
    pass(&w.b, 0, 21); /* and who says it is not believed: 0 was not introduced to the other job */
    turn(&w);
    assert_int_equal(w.a.frames, 0);
    assert_null(w.a.link);
    assert_non_null(strstr(w.a.why, "have not met"));
    unmake(&w);
}

/* Nobody else has contexts whose leader is an index: those of all processes of a job. */
static void nothing_passes_in_communicators_of_one_job(void **state)
{
    const uint64_t bad[] = {tb_context_make(0, TB_CONTEXT_WORLD, TB_PLANE_POINT),
                            tb_context_make(0, TB_CONTEXT_WORLD, TB_PLANE_CONTROL),
                            tb_context_make(1, TB_CONTEXT_SELF, TB_PLANE_POINT),
                            tb_context_make(TB_CONTEXT_TAG_LEAST - 1, 1, TB_PLANE_COLLECTIVE)};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct world w;
        make(&w, false);
        pass_in(&w.b, 2, 21, bad[i]);
        turn(&w);
        assert_int_equal(w.a.frames, 0);
        assert_null(w.a.link);
        unmake(&w);
    }
}

static void its_end_is_told(void **state)
{
    struct world w;
    make(&w, false);
    tb_border_link_close(w.b.link);
    w.b.link = NULL;
    turn(&w);
    assert_null(w.a.link);
    assert_non_null(strstr(w.a.why, "ended"));
    unmake(&w);
}

/* ---- bytes of others --------------------------------------------------------------------------------------------- */

static int take_changed(void *context, const uint8_t *bytes, size_t length, size_t piece)
{
    struct world w;
    uint8_t scratch[512];
    size_t got, at = 0;
    make(&w, true);
    for (int i = 0; i < TURNS && w.a.link != NULL && at < length; i++) {
        tb_tls_socket_flush(w.raw);
        w.loop.stop = false;
        tb_timer_set(&w.loop, &w.stop, 0);
        assert_int_equal(tb_loop_run(&w.loop), TB_OK);
        if (tb_tls_socket_receive(w.raw) == TB_OK)
            while (tb_tls_socket_read(w.raw, scratch, sizeof scratch, &got) == TB_OK)
                ;
        if (!tb_tls_socket_is_ready(w.raw))
            continue;
        size_t now = piece < 64 ? 64 : piece;
        now = now < length - at ? now : length - at;
        assert_int_equal(tb_tls_socket_write(w.raw, bytes + at, now), TB_OK);
        at += now;
    }
    tb_tls_socket_flush(w.raw);
    turn(&w);
    int rc = w.a.why[0] != 0 ? tb_error(TB_ERR_PROTOCOL, "%s", w.a.why) : TB_OK;
    unmake(&w);
    return rc;
}

static void put_frame(struct tb_control_stream *s, enum tb_kind kind, uint64_t length)
{
    char bytes[sizeof(struct tb_envelope) + 40] = {0};
    const struct tb_envelope envelope = {
        .routing = {.source = {THEIRS, 2}, .destination = {OURS, 1}, .sequence = 1},
        .message = {
            .context = CONTEXT, .match = 3, .length = length, .kind = (uint8_t)kind, .flags = TB_MESSAGE_ROUTED}};
    tb_wire_put_envelope(bytes, &envelope);
    struct tb_writer *w = tb_control_stream_begin(s, TB_CONTROL_BORDER);
    tb_put_u8(w, TB_BORDER_FRAME);
    tb_put_u8(w, TB_STREAM_SHORT);
    tb_put_raw(w, bytes, sizeof envelope + length);
    tb_control_stream_end(s);
}

static void changed_bytes_of_another_job(void **state)
{
    struct tb_control_stream s;
    size_t length;
    tb_control_stream_open(&s, -1, -1);
    put_frame(&s, TB_KIND_EAGER, 3);
    struct tb_writer *w = tb_control_stream_begin(&s, TB_CONTROL_BORDER);
    tb_put_u8(w, TB_BORDER_TELL);
    tb_put_raw(w, "hello", 5);
    tb_control_stream_end(&s);
    put_frame(&s, TB_KIND_DATA, 40);
    w = tb_control_stream_begin(&s, TB_CONTROL_BORDER);
    tb_put_u8(w, TB_BORDER_ALIVE);
    tb_control_stream_end(&s);
    const void *bytes = tb_control_stream_take(&s, 1u << 20, &length);
    changed_bytes_sweep(&(struct changed_bytes){
        .kind = "what another job sends", .take = take_changed, .bytes = bytes, .length = length});
    tb_control_stream_close(&s);
}

/* Words that are for launcher and agent of one job, or none at all. */
static void words_that_are_not_for_us(void **state)
{
    static const uint8_t bad[] = {TB_BORDER_OPEN,  TB_BORDER_NAMES,     TB_BORDER_CLOSE,
                                  TB_BORDER_ENDED, TB_BORDER_ALIVE + 1, 255};
    for (size_t i = 0; i < sizeof bad; i++) {
        struct tb_control_stream s;
        size_t length;
        tb_control_stream_open(&s, -1, -1);
        struct tb_writer *w = tb_control_stream_begin(&s, TB_CONTROL_BORDER);
        tb_put_u8(w, bad[i]);
        tb_put_u32(w, 1);
        tb_control_stream_end(&s);
        const void *bytes = tb_control_stream_take(&s, 1u << 20, &length);
        assert_int_equal(take_changed(NULL, bytes, length, length), TB_ERR_PROTOCOL);
        tb_control_stream_close(&s);
    }
}

/* Nobody makes us keep the beginning of a frame that is longer than any that is needed. */
static void words_that_are_too_long(void **state)
{
    enum { LONG = 5 << 20 };
    static char bytes[LONG];
    for (int named = 0; named < 2; named++) {
        struct world w;
        make(&w, false);
        if (!named)
            tb_border_names_close(&w.a.link->names);
        tb_border_link_tell(w.b.link, bytes, 60000);
        turn(&w);
        assert_non_null(w.a.link);
        tb_border_link_tell(w.b.link, bytes, named ? 1u << 20 : LONG);
        for (int i = 0; i < 100 && w.a.link != NULL; i++) {
            turn(&w);
            assert_true(w.a.link == NULL || w.a.link->stream.received_room < 2u * LONG);
        }
        assert_null(w.a.link);
        assert_non_null(strstr(w.a.why, "nonsense"));
        unmake(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_pass_under_the_names_of_each_job),
        cmocka_unit_test(only_those_who_have_met_are_heard),
        cmocka_unit_test(nothing_passes_in_communicators_of_one_job),
        cmocka_unit_test(its_end_is_told),
        cmocka_unit_test(changed_bytes_of_another_job),
        cmocka_unit_test(words_that_are_not_for_us),
        cmocka_unit_test(words_that_are_too_long),
    };
    if (tb_param_load() != TB_OK || tb_tls_is_usable() != TB_OK)
        return 77; /* without OpenSSL jobs do not meet */
    return cmocka_run_group_tests(tests, NULL, NULL);
}

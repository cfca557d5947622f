/* The TLS stream of an agent that was started by hand: a socketpair, with TLS alone at the agent's end. */
#include "launch/tls_stream.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "remote/virtual_loop_test.h"

#define STEPS 100

struct world {
    struct virtual_loop loop;
    struct tb_control_stream control; /* the launcher's */
    struct tb_tls_stream stream;
    int far; /* the agent's socket, */
    struct tb_tls *tls;
    struct tb_control_stream heard; /* and what it has been told */
    char received[64];
    uint32_t ended;
    int error;
    bool closes;      /* the stream, as soon as something has come */
    bool keeps;       /* it open, though it has ended */
    bool meddles;     /* what the agent says is changed on the way, */
    size_t meddle_at; /* here */
};

static void take_bytes(void *context, const void *bytes, size_t length)
{
    struct world *w = context;
    strncat(w->received, bytes, length);
    if (w->closes)
        tb_tls_stream_close(&w->stream);
}

static void take_end(void *context, int error)
{
    struct world *w = context;
    w->ended++;
    w->error = error;
    if (!w->keeps)
        tb_tls_stream_close(&w->stream);
}

static int put(void *context, const void *bytes, size_t length)
{
    const struct world *w = context;
    uint8_t copy[4096];
    assert_true(length <= sizeof copy);
    memcpy(copy, bytes, length);
    if (w->meddles && w->meddle_at < length)
        copy[w->meddle_at] ^= 1;
    return send(w->far, copy, length, MSG_NOSIGNAL) == (ssize_t)length ? TB_OK : TB_ERR_CLOSED;
}

static void make(struct world *w, const char *near_secret, const char *far_secret)
{
    int pair[2];
    struct tb_key near_key, far_key;
    memset(w, 0, sizeof *w);
    virtual_loop_open(&w->loop);
    tb_control_stream_open(&w->control, -1, -1);
    tb_control_stream_open(&w->heard, -1, -1);
    assert_int_equal(tb_key_derive(&near_key, near_secret), TB_OK);
    assert_int_equal(tb_key_derive(&far_key, far_secret), TB_OK);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
    w->far = pair[1];
    const struct tb_tls_stream_events events = {.context = w, .received = take_bytes, .ended = take_end};
    int rc = tb_tls_stream_open(&w->stream, &w->loop.loop, pair[0], &near_key, false, &w->control, &events);
    if (rc == TB_ERR_UNSUPPORTED)
        skip(); /* there is no libssl here */
    assert_int_equal(rc, TB_OK);
    assert_int_equal(tb_tls_open(&w->tls, &far_key, true, put, w), TB_OK);
}

static void unmake(struct world *w)
{
    tb_tls_stream_close(&w->stream);
    tb_tls_close(w->tls);
    close(w->far);
    tb_control_stream_close(&w->control);
    tb_control_stream_close(&w->heard);
    virtual_loop_close(&w->loop);
}

/* The agent uses what has come. */
static int listen_once(struct world *w, bool *established)
{
    uint8_t bytes[4096], plain[4096];
    size_t got;
    ssize_t n = recv(w->far, bytes, sizeof bytes, MSG_DONTWAIT);
    if (n <= 0)
        return n == 0 ? TB_ERR_CLOSED : TB_AGAIN;
    tb_tls_feed(w->tls, bytes, (size_t)n);
    int rc = *established ? TB_OK : tb_tls_handshake(w->tls);
    *established = rc == TB_OK;
    while (rc == TB_OK && (rc = tb_tls_read(w->tls, plain, sizeof plain, &got)) == TB_OK)
        assert_int_equal(tb_control_stream_feed(&w->heard, plain, got), TB_OK);
    return rc;
}

static void shake_hands(struct world *w)
{
    bool established = false;
    assert_int_equal(tb_tls_handshake(w->tls), TB_AGAIN);
    for (int i = 0; i < STEPS && !(established && tb_tls_socket_is_ready(w->stream.tls)); i++) {
        virtual_loop_turn(&w->loop);
        listen_once(w, &established);
    }
    assert_true(established && tb_tls_socket_is_ready(w->stream.tls));
}

static void bytes_go_both_ways(void **state)
{
    struct world w;
    struct tb_control_frame frame;
    bool established = true;
    make(&w, "one", "one");
    tb_control_stream_send(&w.control, TB_CONTROL_PING);
    tb_tls_stream_flush(&w.stream); /* too early: it waits */
    assert_true(tb_control_stream_queued(&w.control) > 0);
    shake_hands(&w);
    assert_int_equal(tb_tls_write(w.tls, "hello", 5), TB_OK);
    for (int i = 0; i < STEPS && (strlen(w.received) < 5 || tb_control_stream_next(&w.heard, &frame) != TB_OK); i++) {
        virtual_loop_turn(&w.loop);
        listen_once(&w, &established);
    }
    assert_string_equal(w.received, "hello");
    assert_int_equal(frame.kind, TB_CONTROL_PING);
    assert_int_equal(tb_control_stream_queued(&w.control), 0);
    tb_tls_stream_close(&w.stream); /* in good order */
    assert_int_equal(listen_once(&w, &established), TB_ERR_CLOSED);
    assert_int_equal(w.ended, 0);
    unmake(&w);
}

static void the_end_is_reported(void **state)
{
    struct world w;
    make(&w, "one", "one");
    shake_hands(&w);
    shutdown(w.far, SHUT_RDWR);
    virtual_loop_turn(&w.loop);
    assert_int_equal(w.ended, 1);
    assert_false(tb_tls_stream_is_open(&w.stream));
    unmake(&w);
}

static void another_key_ends_it(void **state)
{
    struct world w;
    bool established = false;
    make(&w, "one", "two");
    tb_tls_handshake(w.tls);
    for (int i = 0; i < STEPS && w.ended == 0; i++) {
        virtual_loop_turn(&w.loop);
        listen_once(&w, &established);
    }
    assert_int_equal(w.ended, 1);
    assert_string_equal(w.received, "");
    unmake(&w);
}

static void it_may_be_closed_by_what_it_reports(void **state)
{
    struct world w;
    make(&w, "one", "one");
    shake_hands(&w);
    w.closes = true;
    assert_int_equal(tb_tls_write(w.tls, "a", 1), TB_OK);
    assert_int_equal(tb_tls_write(w.tls, "b", 1), TB_OK); /* comes too late */
    virtual_loop_turn(&w.loop);
    assert_string_equal(w.received, "a");
    assert_false(tb_tls_stream_is_open(&w.stream));
    assert_int_equal(w.ended, 0);
    unmake(&w);
}

/* One byte that is changed on the way ends the stream, which then is closed from inside of that report. */
static void a_changed_byte_ends_it(void **state)
{
    for (size_t offset = 0; offset < 30; offset++) {
        struct world w;
        make(&w, "one", "one");
        shake_hands(&w);
        w.meddles = true;
        w.meddle_at = offset;
        tb_tls_write(w.tls, "hello, launcher", 15);
        shutdown(w.far, SHUT_WR); /* a record that seems longer never ends */
        for (int i = 0; i < STEPS && w.ended == 0; i++)
            virtual_loop_turn(&w.loop);
        assert_int_equal(w.ended, 1);
        assert_true(w.error == TB_ERR_PROTOCOL || ((offset == 3 || offset == 4) && w.error == TB_ERR_CLOSED));
        assert_string_equal(w.received, "");
        assert_false(tb_tls_stream_is_open(&w.stream));
        unmake(&w);
    }
}

/* It is not closed at once by whoever hears of the end; nothing more is said on it, and nothing else happens. */
static void a_broken_one_may_be_used(void **state)
{
    struct world w;
    make(&w, "one", "one");
    w.keeps = true;
    shake_hands(&w);
    w.meddles = true;
    w.meddle_at = 10;
    tb_tls_write(w.tls, "hello, launcher", 15);
    virtual_loop_turn(&w.loop);
    assert_int_equal(w.ended, 1);
    tb_control_stream_send(&w.control, TB_CONTROL_PING);
    tb_tls_stream_flush(&w.stream);
    tb_control_stream_send(&w.control, TB_CONTROL_PING);
    tb_tls_stream_flush(&w.stream);
    tb_tls_stream_close(&w.stream);
    unmake(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_go_both_ways),     cmocka_unit_test(the_end_is_reported),
        cmocka_unit_test(another_key_ends_it),    cmocka_unit_test(it_may_be_closed_by_what_it_reports),
        cmocka_unit_test(a_changed_byte_ends_it), cmocka_unit_test(a_broken_one_may_be_used),
    };
    tb_param_load();
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "job/job.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <unistd.h>

#include <cmocka.h>

static struct tb_key key;
static int ends[2]; /* of the connector and of the acceptor */
static struct tb_handshake connector, acceptor;

static int setup(void **state)
{
    tb_handshake_accept(&acceptor, &key);
    return socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0 && tb_key_make(&key) == TB_OK &&
                   tb_handshake_connect(&connector, &key, (struct tb_proc){1, 2}, (struct tb_proc){1, 3}, 0, 0) == TB_OK
               ? 0
               : -1;
}

static int teardown(void **state)
{
    close(ends[0]);
    close(ends[1]);
    return 0;
}

/* One side speaks and the other one hears it, which leaves alone what follows. */
static void tell(struct tb_handshake *from, int out, struct tb_handshake *to, int in)
{
    char after;
    assert_int_equal(tb_handshake_socket_receive(to, in), TB_AGAIN);
    assert_int_equal(tb_handshake_socket_send(from, out), TB_OK);
    assert_int_equal(send(out, "x", 1, 0), 1);
    assert_int_equal(tb_handshake_socket_receive(to, in), TB_OK);
    assert_int_equal(recv(in, &after, 1, 0), 1);
    assert_int_equal(after, 'x');
}

static void test_whole(void **state)
{
    tell(&connector, ends[0], &acceptor, ends[1]);
    assert_int_equal(tb_handshake_answer(&acceptor, TB_WELCOME_OK, 0, false), TB_OK);
    tell(&acceptor, ends[1], &connector, ends[0]);
    assert_int_equal(tb_handshake_confirm(&connector), TB_OK);
    tell(&connector, ends[0], &acceptor, ends[1]);
    tb_handshake_admit(&acceptor);
    tell(&acceptor, ends[1], &connector, ends[0]);
    assert_int_equal(connector.verdict, TB_HANDSHAKE_DONE);
    assert_int_equal(acceptor.verdict, TB_HANDSHAKE_DONE);
    assert_int_equal(tb_handshake_socket_send(&connector, ends[0]), TB_OK); /* nothing is left to say */
}

static void test_closed(void **state)
{
    assert_int_equal(send(ends[0], "tombolo", 7, 0), 7);
    close(ends[0]);
    assert_int_equal(tb_handshake_socket_receive(&acceptor, ends[1]), TB_ERR_CLOSED);
    assert_int_equal(tb_handshake_wants(&acceptor), sizeof(struct tb_hello) - 7);
    assert_int_equal(tb_handshake_socket_send(&connector, ends[1]), TB_ERR_CLOSED);
    ends[0] = -1;
    assert_int_equal(tb_handshake_socket_receive(&acceptor, -1), TB_ERR_SYSTEM);
    assert_int_equal(errno, EBADF);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_whole, setup, teardown),
        cmocka_unit_test_setup_teardown(test_closed, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Programs that join as a rank below the process that was started, and end. */
#include "agent/rank_port_world_test.h"

/* A process of its own that joins as a rank, with its socket or by name, says the rest, and ends itself. */
static pid_t join_and_die(struct world *w, uint32_t local, bool by_name, bool finalize, int signal)
{
    int hold[2];
    char byte;
    assert_int_equal(pipe2(hold, O_CLOEXEC), 0);
    pid_t pid = fork();
    if (pid == 0) {
        struct tb_writer fields;
        int fd = w->sockets[local];
        if (by_name) {
            struct sockaddr_un name = {.sun_family = AF_UNIX};
            memcpy(name.sun_path + 1, w->port.name, strlen(w->port.name));
            fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
            socklen_t length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(w->port.name));
            if (connect(fd, (struct sockaddr *)&name, length) != 0)
                _exit(1);
        }
        tb_writer_open(&fields);
        tb_put_u32(&fields, 4711); /* in a namespace of its own */
        tb_packet_send(fd, TB_CONTROL_HELLO, &fields, NULL, 0);
        close(hold[1]);
        if (read(hold[0], &byte, 1) == 0 && finalize)
            tb_packet_send(fd, TB_CONTROL_FINALIZED, NULL, NULL, 0);
        kill(getpid(), signal);
        _exit(7);
    }
    close(hold[0]);
    for (int i = 0; i < 1000 && w->port.ranks[local].joined == 0; i++) {
        virtual_loop_turn(&w->t);
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
    assert_int_equal(w->port.ranks[local].joined, pid);
    assert_int_equal(w->lefts, 0);
    close(hold[1]);
    return pid;
}

/* Until it is told or no longer looked for. */
static void wait_until_left(struct world *w, uint32_t local)
{
    for (int i = 0; i < 1000 && w->port.ranks[local].process.descriptor >= 0; i++) {
        virtual_loop_turn(&w->t);
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
    assert_int_equal(w->port.ranks[local].process.descriptor, -1);
}

static void a_program_below_is_missed(void **state)
{
    for (int by_name = 0; by_name < 2; by_name++)
        for (int signal = 0; signal <= SIGKILL; signal += SIGKILL) {
            struct world w;
            world_open(&w);
            w.port.ranks[1].pid = getpid();
            pid_t pid = join_and_die(&w, 1, by_name, false, signal);
            wait_until_left(&w, 1);
            assert_int_equal(w.lefts, 1);
            assert_int_equal(w.local, 1);
            assert_int_equal(w.status, signal != 0 ? signal : 7 << 8);
            waitpid(pid, NULL, 0);
            world_close(&w);
        }
}

/* Nor is the process that was started, whose end is told by others. */
static void who_has_finalized_is_not_missed(void **state)
{
    struct world w;
    world_open(&w);
    pid_t pid = join_and_die(&w, 1, false, true, 0);
    assert_true(w.port.ranks[1].process.descriptor >= 0);
    wait_until_left(&w, 1);
    assert_int_equal(w.lefts, 0);
    waitpid(pid, NULL, 0);
    w.port.ranks[0].pid = getpid();
    say_hello(&w, w.sockets[0]);
    assert_int_equal(w.port.ranks[0].joined, getpid());
    assert_int_equal(w.port.ranks[0].process.descriptor, -1);
    world_close(&w);
}

/* Its hello is read when it is gone already. */
static void who_is_gone_at_once_is_missed(void **state)
{
    struct world w;
    world_open(&w);
    pid_t pid = fork();
    if (pid == 0) {
        tb_packet_send(w.sockets[0], TB_CONTROL_HELLO, NULL, NULL, 0);
        _exit(0);
    }
    waitpid(pid, NULL, 0);
    virtual_loop_turn(&w.t);
    assert_int_equal(w.lefts, 1);
    assert_int_equal(w.status, -1);
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_program_below_is_missed),
        cmocka_unit_test(who_has_finalized_is_not_missed),
        cmocka_unit_test(who_is_gone_at_once_is_missed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

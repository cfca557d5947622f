/* For tests: a shell for the first of some agents, with both of its ends here. */
#ifndef TB_LAUNCH_AGENT_SHELL_TEST_H
#define TB_LAUNCH_AGENT_SHELL_TEST_H

#include "launch/host_agents.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* `far` becomes the agent's side of its stream. Returns the one by which it says errors, to be closed. */
static inline int agent_shell_open(struct tb_host_agents *agents, struct tb_control_stream *far)
{
    int pair[2], errors[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
    assert_int_equal(pipe2(errors, O_CLOEXEC | O_NONBLOCK), 0);
    tb_control_stream_open(far, pair[1], pair[1]);
    agents->all[0].phase = TB_HOST_AGENT_SILENT;
    agents->counts.silent = 1;
    assert_int_equal(
        tb_host_agent_take_shell(&agents->all[0], &(struct tb_shell){.stream = pair[0], .errors = errors[0]}), TB_OK);
    return errors[1];
}

#endif

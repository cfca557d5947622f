/* The standard streams of the ranks. */
#include "agent/state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define READ_BYTES  32768u
#define DRAIN_BYTES (64u << 10) /* if we cannot learn how much a pipe holds */

static void emit(void *context, const char *first, size_t first_length, const char *second, size_t second_length)
{
    struct tb_output *output = context;
    struct tb_rank *rank = output->rank;
    struct tb_agent *agent = rank->agent;
    struct tb_writer *w = tb_control_stream_begin(&agent->pipe, TB_CONTROL_OUTPUT);
    tb_put_u32(w, rank->rank);
    tb_put_u8(w, output == &rank->outputs[0] ? 1 : 2);
    if (second_length == 0) {
        tb_put_bytes(w, first, first_length);
    } else if (first_length == 0) {
        tb_put_bytes(w, second, second_length);
    } else {
        char *both = malloc(first_length + second_length);
        if (both != NULL) {
            memcpy(both, first, first_length);
            memcpy(both + first_length, second, second_length);
            tb_put_bytes(w, both, first_length + second_length);
            free(both);
        } else {
            w->error = TB_ERR_MEMORY;
        }
    }
    if (tb_control_stream_end(&agent->pipe) != TB_OK)
        tb_log(TB_LOG_ERROR, "agent", "output of rank %u is lost: %s", rank->rank, tb_error_story());
    agent->window -= (int64_t)(first_length + second_length);
}

static void end_output(struct tb_output *output)
{
    if (output->descriptor < 0)
        return;
    struct tb_agent *agent = output->rank->agent;
    tb_lines_flush(&output->lines, emit, output);
    tb_loop_unwatch(&agent->loop, &output->watch);
    close(output->descriptor);
    output->descriptor = -1;
}

/* Reads once. Bytes, 0: end, -1: nothing there now. */
static ssize_t read_some(struct tb_output *output)
{
    static char bytes[READ_BYTES]; /* one thread, used up before the return */
    struct tb_agent *agent = output->rank->agent;
    ssize_t n = read(output->descriptor, bytes, sizeof bytes);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return -1;
    if (n <= 0) {
        end_output(output);
        return 0;
    }
    tb_lines_add(&output->lines, bytes, (size_t)n, tb_clock_now_real(), emit, output);
    if (output->lines.length > 0 && !tb_timer_is_set(&agent->sweep))
        tb_timer_set(&agent->loop, &agent->sweep, agent->setup.hold);
    return n;
}

static bool may_read(const struct tb_agent *agent)
{
    return agent->window > 0;
}

static void pause_all(struct tb_agent *agent)
{
    for (uint32_t i = 0; i < agent->rank_count; i++)
        for (int k = 0; k < 2; k++)
            tb_loop_unwatch(&agent->loop, &agent->ranks[i].outputs[k].watch);
}

static void output_ready(struct tb_watch *watch, uint32_t events)
{
    struct tb_output *output = TB_CONTAINER(watch, struct tb_output, watch);
    struct tb_agent *agent = output->rank->agent;
    if (!may_read(agent)) {
        pause_all(agent);
        return;
    }
    ssize_t n = read_some(output);
    if (n > 0 && tb_timer_is_set(&agent->linger))
        tb_agent_linger(agent);
    if (n == 0)
        tb_agent_check_done(agent);
}

int tb_output_open(struct tb_output *output, struct tb_rank *rank, int descriptor)
{
    output->rank = rank;
    output->descriptor = descriptor;
    fcntl(descriptor, F_SETFL, O_NONBLOCK);
    return tb_loop_watch(&rank->agent->loop, &output->watch, descriptor, EPOLLIN, output_ready);
}

/* Whether there is more to read, so that the end of an unfinished line may only be waiting for us. */
static bool has_more(const struct tb_output *output)
{
    int bytes = 0;
    return output->descriptor >= 0 && ioctl(output->descriptor, FIONREAD, &bytes) == 0 && bytes > 0;
}

void tb_output_resume(struct tb_agent *agent)
{
    if (!may_read(agent))
        return;
    uint64_t now = tb_clock_now_real();
    for (uint32_t i = 0; i < agent->rank_count; i++)
        for (int k = 0; k < 2; k++) {
            struct tb_output *output = &agent->ranks[i].outputs[k];
            if (output->descriptor < 0 || output->watch.descriptor >= 0)
                continue;
            if (has_more(output))
                output->lines.since = now; /* the rank may have had to wait, too, before it could write the end */
            tb_loop_watch(&agent->loop, &output->watch, output->descriptor, EPOLLIN, output_ready);
        }
}

/* Beyond the window, but not more than is in the pipes now: more comes only from somebody who goes on writing. */
void tb_output_drain(struct tb_agent *agent)
{
    for (uint32_t i = 0; i < agent->rank_count; i++)
        for (int k = 0; k < 2; k++) {
            struct tb_output *output = &agent->ranks[i].outputs[k];
            int holds = output->descriptor >= 0 ? fcntl(output->descriptor, F_GETPIPE_SZ) : -1;
            size_t most = holds > 0 ? (size_t)holds : DRAIN_BYTES;
            for (size_t total = 0; output->descriptor >= 0 && total < most;) {
                ssize_t n = read_some(output);
                if (n <= 0)
                    break;
                total += (size_t)n;
            }
            end_output(output);
        }
}

void tb_output_sweep(struct tb_timer *timer)
{
    struct tb_agent *agent = TB_CONTAINER(timer, struct tb_agent, sweep);
    uint64_t now = tb_clock_now_real(), oldest = TB_NEVER;
    for (uint32_t i = 0; i < agent->rank_count; i++)
        for (int k = 0; k < 2; k++) {
            struct tb_output *output = &agent->ranks[i].outputs[k];
            if (output->lines.length == 0)
                continue;
            if (has_more(output))
                output->lines.since = now; /* it is we who are late, or may not read: no reason to tear a line */
            if (now - output->lines.since >= agent->setup.hold)
                tb_lines_flush(&output->lines, emit, output);
            else if (output->lines.since < oldest)
                oldest = output->lines.since;
        }
    if (oldest != TB_NEVER)
        tb_timer_set(&agent->loop, timer, oldest + agent->setup.hold - now);
}

bool tb_output_open_any(const struct tb_agent *agent)
{
    for (uint32_t i = 0; i < agent->rank_count; i++)
        if (agent->ranks[i].outputs[0].descriptor >= 0 || agent->ranks[i].outputs[1].descriptor >= 0)
            return true;
    return false;
}

/* ---- input of rank 0
 * -------------------------------------------------------------------------------------------------- */

static void close_input(struct tb_input *input)
{
    tb_loop_unwatch(&input->agent->loop, &input->watch);
    if (input->descriptor >= 0)
        close(input->descriptor);
    input->descriptor = -1;
    free(input->bytes);
    input->bytes = NULL;
    input->start = input->end = input->room = 0;
}

static void allow_more(struct tb_agent *agent, size_t bytes)
{
    struct tb_writer *w = tb_control_stream_begin(&agent->pipe, TB_CONTROL_WINDOW);
    tb_put_u32(w, (uint32_t)bytes);
    tb_control_stream_end(&agent->pipe);
}

static void push_input(struct tb_input *input);

static void input_ready(struct tb_watch *watch, uint32_t events)
{
    push_input(TB_CONTAINER(watch, struct tb_input, watch));
}

static void push_input(struct tb_input *input)
{
    struct tb_agent *agent = input->agent;
    size_t written = 0;
    while (input->start < input->end) {
        ssize_t n = write(input->descriptor, input->bytes + input->start, input->end - input->start);
        if (n < 0 && errno == EAGAIN) {
            if (input->watch.descriptor < 0)
                tb_loop_watch(&agent->loop, &input->watch, input->descriptor, EPOLLOUT, input_ready);
            break;
        }
        if (n < 0) { /* rank 0 does not want to read any more */
            allow_more(agent, written + input->end - input->start);
            close_input(input);
            return;
        }
        input->start += (size_t)n;
        written += (size_t)n;
    }
    if (written > 0)
        allow_more(agent, written);
    if (input->start == input->end) {
        input->start = input->end = 0;
        tb_loop_unwatch(&agent->loop, &input->watch);
        if (input->last)
            close_input(input);
    }
}

int tb_input_add(struct tb_agent *agent, const void *bytes, size_t length)
{
    struct tb_input *input = &agent->input;
    if (length == 0) {
        input->last = true;
    } else if (input->descriptor < 0) {
        allow_more(agent, length); /* nobody reads it */
        return TB_OK;
    }
    if (input->descriptor < 0)
        return TB_OK;
    if (input->start > 0) {
        memmove(input->bytes, input->bytes + input->start, input->end - input->start);
        input->end -= input->start;
        input->start = 0;
    }
    if (input->end + length > input->room) {
        size_t room = input->end + length;
        char *grown = realloc(input->bytes, room);
        if (grown == NULL)
            return tb_error(TB_ERR_MEMORY, "no memory for the input of rank 0");
        input->bytes = grown;
        input->room = room;
    }
    if (length > 0)
        memcpy(input->bytes + input->end, bytes, length);
    input->end += length;
    push_input(input);
    return TB_OK;
}

#include "agent/rank_input.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#define QUEUED_LIMIT (16u << 20) /* far more than the window of the launcher */

void tb_rank_input_open(struct tb_rank_input *input, struct tb_loop *loop, const struct tb_rank_input_events *events)
{
    *input = (struct tb_rank_input){.loop = loop, .events = *events, .watch.descriptor = -1, .descriptor = -1};
}

void tb_rank_input_begin(struct tb_rank_input *input, int descriptor)
{
    fcntl(descriptor, F_SETFL, O_NONBLOCK);
    input->descriptor = descriptor;
}

void tb_rank_input_close(struct tb_rank_input *input)
{
    tb_loop_unwatch(input->loop, &input->watch);
    if (input->descriptor >= 0)
        close(input->descriptor);
    input->descriptor = -1;
    free(input->bytes);
    input->bytes = NULL;
    input->start = input->end = input->room = 0;
}

static void push(struct tb_rank_input *input);

static void input_ready(struct tb_watch *watch, uint32_t events)
{
    push(TB_CONTAINER(watch, struct tb_rank_input, watch));
}

static void push(struct tb_rank_input *input)
{
    size_t written = 0;
    while (input->start < input->end) {
        ssize_t n = write(input->descriptor, input->bytes + input->start, input->end - input->start);
        if (n < 0 && errno == EAGAIN) {
            if (input->watch.descriptor < 0)
                tb_loop_watch(input->loop, &input->watch, input->descriptor, EPOLLOUT, input_ready);
            break;
        }
        if (n < 0) { /* rank 0 does not want to read any more */
            input->events.taken(input->events.context, written + input->end - input->start);
            tb_rank_input_close(input);
            return;
        }
        input->start += (size_t)n;
        written += (size_t)n;
    }
    if (written > 0)
        input->events.taken(input->events.context, written);
    if (input->start == input->end) {
        input->start = input->end = 0;
        tb_loop_unwatch(input->loop, &input->watch);
        if (input->last)
            tb_rank_input_close(input);
    }
}

int tb_rank_input_add(struct tb_rank_input *input, const void *bytes, size_t length)
{
    if (length == 0) {
        input->last = true;
    } else if (input->descriptor < 0) {
        input->events.taken(input->events.context, length); /* nobody reads it */
        return TB_OK;
    }
    if (input->descriptor < 0)
        return TB_OK;
    if (input->start > 0) {
        memmove(input->bytes, input->bytes + input->start, input->end - input->start);
        input->end -= input->start;
        input->start = 0;
    }
    if (input->end + length > QUEUED_LIMIT)
        return tb_error(TB_ERR_LIMIT, "more input for rank 0 has come than it has room for");
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
    push(input);
    return TB_OK;
}

#include "launch/input.h"

#include <errno.h>
#include <unistd.h>

#define WINDOW_BYTES 65536 /* under way at once */
#define READ_BYTES   16384u

void tb_input_init(struct tb_input *input, struct tb_loop *loop, const struct tb_input_events *events)
{
    *input = (struct tb_input){.loop = loop, .events = *events, .watch.descriptor = -1};
}

/* False: nothing more for now. */
static bool read_some(struct tb_input *input)
{
    char bytes[READ_BYTES];
    size_t most = input->window < (int64_t)sizeof bytes ? (size_t)input->window : sizeof bytes;
    ssize_t n = read(0, bytes, most);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (n < 0 && errno == EIO) {
        /* A terminal that belongs to somebody else while we are in the background; asked again when we are continued.
         */
        tb_loop_unwatch(input->loop, &input->watch);
        return false;
    }
    if (n <= 0) {
        input->events.bytes(input->events.context, NULL, 0);
        tb_loop_unwatch(input->loop, &input->watch);
        input->open = input->always_ready = false;
        return false;
    }
    input->window -= n;
    input->events.bytes(input->events.context, bytes, (size_t)n);
    return true;
}

static void input_ready(struct tb_watch *watch, uint32_t events)
{
    struct tb_input *input = TB_CONTAINER(watch, struct tb_input, watch);
    if (input->window > 0)
        read_some(input);
    if (input->window <= 0)
        tb_loop_unwatch(input->loop, watch);
}

void tb_input_pump(struct tb_input *input)
{
    while (input->always_ready && input->window > 0 && read_some(input))
        ;
}

void tb_input_resume(struct tb_input *input)
{
    if (!input->open || input->always_ready || input->window <= 0 || input->watch.descriptor >= 0)
        return;
    if (tb_loop_watch(input->loop, &input->watch, 0, EPOLLIN, input_ready) != TB_OK)
        input->always_ready = true;
}

void tb_input_open(struct tb_input *input)
{
    input->open = true;
    input->window = WINDOW_BYTES;
    tb_input_resume(input);
}

void tb_input_allow(struct tb_input *input, uint32_t bytes)
{
    input->window += bytes;
    tb_input_resume(input);
}

#include "agent/outputs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define READ_BYTES  32768u
#define DRAIN_BYTES (64u << 10) /* if we cannot learn how much a pipe holds */

/* Who writes line after line is read from time to time instead of line by line: the pipe gathers them meanwhile. Nobody
 * sees the difference, but waking us costs both sides more than writing a line. */
#define BRISK_NS    2000000u /* less than this between two reads, */
#define BRISK_BYTES 4096u    /* less than this in each, */
#define BRISK_READS 16u      /* and so often */
#define REST_NS     200000u

static void hand_up(struct tb_output *output, const void *bytes, size_t length)
{
    struct tb_outputs *all = output->all;
    all->events.written(all->events.context, output->rank, output->stream, bytes, length);
    all->window -= (int64_t)length;
}

static void emit(void *context, const char *first, size_t first_length, const char *second, size_t second_length)
{
    struct tb_output *output = context;
    char *both = first_length > 0 && second_length > 0 ? malloc(first_length + second_length) : NULL;
    if (both != NULL) {
        memcpy(both, first, first_length);
        memcpy(both + first_length, second, second_length);
        hand_up(output, both, first_length + second_length);
        free(both);
        return;
    }
    /* One of them; or there is no memory: better torn than lost. */
    if (first_length > 0)
        hand_up(output, first, first_length);
    if (second_length > 0)
        hand_up(output, second, second_length);
}

static void end_output(struct tb_output *output)
{
    if (output->descriptor < 0)
        return;
    tb_lines_flush(&output->lines, emit, output);
    tb_loop_unwatch(output->all->loop, &output->watch);
    close(output->descriptor);
    output->descriptor = -1;
}

/* Reads once. Bytes, 0: end, -1: nothing there now. */
static ssize_t read_some(struct tb_output *output)
{
    static char bytes[READ_BYTES]; /* one thread, used up before the return */
    struct tb_outputs *all = output->all;
    ssize_t n = read(output->descriptor, bytes, sizeof bytes);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return -1;
    if (n <= 0) {
        end_output(output);
        return 0;
    }
    tb_lines_add(&output->lines, bytes, (size_t)n, tb_loop_now(all->loop), emit, output);
    if (output->lines.length > 0 && !tb_timer_is_set(&all->sweep))
        tb_timer_set(all->loop, &all->sweep, all->hold);
    return n;
}

static void pause_all(struct tb_outputs *all)
{
    for (uint32_t i = 0; i < all->count; i++)
        tb_loop_unwatch(all->loop, &all->outputs[i].watch);
}

static void output_ready(struct tb_watch *watch, uint32_t events);

static void watch_again(struct tb_output *output)
{
    output->resting = false;
    tb_loop_watch(output->all->loop, &output->watch, output->descriptor, EPOLLIN, output_ready);
}

static void rest_over(struct tb_timer *timer)
{
    struct tb_outputs *all = TB_CONTAINER(timer, struct tb_outputs, rest);
    for (uint32_t i = 0; i < all->count; i++)
        if (all->outputs[i].resting && all->outputs[i].descriptor >= 0 && all->window > 0)
            watch_again(&all->outputs[i]);
        else
            all->outputs[i].resting = false;
}

/* After a read of so many bytes. */
static void rest_if_brisk(struct tb_output *output, size_t bytes)
{
    struct tb_outputs *all = output->all;
    uint64_t now = tb_loop_now(all->loop);
    bool brisk = output->brisk >= BRISK_READS; /* then much may have come while we did not look */
    bool little = bytes < (brisk ? READ_BYTES : BRISK_BYTES) && now - output->heard < BRISK_NS;
    output->brisk = !little ? 0 : brisk ? output->brisk : output->brisk + 1;
    output->heard = now;
    if (output->brisk < BRISK_READS)
        return;
    tb_loop_unwatch(all->loop, &output->watch);
    output->resting = true;
    if (!tb_timer_is_set(&all->rest))
        tb_timer_set(all->loop, &all->rest, REST_NS);
}

static void output_ready(struct tb_watch *watch, uint32_t events)
{
    struct tb_output *output = TB_CONTAINER(watch, struct tb_output, watch);
    struct tb_outputs *all = output->all;
    if (all->window <= 0) {
        pause_all(all);
        return;
    }
    ssize_t n = read_some(output);
    if (n > 0) {
        if (!(events & EPOLLHUP)) /* else this is all there is */
            rest_if_brisk(output, (size_t)n);
        all->events.heard(all->events.context);
    }
    if (n == 0)
        all->events.ended(all->events.context);
}

/* Whether there is more to read, so that the end of an unfinished line may only be waiting for us. */
static bool has_more(const struct tb_output *output)
{
    int bytes = 0;
    return output->descriptor >= 0 && ioctl(output->descriptor, FIONREAD, &bytes) == 0 && bytes > 0;
}

void tb_outputs_allow(struct tb_outputs *outputs, uint32_t bytes)
{
    outputs->window += bytes;
    if (outputs->window <= 0)
        return;
    uint64_t now = tb_loop_now(outputs->loop);
    for (uint32_t i = 0; i < outputs->count; i++) {
        struct tb_output *output = &outputs->outputs[i];
        if (output->descriptor < 0 || output->watch.descriptor >= 0 || output->resting)
            continue;
        if (has_more(output))
            output->lines.since = now; /* the rank may have had to wait, too, before it could write the end */
        watch_again(output);
    }
}

/* Beyond the window, but not more than is in the pipes now: more comes only from somebody who goes on writing. */
void tb_outputs_drain(struct tb_outputs *outputs)
{
    for (uint32_t i = 0; i < outputs->count; i++) {
        struct tb_output *output = &outputs->outputs[i];
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

/* Unfinished lines that have waited long enough. */
static void sweep(struct tb_timer *timer)
{
    struct tb_outputs *all = TB_CONTAINER(timer, struct tb_outputs, sweep);
    uint64_t now = tb_loop_now(all->loop), oldest = TB_NEVER;
    for (uint32_t i = 0; i < all->count; i++) {
        struct tb_output *output = &all->outputs[i];
        if (output->lines.length == 0)
            continue;
        if (has_more(output))
            output->lines.since = now; /* it is we who are late, or may not read: no reason to tear a line */
        if (now - output->lines.since >= all->hold)
            tb_lines_flush(&output->lines, emit, output);
        else if (output->lines.since < oldest)
            oldest = output->lines.since;
    }
    if (oldest != TB_NEVER)
        tb_timer_set(all->loop, timer, oldest + all->hold - now);
}

bool tb_outputs_any_open(const struct tb_outputs *outputs)
{
    for (uint32_t i = 0; i < outputs->count; i++)
        if (outputs->outputs[i].descriptor >= 0)
            return true;
    return false;
}

/* ---- opening and closing ----------------------------------------------------------------------------------------- */

void tb_outputs_open(struct tb_outputs *outputs, struct tb_loop *loop, const struct tb_outputs_events *events)
{
    *outputs = (struct tb_outputs){.loop = loop, .events = *events};
    tb_timer_init(&outputs->sweep, sweep);
    tb_timer_init(&outputs->rest, rest_over);
}

int tb_outputs_make(struct tb_outputs *outputs, uint32_t rank_count, uint64_t hold)
{
    outputs->hold = hold;
    outputs->outputs = calloc(2 * (size_t)rank_count + 1, sizeof *outputs->outputs);
    if (outputs->outputs == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for the output of %u ranks", rank_count);
    outputs->count = 2 * rank_count;
    for (uint32_t i = 0; i < outputs->count; i++)
        outputs->outputs[i] = (struct tb_output){.all = outputs, .descriptor = -1, .watch.descriptor = -1};
    return TB_OK;
}

int tb_outputs_add(struct tb_outputs *outputs, uint32_t local, uint32_t rank, enum tb_output_stream stream,
                   int descriptor)
{
    struct tb_output *output = &outputs->outputs[2 * local + (stream == TB_OUTPUT_ERROR)];
    output->rank = rank;
    output->stream = stream;
    fcntl(descriptor, F_SETFL, O_NONBLOCK);
    int rc = tb_loop_watch(outputs->loop, &output->watch, descriptor, EPOLLIN, output_ready);
    if (rc != TB_OK) {
        close(descriptor);
        return rc;
    }
    output->descriptor = descriptor;
    return TB_OK;
}

void tb_outputs_close(struct tb_outputs *outputs)
{
    for (uint32_t i = 0; i < outputs->count; i++) {
        struct tb_output *output = &outputs->outputs[i];
        tb_loop_unwatch(outputs->loop, &output->watch);
        if (output->descriptor >= 0)
            close(output->descriptor);
        free(output->lines.bytes);
    }
    tb_timer_clear(&outputs->sweep);
    tb_timer_clear(&outputs->rest);
    free(outputs->outputs);
    outputs->outputs = NULL;
    outputs->count = 0;
}

/* Standard output and error of the job, and its standard input. The files are the user's: they may be shared with other
 * programs, so they are never made nonblocking. A terminal or a pipe is opened a second time, nonblocking, for us
 * alone; where that is not possible, only little is written at a time, and only when there is room. */
#include "launch/state.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define WRITE_BYTES 4096u /* a pipe that is writable takes this much without blocking */
#define READ_BYTES  16384u

static void push(struct tb_screen *screen);

static void screen_ready(struct tb_watch *watch, uint32_t events)
{
    struct tb_screen *screen = TB_CONTAINER(watch, struct tb_screen, watch);
    push(screen);
    tb_launch_check_done(screen->launch);
}

/* The same terminal or pipe with a description of its own, whose flags are nobody else's; -1: cannot be had. */
static int open_again(int descriptor)
{
    char path[32];
    snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
    return open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

void tb_screen_open(struct tb_screen *screen, struct tb_launch *launch, int descriptor)
{
    struct stat about;
    *screen =
        (struct tb_screen){.launch = launch, .number = descriptor, .descriptor = descriptor, .watch.descriptor = -1};
    tb_list_init(&screen->chunks);
    if (fstat(descriptor, &about) < 0)
        return;
    screen->blocking_file = S_ISREG(about.st_mode);
    int again = S_ISFIFO(about.st_mode) || isatty(descriptor) ? open_again(descriptor) : -1;
    if (again >= 0)
        screen->descriptor = again;
}

static void give_back(struct tb_screen *screen, const struct tb_chunk *chunk)
{
    screen->queued -= chunk->length;
    if (chunk->charge > 0)
        screen->launch->agents[chunk->host].written += chunk->charge;
}

static void drop_all(struct tb_screen *screen)
{
    struct tb_chunk *chunk;
    TB_LIST_EACH (chunk, &screen->chunks, struct tb_chunk, node) {
        tb_list_remove(&chunk->node);
        give_back(screen, chunk);
        free(chunk);
    }
}

/* Writes once: bytes written, 0: no room, -1: never again. */
static ssize_t write_some(struct tb_screen *screen, const char *bytes, size_t length)
{
    if (!screen->blocking_file && screen->descriptor == screen->number) {
        struct pollfd room = {.fd = screen->descriptor, .events = POLLOUT};
        if (poll(&room, 1, 0) == 0)
            return 0;
        length = length < WRITE_BYTES ? length : WRITE_BYTES;
    }
    ssize_t n = write(screen->descriptor, bytes, length);
    if (n > 0)
        screen->mid_line = bytes[n - 1] != '\n';
    if (n >= 0)
        return n;
    if (errno == EAGAIN || errno == EINTR)
        return 0; /* interrupted: there is room, as waiting for it will show at once */
    screen->broken = true;
    /* A reader that has gone (`| head`) ends the job as it would end any program: without a word. */
    if (screen->number == 1 && errno == EPIPE)
        tb_launch_fail(screen->launch, TB_VERDICT_CAUSE, 128 + SIGPIPE, "%s", "");
    else if (screen->number == 1)
        tb_launch_fail(screen->launch, TB_VERDICT_CAUSE, 1, "cannot write the output of the job: %s", strerror(errno));
    return -1;
}

static void push(struct tb_screen *screen)
{
    struct tb_loop *loop = &screen->launch->loop;
    struct tb_chunk *chunk;
    TB_LIST_EACH (chunk, &screen->chunks, struct tb_chunk, node) {
        while (chunk->at < chunk->length) {
            ssize_t n = write_some(screen, chunk->bytes + chunk->at, chunk->length - chunk->at);
            if (n < 0) {
                tb_loop_unwatch(loop, &screen->watch);
                drop_all(screen);
                return;
            }
            if (n == 0) {
                if (screen->watch.descriptor >= 0 ||
                    tb_loop_watch(loop, &screen->watch, screen->descriptor, EPOLLOUT, screen_ready) == TB_OK)
                    return;
                /* Nobody would call us again, so it has to be written now, even if that takes its time. */
                screen->blocking_file = true;
                screen->descriptor = screen->number;
                continue;
            }
            chunk->at += (uint32_t)n;
        }
        tb_list_remove(&chunk->node);
        give_back(screen, chunk);
        free(chunk);
    }
    tb_loop_unwatch(loop, &screen->watch);
}

static void queue(struct tb_screen *screen, struct tb_chunk *chunk)
{
    screen->queued += chunk->length;
    if (screen->broken) {
        give_back(screen, chunk);
        free(chunk);
        return;
    }
    tb_list_append(&screen->chunks, &chunk->node);
    if (screen->chunks.next == &chunk->node)
        push(screen);
}

/* Copies with "[rank] " before each line. Returns the length; with to == NULL it only counts. */
static size_t tag(char *to, const char *bytes, size_t length, const char *prefix, size_t prefix_length, bool mid_line)
{
    size_t n = 0;
    for (size_t i = 0; i < length;) {
        const char *newline = memchr(bytes + i, '\n', length - i);
        size_t line = newline != NULL ? (size_t)(newline - (bytes + i)) + 1 : length - i;
        if (!mid_line) {
            if (to != NULL)
                memcpy(to + n, prefix, prefix_length);
            n += prefix_length;
        }
        if (to != NULL)
            memcpy(to + n, bytes + i, line);
        n += line;
        i += line;
        mid_line = newline == NULL;
    }
    return n;
}

void tb_screen_add(struct tb_screen *screen, uint32_t rank, uint32_t host, const char *bytes, size_t length)
{
    struct tb_launch *launch = screen->launch;
    uint8_t flag = screen == &launch->screens[0] ? TB_RANK_MID_OUTPUT : TB_RANK_MID_ERROR;
    bool mid_line = launch->ranks[rank] & flag;
    char prefix[16] = "";
    size_t prefix_length = 0;
    if (length == 0)
        return;
    if (launch->options->tag_output)
        prefix_length = (size_t)snprintf(prefix, sizeof prefix, "[%u] ", rank);
    size_t whole = prefix_length > 0 ? tag(NULL, bytes, length, prefix, prefix_length, mid_line) : length;
    struct tb_chunk *chunk = malloc(sizeof *chunk + whole);
    if (chunk == NULL) {
        tb_launch_fail(launch, TB_VERDICT_CAUSE, 1, "no memory for the output of rank %u", rank);
        return;
    }
    *chunk = (struct tb_chunk){.host = host, .length = (uint32_t)whole, .charge = (uint32_t)length};
    if (prefix_length > 0)
        tag(chunk->bytes, bytes, length, prefix, prefix_length, mid_line);
    else
        memcpy(chunk->bytes, bytes, length);
    launch->ranks[rank] =
        (uint8_t)(bytes[length - 1] == '\n' ? launch->ranks[rank] & ~flag : launch->ranks[rank] | flag);
    queue(screen, chunk);
}

void tb_screen_text(struct tb_screen *screen, const char *text, size_t length)
{
    struct tb_chunk *chunk = malloc(sizeof *chunk + length);
    if (chunk == NULL)
        return;
    *chunk = (struct tb_chunk){.length = (uint32_t)length};
    memcpy(chunk->bytes, text, length);
    queue(screen, chunk);
}

bool tb_screens_empty(const struct tb_launch *launch)
{
    return tb_list_empty(&launch->screens[0].chunks) && tb_list_empty(&launch->screens[1].chunks);
}

/* ---- input
 * ------------------------------------------------------------------------------------------------------------------ */

static void end_input(struct tb_launch *launch)
{
    tb_loop_unwatch(&launch->loop, &launch->input);
    launch->input_open = launch->input_ready = false;
}

static void send_input(struct tb_launch *launch, const char *bytes, size_t length)
{
    struct tb_host_agent *agent = tb_launch_agent_of(launch, 0);
    if (agent->phase >= TB_HOST_AGENT_GONE)
        return;
    tb_put_bytes(tb_control_stream_begin(&agent->pipe, TB_CONTROL_INPUT), bytes, length);
    tb_control_stream_end(&agent->pipe);
}

/* False: nothing more for now. */
static bool read_input(struct tb_launch *launch)
{
    char bytes[READ_BYTES];
    size_t most = launch->input_window < (int64_t)sizeof bytes ? (size_t)launch->input_window : sizeof bytes;
    ssize_t n = read(0, bytes, most);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (n < 0 && errno == EIO) {
        /* A terminal that belongs to somebody else while we are in the background; asked again when we are continued.
         */
        tb_loop_unwatch(&launch->loop, &launch->input);
        return false;
    }
    if (n <= 0) {
        send_input(launch, NULL, 0);
        end_input(launch);
        return false;
    }
    launch->input_window -= n;
    send_input(launch, bytes, (size_t)n);
    return true;
}

static void input_is_ready(struct tb_watch *watch, uint32_t events)
{
    struct tb_launch *launch = TB_CONTAINER(watch, struct tb_launch, input);
    if (launch->input_window > 0)
        read_input(launch);
    if (launch->input_window <= 0)
        tb_loop_unwatch(&launch->loop, watch);
}

void tb_input_pump(struct tb_launch *launch)
{
    while (launch->input_ready && launch->input_window > 0 && read_input(launch))
        ;
}

void tb_input_resume(struct tb_launch *launch)
{
    if (!launch->input_open || launch->input_ready || launch->input_window <= 0 || launch->input.descriptor >= 0)
        return;
    if (tb_loop_watch(&launch->loop, &launch->input, 0, EPOLLIN, input_is_ready) != TB_OK)
        launch->input_ready = true;
}

void tb_input_open(struct tb_launch *launch)
{
    launch->input_open = true;
    launch->input_window = TB_LAUNCH_INPUT;
    tb_input_resume(launch);
}

void tb_input_allow(struct tb_launch *launch, uint32_t bytes)
{
    launch->input_window += bytes;
    tb_input_resume(launch);
}

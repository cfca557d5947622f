#include "launch/screen.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define WRITE_BYTES  4096u        /* a pipe that is writable takes this much without blocking */
#define QUEUED_LIMIT (64u << 20)  /* bytes that wait: four times what the windows allow, */
#define QUEUED_RANK  (256u << 10) /* and what is in the pipes of a rank when it ends */

/* Output that waits until standard output or error takes it. */
struct chunk {
    struct tb_list node;
    uint32_t host;
    uint32_t length, at;
    uint32_t charge; /* how much of the host's window it takes */
    bool of_rank;
    char bytes[];
};

static void push(struct tb_screen *screen);

static void screen_ready(struct tb_watch *watch, uint32_t events)
{
    push(TB_CONTAINER(watch, struct tb_screen, watch));
}

/* The same terminal or pipe with a description of its own, whose flags are nobody else's; -1: cannot be had. */
static int open_again(int descriptor)
{
    char path[32];
    snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
    return open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

void tb_screen_open(struct tb_screen *screen, struct tb_loop *loop, int number, const struct tb_screen_style *style,
                    const struct tb_screen_events *events)
{
    struct stat about;
    *screen = (struct tb_screen){.loop = loop,
                                 .events = *events,
                                 .number = number,
                                 .descriptor = number,
                                 .style = *style,
                                 .watch.descriptor = -1};
    tb_list_init(&screen->chunks);
    tb_output_files_init(&screen->files, style->files, loop, events);
    if (fstat(number, &about) < 0)
        return;
    screen->blocking_file = S_ISREG(about.st_mode);
    int again = S_ISFIFO(about.st_mode) || isatty(number) ? open_again(number) : -1;
    if (again >= 0)
        screen->descriptor = again;
}

int tb_screen_expect(struct tb_screen *screen, uint32_t ranks)
{
    free(screen->mid_lines);
    screen->mid_lines = calloc(ranks, sizeof *screen->mid_lines);
    screen->ranks = screen->room = ranks;
    return screen->mid_lines != NULL ? tb_output_files_expect(&screen->files, ranks)
                                     : tb_error(TB_ERR_MEMORY, "no memory for %u ranks", ranks);
}

int tb_screen_grow(struct tb_screen *screen, uint32_t ranks)
{
    bool *grown = reallocarray(screen->mid_lines, ranks, sizeof *grown);
    if (grown == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for %u ranks", ranks);
    for (uint32_t i = screen->room; i < ranks; i++)
        grown[i] = false;
    screen->mid_lines = grown;
    screen->room = ranks > screen->room ? ranks : screen->room;
    return tb_output_files_grow(&screen->files, ranks);
}

static void give_back(struct tb_screen *screen, const struct chunk *chunk)
{
    screen->queued -= sizeof *chunk + chunk->length;
    if (chunk->charge > 0)
        screen->events.written(screen->events.context, chunk->host, chunk->charge);
}

/* Of standard error nobody may hear the story, but the exit code tells that something is lost. */
static void complain(struct tb_screen *screen)
{
    char story[256] = "", limit[64];
    int error = screen->broken;
    if (screen->told)
        return;
    screen->told = true;
    if (error != EPIPE)
        snprintf(story, sizeof story, "cannot write the output of the job: %s%s", strerror(error),
                 tb_error_limit(error, limit, sizeof limit));
    screen->events.failed(screen->events.context, error == EPIPE ? 128 + SIGPIPE : 1, error == EPIPE ? NULL : story);
}

/* Nobody will read it. What we say ourselves is no output of the job. */
static void drop(struct tb_screen *screen, struct chunk *chunk)
{
    give_back(screen, chunk);
    if (chunk->of_rank)
        complain(screen);
    free(chunk);
}

static void drop_all(struct tb_screen *screen)
{
    struct chunk *chunk;
    TB_LIST_EACH (chunk, &screen->chunks, struct chunk, node) {
        tb_list_remove(&chunk->node);
        drop(screen, chunk);
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
    screen->broken = errno;
    return -1;
}

static void push(struct tb_screen *screen)
{
    struct tb_loop *loop = screen->loop;
    struct chunk *chunk;
    TB_LIST_EACH (chunk, &screen->chunks, struct chunk, node) {
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

/* What is read by nobody waits here; an agent that does not keep to its window ends the job. */
static bool is_full(const struct tb_screen *screen)
{
    return screen->queued + screen->files.waiting > QUEUED_LIMIT + (size_t)screen->ranks * QUEUED_RANK;
}

static void queue(struct tb_screen *screen, struct chunk *chunk)
{
    screen->queued += sizeof *chunk + chunk->length;
    if (screen->broken != 0) {
        drop(screen, chunk);
        return;
    }
    tb_list_append(&screen->chunks, &chunk->node);
    if (screen->chunks.next == &chunk->node)
        push(screen);
}

/* Copies with a prefix before each line. Returns the length; with to == NULL it only counts. */
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

/* What each line of a rank begins with; returns its length. */
static size_t print_prefix(const struct tb_screen *screen, uint32_t rank, uint32_t host, char *text, size_t size)
{
    size_t used = 0;
    text[0] = 0;
    if (screen->style.times) {
        time_t now = time(NULL);
        struct tm local;
        used = strftime(text, size, "%a %b %e %H:%M:%S %Y", localtime_r(&now, &local));
    }
    if (screen->style.tags)
        used += (size_t)snprintf(text + used, size - used, "[%u] ", rank);
    else if (used > 0)
        used += (size_t)snprintf(text + used, size - used, " ");
    if (screen->style.pattern != NULL) {
        size_t more = tb_output_pattern_print(text + used, size - used, screen->style.pattern, rank, screen->ranks,
                                              screen->events.host_name(screen->events.context, host), host);
        used = used + more < size ? used + more : size - 1;
    }
    return used;
}

void tb_screen_add(struct tb_screen *screen, uint32_t rank, uint32_t host, const char *bytes, size_t length)
{
    bool mid_line = screen->mid_lines[rank];
    bool is_shown = screen->files.pattern == NULL || screen->style.beside;
    uint32_t charge = (uint32_t)length;
    char prefix[512];
    if (length == 0)
        return;
    if (is_full(screen)) {
        char story[128];
        snprintf(story, sizeof story, "the agents send more output than they may: %zu MiB wait to be written",
                 (screen->queued + screen->files.waiting) >> 20);
        screen->events.failed(screen->events.context, 1, story);
        return;
    }
    if (screen->files.pattern != NULL) {
        /* Both give back a part of the window, so that the host waits for the slower one. */
        uint32_t part = is_shown ? charge / 2 : charge;
        tb_output_files_write(&screen->files, rank, host, bytes, length, part);
        charge -= part;
    }
    if (!is_shown)
        return;
    size_t prefix_length = print_prefix(screen, rank, host, prefix, sizeof prefix);
    size_t whole = prefix_length > 0 ? tag(NULL, bytes, length, prefix, prefix_length, mid_line) : length;
    struct chunk *chunk = malloc(sizeof *chunk + whole);
    if (chunk == NULL) {
        char story[64];
        snprintf(story, sizeof story, "no memory for the output of rank %u", rank);
        screen->events.failed(screen->events.context, 1, story);
        return;
    }
    *chunk = (struct chunk){.host = host, .length = (uint32_t)whole, .charge = charge, .of_rank = true};
    if (prefix_length > 0)
        tag(chunk->bytes, bytes, length, prefix, prefix_length, mid_line);
    else
        memcpy(chunk->bytes, bytes, length);
    screen->mid_lines[rank] = bytes[length - 1] != '\n';
    queue(screen, chunk);
}

void tb_screen_text(struct tb_screen *screen, const char *text, size_t length)
{
    struct chunk *chunk = is_full(screen) ? NULL : malloc(sizeof *chunk + length);
    if (chunk == NULL)
        return;
    *chunk = (struct chunk){.length = (uint32_t)length};
    memcpy(chunk->bytes, text, length);
    queue(screen, chunk);
}

/* What the emulator has counted. What `report` answers, a line each, numbers counted since the last reset, times in
 * nanoseconds:
 *
 * - late count=N p50=NS p99=NS max=NS over=N: how long after its moment a frame was sent; over: later than 0.3 ms
 * - cpu used=NS wall=NS scheduler=deadline|fifo|slice|ordinary
 * - frames underway=N exhausted=N
 * - port NAME received=N sent=N overrun=N giant=N unsent=N
 * - pipe NAME frames=N bytes=N lost=N full=N cut=N state=open|cut bandwidth=N latency=NS jitter=NS loss=PPM reorder=PPM
 *   queue=BYTES
 * - more N: so many lines did not fit */
#include "lab/emulator_state.h"

#include <inttypes.h>
#include <linux/if_packet.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

/* Nanoseconds that this process has used. */
static uint64_t cpu_time(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

struct text {
    char *at;
    size_t room;
    uint32_t left_out;
};

/* A whole line or nothing. */
static void say(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(struct text *text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text->at, text->room, format, arguments);
    va_end(arguments);
    if (text->left_out > 0 || (size_t)length >= text->room) {
        text->left_out++;
        *text->at = '\0';
        return;
    }
    text->at += length;
    text->room -= (size_t)length;
}

/* The kernel forgets its count when it is read. */
static void read_overrun(struct tb_emulator_port *port)
{
    struct tpacket_stats seen;
    socklen_t length = sizeof seen;
    if (getsockopt(port->socket, SOL_PACKET, PACKET_STATISTICS, &seen, &length) == 0)
        port->overrun += seen.tp_drops;
}

static void report_pipe(struct text *text, const struct tb_emulator_pipe *pipe)
{
    const struct tb_pipe_counts *c = &pipe->pipe.counts;
    const struct tb_grid_wire *w = &pipe->pipe.wire;
    say(text,
        "pipe %s frames=%" PRIu64 " bytes=%" PRIu64 " lost=%" PRIu64 " full=%" PRIu64 " cut=%" PRIu64
        " state=%s bandwidth=%" PRIu64 " latency=%" PRIu64 " jitter=%" PRIu64 " loss=%" PRIu32 " reorder=%" PRIu32
        " queue=%" PRIu64 "\n",
        pipe->name, c->frames, c->bytes, c->lost, c->full, c->cut, pipe->pipe.is_cut ? "cut" : "open", w->bandwidth,
        w->latency, w->jitter, w->loss, w->reorder, tb_pipe_queue_bytes(&pipe->pipe));
}

void tb_emulator_report(struct tb_emulator *e, char *to, size_t room)
{
    const size_t last_line = 32;
    struct text text = {.at = to, .room = room - last_line};
    const struct tb_lateness *late = &e->lateness;
    say(&text, "late count=%" PRIu64 " p50=%" PRIu64 " p99=%" PRIu64 " max=%" PRIu64 " over=%" PRIu64 "\n", late->count,
        tb_lateness_quantile(late, 500), tb_lateness_quantile(late, 990), late->max, late->over);
    say(&text, "cpu used=%" PRIu64 " wall=%" PRIu64 " scheduler=%s\n", cpu_time() - e->reset_cpu,
        tb_clock_now_real() - e->reset_at, e->scheduler);
    say(&text, "frames underway=%u exhausted=%" PRIu64 "\n", e->frames.count, e->exhausted);
    for (uint32_t i = 0; i < e->port_count; i++) {
        struct tb_emulator_port *port = e->ports[i];
        if (!port)
            continue;
        read_overrun(port);
        say(&text,
            "port %s received=%" PRIu64 " sent=%" PRIu64 " overrun=%" PRIu64 " giant=%" PRIu64 " unsent=%" PRIu64 "\n",
            port->name, port->received, port->sent, port->overrun, port->giant, port->unsent);
    }
    for (uint32_t i = 1; i < e->pipe_count; i++)
        report_pipe(&text, e->pipes[i]);
    if (text.left_out > 0)
        snprintf(text.at, text.room + last_line, "more %u\n", text.left_out);
}

void tb_emulator_reset(struct tb_emulator *e)
{
    memset(&e->lateness, 0, sizeof e->lateness);
    e->exhausted = 0;
    e->reset_at = tb_clock_now_real();
    e->reset_cpu = cpu_time();
    for (uint32_t i = 0; i < e->port_count; i++) {
        struct tb_emulator_port *port = e->ports[i];
        if (!port)
            continue;
        read_overrun(port);
        port->received = port->sent = port->overrun = port->giant = port->unsent = 0;
    }
    for (uint32_t i = 0; i < e->pipe_count; i++)
        memset(&e->pipes[i]->pipe.counts, 0, sizeof e->pipes[i]->pipe.counts);
}

#include "agent/core_watch.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define TURN_NS 250000000u
#define TURNS   4u /* until all have been looked at */

static ssize_t read_file(const char *path, char *text, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    ssize_t n = read(fd, text, size - 1);
    close(fd);
    text[n > 0 ? n : 0] = 0;
    return n;
}

bool tb_core_watch_sees(pid_t pid)
{
    char path[64], text[4096];
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    return read_file(path, text, sizeof text) > 0 && strstr(text, "\nCoreDumping:\t1") != NULL;
}

/* A program that takes core files gets them whatever the limit is, but for 1. */
static bool can_dump(void)
{
    char pattern[256] = "";
    rlim_t limit = tb_core_limit().rlim_cur;
    read_file("/proc/sys/kernel/core_pattern", pattern, sizeof pattern);
    return limit > 1 || (limit == 0 && pattern[0] == '|');
}

static void look(struct tb_timer *timer)
{
    struct tb_core_watch *watch = TB_CONTAINER(timer, struct tb_core_watch, timer);
    for (uint32_t i = 0; i < (watch->count + TURNS - 1) / TURNS; i++) {
        pid_t pids[2] = {0, 0};
        uint32_t local = watch->next;
        watch->next = (watch->next + 1) % watch->count;
        watch->events.processes(watch->events.context, local, pids);
        if ((pids[0] > 0 && tb_core_watch_sees(pids[0])) || (pids[1] > 0 && tb_core_watch_sees(pids[1])))
            watch->events.dumping(watch->events.context, local);
    }
    tb_timer_set(watch->loop, timer, TURN_NS);
}

void tb_core_watch_open(struct tb_core_watch *watch, struct tb_loop *loop, const struct tb_core_watch_events *events)
{
    *watch = (struct tb_core_watch){.loop = loop, .events = *events};
    tb_timer_init(&watch->timer, look);
}

void tb_core_watch_start(struct tb_core_watch *watch, uint32_t count)
{
    watch->count = count;
    if (count > 0 && can_dump())
        tb_timer_set(watch->loop, &watch->timer, TURN_NS);
}

void tb_core_watch_close(struct tb_core_watch *watch)
{
    if (watch->loop != NULL)
        tb_timer_clear(&watch->timer);
    watch->loop = NULL;
}

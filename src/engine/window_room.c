#include "engine/window_room.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SURE (UINT64_C(16) << 20) /* bytes that are not worth looking for */

/* What a file says, as a string; "" if it says nothing. */
static void file_read(const char *path, char *text, size_t size)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = file >= 0 ? read(file, text, size - 1) : 0;
    text[n > 0 ? n : 0] = 0;
    if (file >= 0)
        close(file);
}

static uint64_t add(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* A line "NAME:   NUMBER kB". */
static uint64_t kilobytes(const char *meminfo, const char *name)
{
    const char *at = strstr(meminfo, name);
    unsigned long long number;
    if (at == NULL || sscanf(at + strlen(name), " %llu kB", &number) != 1)
        return UINT64_MAX;
    return number < UINT64_MAX >> 10 ? number << 10 : UINT64_MAX;
}

uint64_t tb_window_room_available(const char *meminfo)
{
    uint64_t free_now = kilobytes(meminfo, "MemAvailable:"), swap = kilobytes(meminfo, "SwapFree:");
    return add(free_now, swap == UINT64_MAX ? 0 : swap);
}

uint64_t tb_window_room_limit(const char *limit)
{
    unsigned long long number;
    return sscanf(limit, "%llu", &number) == 1 ? number : UINT64_MAX; /* "max", or nothing */
}

/* The least limit of a group and of those that it is in. */
static uint64_t groups_limit(char *group)
{
    uint64_t least = UINT64_MAX;
    char path[PATH_MAX], text[64];
    for (;;) {
        int n = snprintf(path, sizeof path, "/sys/fs/cgroup%s/memory.max", group);
        if (n > 0 && (size_t)n < sizeof path) {
            file_read(path, text, sizeof text);
            uint64_t limit = tb_window_room_limit(text);
            least = limit < least ? limit : least;
        }
        char *last = strrchr(group, '/');
        if (last == NULL)
            return least;
        *last = 0;
    }
}

bool tb_window_room_has(uint64_t bytes)
{
    char text[4096];
    if (bytes <= SURE)
        return true;
    file_read("/proc/meminfo", text, sizeof text);
    if (bytes > tb_window_room_available(text))
        return false;
    file_read("/proc/self/cgroup", text, sizeof text);
    char *group = strstr(text, "0::/");
    if (group == NULL)
        return true;
    group += 3;
    group[strcspn(group, "\n")] = 0;
    return bytes <= groups_limit(group);
}

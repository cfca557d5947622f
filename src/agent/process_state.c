#include "agent/process_state.h"

#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PF_EXITING  0x4u /* of the kernel's task flags */
#define PF_SIGNALED 0x400u

/* Of <linux/pidfd.h>, which older systems do not have yet. */
struct ending_info {
    uint64_t mask, group;
    uint32_t numbers[11];
    int32_t status;
};

#define ENDING_INFO      _IOWR(0xff, 11, struct ending_info)
#define ENDING_INFO_EXIT 8u

/* A file of /proc/PID, ended by 0; false: there is none. */
static bool proc_read(pid_t pid, const char *name, char *text, size_t room)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, room - 1) : -1;
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = 0;
    return n > 0;
}

/* Whether a mask of signals in /proc/PID/status has SIGKILL. */
static bool has_kill(const char *text, const char *field)
{
    const char *at = strstr(text, field);
    unsigned long long mask = 0;
    return at != NULL && sscanf(at + strlen(field), " %llx", &mask) == 1 && (mask >> (SIGKILL - 1) & 1) != 0;
}

/* 0: there is none. */
static char state_read(pid_t pid, char *text, size_t room, unsigned *flags)
{
    if (!proc_read(pid, "stat", text, room))
        return 0;
    /* The name in parentheses may hold anything; what follows the last one is fixed. */
    const char *after = strrchr(text, ')');
    char state = 0;
    return after != NULL && sscanf(after + 1, " %c %*d %*d %*d %*d %*d %u", &state, flags) == 2 ? state : 0;
}

char tb_process_state(pid_t pid)
{
    char text[4096];
    unsigned flags = 0;
    char state = state_read(pid, text, sizeof text, &flags);
    return state == 't' ? 'T' : state;
}

bool tb_process_is_dying(pid_t pid)
{
    char text[4096];
    unsigned flags = 0;
    char state = state_read(pid, text, sizeof text, &flags);
    if (state == 0)
        return false;
    if (state == 'Z' || (flags & (PF_EXITING | PF_SIGNALED)) != 0)
        return true;
    return proc_read(pid, "status", text, sizeof text) && (has_kill(text, "\nSigPnd:") || has_kill(text, "\nShdPnd:"));
}

static int zombie_status(pid_t pid)
{
    char text[4096];
    unsigned flags = 0;
    int status = -1;
    if (state_read(pid, text, sizeof text, &flags) != 'Z')
        return -1;
    const char *last = strrchr(text, ' ');
    return last != NULL && sscanf(last, " %d", &status) == 1 ? status : -1;
}

int tb_process_ending(int pidfd, pid_t pid)
{
    int status = zombie_status(pid);
    /* Until it was collected the number was its own. */
    if (status >= 0 && syscall(SYS_pidfd_send_signal, pidfd, 0, NULL, 0) == 0)
        return status;
    struct ending_info info = {.mask = ENDING_INFO_EXIT};
    return ioctl(pidfd, ENDING_INFO, &info) == 0 && (info.mask & ENDING_INFO_EXIT) != 0 ? info.status : -1;
}

pid_t tb_process_parent(pid_t pid)
{
    char text[512];
    if (!proc_read(pid, "stat", text, sizeof text))
        return 0;
    /* The name in parentheses may hold anything; what follows the last one is fixed. */
    const char *after = strrchr(text, ')');
    int parent = 0;
    return after != NULL && sscanf(after + 1, " %*c %d", &parent) == 1 ? parent : 0;
}

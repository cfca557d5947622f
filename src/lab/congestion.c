#include "lab/congestion.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define AVAILABLE   "/proc/sys/net/ipv4/tcp_available_congestion_control"
#define DEFAULT     "/proc/sys/net/ipv4/tcp_congestion_control"
#define LIST_BYTES  1024
#define PATIENCE_NS 10000000000u
#define PAUSE_US    2000

bool tb_congestion_is_name(const char *text)
{
    size_t length = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_");
    return length > 0 && length < TB_GRID_CONGESTION_BYTES && text[length] == 0;
}

bool tb_congestion_in(const char *list, const char *name)
{
    size_t length = strlen(name);
    while (*list != 0) {
        list += strspn(list, " \n");
        size_t word = strcspn(list, " \n");
        if (word == length && word > 0 && strncmp(list, name, length) == 0)
            return true;
        list += word;
    }
    return false;
}

/* The text of a file without what ends its line; "" where it cannot be read. */
static void read_text(const char *path, char *text, size_t room)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, room - 1) : -1;
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = 0;
    text[strcspn(text, "\n")] = 0;
}

static bool write_text(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
    bool fine = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    if (fd >= 0)
        close(fd);
    return fine;
}

int tb_congestion_find(const char *name)
{
    char list[LIST_BYTES];
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0) {
        /* To ask for it loads its module, if we may do that. */
        (void)setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, (socklen_t)strlen(name));
        close(fd);
    }
    read_text(AVAILABLE, list, sizeof list);
    if (tb_congestion_in(list, name))
        return TB_OK;
    return tb_error(TB_ERR_UNSUPPORTED, "this kernel has no congestion control %s; it has %s", name, list);
}

void tb_congestion_read(char *name)
{
    read_text(DEFAULT, name, TB_GRID_CONGESTION_BYTES);
}

/* ---- the permit -------------------------------------------------------------------------------------------------- */

/* The list as it is now, without the name: others may have changed it meanwhile. */
static void take_back(const char *list, const char *name)
{
    char text[LIST_BYTES], kept[LIST_BYTES + 1], *rest = NULL; /* one byte more: the end of the line */
    size_t used = 0;
    read_text(list, text, sizeof text);
    for (char *word = strtok_r(text, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest)) {
        if (strcmp(word, name) == 0)
            continue;
        used += (size_t)snprintf(kept + used, sizeof kept - used, "%s%s", used > 0 ? " " : "", word);
    }
    snprintf(kept + used, sizeof kept - used, "\n");
    (void)write_text(list, kept);
}

/* In a process of its own, which has the lock as long as it lives. */
static _Noreturn void keep_guard(const char *list, int lock, int holders, const char *before, const char *name)
{
    char text[LIST_BYTES + TB_GRID_CONGESTION_BYTES + 2], byte = 'y';
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    setsid();
    /* Whoever reads our output must not wait for us. */
    unsigned low = (unsigned)(lock < holders ? lock : holders), high = (unsigned)(lock < holders ? holders : lock);
    if (low > 0)
        close_range(0, low - 1, 0);
    if (high > low + 1)
        close_range(low + 1, high - 1, 0);
    close_range(high + 1, UINT_MAX, 0);
    snprintf(text, sizeof text, "%s %s\n", before, name);
    if (!write_text(list, text))
        byte = 'n';
    (void)send(holders, &byte, 1, MSG_NOSIGNAL);
    while (byte == 'y' && recv(holders, &byte, 1, 0) > 0) /* nobody writes: it ends when all have closed it */
        byte = 'y';
    take_back(list, name);
    _exit(0);
}

static int open_guard(struct tb_congestion_permit *permit, const char *list, int lock, const char *before,
                      const char *name)
{
    int ends[2];
    char byte = 'n';
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return tb_error_errno("cannot make a socket for the lab");
    fflush(NULL);
    permit->guard = fork();
    if (permit->guard == 0)
        keep_guard(list, lock, ends[1], before, name);
    close(ends[1]);
    permit->fd = ends[0];
    if (permit->guard < 0) {
        tb_congestion_let_go(permit);
        return tb_error_errno("cannot start a process for the lab");
    }
    if (recv(permit->fd, &byte, 1, 0) != 1 || byte != 'y')
        tb_congestion_await(permit);
    return TB_OK;
}

/* Others hold it for less than a second; but whoever stops one of them must not stop us. */
static bool take_lock(int lock)
{
    uint64_t end = tb_clock_now_real() + PATIENCE_NS;
    while (flock(lock, LOCK_EX | LOCK_NB) != 0) {
        if (tb_clock_now_real() > end)
            return false;
        usleep(PAUSE_US);
    }
    return true;
}

int tb_congestion_allow(struct tb_congestion_permit *permit, const char *list, const char *name)
{
    char before[LIST_BYTES];
    *permit = (struct tb_congestion_permit){.fd = -1, .guard = -1};
    int lock = open(list, O_RDWR | O_CLOEXEC), rc = TB_OK;
    if (lock < 0)
        return TB_OK;
    bool ours = take_lock(lock);
    read_text(list, before, sizeof before);
    if (ours && !tb_congestion_in(before, name))
        rc = open_guard(permit, list, lock, before, name);
    close(lock); /* the lock is the guard's now */
    return rc;
}

void tb_congestion_let_go(struct tb_congestion_permit *permit)
{
    if (permit->fd >= 0)
        close(permit->fd);
    permit->fd = -1;
}

void tb_congestion_await(struct tb_congestion_permit *permit)
{
    tb_congestion_let_go(permit);
    while (permit->guard > 0 && waitpid(permit->guard, NULL, 0) < 0 && errno == EINTR)
        ;
    permit->guard = -1;
}

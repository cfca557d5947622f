/* The keeper of a lab. */
#include "lab/keeper.h"

#include "lab/lab.h"
#include "lab/network.h"
#include "lab/passing.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define BACKLOG       64
#define CLIENTS_LIMIT 256
#define EVENTS        32
#define CONNECT_S     2 /* then whoever holds the name takes nobody */

struct keeper {
    struct tb_keeper_start *start;
    struct tb_lab_network network;
    int epoll, signals, starter, user_space, process_space, itself;
    uint32_t client_count;
    uint64_t since;
};

/* ---- sockets ----------------------------------------------------------------------------------------------------- */

void tb_keeper_prefix(char *text, size_t room)
{
    snprintf(text, room, "@tombolo-lab/%u/", geteuid());
}

static socklen_t make_address(const char *name, struct sockaddr_un *address)
{
    char text[sizeof address->sun_path];
    tb_keeper_prefix(text, sizeof text);
    size_t used = strlen(text);
    used += (size_t)snprintf(text + used, sizeof text - used, "%s", name);
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(address->sun_path + 1, text + 1, used - 1); /* the first byte 0: an abstract name */
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + used);
}

int tb_keeper_listen(const char *name)
{
    struct sockaddr_un address;
    socklen_t length = make_address(name, &address);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || (bind(fd, (struct sockaddr *)&address, length) == 0 && listen(fd, BACKLOG) == 0))
        return fd;
    int saved = errno;
    close(fd);
    errno = saved;
    return -1;
}

static bool is_ours(int fd)
{
    struct ucred who;
    socklen_t length = sizeof who;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &length) == 0 && who.uid == geteuid();
}

int tb_keeper_connect(const char *name)
{
    struct sockaddr_un address;
    socklen_t length = make_address(name, &address);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    /* Anybody can take a name and accept nobody; who connects there would wait for ever. */
    struct timeval limit = {.tv_sec = CONNECT_S}, none = {0};
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&address, length) == 0 && is_ours(fd)) {
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &none, sizeof none);
        return fd;
    }
    if (fd >= 0)
        close(fd);
    return -1;
}

static int watch(struct keeper *keeper, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    if (fd < 0 || epoll_ctl(keeper->epoll, EPOLL_CTL_ADD, fd, &event) != 0)
        return tb_error_errno("the lab cannot watch its sockets");
    return TB_OK;
}

/* So that commands also work on the lab's machines themselves, each has a socket of the same name. */
static int listen_everywhere(struct keeper *keeper)
{
    int rc = TB_OK;
    for (uint32_t i = 0; i < keeper->network.plan.node_count && rc == TB_OK; i++) {
        int home = tb_space_visit(&keeper->network.spaces[i]);
        if (home < 0)
            return TB_ERR_SYSTEM;
        int fd = tb_keeper_listen(keeper->start->name);
        rc = fd >= 0 ? TB_OK : tb_error_errno("cannot make a socket on %s", keeper->network.plan.nodes[i].name);
        int back = tb_space_return(home);
        rc = rc == TB_OK ? back : rc;
        if (rc == TB_OK)
            rc = watch(keeper, fd);
    }
    return rc;
}

/* ---- requests ---------------------------------------------------------------------------------------------------- */

static int give_space(struct keeper *keeper, int client, const char *host)
{
    const struct tb_lab_plan *plan = &keeper->network.plan;
    uint32_t node = tb_lab_plan_node_find(plan, host);
    if (node == TB_GRID_NONE)
        return tb_error(TB_ERR_ARGUMENT, "there is no host %s in lab %s", host, keeper->start->name);
    const int *parts = keeper->network.spaces[node].parts;
    int all[TB_KEEPER_DESCRIPTORS] = {keeper->user_space,  keeper->process_space, parts[TB_SPACE_MOUNT],
                                      parts[TB_SPACE_NET], parts[TB_SPACE_UTS],   parts[TB_SPACE_IPC]};
    return tb_pass(client, "ok", all, TB_KEEPER_DESCRIPTORS);
}

static int tell_about(struct keeper *keeper, int client)
{
    char text[1024];
    uint64_t seconds = (tb_clock_now_real() - keeper->since) / 1000000000u;
    snprintf(text, sizeof text, "ok\n%u host%s, %u cluster%s, up %u:%02u:%02u, %s", keeper->network.grid->host_count,
             tb_plural(keeper->network.grid->host_count), keeper->network.grid->cluster_count,
             tb_plural(keeper->network.grid->cluster_count), (unsigned)(seconds / 3600), (unsigned)(seconds / 60 % 60),
             (unsigned)(seconds % 60), keeper->network.grid->file);
    return tb_pass(client, text, NULL, 0);
}

/* The asker gets something that shows when we are gone, which we then are at once, and with us everything in the lab.
 */
static int end(struct keeper *keeper, int client)
{
    tb_pass(client, "ok", &keeper->itself, keeper->itself >= 0 ? 1 : 0);
    _exit(0);
}

static int change(struct keeper *keeper, int client, char **words)
{
    static char text[TB_LAB_ANSWER_BYTES]; /* one thread; too large for a stack frame */
    FILE *answer = fmemopen(text, sizeof text, "w");
    if (answer == NULL)
        return tb_error_errno("the lab cannot answer");
    fputs("ok\n", answer);
    int rc = tb_lab_network_change(&keeper->network, words, answer);
    fclose(answer);
    text[sizeof text - 1] = 0;
    return rc == TB_OK ? tb_pass(client, text, NULL, 0) : rc;
}

static int obey(struct keeper *keeper, int client, char *text, size_t length)
{
    char *words[TB_KEEPER_WORDS + 1];
    uint32_t count = 0;
    for (char *at = text; at < text + length; at += strlen(at) + 1) {
        if (count == TB_KEEPER_WORDS)
            return tb_error(TB_ERR_LIMIT, "a request to a lab has at most %u words", TB_KEEPER_WORDS);
        words[count++] = at;
    }
    words[count] = NULL;
    if (count == 2 && strcmp(words[0], "enter") == 0)
        return give_space(keeper, client, words[1]);
    if (count == 1 && strcmp(words[0], "about") == 0)
        return tell_about(keeper, client);
    if (count == 1 && strcmp(words[0], "end") == 0)
        return end(keeper, client);
    return count > 0 ? change(keeper, client, words) : tb_error(TB_ERR_PROTOCOL, "an empty request");
}

static void serve(struct keeper *keeper, int client)
{
    char text[TB_KEEPER_REQUEST_BYTES + 1];
    ssize_t n = recv(client, text, sizeof text - 1, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n > 0) {
        text[n] = 0;
        int rc = obey(keeper, client, text, (size_t)n);
        if (rc != TB_OK) {
            char story[1200];
            snprintf(story, sizeof story, "error %s", tb_error_story());
            (void)tb_pass(client, story, NULL, 0);
        }
    }
    close(client);
    keeper->client_count--;
}

static void admit(struct keeper *keeper, int listener)
{
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0)
        return;
    if (keeper->client_count == CLIENTS_LIMIT || !is_ours(fd) || watch(keeper, fd) != TB_OK)
        close(fd);
    else
        keeper->client_count++;
}

static bool listens(int fd)
{
    int value = 0;
    socklen_t length = sizeof value;
    return getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &value, &length) == 0 && value != 0;
}

/* ---- life -------------------------------------------------------------------------------------------------------- */

/* Orphans of the whole lab come to us. */
static void reap(struct keeper *keeper)
{
    struct signalfd_siginfo info;
    while (read(keeper->signals, &info, sizeof info) == (ssize_t)sizeof info)
        ;
    while (waitpid(-1, NULL, WNOHANG) > 0)
        ;
}

static void loop(struct keeper *keeper)
{
    struct epoll_event events[EVENTS];
    for (;;) {
        int n = epoll_wait(keeper->epoll, events, EVENTS, -1);
        for (int i = 0; i < n; i++) {
            int fd = events[i].data.fd;
            if (fd == keeper->signals)
                reap(keeper);
            else if (fd == keeper->starter)
                return; /* it never writes: it is gone */
            else if (listens(fd))
                admit(keeper, fd);
            else
                serve(keeper, fd);
        }
    }
}

/* What whoever has called us has left open would be kept open by us as long as the lab lives. */
static void close_strangers(const struct tb_keeper_start *start)
{
    unsigned next = 3;
    for (bool found = true; found;) { /* the lowest of ours from `next` on, and what is below it */
        const int ours[] = {start->listener, start->starter, start->permit.fd};
        unsigned lowest = UINT_MAX;
        for (size_t i = 0; i < sizeof ours / sizeof ours[0]; i++)
            if (ours[i] >= (int)next && (unsigned)ours[i] < lowest)
                lowest = (unsigned)ours[i];
        found = lowest != UINT_MAX;
        if (!found)
            close_range(next, UINT_MAX, 0);
        else if (lowest > next)
            close_range(next, lowest - 1, 0);
        next = lowest + 1;
    }
}

/* Each machine takes some descriptors. */
static void allow_descriptors(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}

/* Nothing of the terminal, the folders and the signals of whoever has called us. */
static int detach(struct keeper *keeper)
{
    sigset_t all;
    sigemptyset(&all);
    sigaddset(&all, SIGCHLD);
    setsid();
    close_strangers(keeper->start);
    allow_descriptors();
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null < 0 || chdir("/") != 0)
        return tb_error_errno("cannot open /dev/null");
    for (int i = 0; i < 3; i++)
        dup2(null, i);
    for (int number = 1; number < NSIG; number++)
        signal(number, SIG_DFL);
    signal(SIGPIPE, SIG_IGN);
    sigprocmask(SIG_SETMASK, &all, NULL);
    keeper->signals = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
    keeper->epoll = epoll_create1(EPOLL_CLOEXEC);
    return keeper->signals >= 0 && keeper->epoll >= 0 ? TB_OK : tb_error_errno("the lab cannot wait for anything");
}

/* From here on we die with whoever has started us; if that is already gone, at once. Changing user or rights would
 * undo it, so this comes after. */
static void die_with_starter(const struct tb_keeper_start *start)
{
    struct pollfd gone = {.fd = start->starter};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (poll(&gone, 1, 0) != 0)
        _exit(1);
}

static int open_all(struct keeper *keeper)
{
    struct tb_keeper_start *start = keeper->start;
    int rc = detach(keeper);
    if (rc == TB_OK)
        rc = tb_space_settle(start->uid, start->gid);
    die_with_starter(start);
    if (rc == TB_OK)
        rc = tb_lab_network_build(&keeper->network, start->grid, start->congestion, &start->permit);
    if (rc == TB_OK)
        rc = listen_everywhere(keeper);
    if (rc != TB_OK)
        return rc;
    keeper->user_space = open("/proc/self/ns/user", O_RDONLY | O_CLOEXEC);
    keeper->process_space = open("/proc/self/ns/pid", O_RDONLY | O_CLOEXEC);
    keeper->itself = (int)syscall(SYS_pidfd_open, getpid(), 0);
    keeper->since = tb_clock_now_real();
    if (keeper->user_space < 0 || keeper->process_space < 0)
        return tb_error_errno("cannot open the namespaces of the lab");
    rc = watch(keeper, keeper->signals);
    return rc == TB_OK ? watch(keeper, start->listener) : rc;
}

/* Only when it has seen that the lab is there does it let us go: killed before, it leaves nothing. */
static int await_release(const struct tb_keeper_start *start)
{
    char text[16];
    int rc = tb_pass_take(start->starter, text, sizeof text, NULL, NULL);
    if (rc != TB_OK)
        return rc;
    prctl(PR_SET_PDEATHSIG, 0);
    (void)tb_pass(start->starter, "ok", NULL, 0);
    close(start->starter);
    return TB_OK;
}

/* What the user should know although all went well; "": nothing. */
static void write_note(const struct tb_lab_network *network, char *text, size_t room)
{
    bool fine = strcmp(network->congestion, network->wanted) == 0;
    bool there = fine || tb_congestion_find(network->wanted) == TB_OK;
    *text = 0;
    if (!fine && there)
        snprintf(
            text, room,
            "congestion control is %s, not %s: net.ipv4.tcp_allowed_congestion_control lacks it, and only root in the "
            "first network of this computer can add it",
            network->congestion, network->wanted);
    else if (!fine)
        snprintf(text, room, "congestion control is %s: %s", network->congestion, tb_error_story());
}

_Noreturn void tb_keeper_run(struct tb_keeper_start *start)
{
    static struct keeper keeper; /* the process is nothing else */
    char answer[1200] = "ok\n";
    keeper.start = start;
    tb_log_identify("lab");
    prctl(PR_SET_NAME, "tombolo-lab");
    int rc = open_all(&keeper);
    if (rc == TB_OK)
        write_note(&keeper.network, answer + strlen(answer), sizeof answer - strlen(answer));
    if (tb_pass(start->starter, rc == TB_OK ? answer : tb_error_story(), NULL, 0) != TB_OK || rc != TB_OK)
        _exit(1);
    keeper.starter = start->stay ? -1 : start->starter;
    rc = start->stay ? await_release(start) : watch(&keeper, keeper.starter);
    if (rc != TB_OK)
        _exit(1);
    loop(&keeper);
    _exit(0);
}

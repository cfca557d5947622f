/* Running something on a machine of a lab. We enter the namespaces; the child that we then make is inside of them all,
 * also of that of processes, while we stay outside of the latter, pass signals on and wait. */
#include "lab/lab.h"

#include "lab/keeper.h"
#include "lab/space.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define IMPATIENCE 3 /* so many requests to end from the terminal or others, and it is killed */

static const struct {
    int type;
    const char *path;
} spaces[TB_KEEPER_DESCRIPTORS] = {
    {CLONE_NEWUSER, "/proc/self/ns/user"}, {CLONE_NEWPID, "/proc/self/ns/pid_for_children"},
    {CLONE_NEWNS, "/proc/self/ns/mnt"},    {CLONE_NEWNET, "/proc/self/ns/net"},
    {CLONE_NEWUTS, "/proc/self/ns/uts"},   {CLONE_NEWIPC, "/proc/self/ns/ipc"}};

static bool is_there(int fd, const char *path)
{
    struct stat wanted, have;
    return fstat(fd, &wanted) == 0 && stat(path, &have) == 0 && wanted.st_ino == have.st_ino &&
           wanted.st_dev == have.st_dev;
}

static int enter(const char *name, const char *host)
{
    int descriptors[TB_KEEPER_DESCRIPTORS];
    char *directory = getcwd(NULL, 0);
    int rc = tb_lab_spaces(name, host, descriptors);
    if (rc != TB_OK) {
        free(directory);
        return rc;
    }
    for (int i = 0; i < TB_KEEPER_DESCRIPTORS; i++) {
        /* The user namespace in which we are already cannot be entered; the others need not. */
        if (rc == TB_OK && !is_there(descriptors[i], spaces[i].path) && setns(descriptors[i], spaces[i].type) != 0)
            rc = tb_error_errno("cannot enter host %s of lab %s", host, name);
        close(descriptors[i]);
    }
    /* As a remote shell would, it starts elsewhere if this folder is not there. */
    if (rc == TB_OK && (directory == NULL || chdir(directory) != 0)) {
        const char *home = getenv("HOME");
        if ((home == NULL || chdir(home) != 0) && chdir("/") != 0)
            rc = tb_error_errno("cannot go to /");
    }
    free(directory);
    return rc;
}

/* What the terminal sends reaches the whole group, so the child has had it already. */
static void pass_on(const struct signalfd_siginfo *info, pid_t pid, unsigned *asked)
{
    int number = (int)info->ssi_signo;
    bool ends = number == SIGINT || number == SIGTERM || number == SIGHUP;
    if (ends && ++*asked >= IMPATIENCE)
        kill(pid, SIGKILL);
    else if (info->ssi_code != SI_KERNEL)
        kill(pid, number);
}

/* Who gives it away may have lost it already, and must not be stopped for that. */
static void give_terminal(pid_t group)
{
    signal(SIGTTOU, SIG_IGN);
    (void)tcsetpgrp(STDIN_FILENO, group);
    signal(SIGTTOU, SIG_DFL);
}

/* We stop too, so that the shell that started us notices; it wakes us up in the foreground or behind it. */
static void rest(pid_t pid, bool terminal)
{
    if (terminal)
        give_terminal(getpgrp());
    kill(getpid(), SIGSTOP);
    if (terminal && tcgetpgrp(STDIN_FILENO) == getpgrp())
        give_terminal(pid);
    kill(terminal ? -pid : pid, SIGCONT);
}

static int await(pid_t pid, int signals, bool terminal)
{
    unsigned asked = 0;
    for (;;) {
        struct signalfd_siginfo info;
        int status;
        pid_t n = waitpid(pid, &status, WNOHANG | WUNTRACED);
        if (n == pid && WIFSTOPPED(status)) {
            rest(pid, terminal);
        } else if (n == pid) {
            return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
        } else if (read(signals, &info, sizeof info) == (ssize_t)sizeof info && info.ssi_signo != SIGCHLD) {
            pass_on(&info, pid, &asked);
        }
    }
}

static _Noreturn void begin(const char *name, const int *alive, const sigset_t *mask, int (*body)(void *),
                            void *context, bool terminal)
{
    struct pollfd gone = {.fd = alive[0]};
    close(alive[1]);
    /* Our group is outside of the lab's processes and has no number there, which confuses shells with job control. */
    if (terminal && setpgid(0, 0) == 0)
        give_terminal(getpid());
    tb_space_keep_rights();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (poll(&gone, 1, 0) != 0)
        _exit(1);
    close(alive[0]);
    sigprocmask(SIG_SETMASK, mask, NULL);
    setenv(TB_LAB_VARIABLE, name, 1);
    int code = body(context);
    fflush(NULL);
    _exit(code);
}

int tb_lab_enter(const char *name, const char *host, int (*body)(void *context), void *context, bool terminal,
                 int *status)
{
    static const int numbers[] = {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH, SIGCONT};
    sigset_t set, before;
    int alive[2];
    terminal = terminal && tcgetpgrp(STDIN_FILENO) == getpgrp();
    int rc = enter(name, host);
    if (rc != TB_OK)
        return rc;
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        struct sigaction action;
        if (numbers[i] == SIGCHLD || (sigaction(numbers[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN))
            sigaddset(&set, numbers[i]); /* what was ignored (nohup) stays so */
    }
    signal(SIGCHLD, SIG_DFL);
    sigprocmask(SIG_BLOCK, &set, &before);
    int signals = signalfd(-1, &set, SFD_CLOEXEC);
    if (signals < 0 || pipe2(alive, O_CLOEXEC) != 0)
        return tb_error_errno("cannot watch a process of the lab");
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        begin(name, alive, &before, body, context, terminal);
    close(alive[0]);
    if (pid < 0) {
        close(alive[1]);
        return errno == ENOMEM ? tb_error(TB_ERR_PEER, "lab %s has just ended", name)
                               : tb_error_errno("cannot start a process in lab %s", name);
    }
    *status = await(pid, signals, terminal);
    if (terminal)
        give_terminal(getpgrp());
    return TB_OK;
}

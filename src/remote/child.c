/* Starting processes: as fast as the kernel can, since a host may start hundreds. */
#include "remote/remote.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define STACK_BYTES 65536

/* Shared with the child until it runs its program. */
struct birth {
    const struct tb_child *child;
    pid_t parent;
    volatile int stage, error;
    struct rlimit core;
};

/* Runs in the child, in the parent's memory but on a stack of its own: only system calls, no allocation. */
static int become(void *argument)
{
    struct birth *birth = argument;
    const struct tb_child *child = birth->child;
    setpgid(0, 0);
    if (child->death_signal != 0) {
        prctl(PR_SET_PDEATHSIG, child->death_signal);
        if (getppid() != birth->parent)
            _exit(1);
    }
    for (int i = 0; i < 3; i++)
        if (child->streams[i] >= 0 && dup2(child->streams[i], i) < 0)
            goto failed;
    /* dup2 of a descriptor to itself would leave it close-on-exec. */
    if (child->keep == TB_CHILD_KEPT)
        fcntl(child->keep, F_SETFD, 0);
    else if (child->keep >= 0 && dup2(child->keep, TB_CHILD_KEPT) < 0)
        goto failed;
    if (child->descriptors != NULL)
        setrlimit(RLIMIT_NOFILE, child->descriptors);
    if (child->file_size != NULL)
        setrlimit(RLIMIT_FSIZE, child->file_size);
    setrlimit(RLIMIT_CORE, &birth->core);
    birth->stage = TB_CHILD_BIND;
    if (child->cpus != NULL && sched_setaffinity(0, child->cpus_bytes, child->cpus) < 0)
        goto failed;
    birth->stage = TB_CHILD_DIRECTORY;
    if (child->directory != NULL && chdir(child->directory) < 0)
        goto failed;
    birth->stage = TB_CHILD_EXEC;
    struct sigaction plain = {.sa_handler = SIG_DFL};
    sigaction(SIGPIPE, &plain, NULL);
    sigaction(SIGXFSZ, &plain, NULL);
    sigprocmask(SIG_SETMASK, child->mask, NULL);
    execve(child->path, child->arguments, child->environment);
failed:
    birth->error = errno;
    _exit(127);
}

int tb_child_start(const struct tb_child *child, pid_t *pid, enum tb_child_stage *stage)
{
    static _Alignas(16) char stack[STACK_BYTES]; /* one thread, and it waits here until the child has left */
    struct birth birth = {.child = child, .parent = getpid(), .stage = TB_CHILD_FORK, .core = tb_core_limit()};
    sigset_t all, before;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    pid_t made = clone(become, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD, &birth);
    int fork_error = errno;
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (made < 0) {
        *stage = TB_CHILD_FORK;
        errno = fork_error;
        return TB_ERR_SYSTEM;
    }
    if (birth.error != 0) {
        while (waitpid(made, NULL, 0) < 0 && errno == EINTR)
            ;
        *stage = (enum tb_child_stage)birth.stage;
        errno = birth.error;
        return TB_ERR_SYSTEM;
    }
    *pid = made;
    return TB_OK;
}

/* 0, or why this file cannot be run. */
static int judge_file(const char *path)
{
    struct stat about;
    if (stat(path, &about) < 0)
        return errno == ENOTDIR ? ENOENT : errno;
    if (S_ISDIR(about.st_mode))
        return EISDIR;
    return access(path, X_OK) < 0 ? EACCES : 0;
}

char *tb_program_find(const char *name, const char *path, const char *directory)
{
    char *full = NULL;
    int why = ENOENT;
    if (strchr(name, '/') != NULL) {
        /* Relative to where the program will run; execve comes after chdir, so the name itself can stay. */
        int n = name[0] == '/' || directory == NULL ? asprintf(&full, "%s", name)
                                                    : asprintf(&full, "%s/%s", directory, name);
        if (n < 0)
            return NULL;
        why = judge_file(full);
        if (why == 0)
            return full;
        free(full);
        errno = why;
        return NULL;
    }
    while (path != NULL && *name != 0) {
        size_t length = strcspn(path, ":");
        if (asprintf(&full, "%.*s/%s", length > 0 ? (int)length : 1, length > 0 ? path : ".", name) < 0)
            return NULL;
        int judged = judge_file(full);
        if (judged == 0)
            return full;
        if (judged == EACCES)
            why = EACCES;
        free(full);
        path = path[length] == ':' ? path + length + 1 : NULL;
    }
    errno = why;
    return NULL;
}

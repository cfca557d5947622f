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

/* Runs in the child on the parent's memory (vfork): only system calls, no allocation, and it never returns. */
static _Noreturn void become(const struct tb_child *child, pid_t parent, volatile int *stage, volatile int *error)
{
    *stage = TB_CHILD_FORK;
    setpgid(0, 0);
    if (child->death_signal != 0) {
        prctl(PR_SET_PDEATHSIG, child->death_signal);
        if (getppid() != parent)
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
    *stage = TB_CHILD_BIND;
    if (child->cpus != NULL && sched_setaffinity(0, child->cpus_bytes, child->cpus) < 0)
        goto failed;
    *stage = TB_CHILD_DIRECTORY;
    if (child->directory != NULL && chdir(child->directory) < 0)
        goto failed;
    *stage = TB_CHILD_EXEC;
    struct sigaction plain = {.sa_handler = SIG_DFL};
    sigaction(SIGPIPE, &plain, NULL);
    sigprocmask(SIG_SETMASK, child->mask, NULL);
    execve(child->path, child->arguments, child->environment);
failed:
    *error = errno;
    _exit(127);
}

int tb_child_start(const struct tb_child *child, pid_t *pid, enum tb_child_stage *stage)
{
    /* Shared with the child until it runs its program. */
    volatile int failed_stage = TB_CHILD_FORK, error = 0;
    pid_t parent = getpid();
    sigset_t all, before;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    pid_t made = vfork();
    if (made == 0)
        become(child, parent, &failed_stage, &error);
    int fork_error = errno;
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (made < 0) {
        *stage = TB_CHILD_FORK;
        errno = fork_error;
        return TB_ERR_SYSTEM;
    }
    if (error != 0) {
        while (waitpid(made, NULL, 0) < 0 && errno == EINTR)
            ;
        *stage = (enum tb_child_stage)failed_stage;
        errno = error;
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

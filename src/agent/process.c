#include "agent/process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

/* Standard input and output become the control stream; what takes their numbers can be written to without harm. */
static int take_streams(struct tb_process *process)
{
    process->in = fcntl(0, F_DUPFD_CLOEXEC, 3);
    process->out = fcntl(1, F_DUPFD_CLOEXEC, 3);
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (process->in < 0 || process->out < 0 || nothing < 0)
        return tb_error_errno("an agent needs its launcher at standard input and output");
    dup2(nothing, 0);
    dup2(nothing, 1);
    if (nothing > 2)
        close(nothing);
    return TB_OK;
}

static void raise_limit(int which, struct rlimit *before)
{
    getrlimit(which, before);
    struct rlimit most = {before->rlim_max, before->rlim_max};
    setrlimit(which, &most);
}

int tb_process_prepare(struct tb_process *process)
{
    static const int heard[] = {SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGQUIT};
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGCHLD, SIG_DFL); /* ignored, it would take the exit codes away */
    tb_core_forbid();
    raise_limit(RLIMIT_NOFILE, &process->descriptors);
    raise_limit(RLIMIT_FSIZE, &process->file_size);
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof heard / sizeof heard[0]; i++)
        sigaddset(&set, heard[i]);
    int rc = take_streams(process);
    return rc == TB_OK ? tb_signals_open(&set, &process->mask, &process->signals) : rc;
}

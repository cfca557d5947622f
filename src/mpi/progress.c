#include "mpi/progress.h"

#include <signal.h>
#include <string.h>

#include "mpi/self.h"

static bool is_stopped(void *context)
{
    return __atomic_load_n((bool *)context, __ATOMIC_ACQUIRE);
}

static void *progress_run(void *context)
{
    tb_engine_wait(tb_self.engine, is_stopped, context);
    return NULL;
}

/* Signals are for the program's own threads. */
int tb_progress_start(void)
{
    sigset_t all, before;
    sigfillset(&all);
    tb_self.progress_stopped = false;
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&tb_self.progress_thread, NULL, progress_run, &tb_self.progress_stopped);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    tb_self.progress_running = error == 0;
    return error == 0 ? TB_OK : tb_error(TB_ERR_SYSTEM, "no thread could be made for progress: %s", strerror(error));
}

void tb_progress_stop(void)
{
    if (!tb_self.progress_running)
        return;
    __atomic_store_n(&tb_self.progress_stopped, true, __ATOMIC_RELEASE);
    tb_engine_kick(tb_self.engine);
    pthread_join(tb_self.progress_thread, NULL);
    tb_self.progress_running = false;
}

/* The core watch, with a process that crashes and takes its time to write a core file. */
#include "agent/core_watch.h"
#include "remote/virtual_loop_test.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define RANKS   9u
#define CRASHED 7u
#define BYTES   ((size_t)256 << 20) /* of the core file */
#define TURN    250000000u

static struct world {
    struct virtual_loop time;
    struct tb_core_watch watch;
    pid_t crashed;
    uint32_t asked[RANKS], dumping[RANKS];
} w;

static void processes(void *context, uint32_t local, pid_t pids[static 2])
{
    w.asked[local]++;
    pids[0] = local == 3 ? 0 : getpid(); /* a rank that has ended has none */
    pids[1] = local == CRASHED ? w.crashed : 0;
}

static void dumping(void *context, uint32_t local)
{
    w.dumping[local]++;
}

static void open_watch(void)
{
    memset(&w, 0, sizeof w);
    assert_int_equal(virtual_loop_open(&w.time), TB_OK);
    tb_core_watch_open(&w.watch, &w.time.loop,
                       &(struct tb_core_watch_events){.processes = processes, .dumping = dumping});
}

static void close_watch(void)
{
    tb_core_watch_close(&w.watch);
    virtual_loop_close(&w.time);
}

/* A child with much memory that crashes in an empty folder. */
static pid_t crash(const char *folder)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid > 0)
        return pid;
    char *much = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (much != MAP_FAILED)
        memset(much, 7, BYTES);
    signal(SIGABRT, SIG_DFL);
    if (chdir(folder) == 0)
        abort();
    _exit(1);
}

static bool set_limit(rlim_t limit)
{
    struct rlimit now;
    getrlimit(RLIMIT_CORE, &now);
    now.rlim_cur = limit < now.rlim_max ? limit : now.rlim_max;
    return setrlimit(RLIMIT_CORE, &now) == 0 && now.rlim_cur == limit;
}

/* Core files stay in the folder of the process, where we can find and remove them; not under a sanitizer, whose shadow
 * memory would be in them. */
static bool leaves_files(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return false;
#endif
    char pattern[8] = "";
    FILE *file = fopen("/proc/sys/kernel/core_pattern", "r");
    bool good = file != NULL && fgets(pattern, sizeof pattern, file) != NULL && pattern[0] != '|' && pattern[0] != '/';
    if (file != NULL)
        fclose(file);
    return good;
}

static void who_writes_a_core_file_is_seen(void **state)
{
    char folder[] = "/tmp/core-watch-XXXXXX", command[64];
    if (!leaves_files() || !set_limit(RLIM_INFINITY)) {
        print_message("no core files here\n");
        skip();
    }
    assert_non_null(mkdtemp(folder));
    open_watch();
    w.crashed = crash(folder);
    tb_core_watch_start(&w.watch, RANKS);
    int status = 0;
    while (waitpid(w.crashed, &status, WNOHANG) == 0 && w.dumping[CRASHED] == 0)
        virtual_loop_pass(&w.time, TURN);
    uint32_t seen = w.dumping[CRASHED];
    kill(w.crashed, SIGKILL);
    waitpid(w.crashed, &status, 0);
    snprintf(command, sizeof command, "rm -r %s", folder);
    assert_int_equal(system(command), 0);
    assert_int_equal(seen, 1);
    for (uint32_t i = 0; i < RANKS; i++)
        assert_int_equal(w.dumping[i], i == CRASHED);
    w.crashed = 0;
    memset(w.asked, 0, sizeof w.asked);
    for (int i = 0; i < 4; i++)
        virtual_loop_pass(&w.time, TURN);
    for (uint32_t i = 0; i < RANKS; i++) /* each once a second */
        assert_in_range(w.asked[i], 1, 2);
    close_watch();
}

static void without_core_files_nobody_looks(void **state)
{
    if (!leaves_files() || !set_limit(0))
        skip();
    open_watch();
    tb_core_watch_start(&w.watch, RANKS);
    virtual_loop_pass(&w.time, TURN);
    for (uint32_t i = 0; i < RANKS; i++)
        assert_int_equal(w.asked[i], 0);
    assert_false(tb_core_watch_sees(getpid()));
    close_watch();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_writes_a_core_file_is_seen),
        cmocka_unit_test(without_core_files_nobody_looks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "agent/descendants.h"

#include "remote/remote.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAUSE_NS 2000000

struct process {
    pid_t pid, parent, group;
};

/* All processes of the machine at about one moment. Those that are below us come to the front. */
struct table {
    struct process *all;
    size_t count, room;
    size_t below;
};

/* ---- looking around ---------------------------------------------------------------------------------------------- */

/* False: it is gone. The name in parentheses may hold anything. */
static bool read_process(pid_t pid, struct process *process)
{
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return false;
    size_t length = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[length] = 0;
    const char *rest = strrchr(text, ')');
    char state;
    int parent, group;
    long threads;
    if (rest == NULL || sscanf(rest, ") %c %d %d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %ld", &state,
                               &parent, &group, &threads) != 4)
        return false;
    *process = (struct process){pid, parent, group};
    return (state != 'Z' && state != 'X') || threads > 1; /* the first thread may have ended before the others */
}

static bool add(struct table *table, const struct process *process)
{
    if (table->count == table->room) {
        size_t room = table->room > 0 ? 2 * table->room : 256;
        struct process *grown = realloc(table->all, room * sizeof *grown);
        if (grown == NULL)
            return false;
        table->all = grown;
        table->room = room;
    }
    table->all[table->count++] = *process;
    return true;
}

/* Numbers mean something only if they are those of our own namespace. */
static bool numbers_are_ours(void)
{
    char link[32] = "";
    return readlink("/proc/self", link, sizeof link - 1) > 0 && atoi(link) == getpid();
}

static void read_all(struct table *table)
{
    DIR *folder = numbers_are_ours() ? opendir("/proc") : NULL;
    struct process process;
    const struct dirent *entry;
    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        pid_t pid = atoi(entry->d_name);
        if (pid > 0 && read_process(pid, &process) && !add(table, &process))
            break;
    }
    if (folder != NULL)
        closedir(folder);
}

static bool leads_to_an_agent(pid_t pid)
{
    char path[64], *entry = NULL;
    size_t room = 0;
    bool found = false;
    snprintf(path, sizeof path, "/proc/%d/environ", (int)pid);
    FILE *file = fopen(path, "re");
    while (file != NULL && !found && getdelim(&entry, &room, 0, file) > 0)
        found = strcmp(entry, TB_SHELL_MARK) == 0;
    free(entry);
    if (file != NULL)
        fclose(file);
    return found;
}

static void take_children(struct table *table, pid_t parent)
{
    for (size_t i = table->below; i < table->count; i++) {
        struct process process = table->all[i];
        if (process.parent != parent || leads_to_an_agent(process.pid))
            continue;
        table->all[i] = table->all[table->below];
        table->all[table->below++] = process;
    }
}

static void look(struct table *table)
{
    *table = (struct table){0};
    read_all(table);
    take_children(table, getpid());
    for (size_t i = 0; i < table->below; i++)
        take_children(table, table->all[i].pid);
}

/* ---- reaching them ----------------------------------------------------------------------------------------------- */

size_t tb_descendants_signal(int signal, bool (*reached)(void *context, pid_t group), void *context)
{
    struct table table;
    size_t count = 0;
    look(&table);
    for (size_t i = 0; i < table.below; i++)
        if (reached == NULL || !reached(context, table.all[i].group))
            count += kill(table.all[i].pid, signal) == 0;
    free(table.all);
    return count;
}

static bool has_children(void)
{
    siginfo_t info;
    return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 || errno != ECHILD;
}

bool tb_descendants_left(void)
{
    return has_children() && tb_descendants_signal(0, NULL, NULL) > 0;
}

void tb_descendants_end(uint64_t patience)
{
    uint64_t start = tb_clock_now(&tb_clock_real);
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    /* One that starts another and ends while we look can hide it once, but not twice. */
    for (int calm = 0; calm < 2 && tb_clock_now(&tb_clock_real) - start < patience;) {
        while (waitpid(-1, NULL, WNOHANG) > 0)
            ;
        if (!has_children())
            return;
        calm = tb_descendants_signal(SIGKILL, NULL, NULL) == 0 ? calm + 1 : 0;
        nanosleep(&pause, NULL);
    }
}

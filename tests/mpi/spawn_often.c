/* Worlds and meetings, one after the other, as many times as the argument says: nothing of them stays: no descriptors,
 * no memory, no processes, nothing in /dev/shm, neither in this process nor in those above it that have started it. */
#include "test.h"

#include <dirent.h>
#include <unistd.h>

#define ABOVE  8   /* processes above this one that are looked at: agent, guardian, launcher */
#define SLACK  256 /* KiB that a process may have grown by */
#define SPREAD 6   /* descriptors that may be open at one moment and not at another */

struct footprint {
    int pid, descriptors, kib;
};

struct state {
    int count, files, processes;
    struct footprint above[ABOVE];
};

static char *program;

static int entries(const char *path)
{
    int count = 0;
    DIR *folder = opendir(path);
    while (folder != NULL && readdir(folder) != NULL)
        count++;
    if (folder != NULL)
        closedir(folder);
    return folder != NULL ? count : -1;
}

/* A number of /proc/PID/status; -1: it is not there. */
static int status_of(int pid, const char *name)
{
    char path[64], line[256];
    int value = -1;
    snprintf(path, sizeof path, "/proc/%d/status", pid);
    FILE *from = fopen(path, "r");
    while (from != NULL && value < 0 && fgets(line, sizeof line, from) != NULL)
        if (strncmp(line, name, strlen(name)) == 0 && line[strlen(name)] == ':')
            value = atoi(line + strlen(name) + 1);
    if (from != NULL)
        fclose(from);
    return value;
}

static bool is_ours(int pid)
{
    char path[64], target[512];
    snprintf(path, sizeof path, "/proc/%d/exe", pid);
    ssize_t length = readlink(path, target, sizeof target - 1);
    target[length > 0 ? length : 0] = 0;
    return strstr(target, "tombolo") != NULL;
}

/* All processes below one, itself included. */
static int count_below(int above)
{
    int count = 0;
    DIR *folder = opendir("/proc");
    for (struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;) {
        int pid = atoi(entry->d_name);
        while (pid > 1 && pid != above)
            pid = status_of(pid, "PPid");
        count += pid == above;
    }
    if (folder != NULL)
        closedir(folder);
    return count;
}

static void look(struct state *s)
{
    char path[64];
    int top = (int)getpid();
    s->count = 0;
    for (int pid = top; s->count < ABOVE && (pid == top || (pid > 1 && is_ours(pid))); pid = status_of(pid, "PPid")) {
        snprintf(path, sizeof path, "/proc/%d/fd", pid);
        s->above[s->count++] = (struct footprint){pid, entries(path), status_of(pid, "VmRSS")};
    }
    s->files = entries("/dev/shm");
    s->processes = count_below(s->above[s->count - 1].pid);
}

/* What has ended may take its time to be collected: the state is looked at until it is as before, or it takes too long.
 */
static bool is_as_before(const struct state *before, const struct state *now)
{
    bool same = now->count == before->count && now->processes <= before->processes && now->files <= before->files;
    for (int i = 0; i < now->count && same; i++)
        same = now->above[i].descriptors <= before->above[i].descriptors + SPREAD &&
               now->above[i].kib <= before->above[i].kib + SLACK;
    return same;
}

static void compare(const struct state *before)
{
    struct state now;
    double until = test_now() + 5;
    look(&now);
    while (!is_as_before(before, &now) && test_now() < until) {
        test_sleep(0.1);
        look(&now);
    }
    CHECK_EQUAL(now.count, before->count);
    CHECK(now.processes <= before->processes, "%d processes, %d before", now.processes, before->processes);
    CHECK(now.files <= before->files, "%d files in /dev/shm, %d before", now.files, before->files);
    for (int i = 0; i < now.count; i++) {
        const struct footprint *a = &before->above[i], *b = &now.above[i];
        CHECK(b->descriptors <= a->descriptors + SPREAD, "process %d (%d above): %d descriptors, %d before", b->pid, i,
              b->descriptors, a->descriptors);
        CHECK(b->kib <= a->kib + SLACK, "process %d (%d above): %d KiB, %d before", b->pid, i, b->kib, a->kib);
        if (getenv("TEST_SHOW") != NULL)
            fprintf(stderr, "%d above: %d descriptors, %d before; %d KiB, %d before\n", i, b->descriptors,
                    a->descriptors, b->kib, a->kib);
    }
}

static void spawn_once(int i)
{
    char *words[] = {(char *)"child", NULL};
    int value = -1;
    MPI_Comm inter;
    MPI_Comm_spawn(program, words, 1, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter, MPI_ERRCODES_IGNORE);
    MPI_Send(&i, 1, MPI_INT, 0, 0, inter);
    MPI_Recv(&value, 1, MPI_INT, 0, 0, inter, MPI_STATUS_IGNORE);
    CHECK_EQUAL(value, i + 1);
    MPI_Comm_disconnect(&inter);
}

/* Those that cannot be started, or never join, leave no more. */
static void spawn_in_vain(int i)
{
    MPI_Comm inter;
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    CHECK_CLASS(MPI_Comm_spawn(i % 16 == 0 ? "/bin/true" : "/no/such/program", MPI_ARGV_NULL, 2, MPI_INFO_NULL, 0,
                               MPI_COMM_SELF, &inter, MPI_ERRCODES_IGNORE),
                MPI_ERR_SPAWN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
}

static void answer(MPI_Comm parent)
{
    int value;
    MPI_Recv(&value, 1, MPI_INT, 0, 0, parent, MPI_STATUS_IGNORE);
    value++;
    MPI_Send(&value, 1, MPI_INT, 0, 0, parent);
    MPI_Comm_disconnect(&parent);
}

/* One of another world connects each time anew, until it is told to stop. */
static void connect_often(const char *name)
{
    for (int value = 0; value >= 0;) {
        MPI_Comm inter;
        MPI_Comm_connect(name, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter);
        MPI_Recv(&value, 1, MPI_INT, 0, 0, inter, MPI_STATUS_IGNORE);
        MPI_Comm_disconnect(&inter);
    }
}

static void accept_once(const char *name, int value)
{
    MPI_Comm inter;
    MPI_Comm_accept(name, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter);
    MPI_Send(&value, 1, MPI_INT, 0, 0, inter);
    MPI_Comm_disconnect(&inter);
}

/* What is made once, and kept, is there after the first ones. */
static void spawn_often(int times)
{
    struct state before;
    for (int i = 0; i < times; i++) {
        if (i == times / 5)
            look(&before);
        spawn_once(i);
        if (i % 8 == 0)
            spawn_in_vain(i);
    }
    compare(&before);
}

static void meet_often(int times)
{
    char name[MPI_MAX_PORT_NAME], *words[] = {name, NULL};
    struct state before;
    MPI_Comm inter;
    MPI_Open_port(MPI_INFO_NULL, name);
    MPI_Comm_spawn(program, words, 1, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter, MPI_ERRCODES_IGNORE);
    MPI_Comm_disconnect(&inter);
    for (int i = 0; i < times; i++) {
        if (i == times / 5)
            look(&before);
        accept_once(name, i);
    }
    compare(&before);
    accept_once(name, -1);
    MPI_Close_port(name);
}

int main(int argc, char **argv)
{
    MPI_Comm parent;
    test_begin(&argc, &argv);
    program = argv[0];
    int times = argc > 1 ? atoi(argv[1]) : 0;
    MPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL && strcmp(argv[1], "child") == 0) {
        answer(parent);
    } else if (parent != MPI_COMM_NULL) {
        MPI_Comm_disconnect(&parent);
        connect_often(argv[1]);
    } else if (test_rank == 0) {
        spawn_often(times);
        meet_often(times);
    }
    return test_end();
}

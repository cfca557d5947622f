/* tombolo probe: measures what messages cost, by a small MPI program of ours that it runs as a job. */
#include "command.h"
#include "command_words.h"
#include "help_texts.h"

#include "remote/remote.h"
#include "topology/topology.h"
#include "transport/transport.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static const char usage[] = TB_HELP_TOMBOLO_PROBE;

#define WORDS_LIMIT 1000u
#define PROGRAM     "tombolo-probe"
#define ATTEMPTS    3u  /* to measure what has not been */
#define START_S     60u /* for a job, */
#define TASK_S      30u /* and for each thing that it measures: many times what it takes */
#define PATIENCE    "link_patience=15s"
#define SINGLY      24u /* measurements each in a job of its own, where one for all has failed */

static const char job_failed[] = "the job that measured it has failed";

struct words {
    char *words[WORDS_LIMIT + 1];
    uint32_t count;
    int error;
};

/* What was asked for, and what has come of it. */
struct probe {
    char program[PATH_MAX + 64];
    const char *file, *lab; /* the grid file to be written, and that of the lab; NULL: none */
    bool dry, bare;         /* the file is printed; tables are left out */
    struct words given;     /* for mpiexec */
    struct tb_grid grid;
    struct tb_grid_costs costs;
    struct tb_grid_edit edit;
    struct tb_measure_plan plan;
    uint32_t failures;
};

static void words_add(struct words *w, const char *word)
{
    if (w->count == WORDS_LIMIT) {
        w->error = tb_error(TB_ERR_LIMIT, "more than %u words", WORDS_LIMIT);
        return;
    }
    w->words[w->count] = strdup(word);
    if (w->words[w->count++] == NULL)
        w->error = tb_error(TB_ERR_MEMORY, "no memory");
}

static void words_copy(struct words *w, const struct words *from)
{
    for (uint32_t i = 0; i < from->count; i++)
        words_add(w, from->words[i]);
}

static void words_free(struct words *w)
{
    for (uint32_t i = 0; i < w->count; i++)
        free(w->words[i]);
    w->count = 0;
}

/* ---- being interrupted ------------------------------------------------------------------------------------------- */

static volatile sig_atomic_t caught; /* the signal that ends us; 0: none */
static volatile sig_atomic_t child;  /* the job; 0: none runs */

/* The job ends, and then we do. What comes from the terminal the job gets by itself. */
static void on_signal(int number, siginfo_t *info, void *context)
{
    caught = number;
    if (child > 0 && info->si_code != SI_KERNEL)
        kill((pid_t)child, number);
}

static void signals_catch(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        sigaction(numbers[i], &action, NULL);
}

/* ---- jobs -------------------------------------------------------------------------------------------------------- */

/* A file without a name, to be read from its beginning. */
static int text_open(const char *text)
{
    size_t length = strlen(text);
    int fd = memfd_create("tombolo-plan", MFD_CLOEXEC);
    if (fd >= 0 && write(fd, text, length) == (ssize_t)length && lseek(fd, 0, SEEK_SET) == 0)
        return fd;
    int error = tb_error_errno("cannot keep what is to be measured");
    if (fd >= 0)
        close(fd);
    return error;
}

static void begun_say(const struct probe *p, uint32_t begun)
{
    char name[4 * TB_GRID_NAME_BYTES];
    if (begun == TB_GRID_NONE || !isatty(STDERR_FILENO))
        return;
    tb_measure_lines_name(&p->plan, &p->plan.tasks[begun], name, sizeof name);
    fprintf(stderr, "tombolo probe: %s (%u of %u)\n", name, begun + 1, p->plan.count);
}

/* The child of a fork. */
static void job_exec(const struct words *words, int input, int output, pid_t parent)
{
    char *arguments[WORDS_LIMIT + 3] = {"tombolo", "run"};
    memcpy(arguments + 2, words->words, words->count * sizeof arguments[0]);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() == parent && dup2(input, STDIN_FILENO) == 0 && dup2(output, STDOUT_FILENO) == 1)
        execv("/proc/self/exe", arguments);
    _exit(127);
}

/* Runs a job as a process of its own, of which the output is read. What it was about to measure when it failed is
 * marked; `*begun` says whether it has begun at all. */
static int job_run(struct probe *p, const struct words *words, const char *text, bool *begun)
{
    char *line = NULL;
    size_t room = 0;
    uint32_t task = TB_GRID_NONE;
    int ends[2] = {-1, -1}, status = 0, input = text_open(text);
    if (input < 0)
        return input;
    fflush(stdout);
    pid_t parent = getpid(), job = pipe2(ends, O_CLOEXEC) == 0 ? fork() : -1;
    if (job < 0) {
        int error = tb_error_errno("cannot start a job");
        for (int i = 0; i < 2 && ends[i] >= 0; i++)
            close(ends[i]);
        close(input);
        return error;
    }
    if (job == 0)
        job_exec(words, input, ends[1], parent);
    child = job;
    if (caught != 0) /* before it could be told */
        kill(job, caught);
    close(input);
    close(ends[1]);
    FILE *output = fdopen(ends[0], "r");
    while (output != NULL && getline(&line, &room, output) > 0) {
        uint32_t before = task;
        if (!tb_measure_lines_take(&p->plan, line, &task))
            fputs(line, stdout);
        else if (task != before)
            begun_say(p, task);
        *begun = *begun || task != TB_GRID_NONE;
    }
    free(line);
    if (output != NULL)
        fclose(output);
    while (waitpid(job, &status, 0) < 0 && errno == EINTR)
        continue;
    child = 0;
    bool well = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (!well && task != TB_GRID_NONE)
        p->plan.tasks[task].why = job_failed;
    return well ? TB_OK : tb_error(TB_ERR_SYSTEM, "the job has failed");
}

/* Ranks on the hosts of the plan, which are used as a job of the user's would use them: gateways, shells, ports and
 * paths are those of the file. Hosts that do not answer are left out, and the ranks tell which. */
static int job_make(struct probe *p, uint32_t first, uint32_t end, uint32_t tasks, bool *begun)
{
    struct words w = {.count = 0};
    char *text = NULL, *hosts = NULL, timeout[32];
    int error = tb_measure_lines_print(&p->plan, first, end, &text, &hosts);
    snprintf(timeout, sizeof timeout, "%u", START_S + TASK_S * tasks);
    const char *const before[] = {"--set", PATIENCE, "--timeout", timeout, NULL};
    for (uint32_t i = 0; before[i] != NULL; i++) /* what the user says goes before it */
        words_add(&w, before[i]);
    words_copy(&w, &p->given);
    if (p->lab == NULL) {
        words_add(&w, "--grid");
        words_add(&w, p->file);
    }
    words_add(&w, "--allow-missing");
    words_add(&w, "--own-program");
    words_add(&w, "-H");
    words_add(&w, error == TB_OK ? hosts : "");
    words_add(&w, PROGRAM);
    words_add(&w, "--plan");
    if (error == TB_OK)
        error = w.error;
    if (error == TB_OK)
        error = job_run(p, &w, text, begun);
    free(text);
    free(hosts);
    words_free(&w);
    return error;
}

static uint32_t count_unusable(const struct probe *p)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < p->grid.host_count; i++)
        count += p->plan.unusable[i];
    return count;
}

static bool is_left(const struct tb_measure_task *task)
{
    return task->staffed && !task->done && task->why == NULL;
}

/* Each in a job of its own, so that hosts which are cut off spoil nothing but what needs them. */
static void measure_singly(struct probe *p)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < p->plan.count && count < SINGLY && caught == 0; i++) {
        bool begun = false;
        if (!is_left(&p->plan.tasks[i]))
            continue;
        count++;
        if (job_make(p, i, i + 1, 1, &begun) != TB_OK)
            p->plan.tasks[i].why = job_failed;
    }
}

/* Measures what is planned and not yet done. After a failure what is left is tried again, by other hosts where some
 * were missing. */
static void measure(struct probe *p)
{
    bool again = true, failed = false;
    for (uint32_t i = 0; i < ATTEMPTS && again && caught == 0; i++) {
        bool begun = false;
        uint32_t missing = count_unusable(p), tasks = tb_measure_plan_staff(&p->plan);
        if (tasks == 0)
            return;
        failed = job_make(p, 0, p->plan.count, tasks, &begun) != TB_OK;
        again = (failed && begun) || count_unusable(p) > missing;
    }
    if (failed)
        measure_singly(p);
    for (uint32_t i = 0; i < p->plan.count; i++)
        if (is_left(&p->plan.tasks[i]))
            p->plan.tasks[i].why = job_failed;
}

static void missing_say(struct probe *p)
{
    for (uint32_t i = 0; i < p->grid.host_count; i++) {
        const struct tb_grid_host *host = &p->grid.hosts[i];
        if (!p->plan.unusable[i])
            continue;
        p->failures++;
        printf("# cluster %s: %s could not be used\n", p->grid.clusters[host->cluster].name, host->name);
    }
}

/* What was measured goes into the file, or is printed. */
static int write_all(struct probe *p)
{
    struct tb_measure_writer writer = {.plan = &p->plan, .edit = &p->edit, .words = stdout, .tables = !p->bare};
    missing_say(p);
    int error = tb_measure_write(&writer);
    p->failures += writer.failures;
    if (error == TB_OK && p->dry) {
        fputs(p->edit.text, stdout);
    } else if (error == TB_OK && writer.changes > 0) {
        error = tb_grid_edit_save(&p->edit);
        if (error != TB_OK) /* what has taken long is not lost */
            fputs(p->edit.text, stdout);
    }
    if (error == TB_OK && !p->dry)
        printf("# %s: %u of %u measurements were written\n", p->file, writer.changes, writer.changes + writer.failures);
    return error;
}

static int measure_all(struct probe *p)
{
    int error = tb_transports_load_params(); /* what the file does not say is assumed as by a job */
    if (error == TB_OK)
        error = tb_grid_load(&p->grid, p->file);
    if (error != TB_OK)
        return error;
    error = tb_grid_costs_open(&p->costs, &p->grid);
    if (error == TB_OK)
        error = tb_grid_edit_open(&p->edit, p->file);
    if (error == TB_OK)
        error = tb_measure_plan_open(&p->plan, &p->costs);
    if (error == TB_OK) {
        signals_catch();
        measure(p);
        error = tb_measure_plan_add_sharing(&p->plan);
    }
    if (error == TB_OK)
        measure(p);
    if (error == TB_OK && caught != 0)
        printf("# interrupted: %s is as it was\n", p->file);
    else if (error == TB_OK)
        error = write_all(p);
    tb_measure_plan_close(&p->plan);
    tb_grid_edit_close(&p->edit);
    tb_grid_costs_close(&p->costs);
    tb_grid_close(&p->grid);
    return error;
}

/* ---- the command ------------------------------------------------------------------------------------------------- */

/* One job in the lab, whose hosts are called as in its file. */
static int lab_words(const struct probe *p, struct words *w)
{
    struct tb_grid grid;
    int error = tb_grid_load(&grid, p->lab);
    if (error != TB_OK)
        return error;
    words_copy(w, &p->given);
    words_add(w, p->program);
    for (uint32_t i = 0; i < grid.host_count; i++) {
        char entry[3 * TB_GRID_NAME_BYTES];
        snprintf(entry, sizeof entry, "%s=%s", grid.hosts[i].name, grid.clusters[grid.hosts[i].cluster].name);
        if (grid.hosts[i].slots > 0)
            words_add(w, entry);
    }
    tb_grid_close(&grid);
    return w->error;
}

static int words_parse(struct probe *p, char **words)
{
    words_add(&p->given, "--set"); /* the wire is measured, not what agents make of our bytes */
    words_add(&p->given, "compress=off");
    for (; *words != NULL; words++) {
        bool grid = strcmp(*words, "--grid") == 0, lab = strcmp(*words, "--lab") == 0;
        if ((grid || lab) && words[1] == NULL)
            return tb_error(TB_ERR_ARGUMENT, "%s: which file?", *words);
        if (grid)
            p->file = *++words;
        else if (strcmp(*words, "--dry-run") == 0)
            p->dry = true;
        else if (strcmp(*words, "--no-tables") == 0)
            p->bare = true;
        else
            words_add(&p->given, *words);
        if (lab) {
            p->lab = *++words;
            words_add(&p->given, *words);
        }
    }
    if ((p->dry || p->bare) && p->file == NULL)
        return tb_error(TB_ERR_ARGUMENT, "%s: of which grid file? (--grid FILE)", p->dry ? "--dry-run" : "--no-tables");
    return p->given.error;
}

/* Without a grid file to be written the job is this process. */
static int print_only(struct probe *p, int *code)
{
    struct words w = {.count = 0};
    int error = TB_OK;
    if (p->lab != NULL) {
        error = lab_words(p, &w);
    } else {
        words_copy(&w, &p->given);
        words_add(&w, p->program);
        error = w.error;
    }
    if (error == TB_OK)
        *code = tb_command_run("tombolo probe", w.words);
    words_free(&w);
    return error;
}

int tb_command_probe(char **words)
{
    struct probe p = {.file = NULL};
    int code = 0;
    if (tb_command_help(words, usage))
        return 0;
    int error = tb_own_program_find(PROGRAM, p.program, sizeof p.program);
    if (error == TB_OK)
        error = words_parse(&p, words);
    if (error == TB_OK)
        error = p.file != NULL ? measure_all(&p) : print_only(&p, &code);
    if (error != TB_OK)
        fprintf(stderr, "tombolo probe: %s\n", tb_error_story());
    words_free(&p.given);
    // NOLINTNEXTLINE(clang-analyzer-unix.Malloc): every word that was added was freed
    return error != TB_OK ? 2 : caught != 0 ? 128 + caught : p.failures > 0 ? 1 : code;
}

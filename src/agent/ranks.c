#include "agent/ranks.h"
#include "agent/cpu_binding.h"
#include "agent/descendants.h"
#include "agent/pseudo_terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

void tb_ranks_open(struct tb_ranks *ranks, const struct tb_ranks_events *events)
{
    *ranks = (struct tb_ranks){.events = *events};
}

void tb_ranks_close(struct tb_ranks *ranks)
{
    free(ranks->all);
    *ranks = (struct tb_ranks){.events = ranks->events};
}

/* They stand in the order of their indices. */
struct tb_rank *tb_ranks_find(const struct tb_ranks *ranks, uint32_t rank)
{
    uint32_t low = 0, high = ranks->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (ranks->all[middle].rank < rank)
            low = middle + 1;
        else
            high = middle;
    }
    return low < ranks->count && ranks->all[low].rank == rank ? &ranks->all[low] : NULL;
}

int tb_ranks_make(struct tb_ranks *ranks, const struct tb_address_book *book, uint32_t host, uint32_t first,
                  uint32_t size)
{
    uint32_t count = 0, end = first + size, run;
    for (uint32_t rank = first; rank < end; rank += run) {
        const struct tb_rank_range *range = tb_address_book_range(book, rank);
        run = range->first_rank + range->count - rank;
        run = run < end - rank ? run : end - rank;
        if (range->host != host)
            continue;
        struct tb_rank *grown = reallocarray(ranks->all, count + run, sizeof *grown);
        if (grown == NULL)
            return tb_error(TB_ERR_MEMORY, "no memory for %u ranks", count + run);
        ranks->all = grown;
        for (uint32_t i = 0; i < run; i++, count++)
            grown[count] = (struct tb_rank){.rank = rank + i, .local = count};
    }
    ranks->first = first;
    ranks->size = size;
    ranks->count = count;
    return TB_OK;
}

/* ---- starting ---------------------------------------------------------------------------------------------------- */

struct streams {
    int control[2]; /* ours, the rank's */
    int input[2], output[2], errors[2];
};

/* What one tb_ranks_start works with. */
struct starting {
    struct tb_ranks *ranks;
    const struct tb_rank_start *start;
    const struct tb_cpu_binding *binding; /* NULL: they are not bound */
    struct tb_start_failure *failure;
    struct tb_rank_program program; /* of the present ranks */
};

static void close_ends(struct streams *s, int end)
{
    int *all[] = {s->control, s->input, s->output, s->errors};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (all[i][end] >= 0) {
            close(all[i][end]);
            all[i][end] = -1;
        }
}

/* End 0 is the agent's, end 1 the rank's. */
static int make_streams(const struct tb_rank *rank, const struct tb_setup *setup, struct streams *s)
{
    *s = (struct streams){{-1, -1}, {-1, -1}, {-1, -1}, {-1, -1}};
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, s->control) < 0 || pipe2(s->errors, O_CLOEXEC) < 0)
        return tb_error_errno("cannot make the streams of rank %u", rank->rank);
    if ((setup->flags & TB_SETUP_PTY) != 0) {
        if (tb_pseudo_terminal_open(s->output, setup->terminal) != TB_OK)
            return tb_error_errno("cannot make a pseudo-terminal for rank %u", rank->rank);
    } else if (pipe2(s->output, O_CLOEXEC) < 0) {
        return tb_error_errno("cannot make the streams of rank %u", rank->rank);
    }
    if (rank->rank == setup->input_rank) {
        if (pipe2(ends, O_CLOEXEC) < 0)
            return tb_error_errno("cannot make the input of rank %u", rank->rank);
        s->input[0] = ends[1];
        s->input[1] = ends[0];
    } else {
        s->input[1] = open("/dev/null", O_RDONLY | O_CLOEXEC);
        if (s->input[1] < 0)
            return tb_error_errno("cannot open /dev/null as the input of rank %u", rank->rank);
    }
    return TB_OK;
}

static void explain_failed(const struct starting *s, const struct tb_rank *rank, enum tb_child_stage stage, int error)
{
    const char *host = s->start->host;
    char limit[64];
    if (stage == TB_CHILD_FORK)
        tb_start_failure_set(s->failure, 1,
                             "cannot start rank %u on host %s: no new process: %s%s; fewer ranks a host may help",
                             rank->rank, host, strerror(error), tb_error_limit(error, limit, sizeof limit));
    else if (stage == TB_CHILD_BIND)
        tb_start_failure_set(s->failure, 1, "cannot bind rank %u on host %s to its processors: %s; try --bind none",
                             rank->rank, host, strerror(error));
    else if (stage == TB_CHILD_DIRECTORY)
        tb_start_failure_set(s->failure, 1, "cannot enter directory %s on host %s: %s", s->program.directory, host,
                             strerror(error));
    else if (error == ENOENT)
        tb_rank_program_explain_missing(&s->program, s->start, s->failure);
    else
        tb_rank_program_explain(&s->program, s->start, error, s->failure);
}

static int spawn(const struct starting *s, struct tb_rank *rank, struct tb_child *child)
{
    enum tb_child_stage stage;
    int rc = tb_child_start(child, &rank->pid, &stage), error = errno;
    if (rc != TB_OK && stage == TB_CHILD_EXEC && error == ENOEXEC && tb_rank_program_is_text(&s->program)) {
        /* A script without a first line that names its interpreter: for the shell, as everywhere. */
        const struct tb_app *app = s->program.app;
        char **words = calloc((size_t)app->argument_count + 2, sizeof *words);
        if (words == NULL)
            return tb_error(TB_ERR_MEMORY, "no memory for a command line");
        words[0] = (char *)"sh";
        words[1] = (char *)child->path;
        memcpy(words + 2, app->arguments + 1, (app->argument_count - 1) * sizeof *words);
        child->path = "/bin/sh";
        child->arguments = words;
        rc = tb_child_start(child, &rank->pid, &stage);
        error = errno;
        free(words);
    }
    if (rc != TB_OK)
        explain_failed(s, rank, stage, error);
    return rc;
}

static int start_rank(struct starting *s, struct tb_rank *rank)
{
    const struct tb_ranks *ranks = s->ranks;
    struct streams streams;
    cpu_set_t *cpus = NULL;
    int rc = make_streams(rank, s->start->setup, &streams);
    if (rc == TB_OK)
        rc = tb_rank_program_describe(
            &s->program, s->start,
            &(struct tb_rank_place){rank->rank - ranks->first, ranks->size, rank->local, ranks->count},
            streams.control[1], streams.output[1]);
    if (rc == TB_OK) {
        rc = ranks->events.starting(ranks->events.context, rank, streams.control[0]);
        streams.control[0] = -1;
    }
    if (rc != TB_OK)
        goto out;
    struct tb_child child = {.path = s->program.path,
                             .arguments = s->program.app->arguments,
                             .environment = s->program.environment,
                             .directory = s->program.directory,
                             .streams = {streams.input[1], streams.output[1], streams.errors[1]},
                             .keep = streams.control[1],
                             .death_signal = SIGKILL,
                             .mask = s->start->mask,
                             .descriptors = s->start->descriptors,
                             .file_size = s->start->file_size};
    if (s->binding != NULL) {
        tb_cpu_binding_choose(s->binding, rank->rank, rank->local, &cpus, &child.cpus_bytes);
        child.cpus = cpus;
    }
    rc = spawn(s, rank, &child);
out:
    if (cpus != NULL)
        CPU_FREE(cpus);
    close_ends(&streams, 1);
    if (rc != TB_OK) {
        close_ends(&streams, 0);
        return rc;
    }
    struct tb_rank_streams ours = {streams.input[0], streams.output[0], streams.errors[0]};
    return ranks->events.started(ranks->events.context, rank, &ours);
}

static void report_binding(const struct starting *s)
{
    for (uint32_t i = 0; i < s->ranks->count; i++) {
        char where[256] = "not bound", text[1024];
        if (s->binding != NULL)
            tb_cpu_binding_print(s->binding, s->ranks->all[i].rank, i, where, sizeof where);
        snprintf(text, sizeof text, "rank %u on host %s: %s", s->ranks->all[i].rank, s->start->host, where);
        s->ranks->events.note(s->ranks->events.context, text);
    }
}

/* The ranks of this host run one after the other through the programs of the job. */
static int start_all(struct starting *s)
{
    struct tb_ranks *ranks = s->ranks;
    const struct tb_setup *setup = s->start->setup;
    int rc = TB_OK;
    uint32_t started = 0;
    for (uint32_t a = 0; a < setup->app_count && rc == TB_OK; a++) {
        const struct tb_app *app = &setup->apps[a];
        for (; started < ranks->count && rc == TB_OK; started++) {
            struct tb_rank *rank = &ranks->all[started];
            if (rank->rank < app->first_rank || rank->rank - app->first_rank >= app->ranks)
                break;
            rank->app = a;
            if (s->program.app != app)
                rc = tb_rank_program_open(&s->program, s->start, app, ranks->events.note, ranks->events.context,
                                          s->failure);
            if (rc == TB_OK)
                rc = start_rank(s, rank);
        }
        tb_rank_program_close(&s->program);
    }
    if (rc == TB_OK && started < ranks->count)
        rc = tb_error(TB_ERR_PROTOCOL, "no program is named for rank %u", ranks->all[started].rank);
    return rc;
}

int tb_ranks_start(struct tb_ranks *ranks, const struct tb_rank_start *start, struct tb_start_failure *failure)
{
    struct starting s = {.ranks = ranks, .start = start, .failure = failure};
    failure->text[0] = 0;
    int rc = TB_OK;
    struct tb_cpu_binding *own = NULL;
    if (tb_setup_binds(start->setup) && start->binding == NULL)
        rc = tb_cpu_binding_open(&own, start->setup);
    s.binding = start->binding != NULL ? start->binding : own;
    if (rc == TB_OK)
        rc = start_all(&s);
    if (rc == TB_OK && tb_param.bind_report)
        report_binding(&s);
    tb_cpu_binding_close(own);
    if (rc != TB_OK && failure->text[0] == 0)
        tb_start_failure_set(failure, 1, "host %s: %s", start->host, tb_error_story());
    return rc;
}

/* ---- ending ------------------------------------------------------------------------------------------------------ */

void tb_ranks_reap(struct tb_ranks *ranks, pid_t pid, int status)
{
    for (uint32_t i = 0; i < ranks->count; i++) {
        struct tb_rank *rank = &ranks->all[i];
        if (rank->pid != pid || rank->ended)
            continue;
        rank->ended = true;
        ranks->ended_count++;
        ranks->events.ended(ranks->events.context, rank, status);
        return;
    }
}

void tb_ranks_forget_groups(struct tb_ranks *ranks)
{
    for (uint32_t i = 0; i < ranks->count; i++) {
        struct tb_rank *rank = &ranks->all[i];
        if (rank->ended && rank->pid > 0 && kill(-rank->pid, 0) < 0 && errno == ESRCH)
            rank->pid = 0;
    }
}

void tb_ranks_signal(struct tb_ranks *ranks, int signal)
{
    for (uint32_t i = 0; i < ranks->count; i++)
        if (ranks->all[i].pid > 0 && (ranks->all[i].ended || !ranks->all[i].dumping))
            kill(-ranks->all[i].pid, signal);
}

bool tb_ranks_dumping(const struct tb_ranks *ranks)
{
    for (uint32_t i = 0; i < ranks->count; i++)
        if (ranks->all[i].dumping && !ranks->all[i].ended)
            return true;
    return false;
}

void tb_ranks_kill(struct tb_ranks *ranks)
{
    for (uint32_t i = 0; i < ranks->count; i++)
        ranks->all[i].dumping = false;
    tb_ranks_signal(ranks, SIGKILL);
}

bool tb_ranks_alive(struct tb_ranks *ranks)
{
    tb_ranks_forget_groups(ranks);
    for (uint32_t i = 0; i < ranks->count; i++)
        if (ranks->all[i].pid > 0)
            return true;
    return false;
}

static bool is_group(void *context, pid_t group)
{
    const struct tb_ranks *ranks = context;
    for (uint32_t i = 0; i < ranks->count; i++)
        if (ranks->all[i].pid == group)
            return true;
    return false;
}

void tb_ranks_end(struct tb_ranks *ranks, int signal)
{
    tb_ranks_signal(ranks, signal);
    tb_ranks_signal(ranks, SIGCONT);
    if (tb_descendants_signal(signal, is_group, ranks) > 0)
        tb_descendants_signal(SIGCONT, is_group, ranks);
}

bool tb_ranks_left(struct tb_ranks *ranks)
{
    return tb_ranks_alive(ranks) || tb_descendants_left();
}

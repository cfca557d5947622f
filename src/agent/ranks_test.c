/* Starting real processes, as the agent does, and collecting them. */
#include "agent/host_parameters.h"
#include "agent/ranks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define RANKS 3u /* 4 to 6 of the job, on host 1 */
#define FIRST 4u

struct world {
    struct tb_ranks ranks;
    struct tb_address_book book;
    struct tb_host hosts[2];
    struct tb_rank_range ranges[2];
    struct tb_app app;
    struct tb_setup setup;
    struct tb_rank_start start;
    struct tb_start_failure failure;
    sigset_t mask;
    struct tb_rank_streams streams[RANKS];
    int controls[RANKS];
    int starting, started, ended, status[RANKS];
    char note[1024];
};

/* What is in its socket when it starts it finds there. */
static int take_starting(void *context, const struct tb_rank *rank, int control)
{
    struct world *w = context;
    assert_int_equal(rank->rank, FIRST + rank->local);
    assert_int_equal(rank->pid, 0);
    assert_int_equal(send(control, "welcome\n", 8, 0), 8);
    w->controls[rank->local] = control;
    w->starting++;
    return TB_OK;
}

static int take_started(void *context, const struct tb_rank *rank, const struct tb_rank_streams *streams)
{
    struct world *w = context;
    assert_int_equal(w->starting, w->started + 1);
    assert_true(rank->pid > 0);
    w->streams[rank->local] = *streams;
    w->started++;
    return TB_OK;
}

static void take_ended(void *context, const struct tb_rank *rank, int status)
{
    struct world *w = context;
    w->status[rank->local] = status;
    w->ended++;
}

static void take_note(void *context, const char *text)
{
    struct world *w = context;
    snprintf(w->note, sizeof w->note, "%s", text);
}

static void world_open(struct world *w, char **arguments)
{
    memset(w, 0, sizeof *w);
    const struct tb_ranks_events events = {
        .context = w, .starting = take_starting, .started = take_started, .ended = take_ended, .note = take_note};
    w->hosts[0] = (struct tb_host){.name = "there", .rank_count = FIRST};
    w->hosts[1] = (struct tb_host){.name = "here", .first_rank = FIRST, .rank_count = RANKS};
    w->ranges[0] = (struct tb_rank_range){.count = FIRST};
    w->ranges[1] = (struct tb_rank_range){.first_rank = FIRST, .count = RANKS, .host = 1};
    w->book = (struct tb_address_book){
        .job = 5, .ranks = FIRST + RANKS, .host_count = 2, .range_count = 2, .hosts = w->hosts, .ranges = w->ranges};
    w->app = (struct tb_app){.ranks = FIRST + RANKS, .arguments = arguments, .directory = (char *)""};
    while (arguments[w->app.argument_count] != NULL)
        w->app.argument_count++;
    w->setup = (struct tb_setup){.host = 1,
                                 .host_count = 2,
                                 .bind_width = 1,
                                 .bind_cpus = (char *)"",
                                 .rank_cpus = (char *)"",
                                 .app_count = 1,
                                 .apps = &w->app,
                                 .directory = (char *)"/"};
    sigemptyset(&w->mask);
    w->start = (struct tb_rank_start){
        .setup = &w->setup, .book = &w->book, .host = "here", .port_name = "tombolo-test", .mask = &w->mask};
    tb_ranks_open(&w->ranks, &events);
    assert_int_equal(tb_ranks_make(&w->ranks, &w->book, 1, 0, w->book.ranks), TB_OK);
}

static void collect(struct world *w)
{
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, 0)) > 0)
        tb_ranks_reap(&w->ranks, pid, status);
    tb_ranks_forget_groups(&w->ranks);
}

static void world_close(struct world *w)
{
    tb_ranks_signal(&w->ranks, SIGKILL);
    collect(w);
    for (int i = 0; i < w->starting; i++)
        close(w->controls[i]);
    for (int i = 0; i < w->started; i++) {
        close(w->streams[i].output);
        close(w->streams[i].errors);
    }
    tb_ranks_close(&w->ranks);
}

/* All that a rank writes until it ends. */
static void read_all(int descriptor, char *text, size_t size)
{
    size_t length = 0;
    ssize_t n;
    while (length + 1 < size && (n = read(descriptor, text + length, size - 1 - length)) > 0)
        length += (size_t)n;
    text[length] = 0;
}

static void expect_output(struct world *w, uint32_t local, const char *expected)
{
    char text[256];
    read_all(w->streams[local].output, text, sizeof text);
    assert_string_equal(text, expected);
}

static void start(struct world *w)
{
    int rc = tb_ranks_start(&w->ranks, &w->start, &w->failure);
    if (rc != TB_OK)
        print_message("%s\n", w->failure.text);
    assert_int_equal(rc, TB_OK);
    assert_int_equal(w->started, RANKS);
}

/* ---- good starts ------------------------------------------------------------------------------------------------- */

static void they_know_who_they_are(void **state)
{
    struct world w;
    char *words[] = {
        (char *)"sh", (char *)"-c",
        (char *)"echo $TOMBOLO_RANK $TOMBOLO_SIZE $TOMBOLO_LOCAL_RANK $TOMBOLO_LOCAL_SIZE $TOMBOLO_HOST $GIVEN $ASKED "
                "$PMI_FD; "
                "pwd; head -n1 <&3; exit $TOMBOLO_RANK",
        NULL};
    char *given[] = {(char *)"GIVEN=host", (char *)"ASKED=host"}, *asked[] = {(char *)"ASKED=user", NULL};
    world_open(&w, words);
    w.start.given = given;
    w.start.given_count = 2;
    w.app.variables = asked;
    w.app.variable_count = 1;
    setenv("TOMBOLO_RANK", "99", 1); /* of a job that we are in; none of theirs */
    setenv("TOMBOLO_HOST", "there", 1);
    setenv("PMI_FD", "7", 1); /* nor is this */
    start(&w);
    unsetenv("TOMBOLO_RANK");
    unsetenv("TOMBOLO_HOST");
    unsetenv("PMI_FD");
    for (uint32_t i = 0; i < RANKS; i++) {
        char text[64];
        snprintf(text, sizeof text, "%u 7 %u 3 here host user\n/\nwelcome\n", FIRST + i, i);
        expect_output(&w, i, text);
        assert_int_equal(w.streams[i].input, -1); /* only rank 0 has one */
    }
    collect(&w);
    assert_int_equal(w.ended, RANKS);
    assert_int_equal(w.ranks.ended_count, RANKS);
    for (uint32_t i = 0; i < RANKS; i++)
        assert_int_equal(WEXITSTATUS(w.status[i]), FIRST + i);
    assert_false(tb_ranks_alive(&w.ranks));
    world_close(&w);
}

static void only_ranks_of_this_host_are_found(void **state)
{
    struct world w;
    char *words[] = {(char *)"true", NULL};
    world_open(&w, words);
    assert_null(tb_ranks_find(&w.ranks, FIRST - 1));
    assert_null(tb_ranks_find(&w.ranks, FIRST + RANKS));
    assert_int_equal(tb_ranks_find(&w.ranks, FIRST + 1)->local, 1);
    world_close(&w);
}

/* A signal is for the whole group; and as long as some process of it is, the rank is not gone. */
static void groups_are_signalled(void **state)
{
    struct world w;
    char *words[] = {(char *)"sh", (char *)"-c", (char *)"sleep 1000 & echo; exec sleep 1000", NULL}, line[4];
    world_open(&w, words);
    start(&w);
    for (uint32_t i = 0; i < RANKS; i++)
        assert_int_equal(read(w.streams[i].output, line, 1), 1); /* both are there */
    kill(w.ranks.all[0].pid, SIGKILL);
    int status;
    pid_t pid = waitpid(w.ranks.all[0].pid, &status, 0);
    tb_ranks_reap(&w.ranks, pid, status);
    assert_int_equal(w.ended, 1);
    assert_int_equal(WTERMSIG(w.status[0]), SIGKILL);
    tb_ranks_forget_groups(&w.ranks);
    assert_true(w.ranks.all[0].pid > 0);
    tb_ranks_signal(&w.ranks, SIGTERM);
    for (uint32_t i = 0; i < RANKS; i++)
        expect_output(&w, i, ""); /* everybody who could write has ended */
    collect(&w);
    assert_int_equal(w.ended, RANKS);
    assert_int_equal(WTERMSIG(w.status[1]), SIGTERM);
    world_close(&w);
}

/* Who writes a core file is left alone, until everything is to end at once. */
static void who_dumps_is_left_alone(void **state)
{
    struct world w;
    char *words[] = {(char *)"sleep", (char *)"1000", NULL};
    world_open(&w, words);
    start(&w);
    w.ranks.all[1].dumping = true;
    assert_true(tb_ranks_dumping(&w.ranks));
    tb_ranks_signal(&w.ranks, SIGKILL);
    for (uint32_t i = 0; i < RANKS; i++) {
        int status;
        if (i == 1)
            continue;
        pid_t pid = waitpid(w.ranks.all[i].pid, &status, 0);
        tb_ranks_reap(&w.ranks, pid, status);
    }
    assert_int_equal(waitpid(w.ranks.all[1].pid, NULL, WNOHANG), 0);
    tb_ranks_kill(&w.ranks);
    collect(&w);
    assert_int_equal(w.ended, RANKS);
    assert_false(tb_ranks_dumping(&w.ranks));
    world_close(&w);
}

/* A script without a first line that names its interpreter is for the shell. */
static void scripts_need_no_first_line(void **state)
{
    struct world w;
    char path[] = "/tmp/tombolo-ranks-test-XXXXXX", *words[] = {path, (char *)"word", NULL};
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "echo $1\n", 8), 8);
    assert_int_equal(fchmod(fd, 0700), 0);
    close(fd);
    world_open(&w, words);
    start(&w);
    expect_output(&w, 0, "word\n");
    collect(&w);
    unlink(path);
    world_close(&w);
}

/* ---- bad starts -------------------------------------------------------------------------------------------------- */

static void failures_are_explained(void **state)
{
    static const struct {
        const char *program, *directory;
        int exit_code;
        const char *text;
    } cases[] = {
        {"no-such-program", "", 127, "cannot start no-such-program on host here: there is no such program in PATH"},
        {"./no-such-program", "", 127, "there is no such file in the working directory /"},
        {"/etc/passwd", "", 126, "no permission to execute it"},
        {"/etc", "", 126, "it is a directory"},
        {"true", "/no/such/place", 1, "cannot enter the working directory /no/such/place on host here: No such file"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct world w;
        char *words[] = {(char *)cases[i].program, NULL};
        world_open(&w, words);
        w.app.directory = (char *)cases[i].directory;
        assert_int_not_equal(tb_ranks_start(&w.ranks, &w.start, &w.failure), TB_OK);
        assert_int_equal(w.failure.exit_code, cases[i].exit_code);
        assert_non_null(strstr(w.failure.text, cases[i].text));
        assert_int_equal(w.started, 0);
        assert_false(tb_ranks_alive(&w.ranks));
        world_close(&w);
    }
}

static void a_missing_program_is_told(void **state)
{
    struct world w;
    char *words[] = {(char *)"true", NULL};
    world_open(&w, words);
    w.app.ranks = FIRST + 1; /* nobody has named one for the others */
    assert_int_equal(tb_ranks_start(&w.ranks, &w.start, &w.failure), TB_ERR_PROTOCOL);
    assert_int_equal(w.failure.exit_code, 1);
    assert_string_equal(w.failure.text, "host here: no program is named for rank 5");
    world_close(&w);
}

/* The launcher's directory may be missing here: then it is another one, and the user is told. */
static void another_directory_will_do(void **state)
{
    struct world w;
    char *words[] = {(char *)"pwd", NULL};
    world_open(&w, words);
    w.setup.directory = (char *)"/no/such/place";
    setenv("HOME", "/", 1);
    start(&w);
    expect_output(&w, 0, "/\n");
    assert_non_null(strstr(w.note, "cannot enter directory /no/such/place on host here"));
    assert_non_null(strstr(w.note, "the ranks there start in the home directory /"));
    world_close(&w);
}

/* ---- host parameters --------------------------------------------------------------------------------------------- */

static void parameters_of_a_host(void **state)
{
    struct tb_host_parameters parameters = {0};
    char where[64], lines[] = "#the file\ninterfaces=lo\nno_such_parameter=1\nnonsense\n#a=b\nports=4711\n";
    assert_int_equal(tb_param_set("ports", "1234", TB_PARAM_ENVIRONMENT), TB_OK); /* what the host says itself stays */
    assert_int_equal(tb_host_parameters_take(&parameters, lines), TB_OK);
    assert_int_equal(parameters.count, 1);
    assert_string_equal(parameters.variables[0], "TOMBOLO_INTERFACES=lo");
    assert_string_equal(tb_param.interfaces, "lo");
    assert_string_equal(tb_param.ports, "1234");
    tb_param_print_origin(tb_param_find("interfaces"), where, sizeof where);
    assert_string_equal(where, "the file");
    tb_param_print_origin(tb_param_find("ports"), where, sizeof where);
    assert_string_equal(where, "TOMBOLO_PORTS in the environment");
    tb_host_parameters_close(&parameters);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(they_know_who_they_are),     cmocka_unit_test(only_ranks_of_this_host_are_found),
        cmocka_unit_test(groups_are_signalled),       cmocka_unit_test(who_dumps_is_left_alone),
        cmocka_unit_test(scripts_need_no_first_line), cmocka_unit_test(failures_are_explained),
        cmocka_unit_test(a_missing_program_is_told),  cmocka_unit_test(another_directory_will_do),
        cmocka_unit_test(parameters_of_a_host),
    };
    tb_param_load();
    return cmocka_run_group_tests(tests, NULL, NULL);
}

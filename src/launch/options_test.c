/* The table of options, and the words of other launchers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "launch/launch.h"
#include "launch/options_table.h"

/* Splits at blanks. */
static int parse(struct tb_options *options, const char *line)
{
    static char room[1024];
    static char *words[64];
    size_t n = 0;
    char *rest = NULL;
    snprintf(room, sizeof room, "%s", line);
    for (char *word = strtok_r(room, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest))
        words[n++] = word;
    words[n] = NULL;
    *options = (struct tb_options){.name = "mpiexec"};
    return tb_options_parse(options, words);
}

static const char *file_of(const char *text)
{
    static char path[] = "/tmp/tombolo-options-XXXXXX";
    snprintf(path, sizeof path, "/tmp/tombolo-options-XXXXXX");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
    return path;
}

/* A value that this option takes. */
static const char *value_for(const struct tb_option_row *row)
{
    switch (row->option) {
    case TB_OPTION_MAP:
    case TB_OPTION_RANK_BY:
        return "slot";
    case TB_OPTION_BIND:
        return "none";
    case TB_OPTION_DISPLAY:
        return "map";
    case TB_OPTION_OUTPUT:
        return "tag";
    case TB_OPTION_DIRECTORY:
        return "/";
    case TB_OPTION_SET:
        return "log=warn";
    case TB_OPTION_ENCRYPT:
        return "clusters";
    case TB_OPTION_VARIABLE:
        return "A=1";
    case TB_OPTION_LAUNCHER:
        return "ssh";
    case TB_OPTION_FIRST_ERRHANDLER:
        return "mpi_errors_abort";
    default:
        return "1";
    }
}

/* Whatever an option does, the word behind its values is the program. */
static void every_option_takes_its_values(void **state)
{
    size_t count;
    const struct tb_option_row *rows = tb_option_rows(&count);
    const char *hosts = file_of("a\n");
    assert_true(count > 150);
    for (size_t i = 0; i < count; i++) {
        struct tb_options options;
        char line[256];
        const char *value = value_for(&rows[i]);
        bool is_file = rows[i].option == TB_OPTION_HOST_FILE || rows[i].option == TB_OPTION_DEFAULT_HOST_FILE;
        if (rows[i].option == TB_OPTION_CONFIG_FILE || rows[i].option == TB_OPTION_RANK_FILE ||
            rows[i].option == TB_OPTION_GRID || rows[i].option == TB_OPTION_LAB || rows[i].option == TB_OPTION_MANUAL ||
            rows[i].option == TB_OPTION_ALLOW_MISSING)
            continue; /* have tests of their own */
        snprintf(line, sizeof line, "-%s %s %s program -n 7", rows[i].name,
                 rows[i].values > 0 ? (is_file ? hosts : value) : "", rows[i].values > 1 ? "1" : "");
        int rc = parse(&options, line);
        if (rows[i].kind == TB_OPTION_REFUSED) {
            assert_int_equal(rc, TB_ERR_ARGUMENT);
            assert_non_null(strstr(tb_error_story(), rows[i].text));
        } else if (rc != TB_OK) {
            fail_msg("%s: %s", line, tb_error_story());
        } else if (options.action == TB_OPTIONS_RUN) {
            assert_int_equal(options.section_count, 1);
            assert_string_equal(options.sections[0].arguments[0], "program");
            assert_int_equal(options.sections[0].argument_count, 3);
            bool is_told = rows[i].kind == TB_OPTION_IGNORED || rows[i].option == TB_OPTION_MCA;
            assert_int_equal(*options.ignored != 0, is_told);
        }
        tb_options_close(&options);
    }
    unlink(hosts);
}

static void places_are_counted(void **state)
{
    static const struct {
        const char *line, *map;
    } cases[] = {
        {"-ppn 2 -H a:4,b:4 x", "a: ranks 0-1\n  host b: ranks 2-3"},
        {"-n 3 -N 2 -H a,b x", "a: ranks 0-1\n  host b: rank 2"},
        {"--pernode -H a:4,b:4 x", "a: rank 0\n  host b: rank 1"},
        {"--map-by ppr:3:node -H a,b x", "a: ranks 0-2\n  host b: ranks 3-5"},
        {"-n 3 --map-by node -H a:2,b:2 x", "a: ranks 0,2\n  host b: rank 1"},
        {"-n 3 --map-by core:OVERSUBSCRIBE -H a:2,b:2 x", "a: ranks 0-1\n  host b: rank 2"},
        {"-n 5 -rr -H a:2,b:2 x", "a: ranks 0,2,4\n  host b: ranks 1,3"},
        {"--map-by seq -H a,b,a x", "a: ranks 0,2\n  host b: rank 1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tb_options options;
        struct tb_placement placement;
        assert_int_equal(parse(&options, cases[i].line), TB_OK);
        assert_int_equal(tb_placement_make(&placement, &options), TB_OK);
        char *map = tb_placement_print(&placement);
        assert_non_null(map);
        if (strstr(map, cases[i].map) == NULL)
            fail_msg("%s: %s", cases[i].line, map);
        free(map);
        tb_placement_close(&placement);
        tb_options_close(&options);
    }
}

static void too_many_ranks_are_refused(void **state)
{
    static const char *const lines[] = {"-n 5 --nooversubscribe -H a:2,b:2 x",
                                        "-n 5 --map-by node:NOOVERSUBSCRIBE -H a:2,b:2 x",
                                        "-n 5 --map cluster --nooversubscribe -H a:2,b:2 x", "--nolocal -n 1 x"};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        struct tb_options options;
        struct tb_placement placement;
        assert_int_equal(parse(&options, lines[i]), TB_OK);
        assert_int_equal(tb_placement_make(&placement, &options), TB_ERR_ARGUMENT);
        tb_options_close(&options);
    }
}

static void host_files_of_others(void **state)
{
    struct tb_host_list list = {0};
    assert_int_equal(
        tb_host_list_read(&list, "a 2\nb slots=2 max_slots=4\nc max-slots=3\nkate@d:3 ifname=eth1\ne user=kate cpus=5",
                          "hosts"),
        TB_OK);
    assert_int_equal(list.entries[0].slots, 2);
    assert_int_equal(list.entries[1].most, 4);
    assert_int_equal(list.entries[2].most, 3);
    assert_int_equal(list.entries[2].slots, 1);
    assert_int_equal(list.entries[3].slots, 3);
    assert_string_equal(list.entries[4].user, "kate");
    assert_int_equal(list.entries[4].slots, 5);
    assert_int_equal(tb_host_list_read(&list, "rank 0=a slot=1", "hosts"), TB_ERR_ARGUMENT);
    assert_non_null(strstr(tb_error_story(), "--rankfile"));
    tb_host_list_close(&list);

    const char *hosts = file_of("a slots=1 max_slots=2\n");
    char line[128];
    struct tb_options options;
    struct tb_placement placement;
    snprintf(line, sizeof line, "-n 3 -f %s x", hosts);
    assert_int_equal(parse(&options, line), TB_OK);
    assert_int_equal(tb_placement_make(&placement, &options), TB_ERR_ARGUMENT);
    assert_non_null(strstr(tb_error_story(), "takes 2 ranks at most"));
    tb_options_close(&options);
    unlink(hosts);
}

static void rank_files(void **state)
{
    static const struct {
        const char *text, *story;
    } wrong[] = {{"rank 0=a slot=0\nrank 0=a slot=1\n", ":2: rank 0 has been placed"},
                 {"rank 1=a slot=0\n", "where rank 0 goes"},
                 {"rank 0=+n3 slot=0\n", ":1: +n3"},
                 {"rank 0=a slot=0:1\n", "numbers of processors"},
                 {"rank x=a\n", ":1: expected"},
                 {"# nothing\n", "places no rank"}};
    struct tb_options options;
    struct tb_placement placement;
    char line[128];
    const char *path = file_of("# places\nrank 1=b slot=1,p3\n\nrank 0 = a slots = 0-2 # first\nrank 2=+n0\n");
    snprintf(line, sizeof line, "--rankfile %s x", path);
    assert_int_equal(parse(&options, line), TB_OK);
    unlink(path);
    assert_int_equal(options.rank_file.count, 3);
    assert_string_equal(options.rank_file.places[0].cpus, "0-2");
    assert_string_equal(options.rank_file.places[1].cpus, "1,p3");
    assert_null(options.rank_file.places[2].cpus);
    assert_int_equal(tb_placement_make(&placement, &options), TB_OK);
    assert_int_equal(placement.book.ranks, 3);
    assert_string_equal(placement.book.hosts[tb_address_book_host_of(&placement.book, 0)].name, "a");
    assert_string_equal(placement.book.hosts[tb_address_book_host_of(&placement.book, 1)].name, "b");
    assert_string_equal(placement.book.hosts[tb_address_book_host_of(&placement.book, 2)].name, "b");
    tb_placement_close(&placement);
    tb_options_close(&options);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        path = file_of(wrong[i].text);
        snprintf(line, sizeof line, "--rankfile %s x", path);
        assert_int_equal(parse(&options, line), TB_ERR_ARGUMENT);
        if (strstr(tb_error_story(), wrong[i].story) == NULL)
            fail_msg("%s: %s", wrong[i].text, tb_error_story());
        tb_options_close(&options);
        unlink(path);
    }
}

/* Hosts are those of the grid file, however the rankfile orders them. */
static void rank_files_beside_grids(void **state)
{
    static const char *const names[] = {"c", "a", "b"};
    struct tb_options options;
    struct tb_placement placement;
    char line[128];
    const char *path = file_of("rank 0=c\nrank 1=a\nrank 2=b\n");
    snprintf(line, sizeof line, "--grid g.yaml --rankfile %s x", path);
    assert_int_equal(parse(&options, line), TB_OK);
    unlink(path);
    assert_int_equal(tb_host_list_parse(&options.hosts, "a:1,b:1,c:1", "the grid"), TB_OK);
    assert_int_equal(tb_placement_make(&placement, &options), TB_OK);
    assert_int_equal(placement.book.ranks, 3);
    for (uint32_t rank = 0; rank < 3; rank++)
        assert_string_equal(placement.book.hosts[tb_address_book_host_of(&placement.book, rank)].name, names[rank]);
    tb_placement_close(&placement);
    options.hosts.entries[1].slots = 0; /* missing */
    assert_int_equal(tb_placement_make(&placement, &options), TB_ERR_ARGUMENT);
    assert_non_null(strstr(tb_error_story(), "wants rank 2 on host b"));
    tb_options_close(&options);
}

static void config_files(void **state)
{
    struct tb_options options;
    char line[128];
    const char *path = file_of("# two programs\n-n 2 -x A=1 first 'a b' \"c\\\"d\"\n\n  -n 3 second e\\ f\n");
    snprintf(line, sizeof line, "-genv B 2 -configfile %s", path);
    assert_int_equal(parse(&options, line), TB_OK);
    assert_int_equal(options.section_count, 2);
    assert_int_equal(options.sections[0].count, 2);
    assert_string_equal(options.sections[0].arguments[1], "a b");
    assert_string_equal(options.sections[0].arguments[2], "c\"d");
    assert_string_equal(options.sections[1].arguments[1], "e f");
    assert_int_equal(options.sections[1].count, 3);
    assert_string_equal(options.sections[1].variables[0], "B=2");
    tb_options_close(&options);
    snprintf(line, sizeof line, "-configfile %s more", path);
    assert_int_equal(parse(&options, line), TB_ERR_ARGUMENT);
    tb_options_close(&options);
    unlink(path);
    static const char *const wrong[] = {"-n 1 'x\n", "\n# nothing\n"};
    for (size_t i = 0; i < 2; i++) {
        path = file_of(wrong[i]);
        snprintf(line, sizeof line, "-configfile %s", path);
        assert_int_equal(parse(&options, line), TB_ERR_ARGUMENT);
        tb_options_close(&options);
        unlink(path);
    }
}

static void words_of_others(void **state)
{
    struct tb_options options;
    assert_int_equal(parse(&options, "--bind-to core:2:overload-allowed --map-by slot:PE=3 -genv A=1 --prefix /opt/t "
                                     "--output-filename out:nocopy,nojobid --merge-stderr-to-stdout --stdin none x"),
                     TB_OK);
    assert_int_equal(options.bind, TB_BIND_CORE);
    assert_int_equal(options.bind_width, 3);
    assert_string_equal(options.sections[0].variables[0], "A=1");
    assert_string_equal(options.program, "/opt/t/bin/tombolo");
    assert_string_equal(options.output.files[0], "out/rank.%0/stdout");
    assert_false(options.output.beside);
    assert_true(options.output.merged);
    assert_int_equal(options.input_rank, TB_RANK_NONE);
    tb_options_close(&options);
    assert_int_equal(parse(&options, "--grid g.yaml -H a:2,b x"), TB_OK); /* chooses among the hosts of the grid */
    assert_int_equal(options.hosts.count, 0);
    assert_int_equal(options.chosen.count, 2);
    tb_options_close(&options);
    assert_int_equal(parse(&options, "--mca btl self --mca pml ob1 --mca btl self --mca btl_tcp_if_exclude lo x"),
                     TB_OK);
    assert_string_equal(options.ignored, "--mca btl, --mca pml");
    assert_string_equal(tb_param.interfaces, "^lo");
    tb_options_close(&options);
    static const char *const wrong[] = {"--bind-to moon x", "--bind-to core:x x",    "--map-by ppr:2:socket x",
                                        "--map-by moon x",  "--map-by slot:WILD x",  "--rank-by node x",
                                        "--stdin all x",    "--stdin -1 x",          "--output moon x",
                                        "-ppn 0 x",         "--launcher slurm x",    "--output-filename :nocopy x",
                                        "--display topo x", "--stream-buffering 3 x"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        if (parse(&options, wrong[i]) == TB_OK)
            fail_msg("accepted: %s", wrong[i]);
        tb_options_close(&options);
    }
}

static void environments(void **state)
{
    struct tb_options options;
    setenv("TB_TEST_ONE", "1", 1);
    setenv("TB_TEST_TWO", "2", 1);
    setenv("SSH_TEST", "no", 1);
    assert_int_equal(parse(&options, "-x TB_TEST_* x"), TB_OK);
    assert_int_equal(options.sections[0].variable_count, 2);
    tb_options_close(&options);
    assert_int_equal(parse(&options, "-genvlist TB_TEST_ONE,TB_TEST_NONE x : y"), TB_OK);
    assert_int_equal(options.sections[1].variable_count, 1);
    assert_string_equal(options.sections[1].variables[0], "TB_TEST_ONE=1");
    tb_options_close(&options);
    assert_int_equal(parse(&options, "-genvall -x TB_TEST_ONE=3 x"), TB_OK);
    assert_true(tb_variables_has(&options.sections[0], "TB_TEST_TWO=2"));
    assert_false(tb_variables_has(&options.sections[0], "SSH_TEST=no"));
    uint32_t ones = 0;
    for (uint32_t i = 0; i < options.sections[0].variable_count; i++)
        ones += strncmp(options.sections[0].variables[i], "TB_TEST_ONE=", 12) == 0;
    assert_int_equal(ones, 1);
    tb_options_close(&options);
    assert_int_equal(parse(&options, "-genvnone x"), TB_OK);
    assert_true(options.sections[0].bare);
    tb_options_close(&options);
}

/* A search path may be as long as it likes. */
static void a_long_path_is_whole(void **state)
{
    struct tb_options options;
    static char path[20000];
    memset(path, 'p', sizeof path - 1);
    memcpy(path + sizeof path - 6, "/last", 6);
    const char *before = getenv("PATH");
    char *kept = strdup(before != NULL ? before : "");
    setenv("PATH", path, 1);
    assert_int_equal(parse(&options, "-path /first prog"), TB_OK);
    const char *made = options.sections[0].variables[0];
    assert_int_equal(strlen(made), strlen("PATH=/first:") + strlen(path));
    assert_memory_equal(made, "PATH=/first:ppp", 15);
    assert_string_equal(made + strlen(made) - 5, "/last");
    setenv("PATH", kept, 1);
    free(kept);
    tb_options_close(&options);
}

/* Each program is told its own, in its environment. */
static void hints_of_the_start(void **state)
{
    struct tb_options options;
    assert_int_equal(
        parse(&options, "-initial-errhandler mpi_errors_return -usize 9 a : -memory-alloc-kinds=mpi,x:y b"), TB_OK);
    assert_int_equal(options.sections[0].variable_count, 1);
    assert_string_equal(options.sections[0].variables[0], "TOMBOLO_INITIAL_ERRHANDLER=mpi_errors_return");
    assert_int_equal(options.sections[1].variable_count, 1);
    assert_string_equal(options.sections[1].variables[0], "TOMBOLO_MEMORY_ALLOC_KINDS=mpi,x:y");
    assert_int_equal(options.universe, 9);
    tb_options_close(&options);
    assert_int_equal(parse(&options, "-usize infinite a"), TB_OK);
    assert_int_equal(options.universe, TB_UNIVERSE_INFINITE);
    tb_options_close(&options);
    assert_int_equal(parse(&options, "-usize 5 --usize=SYSTEM a"), TB_OK);
    assert_int_equal(options.universe, 0);
    tb_options_close(&options);
    static const struct {
        const char *line, *story;
    } wrong[] = {
        {"-initial-errhandler MPI_ERRORS_RETURN a",
         "-initial-errhandler MPI_ERRORS_RETURN: should be mpi_errors_are_fatal"},
        {"-initial-errhandler= a", "should be mpi_errors_are_fatal"},
        {"-memory-alloc-kinds mpi,,system a", "-memory-alloc-kinds mpi,,system: should be kinds of memory"},
        {"-usize 0 a", "-usize 0: should be a number"},
        {"-usize -1 a", "SYSTEM or INFINITE"},
        {"-usize many a", "SYSTEM or INFINITE"},
        {"-usize 1048577 a", "between 1 and 1048576"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_int_equal(parse(&options, wrong[i].line), TB_ERR_ARGUMENT);
        assert_non_null(strstr(tb_error_story(), wrong[i].story));
        tb_options_close(&options);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_option_takes_its_values),
        cmocka_unit_test(places_are_counted),
        cmocka_unit_test(too_many_ranks_are_refused),
        cmocka_unit_test(host_files_of_others),
        cmocka_unit_test(rank_files),
        cmocka_unit_test(rank_files_beside_grids),
        cmocka_unit_test(config_files),
        cmocka_unit_test(words_of_others),
        cmocka_unit_test(environments),
        cmocka_unit_test(a_long_path_is_whole),
        cmocka_unit_test(hints_of_the_start),
    };
    return tb_param_load() == TB_OK ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
}

#include "launch/job_plan.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- hosts ------------------------------------------------------------------------------------------------------- */

static void lists_are_parsed(void **state)
{
    struct tb_host_list list = {0};
    assert_int_equal(tb_host_list_parse(&list, "h1:4,kate@h2,[fe80::1]:2,fe80::2,h1:3", "-H"), TB_OK);
    assert_int_equal(list.count, 4);
    assert_string_equal(list.entries[0].name, "h1");
    assert_int_equal(list.entries[0].slots, 7); /* named twice */
    assert_string_equal(list.entries[1].user, "kate");
    assert_string_equal(list.entries[1].name, "h2");
    assert_int_equal(list.entries[1].slots, 1);
    assert_string_equal(list.entries[2].name, "fe80::1");
    assert_int_equal(list.entries[2].slots, 2);
    assert_string_equal(list.entries[3].name, "fe80::2");
    assert_int_equal(tb_host_list_find(&list, "h2", NULL, 0), 1);
    assert_int_equal(tb_host_list_find(&list, "h3", NULL, 0), -1);
    tb_host_list_close(&list);
}

/* The same name with another user or port leads to another machine, or at least to another account. */
static void hosts_differ_by_user_and_port(void **state)
{
    struct tb_host_list list = {0};
    assert_int_equal(tb_host_list_parse(&list, "h1:1,kate@h1:2,joe@h1:3,kate@h1:4", "-H"), TB_OK);
    assert_int_equal(list.count, 3);
    assert_int_equal(list.entries[1].slots, 6);
    assert_int_equal(tb_host_list_read(&list, "h1 port=2201\nh1 slots=2 port=2202\nh1 port=2201\nh1\n", "hosts"),
                     TB_OK);
    assert_int_equal(list.count, 5);
    assert_int_equal(list.entries[0].slots, 2);
    assert_int_equal(list.entries[3].port, 2201);
    assert_int_equal(list.entries[3].slots, 2);
    assert_int_equal(list.entries[4].slots, 2);
    assert_int_equal(tb_host_list_find(&list, "h1", NULL, 0), 0);
    assert_int_equal(tb_host_list_find(&list, "h1", "joe", 0), 2);
    assert_int_equal(tb_host_list_find(&list, "h1", NULL, 2202), 4);
    assert_int_equal(tb_host_list_find(&list, "h1", "eve", 0), -1);
    tb_host_list_close(&list);
}

/* As many hosts as a job may have are read, and one more is refused by name. */
static void a_long_host_file(void **state)
{
    struct tb_host_list list = {0};
    char *text = NULL;
    size_t length = 0;
    FILE *to = open_memstream(&text, &length);
    for (uint32_t i = 0; i < TB_JOB_HOSTS_LIMIT; i++)
        fprintf(to, "node%u slots=2\n", i);
    assert_int_equal(fclose(to), 0);
    assert_int_equal(tb_host_list_read(&list, text, "hosts"), TB_OK);
    assert_int_equal(list.count, TB_JOB_HOSTS_LIMIT);
    assert_int_equal(list.entries[TB_JOB_HOSTS_LIMIT - 1].slots, 2);
    assert_int_equal(tb_host_list_find(&list, "node4711", NULL, 0), 4711);
    assert_int_equal(tb_host_list_parse(&list, "another", "-H"), TB_ERR_LIMIT);
    assert_string_equal(tb_error_story(), "more than 65536 hosts");
    tb_host_list_close(&list);
    free(text);
}

static void timeout_comes_from_the_environment(void **state)
{
    static char *plain[] = {(char *)"true", NULL}, *given[] = {(char *)"--timeout", (char *)"2", (char *)"true", NULL};
    static const struct {
        const char *value;
        int rc;
        uint64_t timeout;
    } cases[] = {
        {"1.5", TB_OK, 1500000000u}, {"0", TB_OK, 0}, {"-1", TB_OK, 0}, {"", TB_OK, 0}, {"soon", TB_ERR_ARGUMENT, 0},
        {"nan", TB_ERR_ARGUMENT, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tb_options options = {0};
        setenv("MPIEXEC_TIMEOUT", cases[i].value, 1);
        assert_int_equal(tb_options_parse(&options, plain), cases[i].rc);
        assert_int_equal(options.timeout, cases[i].timeout);
        tb_options_close(&options);
        assert_int_equal(tb_options_parse(&options, given), TB_OK); /* the option wins */
        assert_int_equal(options.timeout, 2000000000u);
        tb_options_close(&options);
    }
    unsetenv("MPIEXEC_TIMEOUT");
}

static void bad_lists_are_refused(void **state)
{
    static const char *const bad[] = {"",     ",",       "h1,",   "h1:",   "h1:-1", "h1:x",   "h1:99999999999",
                                      "@h1",  "kate@",   "-oX=y", "-x@h1", "[::1",  "[::1]2", ":4",
                                      "a\"b", "k\"e@h1", "a b",   "a\nb"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct tb_host_list list = {0};
        if (tb_host_list_parse(&list, bad[i], "-H") == TB_OK)
            fail_msg("accepted: %s", bad[i]);
        tb_host_list_close(&list);
    }
}

static void files_are_read(void **state)
{
    static const char text[] = "# the cluster\n"
                               "\n"
                               "venus1 slots=4 cluster=venus site=delft   # comment\r\n"
                               "  venus2:2\tport=2222\n"
                               "kate@mars1 cluster=mars\n"
                               "mars2:3 slots=5";
    struct tb_host_list list = {0};
    assert_int_equal(tb_host_list_read(&list, text, "hosts"), TB_OK);
    assert_int_equal(list.count, 4);
    assert_int_equal(list.entries[0].slots, 4);
    assert_string_equal(list.entries[0].cluster, "venus");
    assert_string_equal(list.entries[0].site, "delft");
    assert_string_equal(list.entries[1].site, "");
    assert_int_equal(list.entries[1].slots, 2);
    assert_int_equal(list.entries[1].port, 2222);
    assert_string_equal(list.entries[2].user, "kate");
    assert_string_equal(list.entries[2].cluster, "mars");
    assert_int_equal(list.entries[3].slots, 5);
    tb_host_list_close(&list);
}

static void errors_name_file_and_line(void **state)
{
    static const char *const bad[] = {
        "a\nb slots=-1\n", "a\nb slots=\n", "a\nb port=70000\n",  "a\nb color=red\n",   "a\nb cluster=\n",
        "a\nb:x\n",        "a\nb slots\n",  "a\nb cluster=\"x\n", "a\nb cluster=a:b\n", "a\nb cluster=-a\n",
        "a\nb site=\n",    "a\nb site\n",   "a\nb site=a/b\n",    "a\nb site=.a\n"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct tb_host_list list = {0};
        assert_int_equal(tb_host_list_read(&list, bad[i], "hosts"), TB_ERR_ARGUMENT);
        assert_non_null(strstr(tb_error_story(), "hosts:2:"));
        tb_host_list_close(&list);
    }
    struct tb_host_list list = {0};
    assert_int_not_equal(tb_host_list_load(&list, "/no/such/file"), TB_OK);
    assert_int_not_equal(tb_host_list_load(&list, "/dev/null"), TB_OK);
    assert_non_null(strstr(tb_error_story(), "names no host"));
    assert_int_not_equal(tb_host_list_load(&list, "/proc/self/exe"), TB_OK);
    tb_host_list_close(&list);
}

/* ---- options and placement --------------------------------------------------------------------------------------- */

/* Splits at blanks. */
static char **split(const char *line, char *room, char **words)
{
    size_t n = 0;
    char *rest = NULL;
    snprintf(room, 1024, "%s", line);
    for (char *word = strtok_r(room, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest))
        words[n++] = word;
    words[n] = NULL;
    return words;
}

static int parse(struct tb_options *options, const char *line)
{
    static char room[1024], *words[64];
    *options = (struct tb_options){.name = "mpiexec"};
    return tb_options_parse(options, split(line, room, words));
}

static void options_are_understood(void **state)
{
    struct tb_options options;
    setenv("TB_TEST_VARIABLE", "here", 1);
    assert_int_equal(parse(&options, "-np 3 --host=a:2,b -x TB_TEST_VARIABLE -x B=c -env D e --wdir / --timeout 2.5 "
                                     "--tag-output --bind core --launcher rsh --set log=info --map node prog -n 7 : x"),
                     TB_OK);
    assert_int_equal(options.section_count, 2);
    assert_int_equal(options.sections[0].count, 3);
    assert_int_equal(options.sections[0].argument_count, 3); /* options behind the program are the program's */
    assert_string_equal(options.sections[0].arguments[2], "7");
    assert_string_equal(options.sections[0].variables[0], "TB_TEST_VARIABLE=here");
    assert_string_equal(options.sections[0].variables[1], "B=c");
    assert_string_equal(options.sections[0].variables[2], "D=e");
    assert_string_equal(options.sections[0].directory, "/");
    assert_int_equal(options.timeout, 2500000000u);
    assert_true(options.output.tags);
    assert_int_equal(options.bind, TB_BIND_CORE);
    assert_int_equal(options.map, TB_MAP_NODE);
    assert_string_equal(options.launcher, "rsh");
    assert_int_equal(options.hosts.count, 2);
    assert_string_equal(tb_param.log, "info");
    assert_string_equal(getenv("TOMBOLO_LOG"), "info");
    tb_options_close(&options);
    assert_int_equal(parse(&options, "--help --nonsense"), TB_OK);
    assert_int_equal(options.action, TB_OPTIONS_HELP);
    tb_options_close(&options);
    assert_int_equal(parse(&options, "-n 1 -- -strange-name"), TB_OK);
    assert_string_equal(options.sections[0].arguments[0], "-strange-name");
    tb_options_close(&options);
}

static void encryption_is_chosen(void **state)
{
    struct tb_options options;
    assert_int_equal(tb_param_load(), TB_OK);
    assert_int_equal(parse(&options, "--encrypt all x"), TB_OK);
    assert_true(tb_param_encrypts_all());
    tb_options_close(&options);
    assert_int_equal(parse(&options, "--set gateway_tls=no x"), TB_ERR_ARGUMENT);
    assert_string_equal(tb_error_story(), "--encrypt all and gateway_tls=no contradict each other");
    tb_options_close(&options);
    assert_int_equal(parse(&options, "--encrypt clusters x"), TB_OK);
    assert_false(tb_param_encrypts_all());
    tb_options_close(&options);
    assert_int_equal(parse(&options, "--set encrypt=some x"), TB_ERR_ARGUMENT);
    assert_string_equal(tb_error_story(), "--encrypt some: should be clusters or all");
    tb_options_close(&options);
    assert_int_equal(parse(&options, "--set encrypt=clusters --set mcast=on x"), TB_ERR_ARGUMENT);
    assert_string_equal(tb_error_story(), "mcast=on: should be auto or off");
    tb_options_close(&options);
    assert_int_equal(parse(&options, "--set mcast=auto --set mcast_check=crc x"), TB_ERR_ARGUMENT);
    assert_string_equal(tb_error_story(), "mcast_check=crc: should be siphash or none");
    tb_options_close(&options);
    assert_int_equal(parse(&options, "--set mcast_check=none --set mcast_largest=64k --set mcast_delay=20us x"), TB_OK);
    assert_false(tb_param_checks_multicast());
    assert_int_equal(tb_param.mcast_largest, 65536);
    assert_int_equal(tb_param.mcast_delay, 20000);
    tb_options_close(&options);
    unsetenv("TOMBOLO_MCAST");
    unsetenv("TOMBOLO_MCAST_CHECK");
    unsetenv("TOMBOLO_MCAST_LARGEST");
    unsetenv("TOMBOLO_MCAST_DELAY");
    unsetenv("TOMBOLO_ENCRYPT");
    unsetenv("TOMBOLO_GATEWAY_TLS");
    assert_int_equal(tb_param_load(), TB_OK);
}

static void variables_for_all(void **state)
{
    struct tb_options options;
    assert_int_equal(parse(&options, "-genv A 1 -genv B 1 -env C 1 x : -env A 2 -genv B 2 y"), TB_OK);
    assert_int_equal(options.sections[0].variable_count, 3);
    assert_string_equal(options.sections[0].variables[0], "C=1");
    assert_string_equal(options.sections[0].variables[1], "B=2");
    assert_string_equal(options.sections[0].variables[2], "A=1");
    assert_int_equal(options.sections[1].variable_count, 2);
    assert_string_equal(options.sections[1].variables[0], "A=2");
    assert_string_equal(options.sections[1].variables[1], "B=2");
    tb_options_close(&options);
}

static void wrong_options_are_refused(void **state)
{
    static const char *const bad[] = {"",
                                      "-n 4",
                                      "-n",
                                      "-n 0 x",
                                      "-n -1 x",
                                      "-n 4x x",
                                      "-n 1048577 x",
                                      "-n 99999999999999999999 x",
                                      "--nonsense x",
                                      "--timeout 0 x",
                                      "--timeout nan x",
                                      "--timeout 1s x",
                                      "--bind everything x",
                                      "--map everywhere x",
                                      "--set log x",
                                      "--set heartbeat=often x",
                                      "--set =1 x",
                                      "-x TB_TEST_NO_SUCH_VARIABLE x",
                                      "-x =1 x",
                                      "--tag-output=yes x",
                                      "--wdir no/such/directory x",
                                      "--hostfile /no/such/file x",
                                      "x :",
                                      ": x",
                                      "-H a: x",
                                      "--lab",
                                      "--lab g.yaml --launcher rsh x",
                                      "--lab g.yaml -H a x : -H b y"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct tb_options options;
        if (parse(&options, bad[i]) == TB_OK)
            fail_msg("accepted: %s", bad[i]);
        tb_options_close(&options);
    }
    struct tb_options options = {0};
    char *nameless[] = {(char *)"-n", (char *)"1", (char *)"", NULL};
    assert_int_equal(tb_options_parse(&options, nameless), TB_ERR_ARGUMENT);
    assert_non_null(strstr(tb_error_story(), "empty"));
    tb_options_close(&options);
}

/* "0011" says the host of each rank. */
static void check_places(const char *line, const char *expected)
{
    struct tb_options options;
    struct tb_placement placement;
    char got[256] = "";
    assert_int_equal(parse(&options, line), TB_OK);
    assert_int_equal(tb_placement_make(&placement, &options), TB_OK);
    for (uint32_t rank = 0; rank < placement.book.ranks; rank++)
        snprintf(got + rank, 2, "%u", tb_address_book_host_of(&placement.book, rank));
    assert_string_equal(got, expected);
    /* Whatever was placed is a book that an agent accepts. */
    struct tb_writer w;
    struct tb_reader r;
    struct tb_address_book book;
    struct tb_job_plan plan = {.options = &options, .placement = placement};
    struct tb_cost_head *costs;
    assert_int_equal(tb_job_plan_make_costs(&plan, &costs), TB_OK);
    free(costs);
    placement = plan.placement;
    placement.book.job = 1;
    tb_writer_open(&w);
    assert_int_equal(tb_address_book_encode(&placement.book, &w), TB_OK);
    tb_reader_open(&r, w.bytes, w.length);
    assert_int_equal(tb_address_book_decode(&book, &r), TB_OK);
    tb_address_book_close(&book);
    tb_writer_close(&w);
    tb_placement_close(&placement);
    tb_options_close(&options);
}

static void ranks_are_placed(void **state)
{
    check_places("-n 1 x", "0");
    check_places("-H a:0,b:2,c:0 x", "00");
    check_places("-H a:0,b:1 -n 2 --map node x", "00");
    check_places("-n 4 x", "0000");
    check_places("-H a:2,b:2 x", "0011");
    check_places("-H a:2,b:2 -n 3 x", "001");
    check_places("-H a:2,b:1 -n 7 x", "0010010");
    check_places("-H a:2,b:2 --map node x", "0101");
    check_places("-H a:3,b:1 --map node -n 6 x", "010001");
    check_places("-H a,b -n 1 x : -n 3 y", "0101");
    check_places("-n 2 -H a:2 x : -n 2 -H b:4 y", "0011");
    check_places("-H a:2 x : -H b:2,a:1 y", "00110");
    check_places("x : -n 2 y", "000");
    /* With and without a user, an entry may be one host of the list of all. */
    check_places("-n 1 -H u@a,a,u@b,b,u@c,c,u@d,d x : -n 1 -H u@a y", "00");
}

/* The hosts of a grid, with cluster and site, those without slots left out of the job. */
static void ranks_are_placed_on_a_grid(void **state)
{
    struct tb_options options;
    struct tb_placement placement;
    struct tb_grid_site sites[] = {{.name = "delft"}};
    struct tb_grid_cluster clusters[] = {{.name = "venus", .site = 0}, {.name = "lonely", .site = TB_GRID_NONE}};
    struct tb_grid_host hosts[] = {
        {.name = "venus1"}, {.name = "venus2", .slots = 2}, {.name = "l1", .slots = 1, .cluster = 1}};
    struct tb_grid grid = {
        .site_count = 1, .cluster_count = 2, .host_count = 3, .sites = sites, .clusters = clusters, .hosts = hosts};
    assert_int_equal(parse(&options, "--lab g.yaml x"), TB_OK);
    assert_string_equal(options.lab, "g.yaml");
    assert_int_equal(tb_host_list_take(&options.hosts, &grid, NULL), TB_OK);
    assert_int_equal(tb_placement_make(&placement, &options), TB_OK);
    assert_int_equal(placement.book.ranks, 3);
    assert_int_equal(placement.book.host_count, 2);
    assert_string_equal(placement.book.hosts[0].name, "venus2");
    assert_string_equal(placement.wheres[0].cluster, "venus");
    assert_string_equal(placement.wheres[0].site, "delft");
    assert_string_equal(placement.wheres[1].cluster, "lonely");
    assert_string_equal(placement.wheres[1].site, "");
    tb_placement_close(&placement);
    tb_options_close(&options);
}

static void check_universe(const char *line, uint32_t expected)
{
    struct tb_options options;
    struct tb_placement placement;
    assert_int_equal(parse(&options, line), TB_OK);
    assert_int_equal(tb_placement_make(&placement, &options), TB_OK);
    assert_int_equal(placement.book.universe, expected);
    tb_placement_close(&placement);
    tb_options_close(&options);
}

/* Room for processes that are started later, on the hosts of the job. */
static void slots_are_counted(void **state)
{
    cpu_set_t cpus;
    assert_int_equal(sched_getaffinity(0, sizeof cpus, &cpus), 0);
    uint32_t here = (uint32_t)CPU_COUNT(&cpus);
    check_universe("-n 1 x", here);
    check_universe("-n 900 x", here > 900 ? here : 900);
    check_universe("-n 3 -H a:4,b:8 x", 4); /* b has none of them, and takes no part */
    check_universe("-n 5 -H a:4,b:8 x", 12);
    check_universe("-n 9 -H a,b x", 9);
    check_universe("-n 2 -H a:4,b --ppn 1 x", 2);
    check_universe("-n 1 -H a:4,b:8 -usize 30 x", 30);
}

static void check_spares(const char *line, uint32_t hosts, uint32_t spares)
{
    struct tb_options options;
    struct tb_placement placement;
    assert_int_equal(parse(&options, line), TB_OK);
    assert_int_equal(tb_placement_make(&placement, &options), TB_OK);
    assert_int_equal(placement.book.host_count, hosts);
    for (uint32_t i = 0; i < hosts; i++) {
        assert_int_equal(tb_placement_is_spare(&placement, i), i >= hosts - spares);
        assert_int_equal(placement.book.hosts[i].rank_count > 0, i < hosts - spares);
        assert_true(tb_placement_carries(&placement, i));
    }
    tb_placement_close(&placement);
    tb_options_close(&options);
}

/* As many as there has to be room on, in their order. */
static void hosts_without_ranks_take_part(void **state)
{
    check_spares("-n 1 -H a:4,b:8,c:2 x", 1, 0);
    check_spares("-n 1 -H a:4,b:8,c:2 -usize 4 x", 1, 0);
    check_spares("-n 1 -H a:4,b:8,c:2 -usize 5 x", 2, 1);
    check_spares("-n 1 -H a:4,b:8,c:2 -usize 13 x", 3, 2);
    check_spares("-n 1 -H a:4,b:8,c:2 -usize infinite x", 3, 2);
    check_spares("-n 5 -H a:4,b:0,c:2,d:1 -usize 7 x", 3, 1);
    check_spares("-n 1 -H a:4,b:8,c:2 --ppn 1 -usize 3 x", 3, 2);
    check_spares("-n 1 -usize 5000 x", 1, 0);
}

static void impossible_places_are_refused(void **state)
{
    struct tb_options options;
    struct tb_placement placement;
    assert_int_equal(parse(&options, "-n 1025 x"), TB_OK);
    assert_int_equal(tb_placement_make(&placement, &options), TB_ERR_LIMIT);
    tb_options_close(&options);
    assert_int_equal(parse(&options, "-n 1 -H a:0 x"), TB_OK);
    assert_int_equal(tb_placement_make(&placement, &options), TB_ERR_ARGUMENT);
    tb_options_close(&options);
    assert_int_equal(parse(&options, "-n 1048576 -H a,b x : -n 1 y"), TB_OK);
    assert_int_equal(tb_placement_make(&placement, &options), TB_ERR_LIMIT);
    tb_options_close(&options);
}

static void programs_keep_their_ranks(void **state)
{
    struct tb_options options;
    struct tb_placement placement;
    assert_int_equal(parse(&options, "-n 2 -x A=1 one two : -n 3 --wdir / three"), TB_OK);
    assert_int_equal(tb_placement_make(&placement, &options), TB_OK);
    assert_int_equal(placement.app_count, 2);
    assert_int_equal(placement.apps[1].first_rank, 2);
    assert_int_equal(placement.apps[1].ranks, 3);
    assert_string_equal(placement.apps[0].arguments[1], "two");
    assert_string_equal(placement.apps[0].variables[0], "A=1");
    assert_string_equal(placement.apps[1].directory, "/");
    assert_string_equal(placement.apps[0].directory, "");
    tb_placement_close(&placement);
    tb_options_close(&options);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_are_parsed),           cmocka_unit_test(hosts_differ_by_user_and_port),
        cmocka_unit_test(a_long_host_file),           cmocka_unit_test(timeout_comes_from_the_environment),
        cmocka_unit_test(bad_lists_are_refused),      cmocka_unit_test(files_are_read),
        cmocka_unit_test(errors_name_file_and_line),  cmocka_unit_test(options_are_understood),
        cmocka_unit_test(encryption_is_chosen),       cmocka_unit_test(variables_for_all),
        cmocka_unit_test(wrong_options_are_refused),  cmocka_unit_test(ranks_are_placed),
        cmocka_unit_test(ranks_are_placed_on_a_grid), cmocka_unit_test(impossible_places_are_refused),
        cmocka_unit_test(slots_are_counted),          cmocka_unit_test(hosts_without_ranks_take_part),
        cmocka_unit_test(programs_keep_their_ranks),
    };
    tb_param_load();
    return cmocka_run_group_tests(tests, NULL, NULL);
}

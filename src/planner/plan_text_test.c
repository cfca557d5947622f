/* Plans as texts and as images: what is read, written and read again, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/changed_bytes_test.h"
#include "base/failing_memory_test.h"
#include "planner/plan_image.h"
#include "planner/plan_text.h"

#define HOSTS "host a slots 2 in x/y\nhost b slots 1 in x/y\nhost c slots 4 in x\nhost d slots 1\n"
#define HEAD  "tombolo-plan 1\n" HOSTS /* of five lines */

static const char whole[] = "# a plan\n"
                            "tombolo-plan 1\n"
                            "  " HOSTS "\n"
                            "bcast bytes 1..1k root any # small ones\n"
                            "  use binomial\n"
                            "bcast bytes 64k root a\n"
                            "  use chain:8k\n"
                            "bcast bytes 1025..65535 root a\n"
                            "  piece 4k\n"
                            "  tree share 3\n"
                            "    a: c b\n"
                            "    c: d\n"
                            "  tree\n"
                            "    a: d\n"
                            "    d: b\n"
                            "    d: c\n"
                            "barrier\n"
                            "  tree\n"
                            "    c: a b d\n"
                            "gatherv root b\n"
                            "  use linear\n";

static int parse(struct tb_plan *plan, const char *text)
{
    return tb_plan_parse(plan, text, strlen(text), "p");
}

static void check_whole(const struct tb_plan *plan)
{
    assert_int_equal(plan->host_count, 4);
    assert_string_equal(plan->hosts[1].name, "b");
    assert_string_equal(plan->hosts[1].place, "x/y");
    assert_string_equal(plan->hosts[3].place, "");
    assert_int_equal(plan->hosts[2].slots, 4);
    assert_int_equal(plan->cell_count, 5);
    const struct tb_plan_cell *cells = plan->cells;
    assert_int_equal(cells[0].from, 1);
    assert_int_equal(cells[0].to, 1024);
    assert_int_equal(cells[0].root, TB_PLAN_ANY);
    assert_string_equal(cells[0].use.name, "binomial");
    assert_int_equal(cells[1].from, 65536);
    assert_int_equal(cells[1].to, 65536);
    assert_int_equal(cells[1].root, 0);
    assert_int_equal(cells[1].use.argument, 8192);
    const struct tb_forest *f = cells[2].trees;
    assert_int_equal(f->nodes, 4);
    assert_int_equal(f->root, 0);
    assert_int_equal(f->trees, 2);
    assert_int_equal(f->piece, 4096);
    assert_int_equal(f->shares[0], 3);
    assert_int_equal(f->shares[1], 1);
    static const uint32_t parents[] = {0, 0, 0, 2, 0, 3, 3, 0};
    assert_memory_equal(f->parents, parents, sizeof parents);
    static const uint32_t children[] = {2, 1, 3, 3, 1, 2};
    assert_memory_equal(f->children, children, sizeof children);
    assert_int_equal(cells[3].operation, TB_OPERATION_BARRIER);
    assert_int_equal(cells[3].trees->root, 2);
    assert_int_equal(cells[3].root, TB_PLAN_ANY);
    assert_int_equal(cells[4].operation, TB_OPERATION_GATHERV);
    assert_int_equal(cells[4].root, 1);
}

static void a_plan_is_read(void **state)
{
    struct tb_plan plan;
    assert_int_equal(parse(&plan, whole), TB_OK);
    check_whole(&plan);
    tb_plan_close(&plan);
    /* One host is its own tree; line ends of other systems, and none at the end, do not matter. */
    assert_int_equal(parse(&plan, "tombolo-plan 1\r\nhost a slots 1\r\nbcast bytes 0 root a\r\ntree"), TB_OK);
    assert_int_equal(plan.cells[0].trees->nodes, 1);
    tb_plan_close(&plan);
}

static char *written(const struct tb_plan *plan)
{
    char *text = NULL;
    size_t length;
    FILE *to = open_memstream(&text, &length);
    assert_non_null(to);
    assert_int_equal(tb_plan_write(plan, "a plan\nand more", to), TB_OK);
    assert_int_equal(fclose(to), 0);
    return text;
}

static void a_written_plan_is_read_back(void **state)
{
    struct tb_plan plan, again;
    assert_int_equal(parse(&plan, whole), TB_OK);
    plan.cells[2].time = 1234567;
    plan.cells[2].bound = 1000000;
    plan.cells[1].time = 5;
    char *text = written(&plan);
    assert_non_null(
        strstr(text, "# predicted 1.235 us; nothing takes less than 1.000 us\nbcast bytes 1025..65535 root a\n"));
    if (parse(&again, text) != TB_OK)
        fail_msg("%s\n%s", tb_error_story(), text);
    check_whole(&again);
    again.cells[2].time = 1234567;
    again.cells[2].bound = 1000000;
    again.cells[1].time = 5;
    char *twice = written(&again);
    assert_string_equal(text, twice);
    free(twice);
    free(text);
    tb_plan_close(&again);
    tb_plan_close(&plan);
}

/* Many children, so that their list is parted. */
static void a_large_plan_is_read_back(void **state)
{
    enum { MANY = 3000 };
    struct tb_plan plan = {0}, again;
    uint32_t parents[MANY];
    uint64_t order[MANY];
    char name[32];
    for (uint32_t i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "host-%u", i);
        assert_int_equal(tb_plan_add_host(&plan, name, "site/cluster", 1 + i % 3), TB_OK);
        parents[i] = i % 2 == 0 ? 0 : i - 1;
        order[i] = (i * 7919u) % MANY;
    }
    struct tb_plan_cell cell = {.operation = TB_OPERATION_BCAST, .from = 1, .to = 2, .root = 0};
    const struct tb_forest source = {.nodes = MANY, .trees = 1, .parents = parents};
    assert_int_equal(tb_forest_make(&cell.trees, &source, order), TB_OK);
    assert_int_equal(tb_plan_add_cell(&plan, &cell), TB_OK);
    char *text = written(&plan);
    if (parse(&again, text) != TB_OK)
        fail_msg("%s", tb_error_story());
    assert_memory_equal(again.cells[0].trees->children, plan.cells[0].trees->children, (MANY - 1) * sizeof(uint32_t));
    assert_true(tb_plan_digest(&again) == tb_plan_digest(&plan));
    void *image;
    size_t length;
    struct tb_plan_image view;
    assert_int_equal(tb_plan_image_make(&again, &image, &length), TB_OK);
    assert_int_equal(tb_plan_image_open(&view, image, length), TB_OK);
    free(image);
    free(text);
    tb_plan_close(&again);
    tb_plan_close(&plan);
}

static void what_is_wrong_is_named_with_its_line(void **state)
{
    static const struct {
        const char *text, *story;
    } bad[] = {
        {"", "p:1: this is no plan"},
        {"hello\n", "p:1: this is no plan"},
        {"\n\ntombolo-plan 2\n", "p:3: tombolo-plan: \"2\" should be 1, the only version"},
        {"tombolo-plan 1\ntombolo-plan 1\n", "p:2: tombolo-plan: it is there twice"},
        {"tombolo-plan 1 x\n", "p:1: \"x\" is too much"},
        {HEAD "digest 12\n", "p:6: digest: \"12\" should be 16 digits"},
        {HEAD "digest 0123456789abcdef\n", "p:6: digest: that of the hosts in this file is "},
        {"tombolo-plan 1\nhost a slots 0\n", "p:2: slots: \"0\" should be a number from 1"},
        {"tombolo-plan 1\nhost a slots 2 at x\n", "p:2: host: \"at\" should be \"in\""},
        {"tombolo-plan 1\nhost a slots 2 in\n", "p:2: in: its value is missing"},
        {"tombolo-plan 1\nhost\n", "p:2: host: its value is missing"},
        {"tombolo-plan 1\nhost a 3\n", "p:2: host: \"3\" should be \"slots\""},
        {HEAD "host a slots 1\n", "p:6: host a is there twice"},
        {"tombolo-plan 1\nbcast bytes 1\n", "p:2: the hosts are missing"},
        {"# a plan\ntombolo-plan 1\n\n", "p:3: the hosts are missing"},
        {"tombolo-plan 1\nhost any slots 1\n", "p:2: \"any\" cannot be the name"},
        {"tombolo-plan 1\nhost a\033[31m slots 1\n", "p:2: this is no text: there is a byte 27"},
        {"tombolo-plan 1\n# a\177\n", "p:2: this is no text: there is a byte 127"},
        {HEAD "cast bytes 1\n", "p:6: there is no operation \"cast\""},
        {HEAD "bcast\nuse binomial\n", "p:6: bytes: its value is missing"},
        {HEAD "bcast bytes 2..1\n", "p:6: bytes: \"1\" should be a number from 2"},
        {HEAD "bcast bytes -1\n", "p:6: bytes: \"-1\" should be"},
        {HEAD "bcast bytes 1 bytes 2\n", "p:6: bytes: it is there twice"},
        {HEAD "bcast bytes 1 size 2\n", "p:6: entry: \"size\" should be \"bytes\" or \"root\""},
        {HEAD "bcast bytes 1 root e\n", "p:6: root: \"e\" should be a host"},
        {HEAD "allreduce bytes 1 root a\n", "p:6: root: \"a\" should be any"},
        {HEAD "barrier bytes 1\n", "p:6: bytes: \"1\" should be 0"},
        {HEAD "bcast bytes 1\nbcast bytes 2\n", "p:6: what is to run is missing"},
        {HEAD "bcast bytes 1\nuse nothing\n", "p:7: MPI_Bcast has no algorithm \"nothing\""},
        {HEAD "bcast bytes 1\nuse planned\n", "p:7: use: what is planned are trees"},
        {HEAD "bcast bytes 1\nuse chain:x\n", "p:7: \"chain:x\""},
        {HEAD "bcast bytes 1\nuse binomial\nuse chain\n", "p:8: use: it is there twice"},
        {HEAD "bcast bytes 1\nuse binomial\npiece 3\n", "p:6: use: there are trees as well"},
        {HEAD "use binomial\n", "p:6: \"use\" belongs to an entry"},
        {HEAD "a: b\n", "p:6: \"a:\" belongs to an entry"},
        {HEAD "bcast bytes 1 root a\na: b\n", "p:7: a line `tree` should stand before"},
        {HEAD "bcast bytes 1\ntree\na: b c d\n", "p:6: root: trees need a host"},
        {HEAD "bcast bytes 1 root a\ntree share 0\n", "p:7: share: \"0\" should be"},
        {HEAD "bcast bytes 1 root a\ntree shape 1\n", "p:7: tree: \"shape\" should be"},
        {HEAD "alltoall bytes 1\ntree\n", "p:7: tree: MPI_Alltoall cannot go along trees"},
        {HEAD "bcast bytes 1 root a\ntree\na: b c\n", "p:7: tree: host d is missing"},
        {HEAD "bcast bytes 1 root a\ntree\na: b e\n", "p:8: tree: \"e\" should be a host"},
        {HEAD "bcast bytes 1 root a\ntree\nb: c d a\n", "p:7: tree: the root a is behind b"},
        {HEAD "bcast bytes 1 root a\ntree\na: b\nc: d\nd: c\n", "p:7: tree: it goes round in a circle: host c"},
        {HEAD "bcast bytes 1 root a\ntree\na: b\nb: b\n", "p:9: tree: host b is behind itself"},
        {HEAD "bcast bytes 1 root a\ntree\na: b c\nb: c d\n", "p:9: tree: host c is already behind a"},
        {HEAD "barrier\ntree\na: b\nc: d\n", "p:7: tree: hosts a and c are both behind no other"},
        {HEAD "barrier\ntree\na: b\nb: c\nc: d\nd: a\n", "p:7: tree: it goes round in a circle"},
        {HEAD "bcast bytes 1..9\nuse binomial\nbcast bytes 9..12\nuse binomial\n",
         "p:8: bytes: the sizes overlap those of line 6"},
        {HEAD "bcast bytes 1\nuse binomial\nhost e slots 1\n", "p:8: host: all hosts should stand before"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct tb_plan plan;
        int error = parse(&plan, bad[i].text);
        if (error == TB_OK || strncmp(tb_error_story(), bad[i].story, strlen(bad[i].story)) != 0)
            fail_msg("%s: \"%s\" instead of \"%s\"", bad[i].text, error == TB_OK ? "read" : tb_error_story(),
                     bad[i].story);
        tb_plan_close(&plan);
    }
}

static void files_that_cannot_be_read_are_named(void **state)
{
    struct tb_plan plan;
    assert_int_equal(tb_plan_load(&plan, "/nowhere/plan"), TB_ERR_SYSTEM);
    assert_non_null(strstr(tb_error_story(), "/nowhere/plan"));
    tb_plan_close(&plan);
    assert_int_equal(tb_plan_load(&plan, "/"), TB_ERR_SYSTEM);
    tb_plan_close(&plan);
    assert_int_equal(tb_plan_load(&plan, "/dev/zero"), TB_ERR_LIMIT);
    tb_plan_close(&plan);
    char name[] = "/tmp/tombolo-plan-XXXXXX";
    int descriptor = mkstemp(name);
    assert_true(descriptor >= 0);
    assert_int_equal(write(descriptor, whole, strlen(whole)), strlen(whole));
    close(descriptor);
    assert_int_equal(tb_plan_load(&plan, name), TB_OK);
    check_whole(&plan);
    tb_plan_close(&plan);
    unlink(name);
}

static int take_text(void *context, const uint8_t *bytes, size_t length, size_t piece)
{
    struct tb_plan plan;
    int error = tb_plan_parse(&plan, (const char *)bytes, length, "p");
    if (error == TB_OK) { /* what was read can be written, and is a plan */
        char *text = written(&plan);
        struct tb_plan again;
        if (parse(&again, text) != TB_OK)
            fail_msg("%s\n%s", tb_error_story(), text);
        tb_plan_close(&again);
        free(text);
    }
    tb_plan_close(&plan);
    return error;
}

static void changed_texts_do_no_harm(void **state)
{
    struct changed_bytes sweep = {
        .kind = "a plan", .take = take_text, .bytes = (const uint8_t *)whole, .length = strlen(whole)};
    changed_bytes_sweep(&sweep);
}

/* ---- images ------------------------------------------------------------------------------------------------------ */

static void an_image_has_what_the_text_says(void **state)
{
    struct tb_plan plan;
    struct tb_plan_image image;
    void *bytes;
    size_t length;
    assert_int_equal(parse(&plan, whole), TB_OK);
    assert_int_equal(tb_plan_image_make(&plan, &bytes, &length), TB_OK);
    assert_int_equal(tb_plan_image_open(&image, bytes, length), TB_OK);
    assert_true(image.head->digest == tb_plan_digest(&plan));
    const struct tb_plan_row *row = tb_plan_image_find(&image, TB_OPERATION_BCAST, TB_PLAN_ANY, 100);
    assert_string_equal(row->name, "binomial");
    assert_null(tb_plan_image_find(&image, TB_OPERATION_BCAST, TB_PLAN_ANY, 0));
    assert_null(tb_plan_image_find(&image, TB_OPERATION_BCAST, TB_PLAN_ANY, 2048));
    assert_null(tb_plan_image_find(&image, TB_OPERATION_BCAST, 1, 100));
    assert_null(tb_plan_image_find(&image, TB_OPERATION_REDUCE, TB_PLAN_ANY, 100));
    assert_string_equal(tb_plan_image_find(&image, TB_OPERATION_BCAST, 0, 65537)->name,
                        "chain"); /* of the same class */
    row = tb_plan_image_find(&image, TB_OPERATION_BCAST, 0, 5000);
    assert_int_equal(row->trees, 2);
    assert_int_equal(row->piece, 4096);
    assert_int_equal(image.numbers[row->first], 3);
    assert_int_equal(image.numbers[row->first + 2 + 3], 2); /* d is behind c */
    assert_non_null(tb_plan_image_find(&image, TB_OPERATION_BARRIER, TB_PLAN_ANY, 0));
    free(bytes);
    tb_plan_close(&plan);
}

/* In memory of its own, so that whoever looks behind its end is seen. */
static int take_image(void *context, const uint8_t *bytes, size_t length, size_t piece)
{
    struct tb_plan_image image;
    uint8_t *copy = malloc(length + 1);
    assert_non_null(copy);
    memcpy(copy, bytes, length);
    int error = tb_plan_image_open(&image, copy, length);
    for (int o = 0; o < TB_OPERATION_COUNT && error == TB_OK; o++)
        for (uint64_t size = 0; size < 1u << 20; size = 2 * size + 1)
            tb_plan_image_find(&image, (enum tb_operation)o, size % 5 == 4 ? TB_PLAN_ANY : (uint32_t)(size % 5), size);
    free(copy);
    return error;
}

static void changed_images_do_no_harm(void **state)
{
    struct tb_plan plan;
    void *bytes;
    size_t length;
    assert_int_equal(parse(&plan, whole), TB_OK);
    assert_int_equal(tb_plan_image_make(&plan, &bytes, &length), TB_OK);
    tb_plan_close(&plan);
    struct changed_bytes sweep = {.kind = "an image", .take = take_image, .bytes = bytes, .length = length};
    changed_bytes_sweep(&sweep);
    /* Each number of it, all bits of it, and its largest and smallest values. */
    static const uint64_t values[] = {0, 1, UINT32_MAX, UINT64_MAX, 1ull << 40, 65536};
    for (size_t at = 0; at + 8 <= length; at += 8)
        for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
            uint64_t before;
            memcpy(&before, (char *)bytes + at, sizeof before);
            memcpy((char *)bytes + at, &values[i], sizeof before);
            take_image(NULL, bytes, length, length);
            memcpy((char *)bytes + at, &before, sizeof before);
        }
    free(bytes);
}

/* A class of sizes, of which 1024 to 1279 are one, has one row, which is that of the smallest. */
static void sizes_of_a_class_have_one_row(void **state)
{
    static const struct {
        uint64_t bytes;
        uint64_t from; /* of the row; 0: there is none */
    } wanted[] = {{1, 1},         {1000, 1},     {1024, 1},     {1100, 1},      {1279, 1},
                  {1280, 1025},   {60000, 1025}, {70000, 1025}, {90000, 90000}, {85000, 90000},
                  {98303, 90000}, {98304, 0},    {0, 0}};
    struct tb_plan plan;
    void *bytes;
    size_t length;
    struct tb_plan_image image;
    assert_int_equal(parse(&plan, HEAD "bcast bytes 1025..64k\nuse chain:2\nbcast bytes 1..1k\nuse chain:1\n"
                                       "bcast bytes 90000\nuse binomial\nbcast bytes 90001\nuse binomial\n"),
                     TB_OK);
    assert_int_equal(tb_plan_image_make(&plan, &bytes, &length), TB_OK);
    assert_int_equal(tb_plan_image_open(&image, bytes, length), TB_OK);
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        const struct tb_plan_row *row = tb_plan_image_find(&image, TB_OPERATION_BCAST, TB_PLAN_ANY, wanted[i].bytes);
        assert_int_equal(row != NULL ? row->from : 0, wanted[i].from);
    }
    free(bytes);
    tb_plan_close(&plan);
}

/* What is too large for a job is refused before it is made. */
static void an_image_has_a_limit(void **state)
{
    struct tb_plan_host *hosts = calloc(TB_PLAN_HOSTS_LIMIT, sizeof *hosts);
    struct tb_forest trees = {.nodes = TB_PLAN_HOSTS_LIMIT, .trees = TB_FOREST_TREES};
    struct tb_plan_cell cells[8];
    void *bytes = NULL;
    size_t length;
    assert_non_null(hosts);
    for (uint32_t i = 0; i < TB_PLAN_HOSTS_LIMIT; i++)
        hosts[i] = (struct tb_plan_host){"a", "b", 1};
    for (uint32_t i = 0; i < 8; i++)
        cells[i] = (struct tb_plan_cell){.operation = TB_OPERATION_BARRIER, .trees = &trees};
    const struct tb_plan plan = {.host_count = TB_PLAN_HOSTS_LIMIT, .hosts = hosts, .cell_count = 8, .cells = cells};
    assert_int_equal(tb_plan_image_make(&plan, &bytes, &length), TB_ERR_LIMIT);
    assert_null(bytes);
    free(hosts);
}

static void digests_are_of_places_and_slots(void **state)
{
    static const struct {
        const char *text;
        bool same;
    } others[] = {
        {HEAD, true},
        {"tombolo-plan 1\nhost d slots 1\nhost c slots 4 in x\nhost a slots 2 in x/y\nhost b slots 1 in x/y\n", true},
        {"tombolo-plan 1\nhost a slots 1 in x/y\nhost b slots 2 in x/y\nhost c slots 4 in x\nhost d slots 1\n", false},
        {"tombolo-plan 1\nhost a slots 2 in x\nhost b slots 1 in x/y\nhost c slots 4 in x\nhost d slots 1\n", false},
        {"tombolo-plan 1\nhost a slots 2 in x/y\nhost b slots 1 in x/y\nhost c slots 4 in x\n", false},
        {"tombolo-plan 1\nhost a slots 2 in x/y\nhost b slots 1 in x/y\nhost c slots 4 in x\nhost e slots 1\n", false},
    };
    struct tb_plan plan, other;
    assert_int_equal(parse(&plan, whole), TB_OK);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        assert_int_equal(parse(&other, others[i].text), TB_OK);
        assert_int_equal(tb_plan_digest(&plan) == tb_plan_digest(&other), others[i].same);
        tb_plan_close(&other);
    }
    tb_plan_close(&plan);
}

/* Each allocation fails once. */
static void memory_that_fails_is_told(void **state)
{
    bool done = false;
    for (uint32_t n = 1; !done; n++) {
        struct tb_plan plan;
        void *bytes = NULL;
        size_t length = 0;
        countdown = n;
        int error = parse(&plan, whole);
        if (error == TB_OK)
            error = tb_plan_image_make(&plan, &bytes, &length);
        done = countdown > 0;
        countdown = 0;
        if (done)
            assert_int_equal(error, TB_OK);
        else if (error != TB_OK)
            assert_int_equal(error, TB_ERR_MEMORY);
        free(bytes);
        tb_plan_close(&plan);
        assert_true(n < 1000);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plan_is_read),
        cmocka_unit_test(a_written_plan_is_read_back),
        cmocka_unit_test(a_large_plan_is_read_back),
        cmocka_unit_test(what_is_wrong_is_named_with_its_line),
        cmocka_unit_test(files_that_cannot_be_read_are_named),
        cmocka_unit_test(changed_texts_do_no_harm),
        cmocka_unit_test(an_image_has_what_the_text_says),
        cmocka_unit_test(changed_images_do_no_harm),
        cmocka_unit_test(sizes_of_a_class_have_one_row),
        cmocka_unit_test(an_image_has_a_limit),
        cmocka_unit_test(digests_are_of_places_and_slots),
        cmocka_unit_test(memory_that_fails_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

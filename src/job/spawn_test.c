#include "job/job.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char *first_words[] = {(char *)"work", (char *)"-n", (char *)"", NULL};
static char *second_words[] = {(char *)"/opt/other", NULL};
static char *no_words[] = {NULL};

static struct tb_spawn sample(struct tb_spawn_app apps[2])
{
    apps[0] = (struct tb_spawn_app){.app = {.ranks = 3,
                                            .argument_count = 3,
                                            .arguments = first_words,
                                            .variables = no_words,
                                            .directory = (char *)""},
                                    .hosts = (char *)"a,b"};
    apps[1] = (struct tb_spawn_app){.app = {.first_rank = 3,
                                            .ranks = 1,
                                            .argument_count = 1,
                                            .arguments = second_words,
                                            .variables = no_words,
                                            .directory = (char *)"/tmp"},
                                    .hosts = (char *)""};
    return (struct tb_spawn){.model = 1, .app_count = 2, .apps = apps, .parent_bytes = 5, .parent = (char *)"who?"};
}

static void travels(void **state)
{
    struct tb_spawn_app apps[2];
    struct tb_spawn spawn = sample(apps), got;
    struct tb_writer w;
    tb_writer_open(&w);
    assert_int_equal(tb_spawn_size(&spawn), 4);
    assert_int_equal(tb_spawn_encode(&spawn, &w), TB_OK);
    assert_int_equal(tb_spawn_decode(&got, w.bytes, w.length), TB_OK);
    assert_int_equal(got.model, 1);
    assert_int_equal(got.app_count, 2);
    assert_int_equal(tb_spawn_size(&got), 4);
    assert_int_equal(got.apps[0].app.argument_count, 3);
    assert_string_equal(got.apps[0].app.arguments[2], "");
    assert_string_equal(got.apps[0].hosts, "a,b");
    assert_string_equal(got.apps[1].app.directory, "/tmp");
    assert_int_equal(got.parent_bytes, 5);
    assert_string_equal(got.parent, "who?");
    tb_spawn_close(&got);
    for (size_t length = 0; length < w.length; length++) /* whatever is missing is noticed, and nothing lost */
        assert_int_equal(tb_spawn_decode(&got, w.bytes, length), TB_ERR_PROTOCOL);
    tb_writer_close(&w);
}

static int decode_changed(void (*change)(struct tb_spawn *spawn))
{
    struct tb_spawn_app apps[2];
    struct tb_spawn spawn = sample(apps), got;
    struct tb_writer w;
    change(&spawn);
    tb_writer_open(&w);
    assert_int_equal(tb_spawn_encode(&spawn, &w), TB_OK);
    int rc = tb_spawn_decode(&got, w.bytes, w.length);
    tb_spawn_close(&got);
    tb_writer_close(&w);
    return rc;
}

static void leave_nobody(struct tb_spawn *spawn)
{
    spawn->apps[1].app.ranks = 0;
}

static void leave_gap(struct tb_spawn *spawn)
{
    spawn->apps[1].app.first_rank = 4;
}

static void want_nobody(struct tb_spawn *spawn)
{
    spawn->apps[1].app.ranks = 0;
}

static void want_too_many(struct tb_spawn *spawn)
{
    spawn->apps[1].app.ranks = TB_JOB_RANKS_LIMIT;
}

static void name_no_program(struct tb_spawn *spawn)
{
    spawn->app_count = 0;
}

static void refuses_what_makes_no_sense(void **state)
{
    assert_int_equal(decode_changed(leave_gap), TB_ERR_PROTOCOL);
    assert_int_equal(decode_changed(leave_nobody), TB_ERR_PROTOCOL);
    assert_int_equal(decode_changed(want_nobody), TB_ERR_PROTOCOL);
    assert_int_equal(decode_changed(want_too_many), TB_ERR_PROTOCOL);
    assert_int_equal(decode_changed(name_no_program), TB_ERR_PROTOCOL);
}

static void many_bytes_come_along(void **state)
{
    size_t length = 300001, got_length;
    char *bytes = malloc(length);
    void *got;
    int descriptor;
    assert_non_null(bytes);
    for (size_t i = 0; i < length; i++)
        bytes[i] = (char)(i * 7 + i / 256);
    assert_int_equal(tb_shared_bytes_put(bytes, length, &descriptor), TB_OK);
    assert_int_equal(tb_shared_bytes_get(descriptor, &got, &got_length), TB_OK);
    assert_int_equal(got_length, length);
    assert_memory_equal(got, bytes, length);
    free(got);
    assert_int_equal(ftruncate(descriptor, 0), 0); /* whoever sent it may do what it likes */
    assert_int_equal(tb_shared_bytes_get(descriptor, &got, &got_length), TB_ERR_PROTOCOL);
    assert_int_equal(ftruncate(descriptor, (off_t)TB_SHARED_BYTES_LIMIT + 1), 0);
    assert_int_equal(tb_shared_bytes_get(descriptor, &got, &got_length), TB_ERR_PROTOCOL);
    close(descriptor);
    assert_int_equal(tb_shared_bytes_put(bytes, 0, &descriptor), TB_ERR_LIMIT);
    assert_int_equal(tb_shared_bytes_put(bytes, TB_SHARED_BYTES_LIMIT + (size_t)1, &descriptor), TB_ERR_LIMIT);
    int pipe_ends[2];
    assert_int_equal(pipe(pipe_ends), 0);
    assert_int_equal(tb_shared_bytes_get(pipe_ends[0], &got, &got_length), TB_ERR_PROTOCOL);
    close(pipe_ends[0]);
    close(pipe_ends[1]);
    free(bytes);
}

static void bonds_travel(void **state)
{
    struct tb_bond bond = {.bonded = true, .count = TB_BOND_WORLDS}, got;
    struct tb_writer w;
    struct tb_reader r;
    for (uint32_t i = 0; i < TB_BOND_WORLDS; i++)
        bond.worlds[i] = 7 * i;
    tb_writer_open(&w);
    tb_bond_put(&w, &bond);
    tb_reader_open(&r, w.bytes, w.length);
    assert_int_equal(tb_bond_get(&r, &got), TB_OK);
    assert_true(got.bonded);
    assert_int_equal(got.count, bond.count);
    assert_memory_equal(got.worlds, bond.worlds, sizeof bond.worlds);
    for (size_t length = 0; length < w.length; length++) { /* whatever is missing is noticed */
        tb_reader_open(&r, w.bytes, length);
        assert_int_equal(tb_bond_get(&r, &got), TB_ERR_PROTOCOL);
    }
    tb_writer_close(&w);
    tb_writer_open(&w);
    tb_put_u8(&w, 0);
    tb_put_u32(&w, TB_BOND_WORLDS + 1);
    for (uint32_t i = 0; i <= TB_BOND_WORLDS; i++)
        tb_put_u32(&w, i);
    tb_reader_open(&r, w.bytes, w.length);
    assert_int_equal(tb_bond_get(&r, &got), TB_ERR_PROTOCOL); /* too many */
    tb_writer_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(travels),
        cmocka_unit_test(refuses_what_makes_no_sense),
        cmocka_unit_test(many_bytes_come_along),
        cmocka_unit_test(bonds_travel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

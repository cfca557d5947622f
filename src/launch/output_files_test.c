/* Files for the output of single ranks. */
#include "launch/output_files.h"

#include "base/base.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

struct folder {
    char path[64];
    char pattern[96];
    struct tb_output_files files;
};

static int open_folder(void **state)
{
    struct folder *f = calloc(1, sizeof *f);
    *state = f;
    strcpy(f->path, "/tmp/output-files-XXXXXX");
    if (mkdtemp(f->path) == NULL)
        return -1;
    snprintf(f->pattern, sizeof f->pattern, "%s/%%r", f->path);
    tb_output_files_init(&f->files, f->pattern);
    return tb_output_files_expect(&f->files, 2);
}

static int close_folder(void **state)
{
    struct folder *f = *state;
    char path[96];
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%d", f->path, i);
        unlink(path);
    }
    for (int i = 0; i < TB_OUTPUT_FILES_OPEN; i++)
        if (f->files.open[i].descriptor >= 0)
            close(f->files.open[i].descriptor);
    free(f->files.made);
    rmdir(f->path);
    free(f);
    return 0;
}

static void test_each_rank_has_a_file(void **state)
{
    struct folder *f = *state;
    char path[96], text[16] = "";
    assert_int_equal(tb_output_files_write(&f->files, 0, "a", 0, "one", 3), TB_OK);
    assert_int_equal(tb_output_files_write(&f->files, 1, "a", 0, "other", 5), TB_OK);
    assert_int_equal(tb_output_files_write(&f->files, 0, "a", 0, "two", 3), TB_OK);
    snprintf(path, sizeof path, "%s/0", f->path);
    int fd = open(path, O_RDONLY);
    assert_int_equal(read(fd, text, sizeof text), 6);
    assert_memory_equal(text, "onetwo", 6);
    close(fd);
}

static void test_a_pipe_that_nobody_reads_is_an_error(void **state)
{
    struct folder *f = *state;
    char path[96];
    snprintf(path, sizeof path, "%s/1", f->path);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_not_equal(tb_output_files_write(&f->files, 1, "a", 0, "one", 3), TB_OK);
    assert_non_null(strstr(tb_error_story(), "nobody reads"));
}

static void test_a_pipe_that_is_read(void **state)
{
    struct folder *f = *state;
    char path[96], text[16];
    snprintf(path, sizeof path, "%s/1", f->path);
    assert_int_equal(mkfifo(path, 0600), 0);
    int fd = open(path, O_RDONLY | O_NONBLOCK);
    assert_int_equal(tb_output_files_write(&f->files, 1, "a", 0, "one", 3), TB_OK);
    assert_int_equal(read(fd, text, sizeof text), 3);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_each_rank_has_a_file, open_folder, close_folder),
        cmocka_unit_test_setup_teardown(test_a_pipe_that_nobody_reads_is_an_error, open_folder, close_folder),
        cmocka_unit_test_setup_teardown(test_a_pipe_that_is_read, open_folder, close_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

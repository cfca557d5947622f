/* Files for the output of single ranks. */
#include "launch/output_files.h"

#include "base/base.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
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
    struct tb_loop loop;
    struct tb_output_files files;
    size_t given_back;
    char story[512];
};

static void take_written(void *context, uint32_t host, uint32_t bytes)
{
    ((struct folder *)context)->given_back += bytes;
}

static void take_failure(void *context, int code, const char *story)
{
    struct folder *f = context;
    assert_int_equal(code, 1);
    snprintf(f->story, sizeof f->story, "%s", story);
}

static const char *name_host(void *context, uint32_t host)
{
    return "a";
}

static void write_output(struct folder *f, uint32_t rank, const char *bytes, size_t length)
{
    tb_output_files_write(&f->files, rank, 0, bytes, length, (uint32_t)length);
}

static int open_folder(void **state)
{
    struct folder *f = calloc(1, sizeof *f);
    *state = f;
    strcpy(f->path, "/tmp/output-files-XXXXXX");
    if (mkdtemp(f->path) == NULL)
        return -1;
    snprintf(f->pattern, sizeof f->pattern, "%s/%%r", f->path);
    const struct tb_screen_events events = {
        .context = f, .written = take_written, .failed = take_failure, .host_name = name_host};
    if (tb_loop_open(&f->loop, &tb_clock_real) != TB_OK)
        return -1;
    tb_output_files_init(&f->files, f->pattern, &f->loop, &events);
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
    tb_loop_close(&f->loop);
    rmdir(f->path);
    free(f);
    return 0;
}

static void test_each_rank_has_a_file(void **state)
{
    struct folder *f = *state;
    char path[96], text[16] = "";
    write_output(f, 0, "one", 3);
    write_output(f, 1, "other", 5);
    write_output(f, 0, "two", 3);
    snprintf(path, sizeof path, "%s/0", f->path);
    int fd = open(path, O_RDONLY);
    assert_int_equal(read(fd, text, sizeof text), 6);
    assert_memory_equal(text, "onetwo", 6);
    assert_int_equal(f->given_back, 11);
    assert_int_equal(f->files.waiting, 0);
    close(fd);
}

static void test_a_pipe_that_nobody_reads_is_an_error(void **state)
{
    struct folder *f = *state;
    char path[96];
    snprintf(path, sizeof path, "%s/1", f->path);
    assert_int_equal(mkfifo(path, 0600), 0);
    write_output(f, 1, "one", 3);
    assert_non_null(strstr(f->story, "nobody reads"));
    assert_int_equal(f->given_back, 3);
}

static void test_a_pipe_that_is_read(void **state)
{
    struct folder *f = *state;
    char path[96], text[16];
    snprintf(path, sizeof path, "%s/1", f->path);
    assert_int_equal(mkfifo(path, 0600), 0);
    int fd = open(path, O_RDONLY | O_NONBLOCK);
    write_output(f, 1, "one", 3);
    assert_int_equal(read(fd, text, sizeof text), 3);
    close(fd);
}

/* One whose reader sleeps: nobody waits for it, and the window stays taken until it reads; other files go on. */
static void test_a_pipe_whose_reader_sleeps(void **state)
{
    struct folder *f = *state;
    const size_t length = 1u << 20;
    char path[96], other[96], *bytes = malloc(length), *text = malloc(length + 3);
    size_t got = 0;
    memset(bytes, 'x', length);
    snprintf(path, sizeof path, "%s/1", f->path);
    snprintf(other, sizeof other, "%s/0", f->path);
    assert_int_equal(mkfifo(path, 0600), 0);
    int fd = open(path, O_RDONLY | O_NONBLOCK);
    write_output(f, 1, bytes, length);
    write_output(f, 1, "end", 3);
    assert_int_equal(f->given_back, 0);
    assert_in_range(f->files.waiting, 1, length + 3);
    write_output(f, 0, "two", 3);
    assert_int_equal(f->given_back, 3);
    for (int i = 0; i < 100000 && got < length + 3; i++) {
        ssize_t n = read(fd, text + got, length + 3 - got);
        got += n > 0 ? (size_t)n : 0;
        if (f->files.waiting > 0)
            f->files.open[1].watch.ready(&f->files.open[1].watch, EPOLLOUT);
    }
    assert_int_equal(got, length + 3);
    assert_memory_equal(text, bytes, length);
    assert_memory_equal(text + length, "end", 3);
    assert_int_equal(f->files.waiting, 0);
    assert_int_equal(f->given_back, length + 6);
    assert_int_equal(f->files.open[1].watch.descriptor, -1);
    write_output(f, 1, bytes, length);
    signal(SIGPIPE, SIG_IGN);
    close(fd); /* what waits is lost, with the name of the file */
    f->files.open[1].watch.ready(&f->files.open[1].watch, EPOLLERR);
    assert_int_equal(f->files.waiting, 0);
    assert_non_null(strstr(f->story, path));
    assert_non_null(strstr(f->story, "Broken pipe"));
    free(bytes);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_each_rank_has_a_file, open_folder, close_folder),
        cmocka_unit_test_setup_teardown(test_a_pipe_that_nobody_reads_is_an_error, open_folder, close_folder),
        cmocka_unit_test_setup_teardown(test_a_pipe_that_is_read, open_folder, close_folder),
        cmocka_unit_test_setup_teardown(test_a_pipe_whose_reader_sleeps, open_folder, close_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

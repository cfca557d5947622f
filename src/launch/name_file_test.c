/* The file of a server of names: what is replaced, what is left alone, and what is taken away. */
#include "launch/name_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

struct folder {
    char path[64], file[80], other[80];
};

static int make(void **state)
{
    struct folder *f = calloc(1, sizeof *f);
    if (f == NULL)
        return -1;
    strcpy(f->path, "/tmp/tombolo-name-file-XXXXXX");
    if (mkdtemp(f->path) == NULL)
        return -1;
    snprintf(f->file, sizeof f->file, "%s/names", f->path);
    snprintf(f->other, sizeof f->other, "%s/other", f->path);
    *state = f;
    return 0;
}

static int unmake(void **state)
{
    struct folder *f = *state;
    unlink(f->file);
    unlink(f->other);
    rmdir(f->file);
    int rc = rmdir(f->path); /* no other file was left there */
    free(f);
    return rc;
}

static void put(const char *path, const char *text)
{
    FILE *stream = fopen(path, "we");
    assert_non_null(stream);
    fputs(text, stream);
    assert_int_equal(fclose(stream), 0);
}

static void begins_with(const char *path, const char *text)
{
    char found[256] = "";
    FILE *stream = fopen(path, "re");
    assert_non_null(stream);
    size_t length = fread(found, 1, sizeof found - 1, stream);
    fclose(stream);
    assert_true(length >= strlen(text));
    assert_memory_equal(found, text, strlen(text));
}

static void write_line(struct tb_name_file *file, int rc)
{
    char text[TB_NAME_PLACE_BYTES];
    struct tb_name_place place;
    assert_int_equal(tb_name_place_make(&place, "192.0.2.1:7,[2001:db8::1]:7", text), TB_OK);
    assert_int_equal(tb_name_file_write(file, text), rc);
}

static void claim(struct tb_name_file *file, const char *path, bool left)
{
    assert_int_equal(tb_name_file_claim(file, path), TB_OK);
    assert_int_equal(file->left >= 0, left);
}

static void refused(const char *path, const char *why)
{
    struct tb_name_file file;
    assert_int_equal(tb_name_file_claim(&file, path), TB_ERR_ARGUMENT);
    assert_non_null(strstr(tb_error_story(), path));
    assert_non_null(strstr(tb_error_story(), why));
    tb_name_file_close(&file);
}

/* As a server that was killed does it. */
static void leave_one(const char *path)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct tb_name_file file;
        claim(&file, path, false);
        write_line(&file, TB_OK);
        _exit(0);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void one_that_is_new(void **state)
{
    const struct folder *f = *state;
    struct tb_name_file file;
    struct tb_name_place place;
    struct stat status;
    claim(&file, f->file, false);
    write_line(&file, TB_OK);
    assert_int_equal(stat(f->file, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
    assert_int_equal(tb_name_place_read(&place, f->file), TB_OK);
    assert_string_equal(place.addresses, "192.0.2.1:7,[2001:db8::1]:7");
    tb_name_file_close(&file);
    assert_int_not_equal(access(f->file, F_OK), 0);
}

static void what_is_something_else(void **state)
{
    const struct folder *f = *state;
    static const char *const texts[] = {"", "precious\n", "tombolo-meet:0123456789abcdef0123456789abcdef@[::1]:7",
                                        "tombolo-meet:0123456789abcdef0123456789abcdef@[::1]:7\nand more\n",
                                        "tombolo-meet:0123456789abcdef0123456789abcdef@[::1]:7 is mine\n"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        put(f->file, texts[i]);
        refused(f->file, "tombolo meet has not written it");
        begins_with(f->file, texts[i]);
    }
    unlink(f->file);
    leave_one(f->other);
    assert_int_equal(symlink(f->other, f->file), 0);
    refused(f->file, "symbolic link");
    unlink(f->other);
    refused(f->file, "symbolic link"); /* to nothing, too */
    unlink(f->file);
    assert_int_equal(mkdir(f->file, 0700), 0);
    refused(f->file, "is not a file");
    refused("/dev/null", "is not a file");
}

static void one_that_was_left(void **state)
{
    const struct folder *f = *state;
    struct tb_name_file file;
    leave_one(f->file);
    claim(&file, f->file, true);
    refused(f->file, "still runs"); /* whoever finds it at the same time */
    write_line(&file, TB_OK);
    refused(f->file, "still runs, at 192.0.2.1:7,[2001:db8::1]:7");
    tb_name_file_close(&file);
    assert_int_not_equal(access(f->file, F_OK), 0);
}

static void one_that_comes_meanwhile(void **state)
{
    const struct folder *f = *state;
    struct tb_name_file first, second;
    claim(&first, f->file, false);
    claim(&second, f->file, false);
    write_line(&first, TB_OK);
    write_line(&second, TB_ERR_ARGUMENT);
    assert_non_null(strstr(tb_error_story(), "just now"));
    tb_name_file_close(&second);
    assert_int_equal(access(f->file, F_OK), 0);
    tb_name_file_close(&first);
    leave_one(f->file);
    claim(&first, f->file, true);
    unlink(f->file);
    put(f->file, "precious\n");
    write_line(&first, TB_ERR_ARGUMENT);
    begins_with(f->file, "precious\n");
    tb_name_file_close(&first);
    begins_with(f->file, "precious\n");
}

static void one_that_is_another_in_the_end(void **state)
{
    const struct folder *f = *state;
    struct tb_name_file file;
    claim(&file, f->file, false);
    write_line(&file, TB_OK);
    put(f->file, "precious\n"); /* into the file itself */
    tb_name_file_close(&file);
    begins_with(f->file, "precious\n");
    unlink(f->file);
    claim(&file, f->file, false);
    write_line(&file, TB_OK);
    put(f->other, "precious\n");
    assert_int_equal(rename(f->other, f->file), 0);
    tb_name_file_close(&file);
    begins_with(f->file, "precious\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(one_that_is_new, make, unmake),
        cmocka_unit_test_setup_teardown(what_is_something_else, make, unmake),
        cmocka_unit_test_setup_teardown(one_that_was_left, make, unmake),
        cmocka_unit_test_setup_teardown(one_that_comes_meanwhile, make, unmake),
        cmocka_unit_test_setup_teardown(one_that_is_another_in_the_end, make, unmake),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

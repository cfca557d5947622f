/* Executables of every kind, and ELF files that were cut or changed. */
#include "remote/remote.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <elf.h>
#include <fcntl.h>
#include <unistd.h>

/* A file with this content, read and removed. */
static struct tb_executable read_bytes(const void *bytes, size_t length)
{
    char path[] = "/tmp/tombolo-executable-test-XXXXXX";
    struct tb_executable x;
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, length), length);
    close(fd);
    assert_int_equal(tb_executable_read(path, &x), TB_OK);
    unlink(path);
    return x;
}

static enum tb_executable_kind kind_of(const char *bytes, size_t length)
{
    return read_bytes(bytes, length).kind;
}

static bool needs(const struct tb_executable *x, const char *name)
{
    for (const char *at = x->needed; *at != 0; at += strlen(at) + 1)
        if (strncmp(at, name, strlen(name)) == 0)
            return true;
    return false;
}

static void kinds_are_told_apart(void **state)
{
    struct tb_executable x;
    assert_int_equal(kind_of("#!/bin/sh\n", 10), TB_EXECUTABLE_SCRIPT);
    assert_int_equal(kind_of("echo hello\n", 11), TB_EXECUTABLE_TEXT);
    assert_int_equal(kind_of("", 0), TB_EXECUTABLE_TEXT);
    assert_int_equal(kind_of("echo\n\0\n", 7), TB_EXECUTABLE_OTHER);
    assert_int_equal(kind_of("\177ELF\n", 5), TB_EXECUTABLE_OTHER);
    assert_int_equal(tb_executable_read("/no/such/file", &x), TB_ERR_SYSTEM);
}

/* This test itself: what the system makes is understood. */
static void a_program_of_this_machine(void **state)
{
    struct tb_executable x;
    char text[256];
    assert_int_equal(tb_executable_read("/proc/self/exe", &x), TB_OK);
    assert_int_equal(x.kind, TB_EXECUTABLE_ELF);
    assert_int_equal(x.bits, 8 * sizeof(void *));
    assert_true(x.interpreter[0] == '/');
    assert_true(needs(&x, "libc."));
    assert_true(needs(&x, "libcmocka."));
    assert_false(needs(&x, "libmpi"));
    assert_false(tb_executable_is_foreign(&x, "it", "here", text, sizeof text));
}

static void machines_have_names(void **state)
{
    Elf64_Ehdr head = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT}, .e_machine = EM_AARCH64};
    char text[256];
    if (__BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__)
        skip();
    static const struct {
        unsigned machine;
        const char *name;
    } rows[] = {{EM_X86_64, "x86-64"}, {EM_AARCH64, "aarch64"}, {EM_PPC64, "ppc64le"}, {4711, "4711"}};
    int foreign = 0;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        head.e_machine = (Elf64_Half)rows[i].machine;
        struct tb_executable x = read_bytes(&head, sizeof head);
        assert_int_equal(x.kind, TB_EXECUTABLE_ELF);
        if (!tb_executable_is_foreign(&x, "hello", "a", text, sizeof text))
            continue;
        foreign++;
        assert_non_null(strstr(text, "hello is built for "));
        assert_non_null(strstr(text, rows[i].name));
        assert_non_null(strstr(text, ", host a is "));
    }
    assert_in_range(foreign, 3, 4);
}

/* However much of it is there, and whatever its head says, reading it does no harm and tells what it is. */
static void damaged_programs_do_no_harm(void **state)
{
    enum { LENGTH = 65536 };
    unsigned char *bytes = calloc(1, LENGTH);
    assert_non_null(bytes);
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    ssize_t n = pread(fd, bytes, LENGTH, 0);
    assert_true(n > 4096);
    close(fd);
    for (size_t length = 0; length < 4096; length += length < 1024 ? 1 : 37) {
        struct tb_executable x = read_bytes(bytes, length);
        assert_int_equal(x.kind, length == 0 ? TB_EXECUTABLE_TEXT : length >= 20 ? TB_EXECUTABLE_ELF : x.kind);
        assert_true(length < 4 || x.kind != TB_EXECUTABLE_TEXT);
    }
    static const unsigned char values[] = {0, 1, 0x7f, 0x80, 0xff};
    for (size_t at = 4; at < 1024; at++) {
        unsigned char before = bytes[at];
        bytes[at] = values[at % sizeof values];
        assert_int_equal(read_bytes(bytes, (size_t)n).kind, TB_EXECUTABLE_ELF);
        bytes[at] = before;
    }
    memset(bytes + 16, 0xff, 4096);
    assert_int_equal(read_bytes(bytes, (size_t)n).kind, TB_EXECUTABLE_ELF);
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kinds_are_told_apart),
        cmocka_unit_test(a_program_of_this_machine),
        cmocka_unit_test(machines_have_names),
        cmocka_unit_test(damaged_programs_do_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

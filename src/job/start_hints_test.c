/* What processes are told about their start. */
#include "job/start_hints.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"

static void handlers(void **state)
{
    assert_int_equal(tb_first_errhandler_find("mpi_errors_are_fatal"), TB_FIRST_FATAL);
    assert_int_equal(tb_first_errhandler_find("mpi_errors_abort"), TB_FIRST_ABORT);
    assert_int_equal(tb_first_errhandler_find("mpi_errors_return"), TB_FIRST_RETURN);
    static const char *const wrong[] = {"", "MPI_ERRORS_RETURN", "mpi_errors_returns", "mpi_errors", "return"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_int_equal(tb_first_errhandler_find(wrong[i]), -1);
        assert_non_null(strstr(tb_error_story(), "mpi_errors_abort or mpi_errors_return"));
    }
}

static void lists(void **state)
{
    static const char *const right[] = {"",           "system",      "mpi",          "mpi,system",
                                        "mpi:a:b,cd", "cuda:device", "level_zero,x", "mpi:win_allocate"};
    static const char *const wrong[] = {",",     "mpi,", ",mpi", "mpi,,system", "mpi:", ":alloc_mem",
                                        "mpi::", "a b",  "mpi;", "mpi:alloc=1", "mpi\n"};
    for (size_t i = 0; i < sizeof right / sizeof right[0]; i++)
        assert_int_equal(tb_memory_kinds_check(right[i]), TB_OK);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_int_equal(tb_memory_kinds_check(wrong[i]), TB_ERR_ARGUMENT);
    /* As long as it may be, and by one too long. */
    char asked[TB_MEMORY_KINDS_ROOM];
    size_t most = TB_MEMORY_KINDS_ROOM - sizeof TB_MEMORY_KINDS - 1;
    memset(asked, 'a', sizeof asked);
    asked[most] = 0;
    assert_int_equal(tb_memory_kinds_check(asked), TB_OK);
    asked[most] = 'a';
    asked[most + 1] = 0;
    assert_int_equal(tb_memory_kinds_check(asked), TB_ERR_ARGUMENT);
}

static void append(char *text, size_t size, const char *more)
{
    size_t length = strlen(text);
    snprintf(text + length, size - length, "%s", more);
}

static void offers(void **state)
{
    static const struct {
        const char *asked, *offered;
    } rows[] = {
        {NULL, "system,mpi"},
        {"", "system,mpi"},
        {"system", "system,mpi"},
        {"mpi,system", "system,mpi"},
        {"cuda:device,rocm", "system,mpi"},
        {"system:anything", "system,mpi"},
        {"mpi:alloc_mem", "system,mpi,mpi:alloc_mem"},
        {"mpi:alloc_mem,mpi:alloc_mem", "system,mpi,mpi:alloc_mem"},
        {"mpi:other,mpi:win_allocate_shared,cuda", "system,mpi,mpi:win_allocate_shared"},
        {"mpi:alloc_mem:win_allocate,mpi:alloc_mem:none", "system,mpi,mpi:alloc_mem:win_allocate"},
        {"mpi:win_allocate,system,mpi:alloc_mem", "system,mpi,mpi:win_allocate,mpi:alloc_mem"},
    };
    char offered[TB_MEMORY_KINDS_ROOM];
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        tb_memory_kinds_offer(rows[i].asked, offered);
        assert_string_equal(offered, rows[i].offered);
    }
    /* The longest list that is right comes back whole; one that is longer never runs over. */
    char asked[2 * TB_MEMORY_KINDS_ROOM] = "mpi:alloc_mem";
    while (strlen(asked) + 10 < TB_MEMORY_KINDS_ROOM - sizeof TB_MEMORY_KINDS)
        append(asked, sizeof asked, ":alloc_mem");
    assert_int_equal(tb_memory_kinds_check(asked), TB_OK);
    tb_memory_kinds_offer(asked, offered);
    assert_string_equal(offered + strlen(TB_MEMORY_KINDS) + 1, asked);
    for (int i = 0; i < 20; i++)
        append(asked, sizeof asked, ":alloc_mem");
    tb_memory_kinds_offer(asked, offered);
    assert_string_equal(offered, TB_MEMORY_KINDS);
}

static void own(void **state)
{
    assert_int_equal(tb_param_load(), TB_OK);
    assert_int_equal(tb_start_hints_check(), TB_OK);
    tb_param.initial_errhandler = "abort";
    assert_int_equal(tb_start_hints_check(), TB_ERR_ARGUMENT);
    assert_non_null(strstr(tb_error_story(), "TOMBOLO_INITIAL_ERRHANDLER=abort: should be"));
    tb_param.initial_errhandler = "mpi_errors_abort";
    tb_param.memory_alloc_kinds = "mpi,,system";
    assert_int_equal(tb_start_hints_check(), TB_ERR_ARGUMENT);
    assert_non_null(strstr(tb_error_story(), "TOMBOLO_MEMORY_ALLOC_KINDS=mpi,,system: should be"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(handlers), cmocka_unit_test(lists), cmocka_unit_test(offers),
                                       cmocka_unit_test(own)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Programs of other MPI libraries, by the names of what they need. */
#include "agent/foreign_mpi.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void each_is_known_by_its_libraries(void **state)
{
    static const struct {
        const char *needed; /* with commas between */
        const char *name;   /* NULL: not foreign */
        const char *by;
    } rows[] = {
        {"libc.so.6", NULL, NULL},
        {"", NULL, NULL},
        {"libopen-rte.so.40,libopen-pal.so.40,libc.so.6", NULL, NULL}, /* a launcher */
        {"libm.so.6,libmpi.so.40,libc.so.6", "Open MPI", "libmpi.so.40"},
        {"libmpi_usempif08.so.40,libmpi.so.40", "Open MPI", "libmpi.so.40"},
        {"libmpi.so.12,libopen-rte.so.12,libc.so.6", "Open MPI", "libmpi.so.12"},
        {"libmpi.so.12,libc.so.6", "MPICH or a relative of it", "libmpi.so.12"},
        {"libmpich.so.12", "MPICH or a relative of it", "libmpich.so.12"},
        {"libmpichfort.so.12,libc.so.6", "MPICH or a relative of it", "libmpichfort.so.12"},
        {"libmpi.so.7", "another MPI", "libmpi.so.7"},
        {"libmpi_abi.so.1,libc.so.6", NULL, NULL},
        {"libmpi_abi.so.1,libmpi.so.40", NULL, NULL}, /* it may serve both */
        {"libmpilot.so.1,libompi.so.1", NULL, NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct tb_executable x = {.kind = TB_EXECUTABLE_ELF};
        struct tb_foreign_mpi found = {0};
        snprintf(x.needed, sizeof x.needed - 1, "%s", rows[i].needed);
        for (char *comma = x.needed; (comma = strchr(comma, ',')) != NULL; comma++)
            *comma = 0;
        assert_int_equal(tb_foreign_mpi_find(&x, &found), rows[i].name != NULL);
        if (rows[i].name != NULL) {
            assert_string_equal(found.name, rows[i].name);
            assert_string_equal(found.needed, rows[i].by);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_is_known_by_its_libraries)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

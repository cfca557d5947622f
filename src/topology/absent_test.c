/* A build without libyaml says so, and still writes templates. */
#include "topology/grid.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void files_are_refused_clearly(void **state)
{
    struct tb_grid grid;
    assert_int_equal(tb_grid_parse(&grid, "clusters: []", 12, "g.yaml"), TB_ERR_UNSUPPORTED);
    assert_non_null(strstr(tb_error_story(), "without libyaml"));
    assert_null(grid.file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(files_are_refused_clearly)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

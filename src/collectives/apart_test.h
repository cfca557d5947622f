/* For the tests of a unit that take minutes in the tier all: side by side, a process each. Where cmocka.h has been
 * included. */
#ifndef TB_COLLECTIVES_APART_TEST_H
#define TB_COLLECTIVES_APART_TEST_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static inline bool tb_tests_tier_all(void)
{
    const char *tier = getenv("TEST_TIER");
    return tier != NULL && strcmp(tier, "all") == 0;
}

/* How many of them failed. */
static inline int tb_tests_run_apart(const struct CMUnitTest *tests, size_t count)
{
    int failed = 0, status;
    for (size_t i = 0; i < count; i++) {
        const struct CMUnitTest alone[] = {tests[i]};
        pid_t pid = fork();
        if (pid == 0)
            _exit(cmocka_run_group_tests(alone, NULL, NULL) != 0);
        failed += pid < 0;
    }
    while (wait(&status) > 0)
        failed += !WIFEXITED(status) || WEXITSTATUS(status) != 0;
    return failed;
}

#endif

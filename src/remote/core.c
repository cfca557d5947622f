/* The limit of core files: ours, and that of the children. One for the whole process, as the kernel has it. */
#include "remote/remote.h"

static struct rlimit before;
static bool forbidden;

/* One byte and not none: where core files go to a program, the kernel looks at nothing else. */
void tb_core_forbid(void)
{
    if (forbidden || getrlimit(RLIMIT_CORE, &before) < 0)
        return;
    struct rlimit none = {.rlim_cur = before.rlim_max > 0 ? 1 : 0, .rlim_max = before.rlim_max};
    forbidden = setrlimit(RLIMIT_CORE, &none) == 0;
}

struct rlimit tb_core_limit(void)
{
    struct rlimit now = before;
    if (!forbidden)
        getrlimit(RLIMIT_CORE, &now);
    return now;
}

/* Programs of Tombolo that are no commands of the user. */
#include "remote/remote.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int tb_own_program_find(const char *name, char *path, size_t size)
{
    char here[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", here, sizeof here - 1);
    if (length < 0)
        return tb_error_errno("cannot find out where tombolo is");
    here[length] = 0;
    *strrchr(here, '/') = 0;
    for (int i = 0; i < 2; i++) {
        int n = snprintf(path, size, i == 0 ? "%s/probe/%s" : "%s/../libexec/%s", here, name);
        if (n > 0 && (size_t)n < size && access(path, X_OK) == 0)
            return TB_OK;
    }
    return tb_error(TB_ERR_SYSTEM, "%s is missing from this installation; it should be %s", name, path);
}

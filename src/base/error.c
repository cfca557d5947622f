#include "base/base.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define STORY_BYTES 1024

static _Thread_local char story[STORY_BYTES];

const char *tb_error_limit(int error, char *text, size_t size)
{
    static const struct {
        int error, limit;
        char letter;
        unsigned unit;
        const char *unit_name;
    } table[] = {{EFBIG, RLIMIT_FSIZE, 'f', 1024, " KiB"},
                 {ENOMEM, RLIMIT_AS, 'v', 1024, " KiB"},
                 {EMFILE, RLIMIT_NOFILE, 'n', 1, ""},
                 {EAGAIN, RLIMIT_NPROC, 'u', 1, ""}};
    struct rlimit limit;
    *text = 0;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (table[i].error == error && getrlimit(table[i].limit, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
            snprintf(text, size, "; `ulimit -%c` is %llu%s", table[i].letter,
                     (unsigned long long)limit.rlim_cur / table[i].unit, table[i].unit_name);
    return text;
}

/* A story may quote the one before it, which stands in the same place, so it is told aside first. The error is one that
 * a limit of the shell may have caused, or 0. */
__attribute__((format(printf, 1, 0))) static void tell(const char *format, va_list arguments, const char *ending,
                                                       int error)
{
    char aside[STORY_BYTES], limit[64] = "";
    vsnprintf(aside, sizeof aside, format, arguments);
    if (error != EAGAIN && strstr(aside, "`ulimit -") == NULL)
        tb_error_limit(error, limit, sizeof limit);
    snprintf(story, sizeof story, "%.*s%s%s", (int)(sizeof story - 192), aside, ending, limit);
}

int(tb_error)(int code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    tell(format, arguments, "", code == TB_ERR_MEMORY ? ENOMEM : 0);
    va_end(arguments);
    return code;
}

int(tb_error_errno)(const char *format, ...)
{
    char ending[128], buffer[96];
    int error = errno;
    snprintf(ending, sizeof ending, ": %s", strerror_r(error, buffer, sizeof buffer));
    va_list arguments;
    va_start(arguments, format);
    tell(format, arguments, ending, error);
    va_end(arguments);
    return TB_ERR_SYSTEM;
}

const char *tb_error_story(void)
{
    return story;
}

const char *tb_error_name(int code)
{
    static const char *const names[] = {
        "success",
        "out of memory",
        "system call failed",
        "wrong argument",
        "limit reached",
        "peer unreachable",
        "message truncated",
        "protocol error",
        "forbidden",
        "closed",
        "timed out",
        "not supported here",
        "cancelled",
        "mismatch",
        "internal error",
        "given up by another rank",
        "partial element",
        "epochs do not match",
    };
    if (code > 0)
        return code == TB_AGAIN ? "try again" : "pending";
    size_t index = (size_t)-code;
    return index < sizeof names / sizeof names[0] ? names[index] : "unknown error";
}

_Noreturn void tb_panic(const char *file, int line, const char *format, ...)
{
    char text[STORY_BYTES];
    int n = snprintf(text, sizeof text, "tombolo: bug at %s:%d (pid %d): ", file, line, (int)getpid());
    va_list arguments;
    va_start(arguments, format);
    n += vsnprintf(text + n, sizeof text - (size_t)n - 1, format, arguments);
    va_end(arguments);
    if (n > (int)sizeof text - 2)
        n = (int)sizeof text - 2;
    text[n++] = '\n';
    if (write(STDERR_FILENO, text, (size_t)n) < 0)
        abort();
    abort();
}

#include "base/base.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STORY_BYTES 1024

static _Thread_local char story[STORY_BYTES];

/* A story may quote the one before it, which stands in the same place, so it is told aside first. */
__attribute__((format(printf, 1, 0))) static void tell(const char *format, va_list arguments, const char *ending)
{
    char aside[STORY_BYTES];
    vsnprintf(aside, sizeof aside, format, arguments);
    snprintf(story, sizeof story, "%.*s%s", (int)(sizeof story - 128), aside, ending);
}

int(tb_error)(int code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    tell(format, arguments, "");
    va_end(arguments);
    return code;
}

int(tb_error_errno)(const char *format, ...)
{
    char ending[128], buffer[96];
    snprintf(ending, sizeof ending, ": %s", strerror_r(errno, buffer, sizeof buffer));
    va_list arguments;
    va_start(arguments, format);
    tell(format, arguments, ending);
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
        "success",       "out of memory",    "system call failed", "wrong argument",
        "limit reached", "peer unreachable", "message truncated",  "protocol error",
        "forbidden",     "closed",           "timed out",          "not supported here",
        "cancelled",     "mismatch",         "internal error",     "given up by another rank",
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

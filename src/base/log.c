#include "base/base.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int tb_log_threshold = TB_LOG_WARN;

static char identity[300] = "";

void tb_log_identify(const char *who)
{
    snprintf(identity, sizeof identity, "%s", who);
}

/* One write a line, so that lines of several processes do not mix. */
void tb_log_write(enum tb_log_level level, const char *where, const char *format, ...)
{
    static const char *const names[] = {"error", "warning", "info", "debug", "trace"};
    char line[2048];
    uint64_t now = tb_clock_now_real();
    int n =
        snprintf(line, sizeof line, "tombolo %llu.%06llu %s%s%s: %s: ", (unsigned long long)(now / 1000000000u % 10000),
                 (unsigned long long)(now / 1000u % 1000000u), identity, *identity ? " " : "", names[level], where);
    va_list arguments;
    va_start(arguments, format);
    n += vsnprintf(line + n, sizeof line - (size_t)n - 1, format, arguments);
    va_end(arguments);
    if (n > (int)sizeof line - 2)
        n = (int)sizeof line - 2;
    line[n++] = '\n';
    ssize_t written = write(STDERR_FILENO, line, (size_t)n);
    (void)written; /* there is nobody left to tell */
}

/* What several options do alike: texts that they keep, parameters that they set, and being ignored. */
#include "launch/launch.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *tb_options_keep(struct tb_options *options, const char *format, ...)
{
    char *text = NULL;
    va_list rest;
    va_start(rest, format);
    int n = vasprintf(&text, format, rest);
    va_end(rest);
    char **grown = n >= 0 ? realloc(options->kept, (options->kept_count + 1) * sizeof *grown) : NULL;
    if (grown == NULL) {
        free(n >= 0 ? text : NULL);
        tb_error(TB_ERR_MEMORY, "no memory for the command line");
        return NULL;
    }
    options->kept = grown;
    return grown[options->kept_count++] = text;
}

void tb_options_ignore(struct tb_options *options, const char *what)
{
    size_t used = strlen(options->ignored);
    if (what != NULL && strstr(options->ignored, what) == NULL)
        snprintf(options->ignored + used, sizeof options->ignored - used, "%s%s", used > 0 ? ", " : "", what);
}

/* The environment is set too, so that a process here does not think that it was told something else there. */
int tb_options_set_parameter(const char *text)
{
    const char *equals = strchr(text, '=');
    char name[64], variable[80];
    if (equals == NULL || equals == text || (size_t)(equals - text) >= sizeof name)
        return tb_error(TB_ERR_ARGUMENT, "--set %s: should be NAME=VALUE; `tombolo info` lists the names", text);
    memcpy(name, text, (size_t)(equals - text));
    name[equals - text] = 0;
    int rc = tb_param_set(name, equals + 1, TB_PARAM_LAUNCHER);
    if (rc != TB_OK)
        return rc;
    size_t n = (size_t)snprintf(variable, sizeof variable, "TOMBOLO_%s", tb_param_find(name)->name);
    for (size_t i = 8; i < n; i++)
        if (variable[i] >= 'a' && variable[i] <= 'z')
            variable[i] = (char)(variable[i] - 'a' + 'A');
    setenv(variable, equals + 1, 1);
    return TB_OK;
}

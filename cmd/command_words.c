#include "command_words.h"

#include "base/base.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LONGEST 8.64e15 /* ns: a hundred days */

bool tb_command_help(char **words, const char *usage)
{
    bool wanted = words[0] != NULL && (strcmp(words[0], "--help") == 0 || strcmp(words[0], "-h") == 0);
    if (wanted)
        fputs(usage, stdout);
    return wanted;
}

int tb_command_number(const char *option, const char *text, uint64_t least, uint64_t most, uint64_t *value)
{
    uint64_t number;
    char range[64];
    const char *end = tb_number_read(text, &number);
    if (end != NULL && *end == 0 && number >= least && number <= most) {
        *value = number;
        return TB_OK;
    }
    if (most == UINT64_MAX)
        snprintf(range, sizeof range, "from %llu on", (unsigned long long)least);
    else
        snprintf(range, sizeof range, "between %llu and %llu", (unsigned long long)least, (unsigned long long)most);
    return tb_error(TB_ERR_ARGUMENT, "%s %s: should be a number %s", option, text, range);
}

int tb_command_set(const char *text)
{
    char name[64];
    const char *equals = strchr(text, '=');
    if (equals == NULL || (size_t)(equals - text) >= sizeof name)
        return tb_error(TB_ERR_ARGUMENT, "--set %s: should be NAME=VALUE; `tombolo info` lists the names", text);
    snprintf(name, sizeof name, "%.*s", (int)(equals - text), text);
    return tb_param_set(name, equals + 1, TB_PARAM_LAUNCHER);
}

int tb_command_time(const char *option, const char *text, uint64_t *time)
{
    static const struct {
        const char *name;
        double ns;
    } units[] = {{"", 1e9}, {"s", 1e9}, {"ms", 1e6}, {"us", 1e3}, {"min", 6e10}, {"m", 6e10}, {"h", 3.6e12}};
    char *end;
    double number = strtod(text, &end);
    for (size_t i = 0; i < sizeof units / sizeof units[0] && end != text; i++) {
        double ns = number * units[i].ns;
        if (strcmp(end, units[i].name) != 0 || !(ns >= 1e3 && ns <= LONGEST))
            continue;
        *time = (uint64_t)ns;
        return TB_OK;
    }
    return tb_error(TB_ERR_ARGUMENT, "%s \"%s\": should be a time between 1us and 2400h, such as 10s, 500ms or 2min",
                    option, text);
}

/* Times as users write them behind an option. */
#include "command.h"

#include "base/base.h"

#include <stdlib.h>
#include <string.h>

#define LONGEST 8.64e15 /* ns: a hundred days */

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

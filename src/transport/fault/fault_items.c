#include "transport/fault/fault_items.h"

#include "base/base.h"

#include <errno.h>
#include <stdlib.h>

static int item_bad(const char *item, const char *example)
{
    return tb_error(TB_ERR_ARGUMENT,
                    "fault: '%s' is not understood; expected is a list such as %s (shares as percentage or fraction up "
                    "to 1, times with ns, us, ms or s)",
                    item, example);
}

static int share_parse(const char *text, double *share)
{
    char *end;
    double value = strtod(text, &end);
    if (end == text)
        return TB_ERR_ARGUMENT;
    if (*end == '%') {
        value /= 100;
        end++;
    }
    if (*end != 0 || !(value >= 0 && value <= 1))
        return TB_ERR_ARGUMENT;
    *share = value;
    return TB_OK;
}

static int time_parse(const char *text, uint64_t *ns)
{
    static const struct {
        const char *unit;
        double ns;
    } units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
    char *end;
    double value = strtod(text, &end);
    if (end == text || !(value >= 0))
        return TB_ERR_ARGUMENT;
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (strcmp(end, units[i].unit) == 0 && value * units[i].ns <= 60e9) {
            *ns = (uint64_t)(value * units[i].ns);
            return TB_OK;
        }
    }
    return TB_ERR_ARGUMENT;
}

static int number_parse(const char *text, uint64_t *number)
{
    char *end;
    errno = 0;
    *number = strtoull(text, &end, 0);
    return end == text || *end != 0 || errno != 0 || *text == '-' ? TB_ERR_ARGUMENT : TB_OK;
}

static int value_parse(const struct tb_fault_item *item, const char *text)
{
    return item->share != NULL  ? share_parse(text, item->share)
           : item->time != NULL ? time_parse(text, item->time)
                                : number_parse(text, item->number);
}

static int item_parse(const struct tb_fault_item *items, uint32_t count, char *text)
{
    char *value = strchr(text, '=');
    if (value == NULL)
        return TB_ERR_ARGUMENT;
    size_t name = (size_t)(value - text);
    for (uint32_t i = 0; i < count; i++)
        if (strlen(items[i].name) == name && strncmp(text, items[i].name, name) == 0)
            return value_parse(&items[i], value + 1);
    return TB_ERR_ARGUMENT;
}

int tb_fault_items_read(const struct tb_fault_item *items, uint32_t count, const char *example,
                        const char *specification)
{
    char text[256];
    size_t length = strlen(specification);
    if (length >= sizeof(text))
        return item_bad(specification, example);
    memcpy(text, specification, length + 1);
    char *rest = NULL;
    for (char *item = strtok_r(text, ", ", &rest); item != NULL; item = strtok_r(NULL, ", ", &rest))
        if (item_parse(items, count, item) != TB_OK)
            return item_bad(item, example);
    return TB_OK;
}

/* Values of a grid file: names, rates, times, shares; and maps, whose keys are rows of tables. */
#include "topology/grid_file.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

int tb_grid_complain(const struct tb_grid_reader *reader, int node, const char *format, ...)
{
    char story[1024];
    va_list list;
    va_start(list, format);
    vsnprintf(story, sizeof story, format, list);
    va_end(list);
    return tb_error(TB_ERR_ARGUMENT, "%s:%u: %s", reader->yaml.file, tb_yaml_line(&reader->yaml, node), story);
}

int tb_grid_complain_line(const struct tb_grid_reader *reader, uint32_t line, const char *format, ...)
{
    char story[1024];
    va_list list;
    va_start(list, format);
    vsnprintf(story, sizeof story, format, list);
    va_end(list);
    return tb_error(TB_ERR_ARGUMENT, "%s:%u: %s", reader->yaml.file, line, story);
}

int tb_grid_complain_memory(const struct tb_grid_reader *reader)
{
    return tb_error(TB_ERR_MEMORY, "no memory for the grid of %s", reader->yaml.file);
}

int tb_grid_grow(const struct tb_grid_reader *reader, void **array, uint32_t count, uint32_t *room, size_t size)
{
    if (count < *room)
        return TB_OK;
    uint32_t wanted = *room != 0 ? 2 * *room : 8;
    void *grown = reallocarray(*array, wanted, size);
    if (grown == NULL)
        return tb_grid_complain_memory(reader);
    *array = grown;
    *room = wanted;
    return TB_OK;
}

const char *tb_grid_value_name(const struct tb_grid_reader *reader, int value)
{
    static _Thread_local char name[80];
    switch (tb_yaml_kind(&reader->yaml, value)) {
    case TB_YAML_LIST:
        return "a list";
    case TB_YAML_MAP:
        return "a map of keys and values";
    default:
        break;
    }
    const char *text = tb_yaml_text(&reader->yaml, value);
    if (*text == 0)
        return "nothing";
    snprintf(name, sizeof name, "\"%.60s%s\"", text, strlen(text) > 60 ? "..." : "");
    for (char *at = name; *at != 0; at++) {
        if (iscntrl((unsigned char)*at))
            *at = ' ';
    }
    return name;
}

/* ---- maps -------------------------------------------------------------------------------------------------------- */

static void list_keys(char *out, size_t size, const struct tb_grid_key *keys, size_t count)
{
    size_t length = 0;
    out[0] = 0;
    for (size_t i = 0; i < count && length < size; i++)
        length += (size_t)snprintf(out + length, size - length, "%s%s", i == 0 ? "" : (i + 1 < count ? ", " : " or "),
                                   keys[i].name);
}

int tb_grid_read_map(struct tb_grid_reader *reader, int node, const char *what, const struct tb_grid_key *keys,
                     size_t key_count, void *into)
{
    const struct tb_yaml *yaml = &reader->yaml;
    char known[512];
    list_keys(known, sizeof known, keys, key_count);
    if (tb_yaml_kind(yaml, node) != TB_YAML_MAP)
        return tb_grid_complain(reader, node, "%s should be a map with the keys %s, not %s", what, known,
                                tb_grid_value_name(reader, node));
    uint64_t seen = 0;
    TB_ASSERT(key_count <= 64);
    for (uint32_t i = 0; i < tb_yaml_count(yaml, node); i++) {
        int key = tb_yaml_key(yaml, node, i);
        size_t row = 0;
        while (row < key_count &&
               (tb_yaml_kind(yaml, key) != TB_YAML_TEXT || strcmp(tb_yaml_text(yaml, key), keys[row].name) != 0))
            row++;
        if (row == key_count)
            return tb_grid_complain(reader, key, "%s is no key of %s; expected %s", tb_grid_value_name(reader, key),
                                    what, known);
        if (seen >> row & 1)
            return tb_grid_complain(reader, key, "the key \"%s\" stands twice in %s; expected it once", keys[row].name,
                                    what);
        seen |= UINT64_C(1) << row;
        int rc = keys[row].read(reader, tb_yaml_value(yaml, node, i), (char *)into + keys[row].offset);
        if (rc != TB_OK)
            return rc;
    }
    for (size_t row = 0; row < key_count; row++) {
        if (keys[row].required && !(seen >> row & 1))
            return tb_grid_complain(reader, node, "%s has no \"%s\"; expected it beside its other keys", what,
                                    keys[row].name);
    }
    return TB_OK;
}

int tb_grid_read_node(struct tb_grid_reader *reader, int value, void *field)
{
    *(int *)field = value;
    return TB_OK;
}

/* ---- texts ------------------------------------------------------------------------------------------------------- */

bool tb_grid_is_name(const char *text, size_t length)
{
    if (length == 0 || length >= TB_GRID_NAME_BYTES || !isalnum((unsigned char)text[0]))
        return false;
    for (size_t i = 0; i < length; i++) {
        if (!isalnum((unsigned char)text[i]) && (text[i] == 0 || strchr("._-", text[i]) == NULL))
            return false;
    }
    return true;
}

/* NULL unless it is a text with something in it. */
static const char *text_of(const struct tb_grid_reader *reader, int value)
{
    if (tb_yaml_kind(&reader->yaml, value) != TB_YAML_TEXT)
        return NULL;
    const char *text = tb_yaml_text(&reader->yaml, value);
    return *text != 0 ? text : NULL;
}

int tb_grid_read_name(struct tb_grid_reader *reader, int value, void *field)
{
    const char *text = text_of(reader, value);
    if (text == NULL || !tb_grid_is_name(text, strlen(text)))
        return tb_grid_complain(reader, value,
                                "expected a name of at most %d letters, digits, '.', '_' and '-' that begins with a "
                                "letter or digit, not %s",
                                TB_GRID_NAME_BYTES - 1, tb_grid_value_name(reader, value));
    snprintf(field, TB_GRID_NAME_BYTES, "%s", text);
    return TB_OK;
}

static bool is_printable(const char *text)
{
    for (; *text != 0; text++) {
        if (iscntrl((unsigned char)*text))
            return false;
    }
    return true;
}

int tb_grid_read_title(struct tb_grid_reader *reader, int value, void *field)
{
    const char *text = text_of(reader, value);
    if (text == NULL || strlen(text) >= TB_GRID_NAME_BYTES || !is_printable(text))
        return tb_grid_complain(reader, value, "expected a name of one line and at most %d bytes, not %s",
                                TB_GRID_NAME_BYTES - 1, tb_grid_value_name(reader, value));
    snprintf(field, TB_GRID_NAME_BYTES, "%s", text);
    return TB_OK;
}

/* A word that may stand on a command line of ssh: no blanks, and not to be taken for an option. */
int tb_grid_read_word(struct tb_grid_reader *reader, int value, void *field)
{
    const char *text = text_of(reader, value);
    if (text == NULL || strlen(text) > 255 || !is_printable(text) || text[strcspn(text, " \"'`$\\;&|<>()")] != 0 ||
        text[0] == '-')
        return tb_grid_complain(reader, value,
                                "expected one word without blanks and quotes that does not begin with '-', not %s",
                                tb_grid_value_name(reader, value));
    *(const char **)field = text;
    return TB_OK;
}

int tb_grid_read_flag(struct tb_grid_reader *reader, int value, void *field)
{
    static const char *const words[] = {"false", "true", "no", "yes", "off", "on"};
    const char *text = text_of(reader, value);
    for (size_t i = 0; text != NULL && i < sizeof words / sizeof words[0]; i++) {
        if (strcasecmp(text, words[i]) == 0) {
            *(bool *)field = i % 2 == 1;
            return TB_OK;
        }
    }
    return tb_grid_complain(reader, value, "expected true or false, not %s", tb_grid_value_name(reader, value));
}

int tb_grid_read_choice(struct tb_grid_reader *reader, int value, const char *const *words, const char *expected,
                        uint32_t *field)
{
    const char *text = text_of(reader, value);
    for (uint32_t i = 0; text != NULL && words[i] != NULL; i++) {
        if (strcmp(text, words[i]) == 0) {
            *field = i;
            return TB_OK;
        }
    }
    return tb_grid_complain(reader, value, "expected %s, not %s", expected, tb_grid_value_name(reader, value));
}

/* ---- numbers ----------------------------------------------------------------------------------------------------- */

static int read_whole(struct tb_grid_reader *reader, int value, uint32_t least, uint32_t most, const char *expected,
                      uint32_t *field)
{
    const char *text = text_of(reader, value);
    uint64_t number = 0;
    bool good = text != NULL && strlen(text) <= 10;
    for (size_t i = 0; good && text[i] != 0; i++) {
        good = isdigit((unsigned char)text[i]) != 0;
        number = 10 * number + (uint64_t)(text[i] - '0');
    }
    if (!good || number < least || number > most)
        return tb_grid_complain(reader, value, "expected %s from %u to %u, not %s", expected, least, most,
                                tb_grid_value_name(reader, value));
    *field = (uint32_t)number;
    return TB_OK;
}

int tb_grid_read_port(struct tb_grid_reader *reader, int value, void *field)
{
    return read_whole(reader, value, 1, 65535, "a port number", field);
}

int tb_grid_read_slots(struct tb_grid_reader *reader, int value, void *field)
{
    return read_whole(reader, value, 0, TB_GRID_SLOTS_LIMIT, "a number of slots", field);
}

struct unit {
    const char *name;
    double factor;
};

/* A decimal number with or without one of the units, of which the first is meant where none stands. */
static bool read_quantity(const char *text, const struct unit *units, double *quantity)
{
    size_t digits = strspn(text, "0123456789.");
    if (digits == 0 || digits > 20 || !isdigit((unsigned char)text[digits - 1]))
        return false;
    char *end;
    double number = strtod(text, &end);
    if (end != text + digits && end != text + digits + strspn(text + digits, "eE+-0123456789"))
        return false;
    while (*end == ' ')
        end++;
    for (const struct unit *unit = units; unit->name != NULL; unit++) {
        if (*end == 0 || strcmp(end, unit->name) == 0) {
            *quantity = number * unit->factor;
            return true;
        }
    }
    return false;
}

int tb_grid_read_bandwidth(struct tb_grid_reader *reader, int value, void *field)
{
    static const struct unit units[] = {{"Mbit/s", 1e6}, {"bit/s", 1},     {"kbit/s", 1e3},
                                        {"Gbit/s", 1e9}, {"Tbit/s", 1e12}, {"kbps", 1e3},
                                        {"Mbps", 1e6},   {"Gbps", 1e9},    {NULL, 0}};
    const char *text = text_of(reader, value);
    double bits;
    if (text == NULL || !read_quantity(text, units, &bits) || !(bits >= 1) || bits > 1e15)
        return tb_grid_complain(reader, value,
                                "expected a rate above 0 in Mbit/s, such as 100, or with its unit, such as "
                                "\"1 Gbit/s\" (from 1 bit/s to 1000 Tbit/s; also kbit/s, Mbit/s, Gbit/s), not %s",
                                tb_grid_value_name(reader, value));
    *(uint64_t *)field = (uint64_t)(bits + 0.5);
    return TB_OK;
}

int tb_grid_read_time(struct tb_grid_reader *reader, int value, void *field)
{
    static const struct unit units[] = {{"ms", 1e6}, {"s", 1e9}, {"us", 1e3}, {"µs", 1e3}, {"ns", 1}, {NULL, 0}};
    const char *text = text_of(reader, value);
    double ns;
    if (text == NULL || !read_quantity(text, units, &ns) || ns > 3600e9)
        return tb_grid_complain(reader, value,
                                "expected a time from 0 to an hour in milliseconds, such as 12.5, or with its unit, "
                                "such as 80ms (ns, us, ms, s), not %s",
                                tb_grid_value_name(reader, value));
    *(uint64_t *)field = (uint64_t)(ns + 0.5);
    return TB_OK;
}

int tb_grid_read_share(struct tb_grid_reader *reader, int value, void *field)
{
    static const struct unit units[] = {{"", 1e6}, {"%", 1e4}, {NULL, 0}};
    const char *text = text_of(reader, value);
    double share;
    if (text == NULL || !read_quantity(text, units, &share) || share > 1e6)
        return tb_grid_complain(reader, value,
                                "expected a share from 0 to 1, such as 0.05, or from 0%% to 100%%, such as "
                                "5%%, not %s",
                                tb_grid_value_name(reader, value));
    *(uint32_t *)field = (uint32_t)(share + 0.5);
    return TB_OK;
}

int tb_grid_read_bytes(struct tb_grid_reader *reader, int value, void *field)
{
    static const struct unit units[] = {{"", 1},         {"k", 0x1p10},   {"m", 0x1p20}, {"g", 0x1p30},
                                        {"K", 0x1p10},   {"M", 0x1p20},   {"G", 0x1p30}, {"KiB", 0x1p10},
                                        {"MiB", 0x1p20}, {"GiB", 0x1p30}, {NULL, 0}};
    const char *text = text_of(reader, value);
    double bytes;
    if (text == NULL || !read_quantity(text, units, &bytes) || !(bytes >= 1) || bytes > 0x1p40)
        return tb_grid_complain(reader, value, "expected bytes as 64k or 1m, not %s",
                                tb_grid_value_name(reader, value));
    *(uint64_t *)field = (uint64_t)(bytes + 0.5);
    return TB_OK;
}

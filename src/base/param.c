#include "base/base.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#define VALUE_BYTES 4096
#define PREFIX      "TOMBOLO_"

struct tb_params tb_param;

#define OFFSET(name) offsetof(struct tb_params, name)
#define TB_PARAM_BOOL_ROW(name, value, flags, help)                                                                    \
    {#name, TB_PARAM_BOOL, flags, value, help, 0, 1, OFFSET(name), NULL},
#define TB_PARAM_INT_ROW(name, value, low, high, flags, help)                                                          \
    {#name, TB_PARAM_INT, flags, value, help, low, high, OFFSET(name), NULL},
#define TB_PARAM_SIZE_ROW(name, value, low, high, flags, help)                                                         \
    {#name, TB_PARAM_SIZE, flags, value, help, low, high, OFFSET(name), NULL},
#define TB_PARAM_TIME_ROW(name, value, low, high, flags, help)                                                         \
    {#name, TB_PARAM_TIME, flags, value, help, low, high, OFFSET(name), NULL},
#define TB_PARAM_TEXT_ROW(name, value, flags, help)                                                                    \
    {#name, TB_PARAM_TEXT, flags, value, help, 0, 0, OFFSET(name), NULL},
static const struct tb_param_row own_rows[] = {
#include "base/param_table.h"
};

/* None of them without a word about what it is about. */
#define SUBJECT(name, flags)                                                                                           \
    _Static_assert(((flags)&TB_PARAM_SUBJECTS) != 0 && ((flags)&TB_PARAM_SUBJECTS) != TB_PARAM_SUBJECTS, #name);
#define TB_PARAM_BOOL_ROW(name, value, flags, help)            SUBJECT(name, flags)
#define TB_PARAM_INT_ROW(name, value, low, high, flags, help)  SUBJECT(name, flags)
#define TB_PARAM_SIZE_ROW(name, value, low, high, flags, help) SUBJECT(name, flags)
#define TB_PARAM_TIME_ROW(name, value, low, high, flags, help) SUBJECT(name, flags)
#define TB_PARAM_TEXT_ROW(name, value, flags, help)            SUBJECT(name, flags)
#include "base/param_table.h"

enum { OWN_ROWS = sizeof own_rows / sizeof own_rows[0], ROWS_LIMIT = OWN_ROWS + TB_PARAM_JOINED_LIMIT };

static const struct tb_param_row *joined[TB_PARAM_JOINED_LIMIT];
static size_t joined_count;

/* Names under our prefix that are no parameters: set by agents for ranks, read by the compiler wrappers. */
static const char *const other_names[] = {"LAB", "AGENT", "OUTPUT", "RANK",    "SIZE",   "LOCAL_RANK", "LOCAL_SIZE",
                                          "CC",  "CXX",   "SITE",   "CLUSTER", "PREFIX", "SHELL",      "HOST"};

static struct {
    enum tb_param_origin origin;
    char *text;  /* where a TEXT value lives that is not the default; NULL: none */
    char *where; /* as tb_param_note_origin has it; NULL: nobody has said more */
} values[ROWS_LIMIT];

size_t tb_param_count(void)
{
    return OWN_ROWS + joined_count;
}

const struct tb_param_row *tb_param_row(size_t index)
{
    if (index < OWN_ROWS)
        return &own_rows[index];
    return index < tb_param_count() ? joined[index - OWN_ROWS] : NULL;
}

static size_t index_of(const struct tb_param_row *row)
{
    size_t index = 0;
    while (tb_param_row(index) != row)
        index++;
    return index;
}

static char *field_of(const struct tb_param_row *row)
{
    return row->at != NULL ? row->at : (char *)&tb_param + row->offset;
}

const void *tb_param_value(const struct tb_param_row *row)
{
    return field_of(row);
}

int tb_param_join(const struct tb_param_row *rows)
{
    for (const struct tb_param_row *row = rows; row->name != NULL; row++) {
        TB_ASSERT(row->at != NULL);
        if (tb_param_find(row->name) == row)
            continue;
        TB_ASSERT(tb_param_find(row->name) == NULL);
        if (joined_count == TB_PARAM_JOINED_LIMIT)
            return tb_error(TB_ERR_LIMIT, "there is no room for the parameter %s", row->name);
        joined[joined_count++] = row;
    }
    return TB_OK;
}

bool tb_param_lists(const char *list, const char *name)
{
    if (strcmp(list, TB_PARAM_ALL) == 0)
        return true;
    for (size_t n; *list != 0; list += n + (list[n] == ',')) {
        n = strcspn(list, ",");
        if (n == strlen(name) && strncmp(list, name, n) == 0)
            return true;
    }
    return false;
}

static bool same_name(const char *a, const char *b)
{
    for (; *a && *b; a++, b++) {
        char x = *a == '-' ? '_' : (char)tolower((unsigned char)*a);
        char y = *b == '-' ? '_' : (char)tolower((unsigned char)*b);
        if (x != y)
            return false;
    }
    return *a == *b;
}

const struct tb_param_row *tb_param_find(const char *name)
{
    for (size_t i = 0; i < tb_param_count(); i++)
        if (same_name(tb_param_row(i)->name, name))
            return tb_param_row(i);
    return NULL;
}

enum tb_param_origin tb_param_origin(const struct tb_param_row *row)
{
    return values[index_of(row)].origin;
}

/* How many letters must be changed, added or left out to get from one name to the other. */
static size_t distance(const char *a, const char *b)
{
    size_t line[64], la = strlen(a), lb = strlen(b);
    if (lb >= 64 || la >= 64)
        return 64;
    for (size_t j = 0; j <= lb; j++)
        line[j] = j;
    for (size_t i = 1; i <= la; i++) {
        size_t diagonal = line[0];
        line[0] = i;
        for (size_t j = 1; j <= lb; j++) {
            size_t change = diagonal + (tolower((unsigned char)a[i - 1]) != tolower((unsigned char)b[j - 1]));
            size_t shorter = line[j] < line[j - 1] ? line[j] : line[j - 1];
            diagonal = line[j];
            line[j] = change < shorter + 1 ? change : shorter + 1;
        }
    }
    return line[lb];
}

/* A parameter that was probably meant; NULL: none is near enough to say so. */
static const char *nearest(const char *name)
{
    size_t best = 0, best_distance = SIZE_MAX;
    for (size_t i = 0; i < tb_param_count(); i++) {
        size_t d = distance(name, tb_param_row(i)->name);
        if (d < best_distance) {
            best_distance = d;
            best = i;
        }
    }
    return best_distance <= (strlen(name) < 8 ? 1 : 2) ? tb_param_row(best)->name : NULL;
}

/* ---- text to value ----------------------------------------------------------------------------------------------- */

static int parse_bool(const char *text, bool *value)
{
    static const char *const yes[] = {"yes", "true", "on", "1"}, *const no[] = {"no", "false", "off", "0"};
    for (size_t i = 0; i < 4; i++) {
        if (strcasecmp(text, yes[i]) == 0 || strcasecmp(text, no[i]) == 0) {
            *value = strcasecmp(text, yes[i]) == 0;
            return TB_OK;
        }
    }
    return tb_error(TB_ERR_ARGUMENT, "expected yes or no");
}

static int parse_number(const char *text, char **end, double *value)
{
    errno = 0;
    *value = strtod(text, end);
    if (*end == text || errno == ERANGE || *value != *value)
        return tb_error(TB_ERR_ARGUMENT, "expected a number");
    return TB_OK;
}

static int parse_size(const char *text, uint64_t *value)
{
    char *end;
    double number;
    int error = parse_number(text, &end, &number);
    if (error)
        return error;
    unsigned shift = tb_number_shift(*end);
    if (shift)
        end++;
    if (shift && tolower((unsigned char)end[0]) == 'i')
        end++;
    if (tolower((unsigned char)*end) == 'b')
        end++;
    number *= (double)(1u << shift);
    if (*end || number < 0 || number >= 0x1p63)
        return tb_error(TB_ERR_ARGUMENT, "expected a number of bytes such as 65536, 64k, 16m or 1g");
    *value = (uint64_t)number;
    return TB_OK;
}

static int parse_time(const char *text, uint64_t *value)
{
    static const struct {
        const char *unit;
        double factor;
    } units[] = {{"", 1e9}, {"s", 1e9}, {"ms", 1e6}, {"us", 1e3}, {"ns", 1}, {"m", 60e9}, {"min", 60e9}};
    char *end;
    double number;
    int error = parse_number(text, &end, &number);
    if (error)
        return error;
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (strcmp(end, units[i].unit) == 0 && number >= 0 && number * units[i].factor < 0x1p63) {
            *value = (uint64_t)(number * units[i].factor);
            return TB_OK;
        }
    }
    return tb_error(TB_ERR_ARGUMENT, "expected a duration such as 5s, 20ms, 3us or 1.5");
}

static int parse_int(const char *text, int64_t *value)
{
    char *end;
    errno = 0;
    *value = strtoll(text, &end, 10);
    if (end == text || *end || errno)
        return tb_error(TB_ERR_ARGUMENT, "expected a whole number");
    return TB_OK;
}

static int set_text(const struct tb_param_row *row, const char *text, const char **field)
{
    char *copy = strcmp(text, row->fallback) != 0 ? strdup(text) : NULL;
    if (copy == NULL && strcmp(text, row->fallback) != 0)
        return tb_error(TB_ERR_MEMORY, "no memory for its value");
    *field = copy != NULL ? copy : row->fallback;
    free(values[index_of(row)].text);
    values[index_of(row)].text = copy;
    return TB_OK;
}

static void print_number(enum tb_param_type type, int64_t value, char *text, size_t size)
{
    static const char *const units[] = {"ns", "us", "ms", "s"};
    int unit = 0;
    if (type == TB_PARAM_SIZE) {
        tb_number_print((uint64_t)value, text, size);
    } else if (type == TB_PARAM_TIME) {
        for (; value != 0 && value % 1000 == 0 && unit < 3; unit++)
            value /= 1000;
        snprintf(text, size, "%lld%s", (long long)value, units[unit]);
    } else {
        snprintf(text, size, "%lld", (long long)value);
    }
}

void tb_param_print_range(const struct tb_param_row *row, char *text, size_t size)
{
    char low[32], high[32];
    const char *zero = row->flags & TB_PARAM_OR_ZERO ? "0 or " : "";
    *text = 0;
    if (row->type == TB_PARAM_BOOL || row->type == TB_PARAM_TEXT)
        return;
    print_number(row->type, row->low, low, sizeof low);
    print_number(row->type, row->high, high, sizeof high);
    if (row->high == INT64_MAX)
        snprintf(text, size, "%s%s or more", zero, low);
    else
        snprintf(text, size, "%s%s to %s", zero, row->low == 0 ? "0" : low, high);
}

static int check_range(const struct tb_param_row *row, int64_t value)
{
    char range[96];
    if ((value >= row->low && value <= row->high) || (value == 0 && (row->flags & TB_PARAM_OR_ZERO)))
        return TB_OK;
    tb_param_print_range(row, range, sizeof range);
    return tb_error(TB_ERR_ARGUMENT, "expected %s%s", range, row->type == TB_PARAM_SIZE ? " bytes" : "");
}

static bool is_log(const struct tb_param_row *row)
{
    return row->at == NULL && row->offset == OFFSET(log);
}

/* -1: there is no such level. */
static int log_level(const char *text)
{
    static const char *const names[] = {"error", "warn", "info", "debug", "trace"};
    for (int i = 0; i < 5; i++)
        if (strcasecmp(text, names[i]) == 0)
            return i;
    return -1;
}

static int set_value(const struct tb_param_row *row, const char *text)
{
    char *field = field_of(row);
    bool truth = false;
    int64_t number = 0;
    uint64_t size = 0;
    int error = TB_OK;
    switch (row->type) {
    case TB_PARAM_BOOL:
        if (!(error = parse_bool(text, &truth)))
            *(bool *)field = truth;
        return error;
    case TB_PARAM_INT:
        if (!(error = parse_int(text, &number)) && !(error = check_range(row, number)))
            *(int64_t *)field = number;
        return error;
    case TB_PARAM_SIZE:
    case TB_PARAM_TIME:
        error = row->type == TB_PARAM_SIZE ? parse_size(text, &size) : parse_time(text, &size);
        if (!error && !(error = check_range(row, (int64_t)size))) /* both are below 2^63 */
            *(uint64_t *)field = size;
        return error;
    case TB_PARAM_TEXT:
        if (strlen(text) >= VALUE_BYTES)
            return tb_error(TB_ERR_ARGUMENT, "expected at most %d characters", VALUE_BYTES - 1);
        if (strchr(text, '\n'))
            return tb_error(TB_ERR_ARGUMENT, "expected a text without line breaks");
        if (is_log(row) && log_level(text) < 0)
            return tb_error(TB_ERR_ARGUMENT, "expected error, warn, info, debug or trace");
        return set_text(row, text, (const char **)field);
    }
    return TB_ERR_INTERNAL;
}

static void apply_log_level(void)
{
    tb_log_threshold = log_level(tb_param.log);
}

int tb_param_set(const char *name, const char *value, enum tb_param_origin origin)
{
    const struct tb_param_row *row = tb_param_find(name);
    if (!row && nearest(name))
        return tb_error(TB_ERR_ARGUMENT, "there is no parameter '%s'; did you mean '%s'? (tombolo info lists them)",
                        name, nearest(name));
    if (!row)
        return tb_error(TB_ERR_ARGUMENT, "there is no parameter '%s' (tombolo info lists them)", name);
    int error = set_value(row, value);
    if (error)
        return tb_error(error, "parameter %s: '%s' is not valid: %s", row->name, value, tb_error_story());
    values[index_of(row)].origin = origin;
    tb_param_note_origin(row, NULL);
    if (is_log(row))
        apply_log_level();
    return TB_OK;
}

void tb_param_print(const struct tb_param_row *row, char *text, size_t size)
{
    const char *field = field_of(row);
    switch (row->type) {
    case TB_PARAM_BOOL:
        snprintf(text, size, "%s", *(const bool *)field ? "yes" : "no");
        break;
    case TB_PARAM_INT:
    case TB_PARAM_SIZE:
    case TB_PARAM_TIME:
        print_number(row->type, *(const int64_t *)field, text, size);
        break;
    case TB_PARAM_TEXT:
        snprintf(text, size, "%s", *(const char *const *)field);
        break;
    }
}

/* ---- environment and launcher ------------------------------------------------------------------------------------ */

static void environment_name(const char *name, char *variable, size_t size)
{
    snprintf(variable, size, PREFIX "%s", name);
    for (char *c = variable; *c; c++)
        *c = (char)toupper((unsigned char)*c);
}

void tb_param_note_origin(const struct tb_param_row *row, const char *where)
{
    free(values[index_of(row)].where);
    values[index_of(row)].where = where != NULL ? strdup(where) : NULL;
}

void tb_param_print_origin(const struct tb_param_row *row, char *text, size_t size)
{
    char variable[80];
    environment_name(row->name, variable, sizeof variable);
    if (values[index_of(row)].where != NULL)
        snprintf(text, size, "%s", values[index_of(row)].where);
    else if (values[index_of(row)].origin == TB_PARAM_ENVIRONMENT)
        snprintf(text, size, "%s in the environment", variable);
    else
        snprintf(text, size, "%s", values[index_of(row)].origin == TB_PARAM_LAUNCHER ? "--set" : "the default");
}

static const char *environment_value(const struct tb_param_row *row)
{
    char variable[80];
    environment_name(row->name, variable, sizeof variable);
    return getenv(variable);
}

static void warn_of_unknown(const char *entry)
{
    char name[80];
    size_t length = strcspn(entry, "=") - strlen(PREFIX);
    if (length >= sizeof name)
        return;
    snprintf(name, sizeof name, "%.*s", (int)length, entry + strlen(PREFIX));
    for (size_t i = 0; i < sizeof other_names / sizeof other_names[0]; i++)
        if (strcmp(name, other_names[i]) == 0)
            return;
    if (!tb_param_find(name)) {
        char variable[80] = "";
        if (nearest(name))
            environment_name(nearest(name), variable, sizeof variable);
        tb_log(TB_LOG_WARN, "base", PREFIX "%s in the environment means nothing%s%s%s", name,
               *variable ? "; did you mean " : "", variable, *variable ? "?" : "");
    }
}

int tb_param_load(void)
{
    for (size_t i = 0; i < tb_param_count(); i++) {
        TB_ASSERT(set_value(tb_param_row(i), tb_param_row(i)->fallback) == TB_OK);
        values[i].origin = TB_PARAM_DEFAULT;
    }
    for (size_t i = 0; i < tb_param_count(); i++) {
        const struct tb_param_row *row = tb_param_row(i);
        const char *text = environment_value(row);
        if (!text)
            continue;
        int error = set_value(row, text);
        if (error) {
            char variable[80];
            environment_name(row->name, variable, sizeof variable);
            return tb_error(error, "%s=%s in the environment: %s", variable, text, tb_error_story());
        }
        values[i].origin = TB_PARAM_ENVIRONMENT;
    }
    apply_log_level();
    extern char **environ;
    for (char **entry = environ; entry && *entry; entry++)
        if (strncmp(*entry, PREFIX, strlen(PREFIX)) == 0)
            warn_of_unknown(*entry);
    return TB_OK;
}

size_t tb_param_export(char *text, size_t size)
{
    size_t length = 0;
    for (size_t i = 0; i < tb_param_count(); i++) {
        const struct tb_param_row *row = tb_param_row(i);
        if (values[i].origin == TB_PARAM_DEFAULT || (row->flags & TB_PARAM_LOCAL))
            continue;
        char value[VALUE_BYTES];
        tb_param_print(row, value, sizeof value);
        size_t room = length < size ? size - length : 0;
        length += (size_t)snprintf(room ? text + length : NULL, room, "%s=%s\n", row->name, value);
    }
    return length;
}

/* A process whose own environment says something else is told so; the launcher's value holds. */
static void warn_of_difference(const struct tb_param_row *row, const char *value)
{
    const char *own = environment_value(row);
    if (own && strcmp(own, value) != 0 && values[index_of(row)].origin == TB_PARAM_ENVIRONMENT) {
        char mine[VALUE_BYTES];
        tb_param_print(row, mine, sizeof mine);
        if (strcmp(mine, value) != 0)
            tb_log(TB_LOG_WARN, "base",
                   "parameter %s is %s job-wide; this process's own environment says %s, which is ignored", row->name,
                   value, own);
    }
}

int tb_param_import(const char *text, size_t length)
{
    const char *end = text + length;
    while (text < end) {
        const char *line_end = memchr(text, '\n', (size_t)(end - text));
        size_t line = (size_t)((line_end ? line_end : end) - text);
        const char *equals = memchr(text, '=', line);
        char name[64], value[VALUE_BYTES];
        if (!equals || (size_t)(equals - text) >= sizeof name || line - (size_t)(equals - text) > sizeof value)
            return tb_error(TB_ERR_PROTOCOL, "parameters from the launcher make no sense near '%.*s'",
                            (int)(line < 60 ? line : 60), text);
        snprintf(name, sizeof name, "%.*s", (int)(equals - text), text);
        snprintf(value, sizeof value, "%.*s", (int)(line - (size_t)(equals - text) - 1), equals + 1);
        const struct tb_param_row *row = tb_param_find(name);
        if (row)
            warn_of_difference(row, value);
        int error = tb_param_set(name, value, TB_PARAM_LAUNCHER);
        if (error)
            return error;
        text += line + 1;
    }
    return TB_OK;
}

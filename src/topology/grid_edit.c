#include "topology/grid_edit.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ALIKE 0.1 /* directions that differ by less are one link */

/* A map in the text: {a: b} or lines of equal indentation. */
struct region {
    size_t start, end; /* of its first key or its brace; behind its last line or brace */
    size_t column;     /* of the keys of lines */
    bool braces;
};

/* ---- the text ---------------------------------------------------------------------------------------------------- */

static size_t line_end(const char *text, size_t at)
{
    return at + strcspn(text + at, "\n");
}

static size_t line_start(const char *text, uint32_t line)
{
    size_t at = 0;
    for (uint32_t i = 1; i < line && text[at] != 0; i++) {
        at = line_end(text, at);
        at += text[at] == '\n';
    }
    return at;
}

static size_t column_of(const char *text, size_t at)
{
    size_t column = 0;
    while (at > column && text[at - column - 1] != '\n')
        column++;
    return column;
}

/* Behind what stands at `at`, if that is a quoted text or a comment; else `at`. */
static size_t skip_opaque(const char *text, size_t at)
{
    char quote = text[at];
    bool fresh = at == 0 || isspace((unsigned char)text[at - 1]) || strchr("{[,:", text[at - 1]) != NULL;
    if (quote == '#' && fresh)
        return line_end(text, at);
    if ((quote != '"' && quote != '\'') || !fresh)
        return at;
    size_t end = at + 1;
    while (text[end] != 0 && text[end] != quote)
        end += text[end] == '\\' && quote == '"' && text[end + 1] != 0 ? 2 : 1;
    return end + (text[end] != 0);
}

/* Behind the brace that closes the one at `at`; 0: there is none. */
static size_t braces_end(const char *text, size_t at)
{
    uint32_t depth = 0;
    while (text[at] != 0) {
        size_t next = skip_opaque(text, at);
        if (next != at) {
            at = next;
            continue;
        }
        depth += text[at] == '{' || text[at] == '[';
        depth -= text[at] == '}' || text[at] == ']';
        at++;
        if (depth == 0)
            return at;
    }
    return 0;
}

/* Whether nothing but blanks and a comment is left in the line. */
static bool line_is_over(const char *text, size_t at)
{
    at += strspn(text + at, " \t\r");
    return text[at] == '\n' || text[at] == 0 || text[at] == '#';
}

static bool region_of_lines(const char *text, size_t start, struct region *r)
{
    *r = (struct region){.start = start, .column = column_of(text, start)};
    size_t at = line_end(text, start);
    for (r->end = at; text[at] == '\n'; at = line_end(text, at + 1)) {
        size_t indent = strspn(text + at + 1, " ");
        if (line_is_over(text, at + 1))
            continue;
        if (indent < r->column)
            break;
        r->end = line_end(text, at + 1);
    }
    return true;
}

/* The map that begins in this line, perhaps behind the dash of a list. */
static bool region_at(const char *text, size_t at, struct region *r)
{
    at += strspn(text + at, " ");
    while (text[at] == '-' && text[at + 1] == ' ')
        at += 1 + strspn(text + at + 1, " ");
    if (text[at] != '{')
        return isalpha((unsigned char)text[at]) && region_of_lines(text, at, r);
    *r = (struct region){.start = at, .end = braces_end(text, at), .braces = true};
    return r->end != 0;
}

static bool key_is(const char *text, size_t at, const char *key)
{
    size_t length = strlen(key);
    return strncmp(text + at, key, length) == 0 && text[at + length] == ':' &&
           (text[at + length + 1] == 0 || strchr(" \t\r\n", text[at + length + 1]) != NULL);
}

/* Where the value of a key begins; 0: the map has no such key. */
static size_t region_find(const char *text, const struct region *r, const char *key)
{
    size_t skip = strlen(key) + 1;
    if (!r->braces) {
        for (size_t at = r->start; at < r->end; at = line_end(text, at) + 1) {
            size_t begin = at == r->start ? at : at + strspn(text + at, " ");
            if (column_of(text, begin) == r->column && key_is(text, begin, key))
                return begin + skip + strspn(text + begin + skip, " \t");
        }
        return 0;
    }
    bool fresh = true; /* a key may begin here */
    for (size_t at = r->start + 1; at < r->end - 1;) {
        size_t next = skip_opaque(text, at);
        if (fresh && key_is(text, at, key))
            return at + skip + strspn(text + at + skip, " \t\n");
        fresh = text[at] == ',' || (fresh && isspace((unsigned char)text[at]));
        if (next != at)
            at = next;
        else
            at = text[at] == '{' || text[at] == '[' ? braces_end(text, at) : at + 1;
        if (at == 0)
            return 0;
    }
    return 0;
}

/* Behind a number or a name. */
static size_t scalar_end(const char *text, size_t at, bool braces)
{
    size_t quoted = text[at] == '"' || text[at] == '\'' ? skip_opaque(text, at) : at;
    if (quoted != at)
        return quoted;
    size_t end = at;
    while (text[end] != 0 && text[end] != '\n' && !(braces && strchr(",}", text[end]) != NULL) &&
           !(text[end] == '#' && text[end - 1] == ' '))
        end++;
    while (end > at && isspace((unsigned char)text[end - 1]))
        end--;
    return end;
}

static bool scalar_is(const char *text, size_t at, bool braces, const char *value)
{
    size_t end = scalar_end(text, at, braces);
    if (end > at + 1 && (text[at] == '"' || text[at] == '\'')) {
        at++;
        end--;
    }
    return end - at == strlen(value) && strncmp(text + at, value, end - at) == 0;
}

/* ---- changes ----------------------------------------------------------------------------------------------------- */

static int text_replace(struct tb_grid_edit *edit, size_t at, size_t length, const char *with)
{
    char *text = NULL;
    if (asprintf(&text, "%.*s%s%s", (int)at, edit->text, with, edit->text + at + length) < 0)
        return tb_error(TB_ERR_MEMORY, "no memory to change %s", edit->file);
    free(edit->text);
    edit->text = text;
    return TB_OK;
}

static void number_print(double value, char *text, size_t size)
{
    /* Four digits are more than can be measured, and never an exponent. */
    int digits = 0;
    for (double scaled = value; scaled > 0 && scaled < 1000 && digits < 6; scaled *= 10)
        digits++;
    snprintf(text, size, "%.*f", digits, value);
    if (strchr(text, '.') != NULL) {
        char *end = text + strlen(text);
        while (end[-1] == '0')
            *--end = 0;
        if (end[-1] == '.')
            end[-1] = 0;
    }
}

/* Sets a number of a map that holds single values only. */
static int region_set(struct tb_grid_edit *edit, const struct region *r, const char *key, double number)
{
    char value[64], line[512];
    number_print(number, value, sizeof value);
    size_t at = region_find(edit->text, r, key);
    if (at != 0)
        return text_replace(edit, at, scalar_end(edit->text, at, r->braces) - at, value);
    if (r->braces) {
        size_t last = r->end - 1;
        while (last > r->start + 1 && isspace((unsigned char)edit->text[last - 1]))
            last--;
        snprintf(line, sizeof line, "%s%s: %s", last > r->start + 1 ? ", " : "", key, value);
        return text_replace(edit, last, 0, line);
    }
    snprintf(line, sizeof line, "\n%*s%s: %s", r->column < 256 ? (int)r->column : 256, "", key, value);
    return text_replace(edit, line_end(edit->text, r->start), 0, line);
}

/* Where a map is after the text has changed. */
typedef bool locate_fn(const char *text, const struct tb_grid *grid, const char *from, const char *to,
                       struct region *r);

static int confused(const struct tb_grid_edit *edit, const char *what)
{
    return tb_error(TB_ERR_UNSUPPORTED,
                    "%s is not laid out so that the numbers of %s can be changed: change them by hand", edit->file,
                    what);
}

static int set_both(struct tb_grid_edit *edit, locate_fn *locate, const char *from, const char *to,
                    const struct tb_grid_measure *m)
{
    static const char *const keys[] = {"bandwidth", "latency"};
    const double numbers[] = {m->bandwidth, m->latency};
    int error = TB_OK;
    for (int i = 0; i < 2 && error == TB_OK; i++) {
        struct tb_grid grid;
        struct region r;
        error = tb_grid_parse(&grid, edit->text, strlen(edit->text), edit->file);
        if (error != TB_OK)
            return error;
        error =
            locate(edit->text, &grid, from, to, &r) ? region_set(edit, &r, keys[i], numbers[i]) : confused(edit, from);
        tb_grid_close(&grid);
    }
    return error;
}

/* Makes changes, all or none of them. */
static int keep_or_undo(struct tb_grid_edit *edit, char *before, int error)
{
    struct tb_grid grid;
    if (error == TB_OK) {
        error = tb_grid_parse(&grid, edit->text, strlen(edit->text), edit->file);
        if (error == TB_OK)
            tb_grid_close(&grid);
    }
    if (error == TB_OK) {
        free(before);
        return TB_OK;
    }
    free(edit->text);
    edit->text = before;
    return error;
}

/* ---- Ethernet ---------------------------------------------------------------------------------------------------- */

static bool locate_cluster(const char *text, const struct tb_grid *grid, const char *name, struct region *r)
{
    uint32_t cluster = tb_grid_cluster_find(grid, name);
    if (cluster == TB_GRID_NONE || !region_at(text, line_start(text, grid->clusters[cluster].line), r))
        return false;
    size_t at = region_find(text, r, "name");
    return at != 0 && scalar_is(text, at, r->braces, name);
}

static bool locate_ethernet(const char *text, const struct tb_grid *grid, const char *name, const char *unused,
                            struct region *r)
{
    struct region cluster;
    if (!locate_cluster(text, grid, name, &cluster))
        return false;
    size_t at = region_find(text, &cluster, "ethernet");
    if (at == 0)
        return false;
    if (text[at] == '{')
        return region_at(text, at, r);
    if (!line_is_over(text, at))
        return false;
    do
        at = line_end(text, at) + 1;
    while (at < cluster.end && line_is_over(text, at));
    return at < cluster.end && region_at(text, at, r) && !r->braces && r->column > cluster.column;
}

/* A cluster without `ethernet` gets an empty one. */
static int ethernet_add(struct tb_grid_edit *edit, const char *name)
{
    struct tb_grid grid;
    struct region r;
    int error = tb_grid_parse(&grid, edit->text, strlen(edit->text), edit->file);
    if (error != TB_OK)
        return error;
    bool found = locate_cluster(edit->text, &grid, name, &r);
    tb_grid_close(&grid);
    if (!found)
        return confused(edit, name);
    if (region_find(edit->text, &r, "ethernet") != 0)
        return TB_OK;
    if (r.braces)
        return text_replace(edit, r.end - 1, 0, ", ethernet: {}");
    char line[300];
    snprintf(line, sizeof line, "\n%*sethernet: {}", r.column < 256 ? (int)r.column : 256, "");
    return text_replace(edit, line_end(edit->text, region_find(edit->text, &r, "name")), 0, line);
}

int tb_grid_edit_ethernet(struct tb_grid_edit *edit, const char *cluster, const struct tb_grid_measure *measure)
{
    char *before = strdup(edit->text);
    if (before == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory to change %s", edit->file);
    int error = ethernet_add(edit, cluster);
    if (error == TB_OK)
        error = set_both(edit, locate_ethernet, cluster, NULL, measure);
    return keep_or_undo(edit, before, error);
}

/* ---- links ------------------------------------------------------------------------------------------------------- */

/* The item of this direction; false: there is none, or it is the image of the other one. */
static bool locate_link(const char *text, const struct tb_grid *grid, const char *from, const char *to,
                        struct region *r)
{
    uint32_t a = tb_grid_cluster_find(grid, from), b = tb_grid_cluster_find(grid, to);
    const struct tb_grid_link *link = NULL;
    if (a != TB_GRID_NONE && b != TB_GRID_NONE)
        link = tb_grid_link_find(grid, a, TB_GRID_NONE, b, TB_GRID_NONE);
    if (link == NULL)
        return false;
    size_t at = line_start(text, link->line), end = line_end(text, at);
    size_t brace = at + strcspn(text + at, "{\n");
    at = text[brace] == '{' ? brace : at;
    while (at < end && region_at(text, at, r)) {
        size_t first = region_find(text, r, "from"), second = region_find(text, r, "to");
        if (first != 0 && second != 0 && scalar_is(text, first, r->braces, from) &&
            scalar_is(text, second, r->braces, to))
            return true;
        at = r->end + strcspn(text + r->end, "{\n"); /* another one in the same line */
    }
    return false;
}

/* A name as YAML wants it: in quotes if it might mean something else. */
static const char *name_print(const char *name, char text[TB_GRID_NAME_BYTES + 2])
{
    bool plain = isalpha((unsigned char)*name) && strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                                               "0123456789_-.") == strlen(name);
    snprintf(text, TB_GRID_NAME_BYTES + 2, plain ? "%s" : "\"%s\"", name);
    return text;
}

/* Adds an item at the beginning of the list, or the list. */
static int link_add(struct tb_grid_edit *edit, const char *from_name, const char *to_name)
{
    char item[2 * TB_GRID_NAME_BYTES + 300], names[2][TB_GRID_NAME_BYTES + 2];
    const char *from = name_print(from_name, names[0]), *to = name_print(to_name, names[1]);
    const char *text = edit->text;
    size_t at = 0, all = strlen(text);
    while (at < all && !key_is(text, at, "links"))
        at = line_end(text, at) + 1;
    if (at >= all) {
        snprintf(item, sizeof item, "%slinks:\n  - {from: %s, to: %s}\n", all > 0 && text[all - 1] != '\n' ? "\n" : "",
                 from, to);
        return text_replace(edit, all, 0, item);
    }
    size_t value = at + strlen("links:");
    value += strspn(text + value, " \t");
    if (text[value] == '[') {
        bool empty = text[value + 1 + strspn(text + value + 1, " \n")] == ']';
        snprintf(item, sizeof item, "{from: %s, to: %s}%s", from, to, empty ? "" : ", ");
        return text_replace(edit, value + 1, 0, item);
    }
    size_t next = line_end(text, at), indent = 0;
    if (!line_is_over(text, value))
        return confused(edit, "links");
    for (size_t line = next; text[line] == '\n'; line = line_end(text, line + 1)) {
        indent = strspn(text + line + 1, " ");
        if (!line_is_over(text, line + 1))
            break;
    }
    snprintf(item, sizeof item, "\n%*s- {from: %s, to: %s}", indent < 256 ? (int)indent : 256, "", from, to);
    return text_replace(edit, next, 0, item);
}

static bool link_is_there(const struct tb_grid_edit *edit, const char *from, const char *to)
{
    struct tb_grid grid;
    struct region r;
    if (tb_grid_parse(&grid, edit->text, strlen(edit->text), edit->file) != TB_OK)
        return false;
    bool there = locate_link(edit->text, &grid, from, to, &r);
    tb_grid_close(&grid);
    return there;
}

static bool alike(double a, double b)
{
    return a > b ? a - b <= ALIKE * a : b - a <= ALIKE * b;
}

int tb_grid_edit_link(struct tb_grid_edit *edit, const char *from, const char *to, const struct tb_grid_measure *there,
                      const struct tb_grid_measure *back)
{
    char *before = strdup(edit->text);
    if (before == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory to change %s", edit->file);
    bool same = alike(there->bandwidth, back->bandwidth) && alike(there->latency, back->latency);
    bool forward = link_is_there(edit, from, to), backward = link_is_there(edit, to, from);
    int error = TB_OK;
    bool needs_forward = !forward && (!backward || !same), needs_backward = !backward && !same;
    if (needs_forward)
        error = link_add(edit, from, to);
    if (error == TB_OK && (forward || needs_forward))
        error = set_both(edit, locate_link, from, to, there);
    if (error == TB_OK && needs_backward)
        error = link_add(edit, to, from);
    if (error == TB_OK && (backward || needs_backward))
        error = set_both(edit, locate_link, to, from, back);
    return keep_or_undo(edit, before, error);
}

/* ---- the file ---------------------------------------------------------------------------------------------------- */

int tb_grid_edit_open(struct tb_grid_edit *edit, const char *file)
{
    struct tb_grid grid;
    struct stat status;
    int error = tb_grid_load(&grid, file); /* says what is wrong with it */
    if (error != TB_OK)
        return error;
    tb_grid_close(&grid);
    *edit = (struct tb_grid_edit){.file = strdup(file)};
    int fd = open(file, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &status) != 0 || status.st_size > TB_GRID_FILE_LIMIT) {
        error = tb_error_errno("%s cannot be read", file);
    } else {
        edit->text = calloc(1, (size_t)status.st_size + 1);
        if (edit->text == NULL || edit->file == NULL)
            error = tb_error(TB_ERR_MEMORY, "no memory for %s", file);
        else if (read(fd, edit->text, (size_t)status.st_size) != status.st_size)
            error = tb_error_errno("%s cannot be read", file);
    }
    if (fd >= 0)
        close(fd);
    if (error != TB_OK)
        tb_grid_edit_close(edit);
    return error;
}

static int text_write(int fd, const char *text)
{
    for (size_t left = strlen(text); left > 0;) {
        ssize_t n = write(fd, text, left);
        if (n < 0 && errno != EINTR)
            return TB_ERR_SYSTEM;
        text += n > 0 ? n : 0;
        left -= n > 0 ? (size_t)n : 0;
    }
    return fsync(fd) == 0 ? TB_OK : TB_ERR_SYSTEM;
}

int tb_grid_edit_save(const struct tb_grid_edit *edit)
{
    struct stat status;
    /* A link to the file stays a link. */
    char *real = realpath(edit->file, NULL), *temporary = NULL;
    int fd = -1, error = TB_OK;
    if (real == NULL || stat(real, &status) != 0 || asprintf(&temporary, "%s.XXXXXX", real) < 0) {
        error = tb_error_errno("%s cannot be written", edit->file);
        free(real);
        return error;
    }
    fd = mkostemp(temporary, O_CLOEXEC);
    if (fd < 0 || text_write(fd, edit->text) != TB_OK || fchmod(fd, status.st_mode & 07777) != 0 ||
        rename(temporary, real) != 0) {
        error = tb_error_errno("%s cannot be replaced by %s", edit->file, temporary);
        if (fd >= 0)
            unlink(temporary);
    }
    if (fd >= 0)
        close(fd);
    free(temporary);
    free(real);
    return error;
}

void tb_grid_edit_close(struct tb_grid_edit *edit)
{
    free(edit->file);
    free(edit->text);
    *edit = (struct tb_grid_edit){.file = NULL};
}

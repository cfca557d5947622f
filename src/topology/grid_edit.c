#include "topology/grid_edit.h"
#include "topology/grid_text.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ALIKE 0.1 /* directions that differ by less are one link */

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

static int confused(const struct tb_grid_edit *edit, const char *what)
{
    return tb_error(TB_ERR_UNSUPPORTED,
                    "%s is not laid out so that the numbers of %s can be changed: change them by hand", edit->file,
                    what);
}

static int indentation(const struct tb_grid_map *map)
{
    return map->column < 256 ? (int)map->column : 256;
}

/* Sets a value of a map that holds single values only. */
static int map_set(struct tb_grid_edit *edit, const struct tb_grid_map *map, const char *key, const char *value)
{
    char line[TB_GRID_TABLE_BYTES + 512];
    size_t at = tb_grid_map_find(edit->text, map, key);
    if (at != 0)
        return text_replace(edit, at, tb_grid_text_scalar_end(edit->text, at, map->braces) - at, value);
    if (map->braces) {
        size_t last = map->end - 1;
        while (last > map->start + 1 && isspace((unsigned char)edit->text[last - 1]))
            last--;
        snprintf(line, sizeof line, "%s%s: %s", last > map->start + 1 ? ", " : "", key, value);
        return text_replace(edit, last, 0, line);
    }
    snprintf(line, sizeof line, "\n%*s%s: %s", indentation(map), "", key, value);
    return text_replace(edit, tb_grid_text_line_end(edit->text, map->start), 0, line);
}

/* Takes a key and its value away, which stand neither alone nor first. */
static int map_remove(struct tb_grid_edit *edit, const struct tb_grid_map *map, const char *key)
{
    const char *text = edit->text;
    size_t at = tb_grid_map_find(text, map, key), begin = at, end;
    if (at == 0)
        return TB_OK;
    while (isspace((unsigned char)text[begin - 1]))
        begin--;
    begin -= strlen(key) + 1;
    while (begin > map->start && isspace((unsigned char)text[begin - 1]) && (map->braces || text[begin] != '\n'))
        begin--;
    if (begin <= map->start || (map->braces && text[begin - 1] != ','))
        return confused(edit, key);
    begin -= map->braces;
    end = map->braces ? tb_grid_text_scalar_end(text, at, true) : tb_grid_text_line_end(text, at);
    return text_replace(edit, begin, end - begin, "");
}

/* Where a map is after the text has changed. */
typedef bool locate_fn(const char *text, const struct tb_grid *grid, const char *from, const char *to,
                       struct tb_grid_map *map);

/* One change, after the text was read again. A value of NULL takes the key away. */
static int set_one(struct tb_grid_edit *edit, locate_fn *locate, const char *from, const char *to, const char *key,
                   const char *value)
{
    struct tb_grid grid;
    struct tb_grid_map map;
    int error = tb_grid_parse(&grid, edit->text, strlen(edit->text), edit->file);
    if (error != TB_OK)
        return error;
    if (!locate(edit->text, &grid, from, to, &map))
        error = confused(edit, from);
    else
        error = value != NULL ? map_set(edit, &map, key, value) : map_remove(edit, &map, key);
    tb_grid_close(&grid);
    return error;
}

/* What was measured goes into a map. */
static int set_all(struct tb_grid_edit *edit, locate_fn *locate, const char *from, const char *to,
                   const struct tb_grid_measure *m)
{
    char number[64], table[TB_GRID_TABLE_BYTES + 2];
    int error = TB_OK;
    if (m->bandwidth > 0) {
        number_print(m->bandwidth, number, sizeof number);
        error = set_one(edit, locate, from, to, "bandwidth", number);
    }
    if (error == TB_OK && m->latency >= 0) {
        number_print(m->latency, number, sizeof number);
        error = set_one(edit, locate, from, to, "latency", number);
    }
    if (error != TB_OK)
        return error;
    /* A table that was measured another time would go before the new numbers. */
    snprintf(table, sizeof table, "\"%s\"", m->table);
    return set_one(edit, locate, from, to, "table", *m->table != 0 ? table : NULL);
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

/* ---- Ethernet and uplinks ---------------------------------------------------------------------------------------- */

/* The map of a cluster, or else of a site. */
static bool locate_place(const char *text, const struct tb_grid *grid, const char *name, struct tb_grid_map *map)
{
    uint32_t cluster = tb_grid_cluster_find(grid, name);
    uint32_t site = cluster == TB_GRID_NONE ? tb_grid_site_find(grid, name) : TB_GRID_NONE;
    if (cluster == TB_GRID_NONE && site == TB_GRID_NONE)
        return false;
    uint32_t line = cluster != TB_GRID_NONE ? grid->clusters[cluster].line : grid->sites[site].line;
    if (!tb_grid_map_at(text, tb_grid_text_line(text, line), map))
        return false;
    size_t at = tb_grid_map_find(text, map, "name");
    return at != 0 && tb_grid_text_scalar_is(text, at, map->braces, name);
}

/* The map that is the value of a key of a place. */
static bool locate_part(const char *text, const struct tb_grid *grid, const char *name, const char *key,
                        struct tb_grid_map *map)
{
    struct tb_grid_map place;
    if (!locate_place(text, grid, name, &place))
        return false;
    size_t at = tb_grid_map_find(text, &place, key);
    if (at == 0)
        return false;
    if (text[at] == '{')
        return tb_grid_map_at(text, at, map);
    if (!tb_grid_text_is_over(text, at))
        return false;
    do
        at = tb_grid_text_line_end(text, at) + 1;
    while (at < place.end && tb_grid_text_is_over(text, at));
    return at < place.end && tb_grid_map_at(text, at, map) && !map->braces && map->column > place.column;
}

/* Behind which line a new part goes: the uplink's, of which there is a downlink too, or that of the name. */
static size_t part_line(const char *text, const struct tb_grid_map *place, const char *key)
{
    struct tb_grid_map uplink;
    size_t at = strcmp(key, "downlink") == 0 ? tb_grid_map_find(text, place, "uplink") : 0;
    if (at != 0 && text[at] == '{' && tb_grid_map_at(text, at, &uplink))
        return tb_grid_text_line_end(text, uplink.end);
    return tb_grid_text_line_end(text, tb_grid_map_find(text, place, "name"));
}

/* A place without this part gets an empty one. */
static int part_add(struct tb_grid_edit *edit, const char *name, const char *key)
{
    struct tb_grid grid;
    struct tb_grid_map map;
    char line[300];
    int error = tb_grid_parse(&grid, edit->text, strlen(edit->text), edit->file);
    if (error != TB_OK)
        return error;
    bool found = locate_place(edit->text, &grid, name, &map);
    tb_grid_close(&grid);
    if (!found)
        return confused(edit, name);
    if (tb_grid_map_find(edit->text, &map, key) != 0)
        return TB_OK;
    if (map.braces) {
        snprintf(line, sizeof line, ", %s: {}", key);
        return text_replace(edit, map.end - 1, 0, line);
    }
    snprintf(line, sizeof line, "\n%*s%s: {}", indentation(&map), "", key);
    return text_replace(edit, part_line(edit->text, &map, key), 0, line);
}

static int part_set(struct tb_grid_edit *edit, const char *name, const char *key, const struct tb_grid_measure *measure)
{
    int error = part_add(edit, name, key);
    return error == TB_OK ? set_all(edit, locate_part, name, key, measure) : error;
}

int tb_grid_edit_ethernet(struct tb_grid_edit *edit, const char *cluster, const struct tb_grid_measure *measure)
{
    char *before = strdup(edit->text);
    if (before == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory to change %s", edit->file);
    return keep_or_undo(edit, before, part_set(edit, cluster, "ethernet", measure));
}

static bool alike(double a, double b)
{
    return a == b || (a > b ? a - b <= ALIKE * a : b - a <= ALIKE * b);
}

static bool measures_alike(const struct tb_grid_measure *a, const struct tb_grid_measure *b)
{
    return alike(a->bandwidth, b->bandwidth) && alike(a->latency, b->latency);
}

/* Whether a place has this key already. */
static bool part_is_there(const struct tb_grid_edit *edit, const char *name, const char *key)
{
    struct tb_grid grid;
    struct tb_grid_map map;
    if (tb_grid_parse(&grid, edit->text, strlen(edit->text), edit->file) != TB_OK)
        return false;
    bool there = locate_place(edit->text, &grid, name, &map) && tb_grid_map_find(edit->text, &map, key) != 0;
    tb_grid_close(&grid);
    return there;
}

int tb_grid_edit_uplink(struct tb_grid_edit *edit, const char *place, const struct tb_grid_measure *up,
                        const struct tb_grid_measure *down)
{
    char *before = strdup(edit->text);
    if (before == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory to change %s", edit->file);
    bool needs_down = part_is_there(edit, place, "downlink") || !measures_alike(up, down);
    int error = part_set(edit, place, "uplink", up);
    if (error == TB_OK && needs_down)
        error = part_set(edit, place, "downlink", down);
    return keep_or_undo(edit, before, error);
}

/* ---- links ------------------------------------------------------------------------------------------------------- */

/* The link with ends of these names: clusters, gateways, sites; NULL: the file has none. */
static const struct tb_grid_link *link_named(const struct tb_grid *grid, const char *from, const char *to)
{
    for (uint32_t i = 0; i < grid->link_count; i++)
        if (strcmp(tb_grid_link_end(grid, &grid->links[i], false), from) == 0 &&
            strcmp(tb_grid_link_end(grid, &grid->links[i], true), to) == 0)
            return &grid->links[i];
    return NULL;
}

/* The item of this direction; false: there is none, or it is the image of the other one. */
static bool locate_link(const char *text, const struct tb_grid *grid, const char *from, const char *to,
                        struct tb_grid_map *map)
{
    const struct tb_grid_link *link = link_named(grid, from, to);
    if (link == NULL)
        return false;
    size_t at = tb_grid_text_line(text, link->line), end = tb_grid_text_line_end(text, at);
    size_t brace = at + strcspn(text + at, "{\n");
    at = text[brace] == '{' ? brace : at;
    while (at < end && tb_grid_map_at(text, at, map)) {
        size_t first = tb_grid_map_find(text, map, "from"), second = tb_grid_map_find(text, map, "to");
        if (first != 0 && second != 0 && tb_grid_text_scalar_is(text, first, map->braces, from) &&
            tb_grid_text_scalar_is(text, second, map->braces, to))
            return true;
        at = map->end + strcspn(text + map->end, "{\n"); /* another one in the same line */
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
    while (at < all && !tb_grid_text_is_key(text, at, "links"))
        at = tb_grid_text_line_end(text, at) + 1;
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
    size_t next = tb_grid_text_line_end(text, at), indent = 0;
    if (!tb_grid_text_is_over(text, value))
        return confused(edit, "links");
    for (size_t line = next; text[line] == '\n'; line = tb_grid_text_line_end(text, line + 1)) {
        indent = strspn(text + line + 1, " ");
        if (!tb_grid_text_is_over(text, line + 1))
            break;
    }
    snprintf(item, sizeof item, "\n%*s- {from: %s, to: %s}", indent < 256 ? (int)indent : 256, "", from, to);
    return text_replace(edit, next, 0, item);
}

static bool link_is_there(const struct tb_grid_edit *edit, const char *from, const char *to)
{
    struct tb_grid grid;
    struct tb_grid_map map;
    if (tb_grid_parse(&grid, edit->text, strlen(edit->text), edit->file) != TB_OK)
        return false;
    bool there = locate_link(edit->text, &grid, from, to, &map);
    tb_grid_close(&grid);
    return there;
}

int tb_grid_edit_link(struct tb_grid_edit *edit, const char *from, const char *to, const struct tb_grid_measure *there,
                      const struct tb_grid_measure *back)
{
    char *before = strdup(edit->text);
    if (before == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory to change %s", edit->file);
    bool same = measures_alike(there, back);
    bool forward = link_is_there(edit, from, to), backward = link_is_there(edit, to, from);
    int error = TB_OK;
    bool needs_forward = !forward && (!backward || !same), needs_backward = !backward && !same;
    if (needs_forward)
        error = link_add(edit, from, to);
    if (error == TB_OK && (forward || needs_forward))
        error = set_all(edit, locate_link, from, to, there);
    if (error == TB_OK && needs_backward)
        error = link_add(edit, to, from);
    if (error == TB_OK && (backward || needs_backward))
        error = set_all(edit, locate_link, to, from, back);
    return keep_or_undo(edit, before, error);
}

/* ---- the file ---------------------------------------------------------------------------------------------------- */

/* The whole file, to be freed. */
static int text_read(const char *file, char **text)
{
    struct stat status;
    int error = TB_OK, fd = open(file, O_RDONLY | O_CLOEXEC);
    *text = NULL;
    if (fd < 0 || fstat(fd, &status) != 0 || status.st_size > TB_GRID_FILE_LIMIT) {
        error = tb_error_errno("%s cannot be read", file);
    } else {
        *text = calloc(1, (size_t)status.st_size + 1);
        if (*text == NULL)
            error = tb_error(TB_ERR_MEMORY, "no memory for %s", file);
        else if (read(fd, *text, (size_t)status.st_size) != status.st_size)
            error = tb_error_errno("%s cannot be read", file);
    }
    if (fd >= 0)
        close(fd);
    return error;
}

int tb_grid_edit_open(struct tb_grid_edit *edit, const char *file)
{
    struct tb_grid grid;
    int error = tb_grid_load(&grid, file); /* says what is wrong with it */
    if (error != TB_OK)
        return error;
    tb_grid_close(&grid);
    *edit = (struct tb_grid_edit){.file = strdup(file)};
    error = text_read(file, &edit->text);
    if (error == TB_OK)
        edit->read = strdup(edit->text);
    if (error == TB_OK && (edit->file == NULL || edit->read == NULL))
        error = tb_error(TB_ERR_MEMORY, "no memory for %s", file);
    if (error != TB_OK)
        tb_grid_edit_close(edit);
    return error;
}

/* Measuring takes minutes, in which its owner may have saved it from an editor. */
static int check_unchanged(const struct tb_grid_edit *edit)
{
    char *now;
    int error = text_read(edit->file, &now);
    if (error == TB_OK && strcmp(now, edit->read) != 0)
        error = tb_error(TB_ERR_ARGUMENT, "%s was changed by somebody else meanwhile, and stays as it is", edit->file);
    free(now);
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
    int fd = -1, error = check_unchanged(edit);
    if (error != TB_OK)
        return error;
    /* A link to the file stays a link. */
    char *real = realpath(edit->file, NULL), *temporary = NULL;
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
    free(edit->read);
    *edit = (struct tb_grid_edit){.file = NULL};
}

#include "topology/grid_text.h"

#include <ctype.h>
#include <string.h>

size_t tb_grid_text_line_end(const char *text, size_t at)
{
    return at + strcspn(text + at, "\n");
}

size_t tb_grid_text_line(const char *text, uint32_t line)
{
    size_t at = 0;
    for (uint32_t i = 1; i < line && text[at] != 0; i++) {
        at = tb_grid_text_line_end(text, at);
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
        return tb_grid_text_line_end(text, at);
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
bool tb_grid_text_is_over(const char *text, size_t at)
{
    at += strspn(text + at, " \t\r");
    return text[at] == '\n' || text[at] == 0 || text[at] == '#';
}

static bool region_of_lines(const char *text, size_t start, struct tb_grid_map *r)
{
    *r = (struct tb_grid_map){.start = start, .column = column_of(text, start)};
    size_t at = tb_grid_text_line_end(text, start);
    for (r->end = at; text[at] == '\n'; at = tb_grid_text_line_end(text, at + 1)) {
        size_t indent = strspn(text + at + 1, " ");
        if (tb_grid_text_is_over(text, at + 1))
            continue;
        if (indent < r->column)
            break;
        r->end = tb_grid_text_line_end(text, at + 1);
    }
    return true;
}

/* The map that begins in this line, perhaps behind the dash of a list. */
bool tb_grid_map_at(const char *text, size_t at, struct tb_grid_map *r)
{
    at += strspn(text + at, " ");
    while (text[at] == '-' && text[at + 1] == ' ')
        at += 1 + strspn(text + at + 1, " ");
    if (text[at] != '{')
        return isalpha((unsigned char)text[at]) && region_of_lines(text, at, r);
    *r = (struct tb_grid_map){.start = at, .end = braces_end(text, at), .braces = true};
    return r->end != 0;
}

bool tb_grid_text_is_key(const char *text, size_t at, const char *key)
{
    size_t length = strlen(key);
    return strncmp(text + at, key, length) == 0 && text[at + length] == ':' &&
           (text[at + length + 1] == 0 || strchr(" \t\r\n", text[at + length + 1]) != NULL);
}

/* Where the value of a key begins; 0: the map has no such key. */
size_t tb_grid_map_find(const char *text, const struct tb_grid_map *r, const char *key)
{
    size_t skip = strlen(key) + 1;
    if (!r->braces) {
        for (size_t at = r->start; at < r->end; at = tb_grid_text_line_end(text, at) + 1) {
            size_t begin = at == r->start ? at : at + strspn(text + at, " ");
            if (column_of(text, begin) == r->column && tb_grid_text_is_key(text, begin, key))
                return begin + skip + strspn(text + begin + skip, " \t");
        }
        return 0;
    }
    bool fresh = true; /* a key may begin here */
    for (size_t at = r->start + 1; at < r->end - 1;) {
        size_t next = skip_opaque(text, at);
        if (fresh && tb_grid_text_is_key(text, at, key))
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
size_t tb_grid_text_scalar_end(const char *text, size_t at, bool braces)
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

bool tb_grid_text_scalar_is(const char *text, size_t at, bool braces, const char *value)
{
    size_t end = tb_grid_text_scalar_end(text, at, braces);
    if (end > at + 1 && (text[at] == '"' || text[at] == '\'')) {
        at++;
        end--;
    }
    return end - at == strlen(value) && strncmp(text + at, value, end - at) == 0;
}

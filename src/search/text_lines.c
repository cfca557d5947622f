#include "search/text_lines.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST       (1u << 30) /* bytes of a file */
#define WORD_SHOWN 64         /* bytes of a word in an error */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == ',';
}

bool tb_text_lines_more(struct tb_text_lines *lines)
{
    while (lines->at < lines->end && is_blank(*lines->at))
        lines->at++;
    return lines->at < lines->end;
}

bool tb_text_lines_next(struct tb_text_lines *lines)
{
    while (*lines->rest != '\0') {
        const char *end = strchr(lines->rest, '\n');
        lines->at = lines->rest;
        end = end != NULL ? end : lines->rest + strlen(lines->rest);
        lines->rest = *end == '\n' ? end + 1 : end;
        lines->line++;
        const char *comment = memchr(lines->at, '#', (size_t)(end - lines->at));
        lines->end = comment != NULL ? comment : end;
        if (tb_text_lines_more(lines))
            return true;
    }
    return false;
}

size_t tb_text_lines_word(const struct tb_text_lines *lines)
{
    size_t length = 0;
    while (lines->at + length < lines->end && !is_blank(lines->at[length]))
        length++;
    return length;
}

static int shown(size_t length)
{
    return length < WORD_SHOWN ? (int)length : WORD_SHOWN;
}

int tb_text_lines_number(struct tb_text_lines *lines, uint32_t limit, const char *what, uint32_t *number)
{
    uint64_t value = 0;
    const char *start = lines->at;
    for (; lines->at < lines->end && *lines->at >= '0' && *lines->at <= '9'; lines->at++)
        value = value < UINT32_MAX ? value * 10 + (uint64_t)(*lines->at - '0') : value;
    bool ends = lines->at == lines->end || is_blank(*lines->at) || *lines->at == ':';
    if (lines->at == start || !ends) {
        lines->at = start;
        return tb_error(TB_ERR_ARGUMENT, "%s:%u: '%.*s' is no %s", lines->name, lines->line,
                        shown(tb_text_lines_word(lines)), start, what);
    }
    if (value >= limit)
        return tb_error(TB_ERR_ARGUMENT, "%s:%u: %s %.*s: there are those from 0 to %u", lines->name, lines->line, what,
                        shown((size_t)(lines->at - start)), start, limit - 1);
    *number = (uint32_t)value;
    return TB_OK;
}

/* Where in the text the first byte is that cannot be in one; `size` if there is none. */
static size_t foreign_find(const char *bytes, size_t from, size_t size)
{
    while (from < size && !tb_character_foreign(bytes[from]))
        from++;
    return from;
}

static int foreign_tell(const char *path, const char *bytes, size_t at)
{
    uint32_t line = 1;
    for (size_t i = 0; i < at; i++)
        line += bytes[i] == '\n';
    return tb_error(TB_ERR_ARGUMENT, "%s:%u: this is no text: there is a byte %d", path, line, bytes[at]);
}

static int stream_load(FILE *stream, const char *path, char **text)
{
    size_t size = 0, room = 4096, good = 0; /* bytes that are looked through */
    char *bytes = malloc(room);
    while (bytes != NULL) {
        size += fread(bytes + size, 1, room - size - 1, stream);
        good = foreign_find(bytes, good, size);
        if (good < size || size < room - 1 || size > MOST)
            break;
        room = 2 * room < MOST + 2 ? 2 * room : MOST + 2;
        char *more = realloc(bytes, room);
        if (more == NULL)
            free(bytes);
        bytes = more;
    }
    int error = TB_OK;
    if (bytes == NULL)
        error = tb_error(TB_ERR_MEMORY, "no memory to read %s", path);
    else if (ferror(stream))
        error = tb_error_errno("%s cannot be read", path);
    else if (good < size)
        error = foreign_tell(path, bytes, good);
    else if (size > MOST)
        error = tb_error(TB_ERR_LIMIT, "%s is longer than %u bytes", path, MOST);
    if (error == TB_OK) {
        bytes[size] = '\0';
        *text = bytes;
    } else {
        free(bytes);
    }
    return error;
}

int tb_text_load(const char *path, char **text)
{
    bool standard = strcmp(path, "-") == 0;
    FILE *stream = standard ? stdin : fopen(path, "re");
    *text = NULL;
    if (stream == NULL)
        return tb_error_errno("%s cannot be opened", path);
    int error = stream_load(stream, path, text);
    if (!standard)
        fclose(stream);
    return error;
}

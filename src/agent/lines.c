#include "agent/lines.h"

#include <stdlib.h>

static bool keep(struct tb_lines *lines, const char *bytes, size_t length)
{
    if (lines->length + length > lines->room) {
        size_t room = lines->length + length < 256 ? 256 : (lines->length + length) * 2;
        char *grown = realloc(lines->bytes, room);
        if (grown == NULL)
            return false;
        lines->bytes = grown;
        lines->room = room;
    }
    memcpy(lines->bytes + lines->length, bytes, length);
    lines->length += length;
    return true;
}

static void forget(struct tb_lines *lines)
{
    free(lines->bytes);
    *lines = (struct tb_lines){0};
}

void tb_lines_add(struct tb_lines *lines, const char *bytes, size_t length, uint64_t now, tb_lines_emit *emit,
                  void *context)
{
    const char *newline = length > 0 ? memrchr(bytes, '\n', length) : NULL;
    size_t whole = newline != NULL ? (size_t)(newline + 1 - bytes) : 0;
    if (whole > 0) {
        emit(context, lines->bytes, lines->length, bytes, whole);
        forget(lines);
    }
    size_t rest = length - whole;
    if (rest == 0)
        return;
    if (lines->length == 0)
        lines->since = now;
    /* Too long, or no memory for it: better torn than lost. */
    if (lines->length + rest > TB_LINES_LIMIT || !keep(lines, bytes + whole, rest)) {
        emit(context, lines->bytes, lines->length, bytes + whole, rest);
        forget(lines);
    }
}

void tb_lines_flush(struct tb_lines *lines, tb_lines_emit *emit, void *context)
{
    if (lines->length > 0)
        emit(context, lines->bytes, lines->length, NULL, 0);
    forget(lines);
}

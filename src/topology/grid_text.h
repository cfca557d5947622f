/* The text of a grid file as somebody who edits it sees it: lines, maps, single values. For grid_edit.c; nobody else
 * needs it. Positions are offsets of bytes in the text. No state; any thread. */
#ifndef TB_TOPOLOGY_GRID_TEXT_H
#define TB_TOPOLOGY_GRID_TEXT_H

#include "base/base.h"

/* A map: {a: b}, or lines of equal indentation. */
struct tb_grid_map {
    size_t start, end; /* of its first key or its brace; behind its last line or brace */
    size_t column;     /* of the keys of lines */
    bool braces;
};

size_t tb_grid_text_line(const char *text, uint32_t line); /* where it begins; lines count from 1 */
size_t tb_grid_text_line_end(const char *text, size_t at);
/* Whether nothing but blanks and a comment is left in the line. */
bool tb_grid_text_is_over(const char *text, size_t at);
/* Whether this key stands here. */
bool tb_grid_text_is_key(const char *text, size_t at, const char *key);
/* Behind a number or a name, of a map with braces or without. */
size_t tb_grid_text_scalar_end(const char *text, size_t at, bool braces);
bool tb_grid_text_scalar_is(const char *text, size_t at, bool braces, const char *value);
/* The map that begins in this line, perhaps behind the dash of a list. */
bool tb_grid_map_at(const char *text, size_t at, struct tb_grid_map *map);
/* Where the value of a key begins; 0: the map has no such key. */
size_t tb_grid_map_find(const char *text, const struct tb_grid_map *map, const char *key);

#endif

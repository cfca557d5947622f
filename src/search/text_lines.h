/* Lines of a text that a person wrote, without comments, one after another; and whole files as texts. */
#ifndef TB_SEARCH_TEXT_LINES_H
#define TB_SEARCH_TEXT_LINES_H

#include "base/base.h"

struct tb_text_lines {
    const char *name, *rest; /* for errors; what comes behind the line */
    uint32_t line;           /* of `at`, from 1 on */
    const char *at, *end;    /* what has not been read of it */
};

/* The next line with anything in it but blanks and a comment; false: there is none. */
bool tb_text_lines_next(struct tb_text_lines *lines);
/* Whether anything is left in the line; moves to it. */
bool tb_text_lines_more(struct tb_text_lines *lines);
/* The word that begins here ends where it reads a blank, a comma, or the end of the line. */
size_t tb_text_lines_word(const struct tb_text_lines *lines);
/* A whole number below `limit`; `what` it is, for the error. */
int tb_text_lines_number(struct tb_text_lines *lines, uint32_t limit, const char *what, uint32_t *number);

/* A file, or standard input if the path is "-"; free it. */
int tb_text_load(const char *path, char **text);

#endif

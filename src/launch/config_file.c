/* -configfile: the rest of a command line, read from a file. */
#include "launch/launch.h"
#include "launch/text_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct words {
    char **all;
    size_t count, room;
};

/* Takes over `word`. */
static int append(struct words *words, char *word)
{
    if (words->count + 1 >= words->room) {
        size_t room = words->room > 0 ? words->room * 2 : 64;
        char **grown = realloc(words->all, room * sizeof *grown);
        if (grown == NULL) {
            free(word);
            return tb_error(TB_ERR_MEMORY, "no memory for the command line");
        }
        words->all = grown;
        words->room = room;
    }
    words->all[words->count] = word;
    words->all[words->count + 1] = NULL;
    if (word == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for the command line");
    words->count++;
    return TB_OK;
}

/* One word from *at on, which is no blank: quotes keep blanks together, a backslash takes the next byte as it is, as in
 * a shell. Writes to `to`, which is long enough. False: a quote that does not end. */
static bool take_word(const char **at, char *to)
{
    const char *from = *at;
    char quote = 0;
    size_t n = 0;
    for (; *from != 0 && *from != '\n' && (quote != 0 || strchr(" \t\r", *from) == NULL); from++) {
        if (quote == 0 && (*from == '"' || *from == '\''))
            quote = *from;
        else if (*from == quote)
            quote = 0;
        else if (*from == '\\' && quote != '\'' && from[1] != 0 && from[1] != '\n')
            to[n++] = *++from;
        else
            to[n++] = *from;
    }
    to[n] = 0;
    *at = from;
    return quote == 0;
}

/* The words of a line; *at goes to its end. */
static int take_line(struct words *words, const char **at, char *scratch, const char *path, unsigned line)
{
    bool first = true;
    for (;;) {
        *at += strspn(*at, " \t\r");
        if (**at == 0 || **at == '\n' || (first && **at == '#'))
            break;
        if (first && words->count > 0 && append(words, strdup(":")) != TB_OK)
            return TB_ERR_MEMORY;
        first = false;
        if (!take_word(at, scratch))
            return tb_error(TB_ERR_ARGUMENT, "%s:%u: a quote has no end", path, line);
        if (append(words, strdup(scratch)) != TB_OK)
            return TB_ERR_MEMORY;
    }
    *at += strcspn(*at, "\n");
    return TB_OK;
}

int tb_config_file_load(const char *path, char ***made)
{
    struct words words = {0};
    char *text = NULL, *scratch = NULL;
    int rc = tb_text_file_read(path, "file of options", &text);
    if (rc == TB_OK && (scratch = malloc(strlen(text) + 1)) == NULL)
        rc = tb_error(TB_ERR_MEMORY, "no memory for the command line");
    const char *at = text;
    for (unsigned line = 1; rc == TB_OK && *at != 0; line++) {
        rc = take_line(&words, &at, scratch, path, line);
        at += rc == TB_OK && *at == '\n';
    }
    if (rc == TB_OK && words.count == 0)
        rc = tb_error(TB_ERR_ARGUMENT, "%s names no program", path);
    free(scratch);
    free(text);
    *made = words.all;
    if (rc != TB_OK) {
        tb_config_file_close(words.all);
        *made = NULL;
    }
    return rc;
}

void tb_config_file_close(char **words)
{
    for (char **word = words; word != NULL && *word != NULL; word++)
        free(*word);
    free(words);
}

#include "launch/text_file.h"

#include "base/base.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILE_LIMIT (16u << 20)

static int read_all(int fd, const char *path, const char *what, char **text, size_t *length)
{
    size_t room = 4096;
    *text = malloc(room);
    if (*text == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for the %s", what);
    for (;;) {
        if (*length + 1 == room) {
            char *grown = room < FILE_LIMIT ? realloc(*text, room *= 2) : NULL;
            if (grown == NULL)
                return tb_error(TB_ERR_LIMIT, "the %s %s is too long", what, path);
            *text = grown;
        }
        ssize_t n = read(fd, *text + *length, room - *length - 1);
        if (n < 0)
            return tb_error_errno("cannot read the %s %s", what, path);
        if (n == 0)
            break;
        *length += (size_t)n;
    }
    (*text)[*length] = 0;
    return memchr(*text, 0, *length) == NULL
               ? TB_OK
               : tb_error(TB_ERR_ARGUMENT, "%s is no %s but something binary", path, what);
}

/* Editors of other systems begin a file with a mark for its encoding, and end lines with a carriage return. */
static void remove_marks(char *text)
{
    const char *from = strncmp(text, "\xef\xbb\xbf", 3) == 0 ? text + 3 : text;
    for (; *from != 0; from++)
        if (from[0] != '\r' || from[1] != '\n')
            *text++ = *from;
    *text = 0;
}

int tb_text_file_read(const char *path, const char *what, char **text)
{
    size_t length = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    *text = NULL;
    if (fd < 0)
        return tb_error_errno("cannot read the %s %s", what, path);
    int rc = read_all(fd, path, what, text, &length);
    close(fd);
    if (rc == TB_OK) {
        remove_marks(*text);
    } else {
        free(*text);
        *text = NULL;
    }
    return rc;
}

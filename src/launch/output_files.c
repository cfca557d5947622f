#include "launch/output_files.h"

#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What stands for a letter behind a percent sign; false: nothing does. */
static bool print_letter(char *text, size_t size, char letter, uint32_t rank, uint32_t ranks, const char *host_name,
                         uint32_t host)
{
    int width = snprintf(NULL, 0, "%u", ranks > 0 ? ranks - 1 : 0);
    switch (letter) {
    case 'r':
        snprintf(text, size, "%u", rank);
        return true;
    case '0':
        snprintf(text, size, "%0*u", width, rank);
        return true;
    case 'h':
        snprintf(text, size, "%s", host_name);
        return true;
    case 'p':
        snprintf(text, size, "%u", host);
        return true;
    case 'g':
        snprintf(text, size, "0");
        return true;
    case '%':
        snprintf(text, size, "%%");
        return true;
    default:
        return false;
    }
}

size_t tb_output_pattern_print(char *text, size_t size, const char *pattern, uint32_t rank, uint32_t ranks,
                               const char *host_name, uint32_t host)
{
    size_t used = 0;
    for (const char *at = pattern; *at != 0; at++) {
        char one[300] = {*at, 0};
        if (*at == '%' && print_letter(one, sizeof one, at[1], rank, ranks, host_name, host))
            at++;
        for (const char *c = one; *c != 0; c++, used++)
            if (used + 1 < size)
                text[used] = *c;
    }
    if (size > 0)
        text[used < size ? used : size - 1] = 0;
    return used;
}

void tb_output_files_init(struct tb_output_files *files, const char *pattern)
{
    *files = (struct tb_output_files){.pattern = pattern};
    for (size_t i = 0; i < TB_OUTPUT_FILES_OPEN; i++)
        files->open[i].descriptor = -1;
}

int tb_output_files_expect(struct tb_output_files *files, uint32_t ranks)
{
    if (files->pattern == NULL)
        return TB_OK;
    for (size_t i = 0; i < TB_OUTPUT_FILES_OPEN; i++)
        if (files->open[i].descriptor >= 0) {
            close(files->open[i].descriptor);
            files->open[i].descriptor = -1;
        }
    free(files->made);
    files->ranks = ranks;
    files->made = calloc(ranks, sizeof *files->made);
    return files->made != NULL ? TB_OK : tb_error(TB_ERR_MEMORY, "no memory for %u ranks", ranks);
}

/* The directories before the last slash. */
static void make_directories(char *path)
{
    for (char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        mkdir(path, 0777); /* what is wrong shows when the file is opened */
        *slash = '/';
    }
}

static int open_file(struct tb_output_files *files, uint32_t rank, const char *host_name, uint32_t host,
                     int *descriptor)
{
    char path[PATH_MAX];
    if (tb_output_pattern_print(path, sizeof path, files->pattern, rank, files->ranks, host_name, host) >= sizeof path)
        return tb_error(TB_ERR_LIMIT, "the name of the file for the output of rank %u is too long", rank);
    /* Several ranks may share a file, whose name does not depend on the rank: the first throws away what was there. */
    bool is_shared = strstr(files->pattern, "%r") == NULL && strstr(files->pattern, "%0") == NULL;
    bool is_new = is_shared ? memchr(files->made, true, files->ranks) == NULL : !files->made[rank];
    make_directories(path);
    /* Opening a pipe that nobody reads would wait for ever. */
    *descriptor =
        open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | (is_new ? O_TRUNC : 0), 0666);
    if (*descriptor < 0 && errno == ENXIO)
        return tb_error(TB_ERR_SYSTEM, "cannot write the output of rank %u to %s: nobody reads that pipe", rank, path);
    if (*descriptor < 0)
        return tb_error_errno("cannot write the output of rank %u to %s", rank, path);
    fcntl(*descriptor, F_SETFL, O_APPEND);
    files->made[rank] = true;
    return TB_OK;
}

int tb_output_files_write(struct tb_output_files *files, uint32_t rank, const char *host_name, uint32_t host,
                          const char *bytes, size_t length)
{
    size_t place = rank % TB_OUTPUT_FILES_OPEN;
    if (files->open[place].descriptor >= 0 && files->open[place].rank != rank) {
        close(files->open[place].descriptor);
        files->open[place].descriptor = -1;
    }
    if (files->open[place].descriptor < 0) {
        int rc = open_file(files, rank, host_name, host, &files->open[place].descriptor);
        if (rc != TB_OK)
            return rc;
        files->open[place].rank = rank;
    }
    while (length > 0) {
        ssize_t n = write(files->open[place].descriptor, bytes, length);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return tb_error_errno("cannot write the output of rank %u", rank);
        bytes += n;
        length -= (size_t)n;
    }
    return TB_OK;
}

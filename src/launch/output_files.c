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

/* Output that waits until a pipe takes it. */
struct piece {
    struct tb_list node;
    uint32_t rank, host;
    uint32_t charge; /* how much of the host's window it takes */
    size_t length, at;
    char bytes[];
};

void tb_output_files_init(struct tb_output_files *files, const char *pattern, struct tb_loop *loop,
                          const struct tb_screen_events *events)
{
    *files = (struct tb_output_files){.loop = loop, .events = *events, .pattern = pattern};
    for (size_t i = 0; i < TB_OUTPUT_FILES_OPEN; i++) {
        files->open[i] = (struct tb_output_file){.files = files, .descriptor = -1, .watch.descriptor = -1};
        tb_list_init(&files->open[i].pieces);
    }
}

static void close_file(struct tb_output_file *file)
{
    if (file->descriptor < 0)
        return;
    tb_loop_unwatch(file->files->loop, &file->watch);
    close(file->descriptor);
    file->descriptor = -1;
}

int tb_output_files_expect(struct tb_output_files *files, uint32_t ranks)
{
    if (files->pattern == NULL)
        return TB_OK;
    for (size_t i = 0; i < TB_OUTPUT_FILES_OPEN; i++)
        if (tb_list_empty(&files->open[i].pieces))
            close_file(&files->open[i]);
    free(files->made);
    files->ranks = files->room = ranks;
    files->made = calloc(ranks, sizeof *files->made);
    return files->made != NULL ? TB_OK : tb_error(TB_ERR_MEMORY, "no memory for %u ranks", ranks);
}

int tb_output_files_grow(struct tb_output_files *files, uint32_t ranks)
{
    if (files->pattern == NULL || ranks <= files->room)
        return TB_OK;
    bool *grown = reallocarray(files->made, ranks, sizeof *grown);
    if (grown == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for %u ranks", ranks);
    memset(grown + files->room, 0, (ranks - files->room) * sizeof *grown);
    files->made = grown;
    files->room = ranks;
    return TB_OK;
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

static size_t print_path(const struct tb_output_files *files, uint32_t rank, uint32_t host, char *path, size_t size)
{
    const char *host_name = files->events.host_name(files->events.context, host);
    return tb_output_pattern_print(path, size, files->pattern, rank, files->ranks, host_name, host);
}

static int open_file(struct tb_output_files *files, uint32_t rank, uint32_t host, int *descriptor)
{
    char path[PATH_MAX];
    if (print_path(files, rank, host, path, sizeof path) >= sizeof path)
        return tb_error(TB_ERR_LIMIT, "the name of the file for the output of rank %u is too long", rank);
    /* Several ranks may share a file, whose name does not depend on the rank: the first throws away what was there. */
    bool is_shared = strstr(files->pattern, "%r") == NULL && strstr(files->pattern, "%0") == NULL;
    bool is_new = is_shared ? memchr(files->made, true, files->room) == NULL : !files->made[rank];
    make_directories(path);
    /* Opening a pipe that nobody reads would wait for ever, and so would writing to one whose reader sleeps. */
    *descriptor =
        open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | (is_new ? O_TRUNC : 0), 0666);
    if (*descriptor < 0 && errno == ENXIO)
        return tb_error(TB_ERR_SYSTEM, "cannot write the output of rank %u to %s: nobody reads that pipe", rank, path);
    if (*descriptor < 0)
        return tb_error_errno("cannot write the output of rank %u to %s", rank, path);
    files->made[rank] = true;
    return TB_OK;
}

/* Writes what there is room for, and says how much that was. */
static int write_some(struct tb_output_file *file, uint32_t rank, uint32_t host, const char *bytes, size_t length,
                      size_t *done)
{
    if (file->rank != rank)
        close_file(file);
    if (file->descriptor < 0) {
        int rc = open_file(file->files, rank, host, &file->descriptor);
        if (rc != TB_OK)
            return rc;
        file->rank = rank;
    }
    while (*done < length) {
        ssize_t n = write(file->descriptor, bytes + *done, length - *done);
        if (n < 0 && errno == EAGAIN)
            return TB_OK;
        if (n < 0 && errno != EINTR) {
            int error = errno;
            char path[PATH_MAX];
            print_path(file->files, rank, host, path, sizeof path);
            errno = error;
            return tb_error_errno("cannot write the output of rank %u to %s", rank, path);
        }
        *done += n > 0 ? (size_t)n : 0;
    }
    return TB_OK;
}

static void give_back(struct tb_output_files *files, uint32_t host, uint32_t charge)
{
    if (charge > 0)
        files->events.written(files->events.context, host, charge);
}

static void push(struct tb_output_file *file)
{
    struct tb_output_files *files = file->files;
    struct piece *piece;
    TB_LIST_EACH (piece, &file->pieces, struct piece, node) {
        int rc = write_some(file, piece->rank, piece->host, piece->bytes, piece->length, &piece->at);
        if (rc == TB_OK && piece->at < piece->length) {
            bool watched = file->watch.descriptor >= 0;
            rc = watched ? TB_OK
                         : tb_loop_watch(files->loop, &file->watch, file->descriptor, EPOLLOUT, file->watch.ready);
            if (rc == TB_OK)
                return;
        }
        if (rc != TB_OK)
            files->events.failed(files->events.context, 1, tb_error_story());
        tb_list_remove(&piece->node);
        files->waiting -= piece->length;
        give_back(files, piece->host, piece->charge);
        free(piece);
    }
    tb_loop_unwatch(files->loop, &file->watch);
}

static void file_ready(struct tb_watch *watch, uint32_t events)
{
    push(TB_CONTAINER(watch, struct tb_output_file, watch));
}

void tb_output_files_write(struct tb_output_files *files, uint32_t rank, uint32_t host, const char *bytes,
                           size_t length, uint32_t charge)
{
    struct tb_output_file *file = &files->open[rank % TB_OUTPUT_FILES_OPEN];
    size_t done = 0;
    int rc = tb_list_empty(&file->pieces) ? write_some(file, rank, host, bytes, length, &done) : TB_OK;
    struct piece *piece = rc == TB_OK && done < length ? malloc(sizeof *piece + length - done) : NULL;
    if (rc == TB_OK && done < length && piece == NULL)
        rc = tb_error(TB_ERR_MEMORY, "no memory for the output of rank %u", rank);
    if (rc != TB_OK)
        files->events.failed(files->events.context, 1, tb_error_story());
    if (piece == NULL) {
        give_back(files, host, charge);
        return;
    }
    *piece = (struct piece){.rank = rank, .host = host, .charge = charge, .length = length - done};
    memcpy(piece->bytes, bytes + done, piece->length);
    files->waiting += piece->length;
    tb_list_append(&file->pieces, &piece->node);
    file->watch.ready = file_ready;
    if (file->pieces.next == &piece->node)
        push(file);
}

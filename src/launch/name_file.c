#include "launch/name_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define TRIES 16 /* while others replace the file at the same time */

static int refuse(const char *path, const char *what)
{
    return tb_error(TB_ERR_ARGUMENT, "%s %s: name another file, or take this one away first", path, what);
}

/* Whether it is what has this name now. */
static bool is_at(int descriptor, const char *path)
{
    struct stat opened, named;
    return fstat(descriptor, &opened) == 0 && lstat(path, &named) == 0 && opened.st_dev == named.st_dev &&
           opened.st_ino == named.st_ino;
}

/* The whole of it, and nothing behind. */
static bool is_place(int descriptor, struct tb_name_place *place)
{
    char text[TB_NAME_PLACE_BYTES + 2] = "";
    ssize_t length = pread(descriptor, text, sizeof text - 1, 0);
    bool good = length > 0 && (size_t)length == strlen(text) && text[length - 1] == '\n' &&
                tb_name_place_parse(place, text) == TB_OK;
    if (good)
        good = strlen(strrchr(text, '@')) == strlen(place->addresses) + 2; /* the @, and the end of the line */
    explicit_bzero(text, sizeof text);
    return good;
}

/* TB_AGAIN: it has just gone, or been replaced. */
static int look_at(struct tb_name_file *file, int descriptor)
{
    struct tb_name_place place;
    bool place_is_told = is_place(descriptor, &place);
    explicit_bzero(&place.key, sizeof place.key);
    if (!place_is_told)
        return refuse(file->path, "exists, and tombolo meet has not written it");
    if (flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return tb_error(
            TB_ERR_ARGUMENT,
            "%s is of a tombolo meet that still runs, at %s: start jobs with that one, end it first, or name "
            "another file",
            file->path, place.addresses);
    return is_at(descriptor, file->path) ? TB_OK : TB_AGAIN;
}

static int try_to_claim(struct tb_name_file *file)
{
    struct stat status;
    if (lstat(file->path, &status) != 0)
        return errno == ENOENT ? TB_OK : tb_error_errno("%s cannot be looked at", file->path);
    if (S_ISLNK(status.st_mode))
        return refuse(file->path, "is a symbolic link");
    if (!S_ISREG(status.st_mode))
        return refuse(file->path, "exists, and is not a file");
    int descriptor = open(file->path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (descriptor < 0 && (errno == ENOENT || errno == ELOOP))
        return TB_AGAIN;
    if (descriptor < 0)
        return tb_error_errno("%s exists, and cannot be opened", file->path);
    int rc = look_at(file, descriptor);
    if (rc == TB_OK)
        file->left = descriptor;
    else
        close(descriptor);
    return rc;
}

int tb_name_file_claim(struct tb_name_file *file, const char *path)
{
    *file = (struct tb_name_file){.path = path, .left = -1, .own = -1};
    int rc = TB_AGAIN;
    for (int i = 0; i < TRIES && rc == TB_AGAIN; i++)
        rc = try_to_claim(file);
    return rc == TB_AGAIN ? refuse(path, "is replaced by others again and again") : rc;
}

/* Gives the file its name. One that was left is locked, so whoever else has found it keeps away. */
static int put_in_place(const struct tb_name_file *file, const char *other)
{
    if (file->left >= 0 && is_at(file->left, file->path))
        return rename(other, file->path) == 0 ? TB_OK : tb_error_errno("%s cannot be written", file->path);
    int rc = link(other, file->path);
    if (rc == 0)
        unlink(other);
    else if ((errno == EPERM || errno == EOPNOTSUPP) && access(file->path, F_OK) != 0)
        rc = rename(other, file->path); /* a file system without links */
    if (rc != 0 && errno == EEXIST)
        return refuse(file->path, "was made by somebody else just now");
    return rc == 0 ? TB_OK : tb_error_errno("%s cannot be written", file->path);
}

int tb_name_file_write(struct tb_name_file *file, const char *text)
{
    char other[4096], line[TB_NAME_PLACE_BYTES + 1];
    struct tb_name_place place;
    int rc = TB_OK, length = snprintf(line, sizeof line, "%s\n", text);
    snprintf(other, sizeof other, "%s.XXXXXX", file->path);
    file->own = mkostemp(other, O_CLOEXEC); /* which only its owner may read */
    if (file->own < 0 || write(file->own, line, (size_t)length) != length || fsync(file->own) != 0)
        rc = tb_error_errno("%s cannot be written", file->path);
    if (rc == TB_OK) {
        flock(file->own, LOCK_EX | LOCK_NB); /* before anybody finds it; a file system without locks does without */
        rc = put_in_place(file, other);
    }
    if (rc == TB_OK && is_place(file->own, &place))
        file->key = place.key;
    if (rc != TB_OK && file->own >= 0)
        unlink(other);
    if (file->left >= 0)
        close(file->left);
    file->left = -1;
    explicit_bzero(line, sizeof line);
    explicit_bzero(&place, sizeof place);
    return rc;
}

/* Neither has another file its name now, nor has somebody written into it. */
static bool is_as_written(const struct tb_name_file *file)
{
    struct tb_name_place place;
    bool same = file->own >= 0 && is_at(file->own, file->path) && is_place(file->own, &place) &&
                memcmp(place.key.bytes, file->key.bytes, sizeof place.key.bytes) == 0;
    explicit_bzero(&place, sizeof place);
    return same;
}

void tb_name_file_close(struct tb_name_file *file)
{
    if (is_as_written(file))
        unlink(file->path);
    explicit_bzero(&file->key, sizeof file->key);
    if (file->own >= 0)
        close(file->own);
    if (file->left >= 0)
        close(file->left);
    file->own = file->left = -1;
}

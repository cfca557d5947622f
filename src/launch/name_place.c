#include "launch/name_place.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SECRET_CHARS 32u

int tb_name_place_make(struct tb_name_place *place, const char *addresses, char text[static TB_NAME_PLACE_BYTES])
{
    uint64_t random[2];
    int rc = tb_random_secret(random, sizeof random);
    if (rc != TB_OK)
        return rc;
    snprintf(text, TB_NAME_PLACE_BYTES, "tombolo-meet:%016llx%016llx@%s", (unsigned long long)random[0],
             (unsigned long long)random[1], addresses);
    return tb_name_place_parse(place, text);
}

int tb_name_place_parse(struct tb_name_place *place, const char *text)
{
    char secret[SECRET_CHARS + 1] = "";
    *place = (struct tb_name_place){0};
    if (sscanf(text, "tombolo-meet:%32[0-9a-f]@%700[]0-9a-fA-F.,:[]", secret, place->addresses) != 2 ||
        strlen(secret) != SECRET_CHARS || strlen(place->addresses) == 0)
        return tb_error(TB_ERR_ARGUMENT, "it is not what tombolo meet has written");
    int rc = tb_key_derive(&place->key, secret);
    explicit_bzero(secret, sizeof secret);
    return rc;
}

int tb_name_place_read(struct tb_name_place *place, const char *path)
{
    char text[TB_NAME_PLACE_BYTES + 2] = "";
    FILE *f = fopen(path, "re");
    if (f == NULL)
        return tb_error_errno("--meet %s: cannot be read", path);
    bool any = fgets(text, sizeof text, f) != NULL;
    fclose(f);
    int rc = any ? tb_name_place_parse(place, text) : tb_error(TB_ERR_ARGUMENT, "it is empty");
    explicit_bzero(text, sizeof text);
    return rc == TB_OK ? TB_OK : tb_error(rc, "--meet %s: %s", path, tb_error_story());
}

int tb_name_place_write(const char *path, const char *text)
{
    char other[4096];
    snprintf(other, sizeof other, "%s.XXXXXX", path);
    int fd = mkostemp(other, O_CLOEXEC); /* which only its owner may read */
    size_t length = strlen(text);
    bool good = fd >= 0 && write(fd, text, length) == (ssize_t)length && write(fd, "\n", 1) == 1;
    if (fd >= 0)
        good = close(fd) == 0 && good;
    if (good && rename(other, path) == 0)
        return TB_OK;
    int rc = tb_error_errno("%s cannot be written", path);
    if (fd >= 0)
        unlink(other);
    return rc;
}

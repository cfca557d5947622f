#include "launch/name_place.h"

#include <stdio.h>
#include <string.h>

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

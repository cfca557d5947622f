#include "launch/port_name.h"

#include <stdio.h>
#include <string.h>

int tb_port_name_make(char name[static TB_PORT_NAME_BYTES], uint32_t job, uint32_t number, struct tb_key *key)
{
    uint64_t random[2];
    char secret[40];
    int rc = tb_random_secret(random, sizeof random);
    if (rc != TB_OK)
        return rc;
    snprintf(secret, sizeof secret, "%016llx%016llx", (unsigned long long)random[0], (unsigned long long)random[1]);
    snprintf(name, TB_PORT_NAME_BYTES, "tombolo:%08x:%u:%s", job, number, secret);
    return tb_key_derive(key, secret);
}

void tb_port_name_add(char name[static TB_PORT_NAME_BYTES], const char *addresses, size_t length)
{
    size_t used = strlen(name);
    while (length > 0 && used + 1 + length >= TB_PORT_NAME_BYTES) {
        const char *comma = memrchr(addresses, ',', length);
        length = comma != NULL ? (size_t)(comma - addresses) : 0;
    }
    if (length > 0)
        snprintf(name + used, TB_PORT_NAME_BYTES - used, "@%.*s", (int)length, addresses);
}

int tb_port_name_parse(const char *name, size_t length, struct tb_port_name *port)
{
    char text[TB_PORT_NAME_BYTES], secret[40] = "";
    int at = 0;
    *port = (struct tb_port_name){0};
    snprintf(text, sizeof text, "%.*s", (int)(length < sizeof text ? length : 0), name);
    if (sscanf(text, "tombolo:%8x:%*u:%32[0-9a-f]%n", &port->job, secret, &at) != 2 || strlen(secret) != 32 ||
        (text[at] != '@' && text[at] != 0))
        return tb_error(TB_ERR_CLOSED, "\"%.*s\" is no name of a port: these come from MPI_Open_port",
                        (int)(length < 200 ? length : 200), name);
    snprintf(port->addresses, sizeof port->addresses, "%s", text[at] == '@' ? text + at + 1 : "");
    int rc = tb_key_derive(&port->key, secret);
    explicit_bzero(secret, sizeof secret);
    explicit_bzero(text, sizeof text);
    return rc;
}

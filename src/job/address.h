/* Addresses of hosts: where an agent can be reached, as jobs write them down. */
#ifndef TB_JOB_ADDRESS_H
#define TB_JOB_ADDRESS_H

#include "wire/wire.h"

#include <netinet/in.h>
#include <sys/socket.h>

struct tb_address {
    uint8_t family; /* 4 or 6 */
    uint8_t prefix; /* bits of the subnet, so that a common one is tried first */
    uint16_t port;  /* of the host's agent */
    uint32_t scope; /* of link-local IPv6; otherwise 0 */
    uint8_t bytes[16];
};

void tb_address_put(struct tb_writer *w, const struct tb_address *address);
int tb_address_get(struct tb_reader *r, struct tb_address *address);
void tb_address_print(const struct tb_address *address, char *text, size_t size); /* "10.0.0.1:4711", "[::1]:4711" */
socklen_t tb_address_socket(const struct tb_address *address, struct sockaddr_storage *to);

/* Whether both are in the wider one of their subnets. Of one of which no subnet is known it is not so. */
bool tb_address_same_subnet(const struct tb_address *a, const struct tb_address *b);
/* "0", "4711" or "20000-20100", as the parameter `ports` has it. */
int tb_ports_parse(const char *text, uint16_t *low, uint16_t *high);
/* Listens at the first free one of them, at all addresses, in both families where there are two. A socket that does not
 * block, or -1: errno says why. */
int tb_ports_listen(const char *text, uint16_t *port);
/* As tb_address_print has it. TB_ERR_ARGUMENT: it is something else. */
int tb_address_parse(const char *text, struct tb_address *address);

#endif

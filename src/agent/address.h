/* The addresses of this host, and what can be said of an address by looking at it. */
#ifndef TB_AGENT_ADDRESS_H
#define TB_AGENT_ADDRESS_H

#include "job/job.h"

struct tb_address_list {
    uint32_t count;
    struct tb_address at[TB_HOST_ADDRESS_LIMIT];
};

/* Those of this host that the parameter `interfaces` and common sense choose, with this port. */
int tb_address_list_own(struct tb_address_list *list, uint16_t port);
/* Of the addresses of an inner host, keeps those that its neighbours are near to; if there are none, the one to which
 * `ssh` (SSH_CONNECTION, or NULL) says that somebody has come; or the only one. False: which of them others use cannot
 * be told, and the list is as it was. */
bool tb_address_list_narrow(struct tb_address_list *own, const struct tb_address *neighbours, uint32_t count,
                            const char *ssh);
/* Is the address in a subnet of one of the list? */
bool tb_address_is_near(const struct tb_address_list *list, const struct tb_address *address);
/* The index of the interface that has an address of this host, and passes multicast. An error says why not. */
int tb_address_find_interface(const struct tb_address *own, uint32_t *index);
/* Link-local addresses need the number of our own interface, not of theirs. */
void tb_address_fix_scope(const struct tb_address_list *own, struct tb_address *address);

#endif

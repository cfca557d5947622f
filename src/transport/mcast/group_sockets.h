/* The two sockets of a multicast group: how they are made, and what the kernel says of them. */
#ifndef TB_TRANSPORT_MCAST_GROUP_SOCKETS_H
#define TB_TRANSPORT_MCAST_GROUP_SOCKETS_H

#include "transport/mcast/group.h"

/* The one that hears: bound to the address of the group, as those of other processes of the host may be. */
int tb_mcast_sockets_hear(const struct tb_mcast_config *config, int *socket);
/* The one from which everything is sent, and its address. */
int tb_mcast_sockets_speak(const struct tb_mcast_config *config, int *socket, union tb_mcast_address *own);
/* Bytes that a datagram of UDP can have on this interface. */
int tb_mcast_sockets_limit(int socket, int family, uint32_t interface, uint32_t *limit);
/* Bytes that the kernel holds for a socket, by its own count, which is about what memory it takes. */
uint32_t tb_mcast_sockets_buffer(int socket);
uint64_t tb_mcast_sockets_drops(int socket);
/* Errors of datagrams that were sent are taken out and forgotten: what they say, nobody depends on. */
void tb_mcast_sockets_forget_errors(int socket);

#endif

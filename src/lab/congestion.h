/* TCP's congestion control on the machines of a lab. A network namespace takes only one that the first network of this
 * computer allows (net.ipv4.tcp_allowed_congestion_control), and keeps it when that list is shortened again. So whoever
 * starts a lab, if it may, lets the list be longer for the moment in which the machines are made: a permit. The list is
 * put back by a process of its own that no signal of the terminal reaches, as soon as nobody holds the permit any more,
 * however they ended.
 *
 * Belongs to the one thread of a command. */
#ifndef TB_LAB_CONGESTION_H
#define TB_LAB_CONGESTION_H

#include "topology/topology.h"

#include <sys/types.h>

#define TB_CONGESTION_DEFAULT "cubic"
#define TB_CONGESTION_LIST    "/proc/sys/net/ipv4/tcp_allowed_congestion_control"

struct tb_congestion_permit {
    int fd; /* whoever has it open holds the permit; -1: none is needed, or we may not give one */
    pid_t guard;
};

/* Can something be called so: letters, digits and '_', at most 15? */
bool tb_congestion_is_name(const char *text);
/* Is it one of the words of a list? */
bool tb_congestion_in(const char *list, const char *name);
/* Does this kernel have it, perhaps as a module that it loads now? The story names those that there are. */
int tb_congestion_find(const char *name);
/* Writes the one that new sockets of the network in which we are get, into TB_GRID_CONGESTION_BYTES; "" where unknown.
 */
void tb_congestion_read(char *name);

/* Lets the list in a file have the name too. Waits for others who do the same, for ten seconds. An error only if
 * processes or memory are short; where the list may not be written, there is no permit. */
int tb_congestion_allow(struct tb_congestion_permit *permit, const char *list, const char *name);
/* Our hold of it ends; others may have one. */
void tb_congestion_let_go(struct tb_congestion_permit *permit);
/* The same, and waits until nobody holds it and the list is as it was. */
void tb_congestion_await(struct tb_congestion_permit *permit);

#endif

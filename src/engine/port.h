/* A way out for the DATA of long messages. Transfers that share one go in order: there is one for everything that goes
 * through sockets, and one for each peer in shared memory. A port belongs to the engine or to a peer; the requests in
 * it belong to their users. Touched with the engine locked. */
#ifndef TB_ENGINE_PORT_H
#define TB_ENGINE_PORT_H

#include "engine/engine.h"

struct tb_port {
    struct tb_list transfers; /* requests, by `queue` */
    struct tb_list on_engine; /* in the busy ones while there are transfers */
};

/* All of an engine. */
struct tb_ports {
    struct tb_list busy;
    struct tb_port network; /* that of sockets */
};

void tb_port_open(struct tb_port *port);
/* The receiver of a send waits for its data, or gets it without asking; some of it goes at once, if nothing else is
 * before it. */
void tb_port_start(struct tb_ports *ports, struct tb_port *port, struct tb_request *r);
int tb_ports_pump(struct tb_ports *ports); /* how many transfers have moved */

#endif

/* The names that `tombolo meet` keeps for jobs without a launcher in common: a launcher connects, proves the secret,
 * speaks TLS, and asks what its ranks ask (MPI_Publish_name, MPI_Lookup_name): TB_CONTROL_REGISTRY, answered by
 * TB_CONTROL_ANSWER, as between agents and launcher. A name goes with the rank that has published it, and all
 * names of a job with its connection. A stranger gets no answer. Belongs to its one thread. */
#ifndef TB_LAUNCH_NAME_SERVER_H
#define TB_LAUNCH_NAME_SERVER_H

#include "job/job.h"
#include "remote/remote.h"

#define TB_NAME_SERVER_CLIENTS 1024u /* jobs that may be connected */
#define TB_NAME_SERVER_CALLERS 256u  /* connections that have not proved the secret */

struct tb_name_server {
    struct tb_loop *loop;
    struct tb_key key;
    struct tb_callers callers;
    struct tb_nonces nonces;
    struct tb_name_table names;
    struct tb_timer late;
    struct tb_list dead;                                   /* clients that have ended */
    struct tb_name_guest *clients[TB_NAME_SERVER_CLIENTS]; /* NULL: nobody */
};

/* Takes the socket, which listens, unless there is an error. */
int tb_name_server_open(struct tb_name_server *server, struct tb_loop *loop, int socket, const struct tb_key *key);
void tb_name_server_close(struct tb_name_server *server);
void tb_name_server_settle(struct tb_name_server *server); /* before each sleep: answers leave */

#endif

/* The border: where processes of this job and of others meet (MPI_Open_port, MPI_Comm_connect). The agent of a host at
 * which a port is open listens there for those who prove the secret of a port, or connects to another job's; then the
 * two speak TLS (border_link.h). To its own job, the border stands for the processes of the others (border_ranks.h):
 * they seem to be ranks of this host. So whatever carries frames within a job carries them up to here, and from there
 * on in the other job. Neither job learns the key of the other.
 *
 * What the launcher says comes in TB_CONTROL_BORDER, and what it hears goes there. The agent owns it; one thread. */
#ifndef TB_AGENT_BORDER_H
#define TB_AGENT_BORDER_H

#include "agent/border_limits.h"
#include "agent/uplink.h"

#define TB_BORDER_CALLERS 256u   /* that have not proved a secret yet */
#define TB_BORDER_LINKS   65536u /* that there can be */

struct tb_border_events {
    void *context;
    /* A process of another job wants a connection with the agent; tb_border_connection answers, from inside. */
    void (*connect)(void *context, uint32_t rank, enum tb_stream stream);
    uint64_t (*kept)(void *context, uint32_t rank); /* bytes of its frames that are kept until they have arrived */
};

struct tb_border {
    const struct tb_member *member;
    struct tb_uplink *uplink;
    struct tb_border_events events;
    struct tb_border_ranks ranks;
    struct tb_border_limits limits;
    struct tb_callers callers; /* not open before the first port is */
    struct tb_nonces nonces;   /* of the hellos that were answered */
    struct tb_list ports, dials, links;
    uint32_t link_count, next_link;
    char addresses[600]; /* where others come to, with commas between them */
};

void tb_border_open(struct tb_border *border, const struct tb_member *member, struct tb_uplink *uplink,
                    const struct tb_border_events *events);
void tb_border_close(struct tb_border *border);
void tb_border_take(struct tb_border *border, struct tb_reader *r); /* TB_CONTROL_BORDER */
bool tb_border_has(const struct tb_border *border,
                   uint32_t rank);                      /* a process of a job that can be reached from here */
bool tb_border_is_used(const struct tb_border *border); /* there is a job that was met, or may yet come */
void tb_border_connection(struct tb_border *border, uint32_t rank, enum tb_stream stream, int socket);
void tb_border_settle(struct tb_border *border); /* before each sleep */

#endif

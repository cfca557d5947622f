/* Host services: what every rank of this host gets with its welcome: shared memory, a doorbell for each rank, the
 * address book, the routes, what links cost, a plan if there is one, memory for plans, the parameters, and whether
 * multicast is tested. The agent
 * makes them once, before the ranks start, and keeps them for as long as the job lasts. */
#ifndef TB_AGENT_HOST_SERVICES_H
#define TB_AGENT_HOST_SERVICES_H

#include "job/job.h"

struct tb_host_services {
    uint32_t host;          /* its number in the address book */
    uint32_t first, size;   /* the world of these ranks: its first index, and how many it has */
    const char *parameters; /* as tb_param_export writes them; the agent's */
    uint64_t segment_bytes;
    int segment, book, routes, plans; /* memfds; -1: not made */
    int plan;                         /* the same: what the job follows; -1: none */
    int worlds;                       /* the same: where processes are that are started later, of the address book */
    int parent;                       /* the same, of a spawned world: who has spawned it; -1: it was not */
    const struct tb_multicast_facts
        *multicast; /* what is known of it, changing with each verdict; NULL: there is none */
    int costs;      /* the same: the first version of what links cost, of the cost store; -1: not there */
    uint32_t rank_count;
    int *doorbells; /* eventfds, one for each rank */
};

void tb_host_services_init(struct tb_host_services *services);
/* Whatever was made stays in case of an error, until tb_host_services_close. */
int tb_host_services_make(struct tb_host_services *services, uint32_t rank_count, struct tb_address_book *book,
                          const struct tb_host_routes *routes);
/* Those of a world that was started later, which has memory and doorbells of its own, and all else like `others`. */
int tb_host_services_spawn(struct tb_host_services *services, uint32_t rank_count,
                           const struct tb_host_services *others, const void *parent, size_t parent_bytes);
int tb_host_services_change_routes(struct tb_host_services *services, const struct tb_host_routes *routes);
void tb_host_services_close(struct tb_host_services *services);

#endif

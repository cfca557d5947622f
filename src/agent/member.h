/* This agent as a member of its job: who it is, and what it knows of the others. The agent owns it and fills it in as
 * the launcher tells it; the parts that use the network only read it. One thread. */
#ifndef TB_AGENT_MEMBER_H
#define TB_AGENT_MEMBER_H

#include "agent/address.h"
#include "remote/remote.h"

struct tb_member {
    struct tb_loop *loop;
    const struct tb_key *key;            /* of the job */
    struct tb_proc self;                 /* the agent as a process of the job */
    uint32_t host;                       /* its host in the address book */
    const char *name;                    /* of that host */
    bool running;                        /* the others are known, and the ranks are not being ended */
    const struct tb_address_book *book;  /* empty until the launcher has told it */
    const struct tb_host_routes *routes; /* of this host; empty without a grid */
    struct tb_address_list addresses;    /* of this host */
};

static inline bool tb_proc_is_agent(struct tb_proc proc)
{
    return (proc.index & TB_PROC_AGENT) != 0;
}

/* The host of a process of this job; TB_ERR_PEER with a story: there is no such process. */
int tb_member_find_host(const struct tb_member *member, struct tb_proc proc, uint32_t *host);
const struct tb_host_route *tb_member_route(const struct tb_member *member, uint32_t host);
/* Is the host in another cluster of the grid, so that the way to it crosses a wide area? */
bool tb_member_is_wide(const struct tb_member *member, uint32_t host);
/* May ranks there and here connect to each other? Else only agents do, for them. */
bool tb_member_lets_ranks(const struct tb_member *member, uint32_t host);
/* Is what goes to the agent of that host encrypted? */
bool tb_member_encrypts(const struct tb_member *member, uint32_t host);

#endif

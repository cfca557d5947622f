#include "agent/member.h"

int tb_member_find_host(const struct tb_member *member, struct tb_proc proc, uint32_t *host)
{
    bool is_agent = tb_proc_is_agent(proc);
    *host = proc.index & ~TB_PROC_AGENT;
    if (proc.job != member->self.job ||
        (is_agent ? *host >= member->book->host_count : !tb_address_book_knows(member->book, proc.index)))
        return tb_error(TB_ERR_PEER, "there is no %s %u in this job", is_agent ? "host" : "rank", *host);
    if (!is_agent)
        *host = tb_address_book_host_of(member->book, proc.index);
    return TB_OK;
}

const struct tb_host_route *tb_member_route(const struct tb_member *member, uint32_t host)
{
    return tb_host_routes_to(member->routes, member->book, host);
}

bool tb_member_is_wide(const struct tb_member *member, uint32_t host)
{
    return host != member->host && !tb_member_route(member, host)->near;
}

bool tb_member_lets_ranks(const struct tb_member *member, uint32_t host)
{
    return host == member->host ||
           (tb_member_route(member, host)->open && !tb_param.forbid_direct && !tb_param_encrypts_all());
}

bool tb_member_encrypts(const struct tb_member *member, uint32_t host)
{
    return tb_param.gateway_tls && host != member->host && (tb_param_encrypts_all() || tb_member_is_wide(member, host));
}

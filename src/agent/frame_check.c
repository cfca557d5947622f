#include "agent/frame_check.h"

static int refuse(struct tb_proc from, const char *what, struct tb_proc whose)
{
    bool agent = tb_proc_is_agent(whose);
    if (tb_proc_is_agent(from))
        return tb_error(TB_ERR_PROTOCOL, "the agent of host %u passed on %s %s %u", from.index & ~TB_PROC_AGENT, what,
                        agent ? "the agent of host" : "rank", whose.index & ~TB_PROC_AGENT);
    return tb_error(TB_ERR_PROTOCOL, "rank %u sent nonsense to its agent: %s %s %u", from.index, what,
                    agent ? "the agent of host" : "rank", whose.index & ~TB_PROC_AGENT);
}

static int check_rank(const struct tb_member *member, struct tb_proc from, const struct tb_cargo *cargo)
{
    struct tb_proc to = cargo->destination;
    if (cargo->envelope->message.kind == TB_KIND_HOST)
        return tb_error(TB_ERR_PROTOCOL, "rank %u sent nonsense to its agent: what only agents say", from.index);
    if (cargo->source.job != from.job || cargo->source.index != from.index)
        return refuse(from, "a frame of", cargo->source);
    if (to.job != from.job || !tb_address_book_knows(member->book, to.index) || to.index == from.index)
        return refuse(from, "a frame for", to);
    return TB_OK;
}

/* Frames between agents are of a kind of their own. */
static int check_agent(const struct tb_member *member, struct tb_proc from, const struct tb_cargo *cargo)
{
    uint32_t there = from.index & ~TB_PROC_AGENT, source, destination;
    bool about_hosts = cargo->envelope->message.kind == TB_KIND_HOST;
    if (tb_member_find_host(member, cargo->source, &source) != TB_OK || source == member->host ||
        tb_proc_is_agent(cargo->source) != about_hosts)
        return refuse(from, "a frame of", cargo->source);
    if (tb_member_find_host(member, cargo->destination, &destination) != TB_OK || destination == source ||
        tb_proc_is_agent(cargo->destination) != about_hosts)
        return refuse(from, "a frame for", cargo->destination);
    if (source != there && !tb_member_route(member, there)->relays)
        return refuse(from, "though it is no gateway, a frame of", cargo->source);
    if (destination != member->host && !tb_member_route(member, member->host)->relays)
        return refuse(from, "to us, who are no gateway, a frame for", cargo->destination);
    return TB_OK;
}

int tb_frame_check(const struct tb_member *member, struct tb_proc from, const struct tb_cargo *cargo)
{
    return tb_proc_is_agent(from) ? check_agent(member, from, cargo) : check_rank(member, from, cargo);
}

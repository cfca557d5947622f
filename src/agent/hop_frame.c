#include "agent/hop_frame.h"
#include "agent/queue.h"

void tb_hop_frame_number(char *bytes, uint32_t sequence, bool seal)
{
    struct tb_hop hop;
    TB_ASSERT(tb_wire_get_hop(bytes, &hop) == TB_OK);
    hop.sequence = sequence;
    hop.flags = seal ? TB_HOP_CHECKED : 0;
    hop.check = 0;
    tb_wire_put_hop(bytes, &hop);
    if (seal)
        tb_wire_seal_heads(bytes, hop.type == TB_HOP_ENVELOPE ? TB_FRAME_BUFFER_HEAD : sizeof hop);
}

bool tb_hop_frame_count_pass(char *bytes)
{
    struct tb_hop hop;
    TB_ASSERT(tb_wire_get_hop(bytes, &hop) == TB_OK);
    if (hop.credit >= TB_HOP_PASSES_MOST)
        return false;
    hop.credit++;
    tb_wire_put_hop(bytes, &hop);
    return true;
}

static bool is_agent(struct tb_proc proc)
{
    return (proc.index & TB_PROC_AGENT) != 0;
}

int tb_hop_frame_nonsense(struct tb_proc from, const char *what)
{
    return tb_error(TB_ERR_PROTOCOL, "%s %u sent nonsense to the gateway: %s",
                    is_agent(from) ? "the agent of host" : "rank", from.index & ~TB_PROC_AGENT, what);
}

int tb_hop_frame_is_whole(const char *bytes, struct tb_proc from, const struct tb_hop *hop)
{
    bool checked = (hop->flags & TB_HOP_CHECKED) != 0;
    if (!checked && !is_agent(from))
        return TB_OK;
    size_t head = hop->type == TB_HOP_ENVELOPE ? TB_FRAME_BUFFER_HEAD : sizeof *hop;
    return checked && tb_wire_heads_intact(bytes, head)
               ? TB_OK
               : tb_hop_frame_nonsense(from, "the header of a frame was changed on the way");
}

int tb_hop_frame_look(const char *bytes, struct tb_proc from, uint32_t sequence, struct tb_hop *hop)
{
    if (tb_wire_get_hop(bytes, hop) != TB_OK)
        return tb_hop_frame_nonsense(from, tb_error_story());
    if (hop->type == TB_HOP_BYE) {
        int rc = tb_hop_frame_is_whole(bytes, from, hop);
        return rc != TB_OK ? rc : tb_error(TB_ERR_CLOSED, "the other side has said goodbye");
    }
    bool asks = (hop->type == TB_HOP_PING || hop->type == TB_HOP_PONG) && is_agent(from);
    if (hop->type != TB_HOP_ENVELOPE && !asks)
        return tb_hop_frame_nonsense(from, "a frame of a type that gateways do not pass on");
    if (hop->sequence != sequence)
        return tb_hop_frame_nonsense(from, "a frame out of sequence");
    if (hop->length > sizeof(struct tb_envelope) + TB_RELAY_PAYLOAD)
        return tb_hop_frame_nonsense(from, "a frame that is too long");
    return TB_OK;
}

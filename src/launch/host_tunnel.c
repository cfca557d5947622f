#include "launch/host_tunnel.h"

#define PIECE_BYTES 65536u
#define AHEAD_LIMIT (1u << 20) /* bytes in the stream of a parent; beyond it what is behind waits in its own stream */

void tb_host_tunnel_start(struct tb_control_stream *parent, uint32_t host, const struct tb_shell_target *target)
{
    struct tb_writer *w = tb_control_stream_begin(parent, TB_CONTROL_SHELL);
    tb_put_u32(w, host);
    tb_put_text(w, target->host);
    tb_put_text(w, target->user != NULL ? target->user : "");
    tb_put_u32(w, target->port);
    tb_put_text(w, target->command != NULL ? target->command : "");
    tb_put_text(w, target->program);
    tb_control_stream_end(parent);
}

void tb_host_tunnel_end(struct tb_control_stream *parent, uint32_t host, enum tb_tunnel_end how)
{
    struct tb_writer *w = tb_control_stream_begin(parent, TB_CONTROL_TUNNEL_END);
    tb_put_u32(w, host);
    tb_put_u8(w, (uint8_t)how);
    tb_put_u32(w, 0);
    tb_control_stream_end(parent);
}

static void send_piece(struct tb_control_stream *parent, uint32_t host, const void *bytes, size_t length)
{
    struct tb_writer *w = tb_control_stream_begin(parent, TB_CONTROL_TUNNEL);
    tb_put_u32(w, host);
    tb_put_bytes(w, bytes, length);
    tb_control_stream_end(parent);
}

bool tb_host_tunnel_is_full(const struct tb_control_stream *parent)
{
    return tb_control_stream_queued(parent) >= AHEAD_LIMIT;
}

bool tb_host_tunnel_move(struct tb_control_stream *parent, uint32_t host, struct tb_control_stream *from)
{
    size_t length;
    if (tb_control_stream_queued(from) == 0 || tb_host_tunnel_is_full(parent))
        return false;
    const void *bytes = tb_control_stream_take(from, PIECE_BYTES, &length);
    send_piece(parent, host, bytes, length);
    return true;
}

void tb_host_tunnel_admit(struct tb_control_stream *parent, uint32_t host, uint32_t coming, uint32_t next)
{
    uint8_t bytes[4] = {(uint8_t)next, (uint8_t)(next >> 8), (uint8_t)(next >> 16), (uint8_t)(next >> 24)};
    struct tb_writer *w = tb_control_stream_begin(parent, TB_CONTROL_ATTACH);
    tb_put_u32(w, host);
    tb_put_u32(w, coming);
    tb_control_stream_end(parent);
    send_piece(parent, host, bytes, sizeof bytes);
}
